// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// A listener answers as it is told, and keeps the requests.
type listener struct {
	mu       sync.Mutex
	requests []*model.Request
	answer   func(n int, r *model.Request) []model.Delta
}

func (l *listener) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	l.mu.Lock()
	l.requests = append(l.requests, r)
	n := len(l.requests)
	l.mu.Unlock()
	deltas := []model.Delta{model.TextDelta("Yes.")}
	if l.answer != nil {
		deltas = l.answer(n, r)
	}
	reason := model.StopEnd
	for _, d := range deltas {
		if _, ok := d.(model.CallDelta); ok {
			reason = model.StopTools
		}
		if !yield(d, nil) {
			return
		}
	}
	yield(model.Finish{Reason: reason, Usage: artel.Usage{InputTokens: int64(100 * n), CachedTokens: int64(n)}}, nil)
}

// wire is the body that the request has in Chat Completions.
func wire(t *testing.T, r *model.Request) string {
	t.Helper()
	body, err := openai.Encode(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(body.Redacted())
}

func contextsOf(t *testing.T, b *bench, run artel.RunID) []record.ContextSummary {
	t.Helper()
	list, err := b.Contexts.List(apptest.Context(t), run)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func callOf(name, arguments string) model.Delta {
	return model.CallDelta(artel.ToolCall{Name: name, Arguments: json.RawMessage(arguments)})
}

// What a model call was sent is there while it goes on and afterwards, and can
// be made again byte for byte, in this process and in the next.
func TestContextsAreKept(t *testing.T) {
	l := &listener{answer: func(n int, _ *model.Request) []model.Delta {
		switch n {
		case 1:
			return []model.Delta{model.ReasoningDelta("Hm <b>."), callOf("create_artifact", `{ "id": "notes.md", "title": "A <b> & more", "content": "one\n", "content_type": "text/markdown" }`)}
		case 2:
			return []model.Delta{callOf("get_artifact", `{"ref":"dot.gif"}`), callOf("list_artifacts", `{}`)}
		}
		return []model.Delta{model.TextDelta("Done, it is < 3.")}
	}}
	b := newBench(t, provide(l.generate))
	c := b.conversation()
	b.upload(c, "dot.gif", gif)
	first := b.ended(b.send(c, run.Input{Text: "See <this>.", Attachments: []string{"dot.gif"}}))
	second := b.ask(c, "And & now?")
	if first.State != artel.RunDone || second.State != artel.RunDone {
		t.Fatalf("%+v %+v", first, second)
	}
	n := 0
	for _, r := range []artel.Run{first, second} {
		for i, s := range contextsOf(t, b, r.ID) {
			sent := l.requests[n]
			n++
			if s.Number != i+1 || s.Usage == nil || s.Usage.InputTokens != int64(100*n) || s.Usage.CachedTokens != int64(n) || s.Messages != len(sent.Messages) {
				t.Errorf("call %d: %+v", n, s)
			}
			if (s.Previous == nil) != (n == 1) || n > 1 && (s.Prefix == nil || s.Prefix.Ratio < 0.5) {
				t.Errorf("call %d: before it %+v, in common %+v", n, s.Previous, s.Prefix)
			}
			again, err := b.open().Contexts.Rebuild(apptest.Context(t), s.ContextKey)
			if err != nil {
				t.Fatalf("call %d: %v", n, err)
			}
			if diff := cmp.Diff(wire(t, sent), wire(t, again)); diff != "" {
				t.Errorf("call %d (-sent +rebuilt):\n%s", n, diff)
			}
		}
	}
	if n != 4 || len(l.requests) != 4 {
		t.Fatalf("%d records of %d calls", n, len(l.requests))
	}
	raw, err := b.Contexts.Request(apptest.Context(t), record.ContextKey{Run: first.ID, Number: 1})
	if err != nil || !json.Valid(raw.Body) || strings.Contains(string(raw.Body), "R0lGOD") || !strings.Contains(string(raw.Body), "sha256-") {
		t.Errorf("the raw request: %s %v", raw.Body, err)
	}
	blocks, err := b.Contexts.Blocks(apptest.Context(t), record.ContextKey{Run: first.ID, Number: 1})
	if err != nil || len(blocks) != 2 || blocks[0].Processor != pipeline.InjectionAssembler || blocks[1].Processor != pipeline.SessionLoader ||
		!slices.Equal(blocks[1].Changed, []string{pipeline.TranscriptionProcessor, pipeline.InjectionAssembler, pipeline.AssetResolver}) {
		t.Errorf("blocks: %+v %v", blocks, err)
	}
	if _, err := b.Contexts.Find(artel.WithOwner(apptest.Context(t), "eve"), record.ContextKey{Run: first.ID, Number: 1}); !errors.Is(err, artel.NotFound) {
		t.Errorf("somebody else: %v", err)
	}
}

// What a preview shows is what is sent.
func TestPreviewIsSent(t *testing.T) {
	l := &listener{answer: func(n int, _ *model.Request) []model.Delta {
		if n == 2 {
			return []model.Delta{callOf("create_artifact", `{"id":"task_plan","title":"Plan","content":"- [ ] one\n","content_type":"text/markdown"}`)}
		}
		return []model.Delta{model.TextDelta("Yes.")}
	}}
	b := newBench(t, provide(l.generate), withPermissions(agent.Permissions{"delete_artifact": agent.Deny}))
	if _, err := b.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: "Ada", Persona: "counts"}, 0); err != nil {
		t.Fatal(err)
	}
	c := b.conversation()
	b.upload(c, "dot.gif", gif)
	b.upload(c, "note.txt", "one <two>")
	b.upload(c, "later.txt", "three")
	for i, in := range []run.Input{
		{Text: "First <b>.", Attachments: []string{"dot.gif"}},
		{Text: "Plan it."},
		{Text: "", Attachments: []string{"note.txt", "dot.gif"}},
		{Text: "At the root again.", Parent: new(artel.MessageID), Attachments: []string{"later.txt"}},
	} {
		p, err := b.Previews.Build(apptest.Context(t), c, in)
		if err != nil || !p.Exact {
			t.Fatalf("%d: %+v, %v", i, p.Error, err)
		}
		calls := len(l.requests)
		in.Clock = &run.Clock{Now: p.Clock, Seed: p.Seed}
		run := b.ended(b.send(c, in))
		got := contextsOf(t, b, run.ID)[0]
		if got.RequestHash != p.RequestHash || got.Bytes != p.Bytes || got.Clock != p.Clock || got.Seed != p.Seed {
			blocks, _ := b.Contexts.Blocks(apptest.Context(t), got.ContextKey)
			for n := range min(len(blocks), len(p.Blocks)) {
				if diff := cmp.Diff(p.Blocks[n].Parts, blocks[n].Parts); diff != "" {
					t.Errorf("%d, message %d (-preview +sent):\n%s", i, n, diff)
				}
			}
			t.Errorf("%d: another request was sent: %d bytes, shown were %d", i, got.Bytes, p.Bytes)
		}
		if calls == len(l.requests) {
			t.Error("nothing was sent")
		}
	}
	before := len(b.messages(c))
	if p, err := b.Previews.Build(apptest.Context(t), c, run.Input{}); err != nil || len(p.Blocks) < 3 {
		t.Errorf("nothing written yet: %+v %v", p, err)
	}
	if p, err := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "see " + dataURI}); err != nil || p.Exact {
		t.Errorf("a file in the text: %v", err)
	}
	if _, err := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "x", Attachments: []string{"none.txt"}}); !errors.Is(err, artel.NotFound) {
		t.Errorf("an attachment that is not there: %v", err)
	}
	if got := len(b.messages(c)); got != before {
		t.Errorf("previews have left messages: %d, there were %d", got, before)
	}
}

const dataURI = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

func TestDiffNamesTheAuthor(t *testing.T) {
	l := &listener{}
	b := newBench(t, provide(l.generate))
	c := b.conversation()
	first := b.ask(c, "Hello.")
	second := b.ask(c, "More.")
	d, err := b.Contexts.Diff(apptest.Context(t), record.ContextKey{Run: second.ID, Number: 1}, record.ContextKey{})
	if err != nil || d.Before.Run != first.ID || d.First == nil || d.First.Cause != inspect.CauseText ||
		!slices.Equal(d.First.Processors, []string{pipeline.InjectionAssembler}) || d.First.Message != string(first.Message) || !strings.Contains(d.First.Was, "system-reminder") {
		t.Fatalf("the reminder: %+v %+v, %v", d, d.First, err)
	}
	var changes []string
	for _, m := range d.Messages {
		changes = append(changes, string(m.Change))
	}
	if want := []string{"same", "changed", "added", "added"}; !slices.Equal(changes, want) {
		t.Errorf("got %v, want %v", changes, want)
	}
	level, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "lead_agent"}, []pipeline.Setting{{ID: pipeline.ConvertSystem, Enabled: new(true)}}, 0)
	if err != nil || level.Revision != 1 {
		t.Fatal(level, err)
	}
	third := b.ask(c, "Converted.")
	d, err = b.Contexts.Diff(apptest.Context(t), record.ContextKey{Run: third.ID, Number: 1}, record.ContextKey{Run: second.ID, Number: 1})
	if err != nil || d.First.Cause != inspect.CauseText || !slices.Contains(d.First.Processors, pipeline.ConvertSystem) {
		t.Errorf("the formatter: %+v, %v", d.First, err)
	}
	rules := pipeline.Setting{ID: pipeline.RegexProcessor, Config: json.RawMessage(`{"rules":[{"id":"shout","find":"Hello","replace":"HELLO"},{"id":"idle","find":"never there","replace":""}]}`)}
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "lead_agent"}, []pipeline.Setting{rules, {ID: pipeline.ConvertSystem, Enabled: new(true)}}, 1); err != nil {
		t.Fatal(err)
	}
	fourth := b.ask(c, "By rule.")
	d, err = b.Contexts.Diff(apptest.Context(t), record.ContextKey{Run: fourth.ID, Number: 1}, record.ContextKey{})
	if err != nil || !slices.Equal(d.First.Processors, []string{pipeline.RegexProcessor}) || !slices.Equal(d.First.Rules, []string{"shout"}) || !strings.HasPrefix(d.First.Is, "ELLO") {
		t.Errorf("the rule: %+v, %v", d.First, err)
	}
	if _, err := b.Contexts.Diff(apptest.Context(t), record.ContextKey{Run: first.ID, Number: 1}, record.ContextKey{}); !errors.Is(err, artel.NotFound) {
		t.Errorf("nothing before: %v", err)
	}
	other := b.ask(b.conversation(), "Elsewhere.")
	if _, err := b.Contexts.Diff(apptest.Context(t), record.ContextKey{Run: first.ID, Number: 1}, record.ContextKey{Run: other.ID, Number: 1}); !errors.Is(err, artel.NotFound) {
		t.Errorf("another conversation: %v", err)
	}
}

// A request that cannot be built is recorded with its error.
func TestFailedContexts(t *testing.T) {
	b := newBench(t, provide((&listener{}).generate))
	c := b.conversation()
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Service: "demo"}, []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(`{"max_tokens":20}`)}}, 0); err != nil {
		t.Fatal(err)
	}
	failed := b.ask(c, "Hello.")
	got := contextsOf(t, b, failed.ID)
	if failed.State != artel.RunFailed || len(got) != 1 || got[0].Error == nil || got[0].Error.Kind != artel.TooLarge || got[0].Error.Processor != pipeline.TokenLimiter {
		t.Fatalf("%+v, %+v", failed, got)
	}
	if _, err := b.Contexts.Rebuild(apptest.Context(t), got[0].ContextKey); !errors.Is(err, artel.Conflict) {
		t.Errorf("there was no request: %v", err)
	}
	p, err := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "Again."})
	if err != nil || p.Exact || p.Error == nil || p.Error.Processor != pipeline.TokenLimiter {
		t.Errorf("a preview of it: %+v %v", p, err)
	}
}

// A record that cannot be read ends no run, and says so to who asks for it.
func TestDamagedRecord(t *testing.T) {
	b := newBench(t, provide((&listener{}).generate))
	c := b.conversation()
	first := b.ask(c, "Hello.")
	b.store(func(tx store.Tx) error {
		_, err := tx.Contexts.Add(store.Context{Conversation: c, Run: first.ID, Summary: json.RawMessage("{}"), Record: json.RawMessage("[]")}, nil)
		return err
	})
	if r := b.ask(c, "And now?"); r.State != artel.RunDone {
		t.Errorf("the run is %s: %+v", r.State, r.Error)
	}
	if _, err := b.Contexts.Find(apptest.Context(t), record.ContextKey{Run: first.ID, Number: 2}); artel.KindOf(err) != artel.Internal || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the damaged record: %v", err)
	}
}

// Over fifty turns, whatever a call begins with was sent with the call before,
// so that a provider's cache has it: at least 95 of 100 bytes.
func TestPrefixIsStable(t *testing.T) {
	words := strings.Repeat("The answer is long enough to be one. ", 12)
	long := strings.Repeat("Some line of a result that is too long to be shown.\n", 600)
	l := &listener{}
	l.answer = func(_ int, r *model.Request) []model.Delta {
		last := r.Messages[len(r.Messages)-1]
		asked := artel.TextOf(last.Parts)
		switch {
		case last.Role == artel.RoleUser && strings.Contains(asked, "plan it"):
			return []model.Delta{callOf("create_artifact", `{"id":"task_plan","title":"Plan","content":"- [ ] one\n- [ ] two\n","content_type":"text/markdown"}`)}
		case last.Role == artel.RoleUser && strings.Contains(asked, "tick it"):
			return []model.Delta{callOf("update_artifact", `{"id":"task_plan","old_str":"- [ ] one","new_str":"- [x] one"}`)}
		case last.Role == artel.RoleUser && strings.Contains(asked, "make it long"):
			content, _ := json.Marshal(long)
			return []model.Delta{callOf("create_artifact", `{"id":"long.md","title":"Long","content":`+string(content)+`,"content_type":"text/markdown"}`)}
		case last.Role == artel.RoleUser && strings.Contains(asked, "read it"):
			return []model.Delta{callOf("read_artifact", `{"id":"long.md"}`)}
		case last.Role == artel.RoleUser && strings.Contains(asked, "list it"):
			return []model.Delta{callOf("list_artifacts", `{}`)}
		}
		return []model.Delta{model.TextDelta(words)}
	}
	b := newBench(t, provide(l.generate), func(c *app.Config) { c.Files.Shown = tool.Shown{Characters: 200} })
	c := b.conversation()
	same, all, calls := 0, 0, 0
	for i := range 50 {
		in := run.Input{Text: fmt.Sprintf("Question %d: %s", i, words)}
		switch {
		case i == 5:
			in.Text += "plan it"
		case i == 15:
			in.Text += "tick it"
		case i == 20:
			in.Text += "make it long"
		case i == 25:
			in.Text += "read it"
		case i == 18 || i == 29:
			in.Text += "list it"
		case i%10 == 7:
			name := fmt.Sprintf("file%d.txt", i)
			b.upload(c, name, words)
			in.Attachments = []string{name}
		}
		run := b.ended(b.send(c, in))
		for _, s := range contextsOf(t, b, run.ID) {
			calls++
			if s.Prefix != nil {
				same, all = same+s.Prefix.Bytes, all+s.Prefix.Before
			}
		}
	}
	kept := 0 // results that were kept and shown in part, in the last request
	for _, m := range l.requests[len(l.requests)-1].Messages {
		for _, p := range m.Parts {
			if res, ok := p.(artel.ToolResult); ok && strings.Contains(res.Content, "All of it is kept as") {
				kept++
			}
		}
	}
	if kept != 2 {
		t.Errorf("%d long results were kept and shown in part", kept)
	}
	if ratio := float64(same) / float64(all); ratio < 0.95 || calls < 56 {
		t.Errorf("over %d calls %.3f of what was sent stood there again", calls, ratio)
	} else {
		t.Logf("over %d calls %.3f of what was sent stood there again", calls, ratio)
	}
}
