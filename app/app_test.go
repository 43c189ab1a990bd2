// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/storetest"
)

// The clock of the backtracking regular expressions ends by itself, a second
// after the last one was at work.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// A bench is an app and what it was made of.
type bench struct {
	*app.App
	t      testing.TB
	config app.Config
	log    *apptest.Log
	spool  string
}

// provide is a provider made of a function.
type provide func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool)

func (p provide) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) { p(ctx, r, yield) }
}

// newBench makes an app in memory whose only service is played by p; nil is
// the demo's own script. Each change may alter the configuration.
func newBench(t testing.TB, p model.Provider, changes ...func(*app.Config)) *bench {
	t.Helper()
	b := &bench{t: t}
	b.config, b.log = apptest.Config(t, p)
	b.config.Options.Caller = model.CallerOptions{Attempts: 2, Backoff: time.Nanosecond, IdleTimeout: time.Hour}
	b.config.Store, b.spool = strict(t, b.config.Store), b.config.Options.SpoolDir
	for _, change := range changes {
		change(&b.config)
	}
	b.App = b.open()
	return b
}

// strict returns a store that fails the test when an update reads too much. With
// ARTEL_TEST_TWICE=1 it runs every function of an update twice, as in make race.
func strict(t testing.TB, s store.Store) store.Store {
	s = storetest.Metered(s, t.Errorf)
	if os.Getenv("ARTEL_TEST_TWICE") != "" {
		s = storetest.Twice(s)
	}
	return s
}

// open makes one more app over the same data, as a second process would.
func (b *bench) open() *app.App {
	b.t.Helper()
	return apptest.Open(b.t, b.config)
}

// play is a provider that plays a scenario.
func play(t *testing.T, text string) model.Provider {
	t.Helper()
	s, err := demo.ParseScenario([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return demo.New(blob.NewMemory(), demo.Options{Scenario: s})
}

func (b *bench) conversation() artel.ConversationID {
	b.t.Helper()
	c, err := b.Conversations.Create(apptest.Context(b.t), app.NewConversation{})
	if err != nil {
		b.t.Fatal(err)
	}
	return c.ID
}

func (b *bench) send(c artel.ConversationID, in run.Input) artel.Run {
	b.t.Helper()
	r, err := b.Runs.Send(apptest.Context(b.t), c, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// ended waits for the end of a run.
func (b *bench) ended(r artel.Run) artel.Run {
	b.t.Helper()
	b.until(r.Conversation, func(e artel.Event) bool { return e.Type == artel.EventRunFinished && e.Run == r.ID })
	r, err := b.Runs.Find(apptest.Context(b.t), r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// until follows a conversation to the first event that is meant.
func (b *bench) until(c artel.ConversationID, meant func(artel.Event) bool) artel.Event {
	b.t.Helper()
	ctx, stop := context.WithTimeout(apptest.Context(b.t), 5*time.Minute)
	defer stop()
	for e, err := range b.Events.Follow(ctx, c, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if meant(e) {
			return e
		}
	}
	b.t.Fatalf("the event did not come; log: %s", b.log)
	return artel.Event{}
}

func ofType(want artel.EventType) func(artel.Event) bool {
	return func(e artel.Event) bool { return e.Type == want }
}

// ask sends a text and waits for the end.
func (b *bench) ask(c artel.ConversationID, text string) artel.Run {
	b.t.Helper()
	return b.ended(b.send(c, run.Input{Text: text}))
}

// events returns the whole log, and checks its numbers.
func (b *bench) events(c artel.ConversationID) []artel.Event {
	b.t.Helper()
	all, err := b.Events.Page(apptest.Context(b.t), c, 0, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	for i, e := range all {
		if e.Seq != artel.Seq(i+1) {
			b.t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
	}
	return all
}

func typesOf(events []artel.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

func decode[T any](t *testing.T, e artel.Event) (v T) {
	t.Helper()
	if err := json.Unmarshal(e.Data, &v); err != nil {
		t.Fatalf("%s: %v", e.Type, err)
	}
	return v
}

func (b *bench) messages(c artel.ConversationID) []artel.Message {
	b.t.Helper()
	all, _, err := b.Messages.List(apptest.Context(b.t), c, store.Page{Limit: 500})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (b *bench) upload(c artel.ConversationID, name, content string) artel.Artifact {
	b.t.Helper()
	staged, err := b.Artifacts.Stage(apptest.Context(b.t), c, app.Upload{Body: strings.NewReader(content), Filename: name})
	if err != nil {
		b.t.Fatal(err)
	}
	added, err := b.Artifacts.Add(apptest.Context(b.t), c, []artifact.Staged{staged})
	if err != nil {
		b.t.Fatal(err)
	}
	return added[0]
}

func (b *bench) text(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) string {
	b.t.Helper()
	_, text, err := b.Artifacts.Find(apptest.Context(b.t), c, id, at)
	if err != nil || text == nil {
		b.t.Fatalf("%s: %v", id, err)
	}
	return *text
}

// writes makes a note, edits it twice and answers.
const writes = `
-- turn 1 --
I write.
@call create_artifact {"id":"note","title":"Note","content":"one two three"}
-- turn 2 --
@call update_artifact {"id":"note","edits":[{"old":"one","new":"1"}]}
-- turn 3 --
@call update_artifact {"id":"note","edits":[{"old":"two","new":"2"}]}
-- turn 4 --
Done: artifact:note
`

func TestSend(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	r := b.ask(c, "Write a note about\nmany things.")
	if r.State != artel.RunDone || r.Error != nil || r.FinishedAt == nil || r.Usage.Calls != 4 || r.Reply == "" {
		t.Fatalf("got %+v; log: %s", r, b.log)
	}
	want := "run_started user_input agent_started" +
		" message_completed usage tool_started artifact_created tool_completed" +
		" message_completed usage tool_started artifact_updated tool_completed" +
		" message_completed usage tool_started artifact_updated tool_completed" +
		" message_completed usage run_finished"
	if got := typesOf(b.events(c)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	messages := b.messages(c)
	if len(messages) != 8 {
		t.Fatalf("got %d messages", len(messages))
	}
	for i, m := range messages {
		var parent artel.MessageID
		if i > 0 {
			parent = messages[i-1].ID
		}
		if m.Parent != parent || m.Run != r.ID {
			t.Errorf("message %d: got %+v", i, m)
		}
	}
	if last := messages[7]; last.ID != r.Reply || artel.TextOf(last.Parts) != "Done: artifact:note" {
		t.Errorf("got reply %+v", last)
	}
	found, err := b.Conversations.Find(apptest.Context(t), c)
	if err != nil || found.Leaf != r.Reply || found.Title != "Write a note about" {
		t.Errorf("got %+v, %v", found, err)
	}
	versions, err := b.Versions.List(apptest.Context(t), c, "note")
	if err != nil || len(versions) != 1 || versions[0].Number != 3 || versions[0].Update != artel.UpdateCreate || versions[0].Run != r.ID || versions[0].Message != r.Message {
		t.Errorf("got %+v, %v", versions, err)
	}
	v, text, err := b.Versions.Find(apptest.Context(t), c, "note", 3)
	if err != nil || *text != "1 2 three" || v.Author != string(agent.Lead) {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestEndIsOneTransaction looks at the data after every commit: a run that has
// ended has its reply, its last event and its versions.
func TestEndIsOneTransaction(t *testing.T) {
	var mu sync.Mutex
	var after func()
	b := newBench(t, play(t, writes), func(c *app.Config) {
		c.Store = &watched{Store: c.Store, after: func() {
			mu.Lock()
			defer mu.Unlock()
			if after != nil {
				after()
			}
		}}
	})
	c := b.conversation()
	ended := make(chan struct{})
	mu.Lock()
	after = func() {
		err := b.config.Store.View(apptest.Context(t), artel.Local, func(tx store.Tx) error {
			events, err := tx.Events.Read(c, 0, 500)
			if err != nil || len(events) == 0 {
				return err
			}
			r, err := tx.Runs.Get(events[0].Run)
			if err != nil {
				return err
			}
			versions, err := tx.Versions.List(c, "note")
			if err != nil && !errors.Is(err, artel.NotFound) {
				return err
			}
			_, noReply := tx.Messages.Get(r.Reply)
			finished := events[len(events)-1].Type == artel.EventRunFinished
			if r.State.Final() != finished || finished && (len(versions) != 1 || noReply != nil) || !finished && len(versions) != 0 {
				t.Errorf("state %s, finished %v, %d versions", r.State, finished, len(versions))
			}
			if finished {
				close(ended)
				after = nil
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	mu.Unlock()
	b.ask(c, "Go.")
	// The end is read as soon as it is committed, which may be before the
	// update that wrote it returns.
	<-ended
}

// watched calls after behind every update that succeeds, and before it may
// make it fail.
type watched struct {
	store.Store
	after func()

	mu     sync.Mutex
	before func() error
}

func (w *watched) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	w.mu.Lock()
	if w.before != nil {
		if err := w.before(); err != nil {
			w.mu.Unlock()
			return err
		}
	}
	w.mu.Unlock()
	err := w.Store.Update(ctx, o, fn)
	if err == nil && w.after != nil {
		w.after()
	}
	return err
}

const hangs = "-- turn 1 --\nHalf an answer\n@hang\n"

func TestOneRunAtATime(t *testing.T) {
	b := newBench(t, play(t, hangs))
	c := b.conversation()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	runs := make([]artel.Run, len(errs))
	for i := range errs {
		wg.Go(func() { runs[i], errs[i] = b.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go."}) })
	}
	wg.Wait()
	started := -1
	for i, err := range errs {
		switch {
		case err == nil && started < 0:
			started = i
		case err == nil:
			t.Error("two runs were started")
		case artel.KindOf(err) != artel.Conflict || artel.CodeOf(err) != "run_active":
			t.Errorf("got %v, code %s", err, artel.CodeOf(err))
		}
	}
	if started < 0 {
		t.Fatal("no run was started")
	}
	if m := b.messages(c); len(m) != 1 {
		t.Errorf("the refused ones left %d messages", len(m)-1)
	}
	if active, err := b.Runs.Active(apptest.Context(t), c); err != nil || active.ID != runs[started].ID {
		t.Errorf("got %+v, %v", active, err)
	}
	if err := b.Conversations.Delete(apptest.Context(t), c); artel.CodeOf(err) != "run_active" {
		t.Errorf("deleting got %v", err)
	}
	other := b.conversation()
	b.send(other, run.Input{Text: "Elsewhere."})
}

func TestCancelInsideTheStream(t *testing.T) {
	b := newBench(t, play(t, strings.Replace(writes, "-- turn 4 --", "-- turn 4 --\nHalf an answer\n@hang\n-- turn 5 --", 1)))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	text := ""
	b.until(c, func(e artel.Event) bool {
		if e.Type != artel.EventMessageDelta {
			return false
		}
		text += decode[artel.MessageDelta](t, e).Text
		return strings.HasSuffix(text, "Half an answer")
	})
	if a, err := b.Artifacts.List(apptest.Context(t), c, ""); err != nil || len(a) != 1 || !a[0].Live || a[0].Version != 3 {
		t.Errorf("while it runs: got %+v, %v", a, err)
	}
	r, err := b.Runs.Cancel(apptest.Context(t), r.ID)
	if err != nil || r.State != artel.RunCancelled || r.Error == nil || r.Error.Kind != artel.Canceled || r.Usage.Calls != 4 || !r.Usage.Estimated {
		t.Fatalf("got %+v, %v", r, err)
	}
	all := b.events(c)
	last := decode[artel.MessageCompleted](t, all[len(all)-3])
	if !last.Partial || artel.TextOf(last.Message.Parts) != "Half an answer" || last.Message.ID != r.Reply {
		t.Errorf("got %+v", last)
	}
	if v, _ := b.Versions.List(apptest.Context(t), c, "note"); len(v) != 1 || b.text(c, "note", "") != "1 2 three" {
		t.Errorf("got versions %+v", v)
	}
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); artel.KindOf(err) != artel.Conflict {
		t.Errorf("cancelling again: got %v", err)
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lead := leadAgent(t)
		lead.Limits.Seconds = 1
		b := newBench(t, play(t, hangs), func(c *app.Config) { c.Agents = []agent.Definition{lead} })
		r := b.ask(b.conversation(), "Go.")
		if r.State != artel.RunTimedOut || r.Error == nil || r.Reply == "" {
			t.Errorf("got %+v", r)
		}
	})
}

func leadAgent(t *testing.T) agent.Definition {
	t.Helper()
	all, err := agent.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	d := all[slices.IndexFunc(all, func(d agent.Definition) bool { return d.Name == agent.Lead })]
	d.Subagents = nil // it is alone
	return d
}

func TestProviderFailures(t *testing.T) {
	tests := map[string]struct {
		turn string
		kind artel.Kind
		says string
	}{
		"refused":    {"@error 400 no such field", artel.Invalid, "no such field"},
		"key":        {"@error 401 bad key", artel.Denied, "bad key"},
		"overloaded": {"@error 529 overloaded", artel.Unavailable, "overloaded"},
		"broken":     {"Half\n@cut", artel.Unavailable, "broke off"},
		"no turn":    {"@call list_artifacts {}", artel.Invalid, "turns"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, play(t, "-- turn 1 --\n"+tt.turn+"\n"))
			r := b.ask(b.conversation(), "Go.")
			if r.State != artel.RunFailed || r.Error == nil || r.Error.Kind != tt.kind || !strings.Contains(r.Error.Message, tt.says) {
				t.Errorf("got %s, %+v", r.State, r.Error)
			}
		})
	}
}

func TestOwnFaultsAreHidden(t *testing.T) {
	for name, p := range map[string]provide{
		"panic": func(context.Context, *model.Request, func(model.Delta, error) bool) { panic("the secret of the house") },
		"error": func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
			yield(nil, errors.New("the secret of the house"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, p)
			c := b.conversation()
			r := b.ask(c, "Go.")
			if r.State != artel.RunFailed || r.Error == nil || r.Error.Kind != artel.Internal || strings.Contains(r.Error.Message, "secret") {
				t.Fatalf("got %s, %+v", r.State, r.Error)
			}
			id := strings.Fields(r.Error.Message)[2]
			if log := b.log.String(); !strings.Contains(log, strings.TrimSuffix(id, ";")) || !strings.Contains(log, "secret") {
				t.Errorf("the log has no %q: %s", id, log)
			}
			for _, e := range b.events(c) {
				if strings.Contains(string(e.Data), "secret") {
					t.Errorf("%s tells the secret", e.Type)
				}
			}
			b.send(c, run.Input{Text: "Again."})
		})
	}
}

func TestClose(t *testing.T) {
	b := newBench(t, play(t, hangs))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	b.until(c, ofType(artel.EventMessageDelta))
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	r, err := b.Runs.Find(apptest.Context(t), r.ID)
	if err != nil || r.State != artel.RunRunning || r.FinishedAt != nil { // the next process goes on with it
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "Late."}); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("sending afterwards: got %v", err)
	}
}

func TestCloseGivesUp(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		close(asked)
		<-release
		yield(model.TextDelta("late"), nil)
	}))
	b.send(b.conversation(), run.Input{Text: "Go."})
	<-asked // a run that is stopped before ends in time
	ctx, stop := context.WithTimeout(apptest.Context(t), time.Millisecond)
	defer stop()
	if err := b.Close(ctx); artel.KindOf(err) != artel.Canceled {
		t.Errorf("got %v", err)
	}
	close(release)
}

func TestWiring(t *testing.T) {
	b := newBench(t, nil)
	b.config.Agents = []agent.Definition{{Name: "x", Prompt: "y", Tools: []string{"fly"}}}
	if _, err := app.New(b.config); artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), "fly") {
		t.Errorf("got %v", err)
	}
}

func TestMechanisms(t *testing.T) {
	b := newBench(t, nil, func(c *app.Config) { c.Options.Artifacts.MaxBytes = 1 << 20 })
	info, err := b.Mechanisms.Detect(apptest.Context(t), app.Upload{Body: strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), Filename: "a.txt"})
	if err != nil || info.MediaType != "image/png" {
		t.Errorf("got %+v, %v", info, err)
	}
	var out bytes.Buffer
	err = b.Mechanisms.Route(apptest.Context(t), app.Upload{Body: strings.NewReader("hello"), Filename: "a.txt"}, app.Target{}, func(r *route.Result) error {
		return r.Encode(apptest.Context(t), &out)
	})
	if err != nil || !strings.Contains(out.String(), "hello") {
		t.Errorf("got %s, %v", &out, err)
	}
	broken := app.Upload{Body: io.MultiReader(strings.NewReader("abc"), errReader{})}
	if _, err := b.Mechanisms.Detect(apptest.Context(t), broken); artel.KindOf(err) != artel.Invalid {
		t.Errorf("a body that breaks off: got %v", err)
	}
	if _, err := b.Mechanisms.Detect(apptest.Context(t), app.Upload{Body: io.LimitReader(zeros{}, 1<<20+1)}); artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), "1.0 MB") {
		t.Errorf("a body over the limit: got %v", err)
	}
	b.noSpool()
	b.config.Options.SpoolDir = b.spool + "/missing"
	if _, err := b.open().Mechanisms.Detect(apptest.Context(t), app.Upload{Body: strings.NewReader("x")}); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("nowhere to put it: got %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
