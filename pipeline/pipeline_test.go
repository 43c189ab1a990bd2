// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const conv = artel.ConversationID("cnv_00000000000000000000000000")

// world is a conversation with artifacts.
type world struct {
	t     *testing.T
	db    store.Store
	files *artifact.Collection
	blobs *blob.Memory
	ws    *artifact.Workspace
	pdf   *pdf.Engine // of makers; nil: pages are not drawn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := rowstest.Open(t)
	err := db.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: conv})
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, blobs: blob.NewMemory()}
	w.files = artifact.New(db, w.blobs, artifact.Options{Now: func() time.Time { return now }})
	w.ws = w.files.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: conv, Author: "lead"})
	return w
}

func (w *world) upload(name string, data []byte) artel.Artifact {
	w.t.Helper()
	s, err := w.files.Uploads.Stage(w.t.Context(), bytes.NewReader(data), media.Hint{Filename: name})
	if err != nil {
		w.t.Fatal(err)
	}
	as, err := w.files.Uploads.Add(w.t.Context(), artel.Local, conv, []artifact.Staged{s})
	if err != nil {
		w.t.Fatal(err)
	}
	return as[0]
}

func (w *world) create(id artel.ArtifactID, content string) {
	w.t.Helper()
	if _, err := w.ws.Create(w.t.Context(), id, "Title of "+string(id), content, "text/markdown"); err != nil {
		w.t.Fatal(err)
	}
}

var now = time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC)

func builtIn(t testing.TB, more ...pipeline.Processor) *pipeline.Registry {
	t.Helper()
	r, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// service counts characters, so that tests can.
func service(window int, can ...artel.Capability) model.Service {
	c := model.TextOnly()
	c.Input = model.Fact[[]artel.Capability]{Value: append(can, artel.CanText), Source: model.FromOperator}
	c.ContextWindow.Value, c.Tokenizer.Value = window, token.Characters
	return model.Service{ID: "svc", Dialect: model.OpenAI, Model: "m", Capabilities: c}
}

func input(s model.Service, history ...artel.Message) pipeline.Input {
	return pipeline.Input{
		Owner: artel.Local, Conversation: conv, Agent: pipeline.Agent{Name: "lead"}, Service: s, History: history, Locale: "en",
	}
}

func say(id, role, text string) artel.Message {
	return artel.Message{ID: artel.MessageID(id), Role: artel.Role(role), Parts: artel.Parts{artel.Text{Text: text}}}
}

func calls(id string, ids ...artel.CallID) artel.Message {
	m := artel.Message{ID: artel.MessageID(id), Role: artel.RoleAssistant}
	for _, c := range ids {
		m.Parts = append(m.Parts, artel.ToolCall{ID: c, Name: "f", Arguments: json.RawMessage(`{}`)})
	}
	return m
}

func answers(id string, c artel.CallID, content string, parts ...artel.Part) artel.Message {
	return artel.Message{ID: artel.MessageID(id), Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: c, Content: content, Parts: parts}}}
}

func with(m artel.Message, change func(*artel.Message)) artel.Message {
	change(&m)
	return m
}

func build(t testing.TB, in pipeline.Input) pipeline.Result {
	t.Helper()
	r, err := builtIn(t).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ids(r pipeline.Result) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.ID)
	}
	return out
}

func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 600, 400))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoading(t *testing.T) {
	muted := func(m *artel.Message) { m.Muted = true }
	summary := func(m *artel.Message) { m.Summary = true }
	by := func(a artel.AgentName) func(*artel.Message) { return func(m *artel.Message) { m.Agent = a } }
	under := func(p artel.MessageID) func(*artel.Message) { return func(m *artel.Message) { m.Parent = p } }
	for _, c := range []struct {
		name    string
		history []artel.Message
		head    artel.MessageID
		want    []string
	}{
		{"as listed", []artel.Message{say("1", "user", "a"), say("2", "assistant", "b")}, "", []string{"1", "2"}},
		{"up to the head", []artel.Message{say("1", "user", "a"), say("2", "assistant", "b")}, "1", []string{"1"}},
		{"muted", []artel.Message{with(say("1", "user", "a"), muted), say("2", "user", "b")}, "", []string{"2"}},
		{"blank", []artel.Message{say("1", "user", " \n"), say("2", "user", "b"), {ID: "3", Role: artel.RoleAssistant}}, "", []string{"2"}},
		{"a file without a word", []artel.Message{{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: " "}, artel.Media{MediaType: "image/png", Kind: artel.KindImage}}}}, "", []string{"1"}},
		{"other agents", []artel.Message{say("1", "user", "a"), with(say("2", "assistant", "b"), by("other")), with(say("3", "assistant", "c"), by("lead"))}, "", []string{"1", "3"}},
		{"summary", []artel.Message{say("1", "user", "a"), with(say("2", "user", "s"), summary), say("3", "user", "b")}, "", []string{"2", "3"}},
		{"newest summary", []artel.Message{with(say("1", "user", "s"), summary), with(say("2", "user", "s"), summary), say("3", "user", "b")}, "", []string{"2", "3"}},
		{"muted summary", []artel.Message{say("1", "user", "a"), with(with(say("2", "user", "s"), summary), muted), say("3", "user", "b")}, "", []string{"1", "3"}},
		{"branch", []artel.Message{say("1", "user", "a"), with(say("2", "assistant", "b"), under("1")), with(say("3", "assistant", "c"), under("1")), with(say("4", "user", "d"), under("2"))}, "", []string{"1", "2", "4"}},
		{"missing parent", []artel.Message{say("1", "user", "a"), with(say("3", "user", "c"), under("2"))}, "", []string{"3"}},
		{"loop", []artel.Message{with(say("1", "user", "a"), under("2")), with(say("2", "user", "b"), under("1"))}, "", []string{"1", "2"}},
		{"exchange", []artel.Message{say("1", "user", "a"), calls("2", "x", "y"), answers("3", "x", "r"), answers("4", "y", "r")}, "", []string{"1", "2", "3", "4"}},
		{"muted call", []artel.Message{say("1", "user", "a"), with(calls("2", "x"), muted), answers("3", "x", "r"), say("4", "user", "b")}, "", []string{"1", "4"}},
		{"muted result", []artel.Message{say("1", "user", "a"), calls("2", "x"), with(answers("3", "x", "r"), muted), say("4", "user", "b")}, "", []string{"1", "2", "artel:no-result:2", "4"}},
		{"one of two results", []artel.Message{say("1", "user", "a"), calls("2", "x", "y"), answers("3", "x", "r")}, "", []string{"1", "2", "3", "artel:no-result:2"}},
		{"two of three results after a dropped one", []artel.Message{answers("0", "w", "r"), calls("1", "x", "y", "z"), answers("2", "x", "r"), answers("3", "y", "r")}, "", []string{"1", "2", "3", "artel:no-result:1"}},
		{"result before its call", []artel.Message{answers("0", "x", "r"), calls("1", "x"), say("2", "user", "a")}, "", []string{"1", "artel:no-result:1", "2"}},
		{"summary inside an exchange", []artel.Message{calls("1", "x"), with(say("2", "user", "s"), summary), answers("3", "x", "r"), say("4", "user", "b")}, "", []string{"2", "4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(0), c.history...)
			in.Head, in.Until = c.head, pipeline.SessionLoader
			if diff := cmp.Diff(c.want, ids(build(t, in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("no such role", func(t *testing.T) {
		_, err := builtIn(t).Build(t.Context(), input(service(0), say("1", "function", "a")))
		if !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "function") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("emptied later", func(t *testing.T) { // what is blank is not loaded, and what becomes blank stays
		p := pipeline.Processor{ID: "empties", Priority: pipeline.PriorityTranscription, Process: emptyText("2")}
		r, err := builtIn(t, p).Build(t.Context(), input(service(0), say("1", "user", "a"), say("2", "assistant", "b"), say("3", "user", "c")))
		if err != nil || !slices.Equal(ids(r), []string{"1", "2", "3"}) {
			t.Errorf("got %v, %v", ids(r), err)
		}
	})
	t.Run("no such head", func(t *testing.T) {
		in := input(service(0), say("1", "user", "a"))
		in.Head = "9"
		_, err := builtIn(t).Build(t.Context(), in)
		var e *artel.Error
		if !errors.As(err, &e) || e.Kind != artel.Invalid || e.Subject != pipeline.SessionLoader {
			t.Errorf("got %v", err)
		}
	})
}

func TestAttachments(t *testing.T) {
	w := newWorld(t)
	shot := w.upload("shot.png", picture(t))
	notes := w.upload("notes.md", []byte("# Hi\n```go\nx\n```"))
	long := w.upload("long.txt", []byte(strings.Repeat("0123456789\n", 10_000)))
	gone := w.upload("gone.pdf", []byte("%PDF-1.4\n%âãÏÓ\n1 0 obj\n<<>>\nendobj\ntrailer<<>>\n%%EOF\n"))
	if _, err := w.blobs.Delete(t.Context(), gone.Digest, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	in := input(service(0, artel.CanVision, artel.CanFile), artel.Message{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{
		artel.Text{Text: "look"}, shot.MediaPart(), notes.MediaPart(), long.MediaPart(), gone.MediaPart(),
	}}, calls("2", "c"), answers("3", "c", "{}", artel.Text{Text: "label"}, shot.MediaPart()), say("4", "user", "and?"))
	in.Sources = w.files
	r := build(t, in)

	p := r.Request.Messages[0].Parts
	if len(p) != 6 {
		t.Fatalf("%d parts: %v", len(p), p)
	}
	if diff := cmp.Diff(artel.Text{Text: "attachment shot.png v1 (shot.png)"}, p[1]); diff != "" {
		t.Error(diff)
	}
	native := p[2].(artel.Media)
	if native.Ref.Digest != shot.Digest || native.Width != 600 {
		t.Errorf("media: %+v", native)
	}
	if want := "attachment notes.md v1 (notes.md, text/markdown):\n````\n# Hi\n```go\nx\n```\n````"; p[3] != (artel.Text{Text: want}) {
		t.Errorf("text: %q", p[3])
	}
	text := p[4].(artel.Text).Text
	if n := strings.Count(text, "0123456789\n"); n != 4545 {
		t.Errorf("%d lines are shown", n)
	}
	if want := "```\n[49995 of 110000 characters are shown; to continue: read_artifact(id='long.txt', offset=4546, version=1)]"; !strings.HasSuffix(text, want) {
		t.Errorf("the cut says %q", text[len(text)-120:])
	}
	if got := p[5].(artel.Text).Text; !strings.HasPrefix(got, "[file failed: gone.pdf]") {
		t.Errorf("missing bytes: %q", got)
	}
	result := r.Request.Messages[2].Parts[0].(artel.ToolResult)
	if len(result.Parts) != 2 || result.Parts[1].(artel.Media).Ref.Digest != shot.Digest {
		t.Errorf("tool result: %+v", result)
	}
	var steps []artel.Reason
	for _, d := range r.Record.Decisions {
		steps = append(steps, d.Reason)
	}
	if diff := cmp.Diff([]artel.Reason{"", artel.ReasonText, artel.ReasonText, artel.ReasonUnreadable, ""}, steps); diff != "" {
		t.Errorf("reasons: %s", diff)
	}

	in.Service = service(0)
	r = build(t, in)
	if got := r.Request.Messages[0].Parts[1].(artel.Text).Text; !strings.HasPrefix(got, "[cannot read] shot.png (artifact:shot.png)\n") {
		t.Errorf("described: %q", got)
	}
	result = r.Request.Messages[2].Parts[0].(artel.ToolResult)
	if len(result.Parts) != 0 || !strings.HasPrefix(result.Content, "{}\n\nlabel\n\n[cannot read] shot.png") {
		t.Errorf("described tool result: %+v", result)
	}

	in.Sources = nil
	if got := build(t, in).Request.Messages[0].Parts[2].(artel.Text).Text; !strings.HasPrefix(got, "[file failed: notes.md]") {
		t.Errorf("without sources: %q", got)
	}
}

func TestReminder(t *testing.T) {
	w := newWorld(t)
	in := input(service(0), say("1", "user", "go"))
	in.Agent.Prompt, in.Now, in.Sources = "You lead.", now, w.files
	last := func() string {
		r := build(t, in)
		m := r.Request.Messages[len(r.Request.Messages)-1]
		return m.Parts[len(m.Parts)-1].(artel.Text).Text
	}
	if want := "<system-reminder>\nThe time is 2026-05-04T12:30:00Z (Monday).\n</system-reminder>"; last() != want {
		t.Errorf("nothing to tell: %s", last())
	}
	in.Tools = []model.ToolSpec{{Name: "create_artifact"}, {Name: "list_artifacts"}}
	if got := last(); !strings.Contains(got, "There is no task plan yet") || !strings.Contains(got, "There are no artifacts") {
		t.Errorf("with tools: %s", got)
	}
	w.create("task_plan", "- [x] a\n- [ ] b\n1. [✓] c\n[x](link)\n")
	w.create("report", strings.Repeat("r", 300))
	w.upload("shot.png", picture(t))
	got := last()
	for _, want := range []string{
		"version 1; 2 of 3 steps done", "<team_task_plan version=\"1\">\n- [x] a\n", "2 artifacts in this conversation:",
		`<artifact_slice id="report" version="1" type="text/markdown" source="agent" size="300 B" truncated_by="preview">` + "\n<title>Title of report</title>\n" + strings.Repeat("r", 200) + "\n</artifact_slice>",
		`kind="image"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	r := build(t, in)
	if diff := cmp.Diff([]string{pipeline.RolePromptID, "1"}, ids(r)); diff != "" {
		t.Errorf("merged into the newest user message: %s", diff)
	}
	if in.History[0].Parts[0] != (artel.Text{Text: "go"}) || len(in.History[0].Parts) != 1 {
		t.Error("the history was written into")
	}

	in.History = append(in.History, calls("2", "c"), answers("3", "c", "r"))
	r = build(t, in)
	if diff := cmp.Diff([]string{pipeline.RolePromptID, "1", "2", "3", pipeline.ReminderID}, ids(r)); diff != "" {
		t.Errorf("after a tool: %s", diff)
	}
	in.Placement = pipeline.PlaceSystem
	r = build(t, in)
	if diff := cmp.Diff([]string{pipeline.RolePromptID, "1", "2", "3"}, ids(r)); diff != "" || len(r.Request.Messages[0].Parts) != 2 {
		t.Errorf("in the system prompt: %s", diff)
	}

	if _, err := w.ws.Edit.Rewrite(t.Context(), "task_plan", "BEGIN"+strings.Repeat("p", 20_000)+"END", 0); err != nil {
		t.Fatal(err)
	}
	got = build(t, in).Request.Messages[0].Parts[1].(artel.Text).Text
	if len(got) > 18_000 || !strings.Contains(got, "BEGINp") || !strings.Contains(got, "pEND\n") || !strings.Contains(got, "4008 characters left out") {
		t.Errorf("a long plan: %d characters", len(got))
	}
}

func TestLimit(t *testing.T) {
	ten := strings.Repeat("x", 10)
	exchange := []artel.Message{calls("2", "c"), answers("3", "c", ten)} // 3 and 10 characters
	history := append([]artel.Message{say("1", "user", ten)}, append(exchange, say("4", "assistant", ten), say("5", "user", ten))...)
	summary := with(say("0", "user", ten), func(m *artel.Message) { m.Summary = true })
	for _, c := range []struct {
		name    string
		history []artel.Message
		window  int
		want    []string
		dropped []string
	}{
		{"no window", history, 0, []string{"1", "2", "3", "4", "5"}, nil},
		{"all fits", history, 43, []string{"1", "2", "3", "4", "5"}, nil},
		{"the oldest goes", history, 42, []string{"2", "3", "4", "5"}, []string{"1"}},
		{"an exchange goes as one", history, 32, []string{"4", "5"}, []string{"1", "2", "3"}},
		{"only the last user message", history, 10, []string{"5"}, []string{"1", "2", "3", "4"}},
		{"the summary stays", append([]artel.Message{summary}, history...), 30, []string{"0", "4", "5"}, []string{"1", "2", "3"}},
		{"what follows the last user message stays", history[:3], 23, []string{"1", "2", "3"}, nil},
		{"a small one behind a large one goes too", []artel.Message{say("1", "assistant", "x"), say("2", "assistant", strings.Repeat("y", 50)), say("3", "user", "z")}, 20, []string{"3"}, []string{"1", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(c.window), c.history...)
			in.Settings.Agent = []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(`{"reply_reserve":0}`)}}
			r := build(t, in)
			if diff := cmp.Diff(c.want, ids(r)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.dropped, r.Record.Tokens.Dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if tk := r.Record.Tokens; tk.Budget != c.window || tk.Total != tk.Fixed+tk.History || c.window > 0 && tk.Total > tk.Budget {
				t.Errorf("tokens: %+v", tk)
			}
		})
	}
	t.Run("over the budget", func(t *testing.T) {
		r, err := builtIn(t).Build(t.Context(), input(service(13), history...)) // 13 - 13/4 = 10, and 10 are needed
		if err != nil || r.Record.Tokens.Budget != 10 {
			t.Errorf("budget %d, %v", r.Record.Tokens.Budget, err)
		}
		r, err = builtIn(t).Build(t.Context(), input(service(12), history...))
		var e *artel.Error
		if !errors.As(err, &e) || e.Kind != artel.TooLarge || e.Subject != pipeline.TokenLimiter || !strings.Contains(err.Error(), "a window of 12 less 3") {
			t.Errorf("got %v", err)
		}
		if r.Request != nil || len(r.Record.Processors) != 6 {
			t.Errorf("result: %+v", r)
		}
	})
}

func TestRegistry(t *testing.T) {
	nop := func(context.Context, *pipeline.Draft) error { return nil }
	r := builtIn(t, pipeline.Processor{ID: "late", Priority: pipeline.PriorityPlugin, Process: nop}, pipeline.Processor{ID: "early", Process: nop},
		pipeline.Processor{ID: "later", Priority: pipeline.PriorityPlugin, Process: nop})
	var got []string
	for _, p := range r.Processors() {
		got = append(got, p.ID)
	}
	want := []string{"early"} // priority 0
	for _, p := range pipeline.BuiltIn() {
		if p.ID == pipeline.AssetResolver {
			want = append(want, "late", "later")
		}
		want = append(want, p.ID)
	}
	if want[1] != pipeline.SessionLoader || want[len(want)-1] != pipeline.AssetResolver {
		t.Errorf("the built-in processors are %q", want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		p    pipeline.Processor
		kind artel.Kind
	}{
		"after the last": {pipeline.Processor{ID: "x", Priority: 10_000, Process: nop}, artel.Invalid},
		"no id":          {pipeline.Processor{Process: nop}, artel.Invalid},
		"no function":    {pipeline.Processor{ID: "x"}, artel.Invalid},
		"taken":          {pipeline.Processor{ID: "late", Process: nop}, artel.Conflict},
	} {
		if err := r.Register(c.p); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Unregister("late"); err != nil {
		t.Error(err)
	}
	if err := r.Unregister("late"); !errors.Is(err, artel.NotFound) {
		t.Error(err)
	}
	for _, p := range pipeline.BuiltIn() {
		if err := r.Unregister(p.ID); !errors.Is(err, artel.Denied) {
			t.Errorf("%s: %v", p.ID, err)
		}
	}
}

func TestFailingProcessors(t *testing.T) {
	empty := func(f func(context.Context) error) func(context.Context, *pipeline.Draft) error {
		return func(ctx context.Context, d *pipeline.Draft) error { d.Messages = nil; return f(ctx) }
	}
	fails := empty(func(context.Context) error { return errors.New("no luck") })
	panics := empty(func(context.Context) error { panic("at the disco") })
	hangs := empty(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	for _, c := range []struct {
		name string
		do   func(context.Context, *pipeline.Draft) error
		time time.Duration
		kind artel.Kind
		says string
	}{
		{"error", fails, time.Hour, artel.Internal, "no luck"},
		{"panic", panics, time.Hour, artel.Internal, "at the disco"},
		{"too slow", hangs, time.Millisecond, artel.Unavailable, "longer than its limit of 1ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pipeline.Processor{ID: "plugin", Priority: pipeline.PriorityPlugin, Process: c.do, Timeout: c.time}
			in := input(service(0), say("1", "user", "a"))
			r, err := builtIn(t, p).Build(t.Context(), in)
			if err != nil || len(r.Request.Messages) != 1 {
				t.Fatalf("optional: %v, %v", r.Request, err)
			}
			step := r.Record.Processors[len(r.Record.Processors)-2]
			if len(step.Logs) != 1 || step.Logs[0].Level != pipeline.Error || !strings.Contains(step.Logs[0].Details["error"].(string), c.says) {
				t.Errorf("log: %+v", step)
			}
			p.Required = true
			_, err = builtIn(t, p).Build(t.Context(), in)
			var e *artel.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Subject != "plugin" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("required: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := builtIn(t).Build(ctx, input(service(0), say("1", "user", "a"))); !errors.Is(err, artel.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A processor that ignores its context does not hold up the build, and what it
// does later to its draft has no effect.
func TestProcessorsThatDoNotReturn(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{}, 100)
	p := pipeline.Processor{ID: "deaf", Priority: pipeline.PriorityPlugin, Timeout: time.Millisecond, Process: func(_ context.Context, d *pipeline.Draft) error {
		<-release
		d.Messages = nil
		pipeline.Set(d, "late")
		d.Log(pipeline.Info, "late", nil)
		ended <- struct{}{}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		release, ended = make(chan struct{}), make(chan struct{}, 100)
		registry := builtIn(t, p)
		in := input(service(0), say("1", "user", "a"))
		for i := range 5 {
			r, err := registry.Build(t.Context(), in)
			if err != nil || len(r.Request.Messages) != 1 {
				t.Fatalf("build %d: %v, %v", i, r.Request, err)
			}
			says := "longer than its limit of 1ms"
			if i == 4 {
				says = "4 earlier runs"
			}
			step := r.Record.Processors[len(r.Record.Processors)-2]
			if len(step.Logs) != 1 || !strings.Contains(fmt.Sprint(step.Logs[0].Details["error"]), says) {
				t.Errorf("build %d: %+v", i, step.Logs)
			}
		}
		required := p
		required.Required = true
		if _, err := builtIn(t, required).Build(t.Context(), in); !errors.Is(err, artel.Unavailable) {
			t.Errorf("required: %v", err)
		}
		close(release)
		for range 5 {
			<-ended
		}
		synctest.Wait()
		if r, err := registry.Build(t.Context(), in); err != nil || len(r.Record.Processors[len(r.Record.Processors)-2].Removed) != 1 {
			t.Errorf("afterwards: %+v, %v", r.Record, err)
		}
	})
}

// The stack of a panic is for the log, not for the record.
func TestPanicsAreLogged(t *testing.T) {
	var log bytes.Buffer
	r := builtIn(t, pipeline.Processor{ID: "plugin", Priority: pipeline.PriorityPlugin, Process: func(context.Context, *pipeline.Draft) error { panic("at the disco") }})
	r.Log = slog.New(slog.NewTextHandler(&log, nil))
	out, err := r.Build(t.Context(), input(service(0), say("1", "user", "a")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(out.Record)
	if s := string(b); err != nil || strings.Contains(s, "goroutine") || strings.Contains(s, ".go:") || !strings.Contains(s, "at the disco") {
		t.Errorf("record: %s, %v", s, err)
	}
	if s := log.String(); !strings.Contains(s, "goroutine") || !strings.Contains(s, "processor=plugin") {
		t.Errorf("log: %s", s)
	}
}

// Processors are replaced together or not at all.
func TestReplacedProcessors(t *testing.T) {
	named := func(id string) pipeline.Processor {
		return pipeline.Processor{ID: id, Priority: pipeline.PriorityPlugin, Process: func(context.Context, *pipeline.Draft) error { return nil }}
	}
	r := builtIn(t, named("a"), named("b"))
	ids := func() (out []string) {
		for _, p := range r.Processors() {
			if !p.Core {
				out = append(out, p.ID)
			}
		}
		return out
	}
	if err := r.Replace([]string{"a"}, []pipeline.Processor{named("c"), named("b")}); !errors.Is(err, artel.Conflict) {
		t.Errorf("got %v", err)
	}
	if err := r.Replace([]string{"b", pipeline.AssetResolver}, nil); !errors.Is(err, artel.Denied) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ids()); diff != "" {
		t.Errorf("after refusals (-want +got):\n%s", diff)
	}
	if err := r.Replace([]string{"a", "b"}, []pipeline.Processor{named("b"), named("c")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "c"}, ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	off, on := false, true
	w := newWorld(t)
	in := input(service(0, artel.CanVision), artel.Message{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{w.upload("a.png", picture(t)).MediaPart()}})
	in.Sources = w.files
	in.Settings.Model = []pipeline.Setting{
		{ID: pipeline.TranscriptionProcessor, Enabled: &off}, {ID: "extra", Enabled: &on}, {ID: "typo"},
	}
	extra := pipeline.Processor{ID: "extra", Priority: pipeline.PriorityPlugin, DefaultOff: true, Process: func(_ context.Context, d *pipeline.Draft) error {
		d.Messages = append(d.Messages, pipeline.Message{ID: "x", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}}})
		return nil
	}}
	r, err := builtIn(t, extra).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	first, last := r.Record.Processors[0], r.Record.Processors[len(r.Record.Processors)-1]
	if len(first.Logs) != 1 || first.Logs[0].Details["id"] != "typo" {
		t.Errorf("unknown processor: %+v", first)
	}
	if len(last.Logs) != 1 || len(r.Record.Decisions) != 1 || r.Request.Messages[0].Parts[1].(artel.Media).Ref.Digest == "" {
		t.Errorf("late decision: %+v", last)
	}
	if !slices.Contains(ids(r), "x") {
		t.Error("a processor that was asked for did not run")
	}
	for id, s := range map[string]pipeline.Setting{
		pipeline.SessionLoader:          {Enabled: &off},
		pipeline.TokenLimiter:           {Config: json.RawMessage(`{"reply_reserve":1.5}`)},
		pipeline.TranscriptionProcessor: {Config: json.RawMessage(`{"inline_limit":0}`)},
		pipeline.InjectionAssembler:     {Config: json.RawMessage(`[]`)},
	} {
		s.ID = id
		in.Settings = pipeline.Settings{Agent: []pipeline.Setting{s}}
		_, err := builtIn(t).Build(t.Context(), in)
		var e *artel.Error
		if !errors.As(err, &e) || e.Kind != artel.Invalid || e.Subject != id {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestBlackboardIsTyped(t *testing.T) {
	type note struct{ n int }
	var d pipeline.Draft
	if _, ok := pipeline.Value[note](&d); ok {
		t.Error("an empty board has a value")
	}
	pipeline.Set(&d, note{1})
	pipeline.Set(&d, "text")
	pipeline.Set(&d, note{2})
	if v, ok := pipeline.Value[note](&d); !ok || v.n != 2 {
		t.Errorf("got %v, %t", v, ok)
	}
}

// A run's artifacts belong to the message that it answers; the messages that
// it writes may not be stored yet.
func TestBranchOfArtifacts(t *testing.T) {
	w := newWorld(t)
	question := with(say("msg_00000000000000000000000001", "user", "go"), func(m *artel.Message) { m.Conversation = conv })
	if err := w.db.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Messages.Create(question) }); err != nil {
		t.Fatal(err)
	}
	ws := w.files.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: conv, Run: "run_00000000000000000000000000", Message: question.ID, Author: "lead"})
	if _, err := ws.Create(t.Context(), artel.TaskPlan, "Plan", "- [ ] a live step", "text/markdown"); err != nil {
		t.Fatal(err)
	}
	in := input(service(0), question, calls("2", "c"), answers("3", "c", "done"))
	in.Sources = w.files
	r := build(t, in)
	if got := artel.TextOf(r.Request.Messages[3].Parts); !strings.Contains(got, "- [ ] a live step") {
		t.Errorf("the plan is not shown: %s", got)
	}
}

// The time since the user's message before is that between stored messages, so
// that it does not depend on when a request is built.
func TestIdleDuration(t *testing.T) {
	at := func(minute int) func(*artel.Message) {
		return func(m *artel.Message) { m.CreatedAt = time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	}
	in := input(service(0), with(say("1", "user", "a"), at(0)), with(say("2", "assistant", "b"), at(1)), with(say("3", "user", "c"), at(12)))
	in.Agent.Prompt = "Away for {{idle_duration}}."
	for _, now := range []time.Time{{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} {
		in.Now = now
		if got := artel.TextOf(build(t, in).Request.Messages[0].Parts); got != "Away for 12 minutes." {
			t.Errorf("got %q", got)
		}
	}
	in.History = in.History[:1]
	if got := artel.TextOf(build(t, in).Request.Messages[0].Parts); got != "Away for just now." {
		t.Errorf("got %q", got)
	}
}
