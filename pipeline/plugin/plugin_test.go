// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/plugin"
	"github.com/artelhq/artel/pipeline/token"
)

// TestMain is also the program that the tests run as a plugin.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-plugin" {
		act(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// act is one plugin after the other.
func act(what string, args []string) {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(3)
	}
	switch what {
	case "echo":
		fmt.Print(same(in, ""))
	case "add":
		fmt.Fprintln(os.Stderr, "adding")
		fmt.Print(same(in, `{"id":"new","role":"system","text":"`+args[0]+`"}`))
	case "environment":
		b, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
		fmt.Print(same(in, `{"id":"new","role":"system","text":`+string(b)+`}`))
	case "draft":
		b, _ := json.Marshal(string(in))
		fmt.Print(same(in, `{"id":"new","role":"system","text":`+string(b)+`}`))
	case "share": // sets values, and shows those that it found
		var d plugin.Draft
		_ = json.Unmarshal(in, &d)
		found, _ := json.Marshal(d.Board)
		text, _ := json.Marshal(string(found))
		out := same(in, `{"id":"from `+d.Processor+`","role":"system","text":`+string(text)+`}`)
		fmt.Print(strings.TrimSuffix(out, "}") + `,"board":` + args[0] + `}`)
	case "say":
		fmt.Print(args[0])
	case "much":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte(" "), 2<<20))
		time.Sleep(plugin.MaxTimeout)
	case "fail":
		fmt.Fprintln(os.Stderr, "I have no glossary")
		os.Exit(2)
	case "hang", "leave": // something is started that goes on
		child := exec.Command(os.Args[0], "as-plugin", "sleep", args[0])
		child.Stdout = os.Stdout
		child.Stdin = strings.NewReader("")
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
		_ = os.WriteFile(args[0], []byte(strconv.Itoa(child.Process.Pid)+"\n"), 0o600)
		if what == "leave" {
			fmt.Print(same(in, ""))
			return
		}
		time.Sleep(plugin.MaxTimeout)
	case "sleep":
		time.Sleep(plugin.MaxTimeout)
	}
}

// same answers with all messages of a draft as they are, and one more.
func same(in []byte, more string) string {
	var d plugin.Draft
	if err := json.Unmarshal(in, &d); err != nil {
		os.Exit(5)
	}
	var all []string
	if more != "" {
		all = append(all, more)
	}
	for _, m := range d.Messages {
		b, _ := json.Marshal(map[string]string{"id": m.ID})
		all = append(all, string(b))
	}
	return `{"version":1,"messages":[` + strings.Join(all, ",") + `]}`
}

// command runs this program as a plugin. Without a time limit of its own it has
// the longest one, which no slow machine reaches.
func command(t testing.TB, o plugin.Options, args ...string) pipeline.Processor {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = plugin.MaxTimeout
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plugin.Command{Args: append([]string{self, "as-plugin"}, args...), Env: map[string]string{"SAID": "yes"}}.Processor("other", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func input(history ...artel.Message) pipeline.Input {
	c := model.TextOnly()
	c.Tokenizer.Value = token.Characters
	return pipeline.Input{
		Owner: "somebody-else", Conversation: "cnv_1", Agent: pipeline.Agent{Name: "lead", Prompt: "You lead."}, Locale: "en", History: history,
		Service: model.Service{ID: "svc", Dialect: model.OpenAI, Model: "m", APIKey: "sk-very-secret", BaseURL: "http://inside.example", Capabilities: c},
	}
}

func say(id, role, text string) artel.Message {
	return artel.Message{ID: artel.MessageID(id), Role: artel.Role(role), Parts: artel.Parts{artel.Text{Text: text}}}
}

func build(t testing.TB, in pipeline.Input, p pipeline.Processor) (pipeline.Result, pipeline.Step, error) {
	t.Helper()
	r, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), p)...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Build(t.Context(), in)
	i := slices.IndexFunc(out.Record.Processors, func(s pipeline.Step) bool { return s.ID == p.ID })
	if i < 0 {
		t.Fatalf("the plugin did not run: %v", err)
	}
	return out, out.Record.Processors[i], err
}

func texts(r pipeline.Result) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, string(m.Role)+":"+artel.TextOf(m.Parts))
	}
	return out
}

func TestCommand(t *testing.T) {
	r, step, err := build(t, input(say("1", "user", "go")), command(t, plugin.Options{}, "add", "A word."))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"system:A word.", "system:You lead.", "user:go"}, texts(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new"}, step.Added); diff != "" || step.Changed != nil || step.Removed != nil {
		t.Errorf("record: %+v", step)
	}
	if len(step.Logs) != 1 || step.Logs[0].Details["said"] != "adding" {
		t.Errorf("logs: %+v", step.Logs)
	}
	if m := r.Messages[0]; m.Origin != pipeline.OriginPlugin || m.Stability != pipeline.Turn {
		t.Errorf("message: %+v", m)
	}
	r, step, err = build(t, input(say("1", "user", "go")), command(t, plugin.Options{}, "echo"))
	if err != nil || step.Changed != nil || len(texts(r)) != 2 {
		t.Errorf("echo: %+v, %v", step, err)
	}
}

// A program knows nothing of the environment of this process, and of the draft
// nothing that is not its business.
func TestNothingIsGivenAway(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	in := input(say("1", "user", "go"), artel.Message{ID: "2", Role: artel.RoleAssistant, Parts: artel.Parts{
		artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`"signature"`), Service: "svc"}, artel.Text{Text: "yes"},
	}}, say("3", "user", "on"))
	for what, needs := range map[string]string{"environment": "SAID=yes", "draft": `"id":"svc"`} {
		r, _, err := build(t, in, command(t, plugin.Options{}, what))
		if err != nil {
			t.Fatal(err)
		}
		got := artel.TextOf(r.Messages[0].Parts)
		for _, secret := range []string{"sk-of-the-environment", "sk-very-secret", "inside.example", "somebody-else", "signature", "HOME="} {
			if strings.Contains(got, secret) {
				t.Errorf("%s tells %s", what, secret)
			}
		}
		if !strings.Contains(got, needs) || what == "draft" && !strings.Contains(got, `"opaque":true`) {
			t.Errorf("%s: %s", what, got)
		}
		if m := r.Messages[3]; m.Parts[0].(artel.Reasoning).Opaque == nil {
			t.Errorf("the state is gone: %+v", m)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		o    plugin.Options
		args []string
		kind artel.Kind
		says string
	}{
		{"it fails", plugin.Options{}, []string{"fail"}, artel.Unavailable, "exit status 2): I have no glossary"},
		{"it says so", plugin.Options{}, []string{"say", `{"version":1,"error":"no glossary"}`}, artel.Unavailable, "the program says: no glossary"},
		{"too slow", plugin.Options{Timeout: 100 * time.Millisecond}, []string{"sleep"}, artel.Unavailable, "longer than its limit of 100ms"},
		{"too much", plugin.Options{MaxAnswer: 1000}, []string{"much"}, artel.TooLarge, "more than 1000 bytes"},
		{"no answer", plugin.Options{}, []string{"say", ""}, artel.Invalid, "the answer is empty"},
		{"no JSON", plugin.Options{}, []string{"say", "hello"}, artel.Invalid, "cannot be read"},
		{"two of them", plugin.Options{}, []string{"say", `{"version":1,"messages":[{"id":"1"}]} {}`}, artel.Invalid, "something follows"},
		{"no user", plugin.Options{}, []string{"say", `{"version":1,"messages":[]}`}, artel.Invalid, "newest message of the user, 1, is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, step, err := build(t, input(say("1", "user", "go")), command(t, c.o, c.args...))
			if err != nil || len(r.Messages) != 2 {
				t.Fatalf("optional: %v, %v", texts(r), err)
			}
			if i := len(step.Logs) - 1; i < 0 || step.Logs[i].Level != pipeline.Error || !strings.Contains(step.Logs[i].Details["error"].(string), c.says) {
				t.Errorf("logs: %+v", step.Logs)
			}
			c.o.Required = true
			_, _, err = build(t, input(say("1", "user", "go")), command(t, c.o, c.args...))
			var e *artel.Error
			if !errors.As(err, &e) || e.Subject != "other" || artel.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("required: %v", err)
			}
		})
	}
	t.Run("over the budget", func(t *testing.T) {
		in := input(say("1", "user", "go"))
		in.Agent.Context = pipeline.Limits{MaxTokens: 20, ReplyReserve: new(int)}
		r, step, err := build(t, in, command(t, plugin.Options{}, "add", strings.Repeat("word ", 10)))
		if err != nil || len(r.Messages) != 2 || !strings.Contains(fmt.Sprint(step.Logs), "20 fit") {
			t.Errorf("%v, %+v, %v", texts(r), step.Logs, err)
		}
	})
	t.Run("the build is cancelled", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := command(t, plugin.Options{}, "sleep")
		inner := p.Process
		p.Process = func(c context.Context, d *pipeline.Draft) error {
			time.AfterFunc(10*time.Millisecond, stop)
			return inner(c, d)
		}
		r, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), p)...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Build(ctx, input(say("1", "user", "go"))); artel.KindOf(err) != artel.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

// What a program has started ends with it.
func TestGroupsEnd(t *testing.T) {
	for _, what := range []string{"hang", "leave"} {
		file := filepath.Join(t.TempDir(), "pid")
		p := command(t, plugin.Options{}, what, file)
		inner := p.Process
		p.Process = func(ctx context.Context, d *pipeline.Draft) error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			if what == "hang" {
				go func() {
					started(ctx, file)
					stop()
				}()
			}
			return inner(ctx, d)
		}
		_, step, err := build(t, input(say("1", "user", "go")), p)
		if err != nil || (what == "hang") != (len(step.Logs) == 1) {
			t.Fatalf("%s: %+v, %v", what, step.Logs, err)
		}
		gone(t, started(t.Context(), file))
	}
}

// started waits until a program has written which process it has started.
func started(ctx context.Context, file string) (pid int) {
	for ; pid == 0 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSuffix(string(b), "\n"))
		if !bytes.HasSuffix(b, []byte("\n")) {
			pid = 0 // it writes
		}
	}
	return pid
}

func TestEndpoint(t *testing.T) {
	client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
	t.Cleanup(client.CloseIdleConnections)
	status, answer := 200, ""
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		in, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "http://169.254.169.254/")
		w.WriteHeader(status)
		if answer == "" {
			answer = same(in, `{"id":"new","role":"user","text":"more"}`)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	e := plugin.Endpoint{URL: server.URL + "/x?y=z", Header: http.Header{"Authorization": {"Bearer t"}}, Client: client}
	p, err := e.Processor("other", plugin.Options{MaxAnswer: 500, Timeout: plugin.MaxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := build(t, input(say("1", "user", "go")), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"user:more", "system:You lead.", "user:go"}, texts(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked.Method != "POST" || asked.Header.Get("Authorization") != "Bearer t" || asked.Header.Get("Content-Type") != "application/json" || asked.URL.String() != "/x?y=z" {
		t.Errorf("asked: %+v", asked)
	}
	for _, c := range []struct {
		status       int
		answer, says string
	}{
		{500, "sorry", "500 Internal Server Error: sorry"},
		{302, "elsewhere", "302 Found"},
		{204, "", "204 No Content"},
		{200, strings.Repeat(" ", 501), "more than 500 bytes"},
		{200, "[]", "cannot be read"},
	} {
		status, answer = c.status, c.answer
		if _, step, err := build(t, input(say("1", "user", "go")), p); err != nil || !strings.Contains(fmt.Sprint(step.Logs), c.says) {
			t.Errorf("%d: %+v, %v", c.status, step.Logs, err)
		}
	}
	guarded := fetch.NewClient(fetch.Options{MaxRedirects: -1})
	e.Client = guarded
	if p, err = e.Processor("other", plugin.Options{Timeout: plugin.MaxTimeout}); err != nil {
		t.Fatal(err)
	}
	if _, step, _ := build(t, input(say("1", "user", "go")), p); !strings.Contains(fmt.Sprint(step.Logs), "loopback") && !strings.Contains(fmt.Sprint(step.Logs), "not public") {
		t.Errorf("the guard: %+v", step.Logs)
	}
}

func TestWiring(t *testing.T) {
	for name, make := range map[string]func() (pipeline.Processor, error){
		"no command": func() (pipeline.Processor, error) { return plugin.Command{}.Processor("x", plugin.Options{}) },
		"no such command": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{"no-such-program-here"}}.Processor("x", plugin.Options{})
		},
		"address": func() (pipeline.Processor, error) {
			return plugin.Endpoint{URL: "ftp://x", Client: http.DefaultClient}.Processor("x", plugin.Options{})
		},
		"no client": func() (pipeline.Processor, error) {
			return plugin.Endpoint{URL: "http://x"}.Processor("x", plugin.Options{})
		},
		"time": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{os.Args[0]}}.Processor("x", plugin.Options{Timeout: time.Hour})
		},
		"size": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{os.Args[0]}}.Processor("x", plugin.Options{MaxAnswer: 1 << 40})
		},
		"options": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{os.Args[0]}}.Processor("x", plugin.Options{Options: json.RawMessage("{")})
		},
		"after nothing": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{os.Args[0]}}.Processor("x", plugin.Options{After: "x"})
		},
		"after the last": func() (pipeline.Processor, error) {
			return plugin.Command{Args: []string{os.Args[0]}}.Processor("x", plugin.Options{After: pipeline.AssetResolver})
		},
	} {
		if _, err := make(); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := command(t, plugin.Options{After: pipeline.InjectionAssembler, Name: "Other"}, "echo")
	if p.Priority <= pipeline.PriorityInjection || p.Priority >= pipeline.PriorityTokenLimiter || p.Name != "Other" {
		t.Errorf("%+v", p)
	}
	// What an agent says goes before what the deployment says.
	in := input(say("1", "user", "go"))
	p = command(t, plugin.Options{Options: json.RawMessage(`{"of":"deployment"}`)}, "draft")
	for level, want := range map[string]string{"": "deployment", `{"options":{"of":"agent"}}`: "agent"} {
		if level != "" {
			in.Settings.Agent = []pipeline.Setting{{ID: "other", Config: json.RawMessage(level)}}
		}
		if level == "" {
			in.Settings.Agent = nil
		}
		r, _, err := build(t, in, p)
		if err != nil || !strings.Contains(artel.TextOf(r.Messages[0].Parts), `"options":{"of":"`+want+`"}`) {
			t.Errorf("%s: %v, %v", want, texts(r), err)
		}
	}
}

// The published schema describes what is really written and read.
func TestSchema(t *testing.T) {
	var whole jsonschema.Schema
	if err := json.Unmarshal(plugin.Schema(), &whole); err != nil {
		t.Fatal(err)
	}
	hold := func(def string, value string) error {
		s := whole
		s.OneOf = []*jsonschema.Schema{{Ref: "#/$defs/" + def}}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(v)
	}
	in := input(say("1", "user", "go"), artel.Message{ID: "2", Role: artel.RoleAssistant, Parts: artel.Parts{
		artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`"s"`), Service: "svc"}, artel.ToolCall{ID: "c", Name: "f", Arguments: json.RawMessage(`{"a":1}`)},
	}}, artel.Message{ID: "3", Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c", Content: "r"}}}, say("4", "user", "on"))
	in.Now = time.Unix(1, 0)
	r, _, err := build(t, in, command(t, plugin.Options{Options: json.RawMessage(`[1]`)}, "draft"))
	if err != nil {
		t.Fatal(err)
	}
	draft := artel.TextOf(r.Messages[0].Parts)
	if err := hold("draft", draft); err != nil {
		t.Errorf("the draft: %v\n%s", err, draft)
	}
	for answer, fine := range map[string]bool{
		`{"version":1,"messages":[{"id":"1"},{"id":"n","role":"system","text":"x"}],"logs":[{"level":"info","message":"m"}]}`: true,
		`{"version":1,"messages":[{"id":"1","parts":[{"type":"text","text":"x"}]}]}`:                                          true,
		`{"version":1,"error":"no"}`:  true,
		`{"version":2,"messages":[]}`: false,
		`{"version":1}`:               false,
		`{"version":1,"messages":[{"id":"1","text":"x","parts":[]}]}`:    false,
		`{"version":1,"messages":[{"id":"1","content":"x"}]}`:            false,
		`{"version":1,"messages":[{}]}`:                                  false,
		`{"version":1,"messages":[],"logs":[{"level":"loud"}]}`:          false,
		`{"version":1,"messages":[{"id":"1","parts":[{"type":"tex"}]}]}`: false,
	} {
		if err := hold("answer", answer); (err == nil) != fine {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// Programs and processors in Go share values within one build.
func TestBoard(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	share := func(id, changes string) pipeline.Processor {
		p, err := plugin.Command{Args: []string{self, "as-plugin", "share", changes}}.Processor(id, plugin.Options{Timeout: plugin.MaxTimeout})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	run := func(ps ...pipeline.Processor) pipeline.Result {
		t.Helper()
		r, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), ps...)...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := r.Build(t.Context(), input(say("1", "user", "go")))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	inGo := pipeline.Processor{ID: "go", Priority: pipeline.PriorityPlugin, Process: func(_ context.Context, d *pipeline.Draft) error {
		b, _ := pipeline.Value[plugin.Board](d)
		b = maps.Clone(b)
		b["go"] = json.RawMessage(`"was here"`)
		pipeline.Set(d, b)
		return nil
	}}
	out := run(share("first", `{"a":{"b":[1]},"x":true}`), inGo, share("second", `{"x":null}`), share("third", `{}`))
	var got []string
	for _, s := range texts(out) {
		if text, ok := strings.CutPrefix(s, "system:{"); ok {
			got = append(got, "{"+text)
		}
	}
	want := []string{`{"a":{"b":[1]},"go":"was here"}`, `{"a":{"b":[1]},"go":"was here","x":true}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := fmt.Sprint(out.Record.Processors); !strings.Contains(s, "names:[a x]") {
		t.Errorf("the record: %s", s)
	}
	for name, changes := range map[string]string{
		"an empty name": `{"":1}`, "a long name": `{"` + strings.Repeat("n", 101) + `":1}`, "much": `{"a":"` + strings.Repeat("x", 1<<17) + `"}`,
	} {
		p := share("first", changes)
		if name == "much" { // too long for arguments of a program: one after the other
			ps := make([]pipeline.Processor, 9)
			for i := range ps {
				ps[i] = share("p"+strconv.Itoa(i), `{"a`+strconv.Itoa(i)+`":"`+strings.Repeat("x", 124_000)+`"}`)
			}
			if s := fmt.Sprint(run(ps...).Record.Processors); !strings.Contains(s, "it holds at most 1000 of 1048576") {
				t.Errorf("much is taken")
			}
			continue
		}
		if s := fmt.Sprint(run(p).Record.Processors); !strings.Contains(s, "a name has 1 to 100 bytes") {
			t.Errorf("%s: %s", name, s)
		}
	}
}
