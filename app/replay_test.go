// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// An ensemble is services of one provider that behave by their ids.
type ensemble struct {
	mu    sync.Mutex
	asked map[artel.ServiceID][]*model.Request
	acts  map[artel.ServiceID][]model.Delta // the answers of a run, one for each call
}

func newEnsemble(t *testing.T, acts map[artel.ServiceID][]model.Delta) (*ensemble, *bench) {
	t.Helper()
	e := &ensemble{asked: map[artel.ServiceID][]*model.Request{}, acts: acts}
	return e, newBench(t, provide(e.generate), func(c *app.Config) {
		var all []model.Service
		for id := range acts {
			s := model.DemoService()
			s.ID, s.Model = id, "model-"+string(id)
			all = append(all, s)
		}
		c.Services = model.NewRegistry(all, "first")
	})
}

func (e *ensemble) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	e.mu.Lock()
	n := 0 // answers of the run that the request has
	for _, m := range r.Messages {
		if m.Role == artel.RoleAssistant {
			n++
		}
	}
	e.asked[r.Service.ID] = append(e.asked[r.Service.ID], r)
	acts := e.acts[r.Service.ID]
	e.mu.Unlock()
	if n >= len(acts) {
		yield(nil, artel.Errorf(artel.Invalid, "x", "", "no more answers"))
		return
	}
	end := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 100, OutputTokens: 7}}
	if _, ok := acts[n].(model.CallDelta); ok {
		end.Reason = model.StopTools
	}
	_ = yield(acts[n], nil) && yield(end, nil)
}

// replay makes a run again, and checks that nothing is stored by it.
func (b *bench) replay(r artel.Run, s artel.ServiceID, from int) run.Comparison {
	b.t.Helper()
	before, artifacts := len(b.events(r.Conversation)), b.artifactsOf(r.Conversation)
	c, err := b.Replays.Run(apptest.Context(b.t), r.ID, s, from)
	if err != nil {
		b.t.Fatal(err)
	}
	if n := len(b.events(r.Conversation)); n != before {
		b.t.Errorf("a replay wrote %d events", n-before)
	}
	if diff := cmp.Diff(artifacts, b.artifactsOf(r.Conversation)); diff != "" {
		b.t.Errorf("a replay changed artifacts: %s", diff)
	}
	return c
}

func (b *bench) artifactsOf(c artel.ConversationID) []artel.Artifact {
	b.t.Helper()
	list, err := b.Artifacts.List(apptest.Context(b.t), c, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func answersOf(r run.Replay) (out []string) {
	for _, s := range r.Steps {
		for _, c := range s.Calls {
			out = append(out, c.Name+" "+string(c.Answered))
		}
	}
	return out
}

// TestReplay makes a run again on services that do the same, call with other words, call
// what the run did not, end early, go on for longer, and fail.
func TestReplay(t *testing.T) {
	note, list := callOf("create_artifact", `{"id":"note","title":"N","content":"one"}`), callOf("list_artifacts", `{}`)
	done := model.TextDelta("It is done.\nRead note.")
	e, b := newEnsemble(t, map[artel.ServiceID][]model.Delta{
		"first":   {note, list, done},
		"same":    {callOf("create_artifact", `{"title":"N", "id":"note","content":"one"}`), list, done},
		"words":   {callOf("create_artifact", `{"id":"note","title":"N","content":"two"}`), list, model.TextDelta("It is done.\nRead it.")},
		"unknown": {callOf("read_artifact", `{"id":"other"}`), done},
		"early":   {note, done},
		"longer":  {note, list, list, done},
		"broken":  {note},
	})
	c := b.conversation()
	r := b.ask(c, "Write it down.")
	if r.State != artel.RunDone {
		t.Fatalf("%+v", r.Error)
	}
	for service, want := range map[artel.ServiceID]struct {
		outcome artel.RunState
		answers string
		calls   int
		diff    string // kind and step
		in      [2]string
	}{
		"same":    {artel.RunDone, "create_artifact exact|list_artifacts exact", 3, "", [2]string{}},
		"words":   {artel.RunDone, "create_artifact similar|list_artifacts exact", 3, "calls 1", [2]string{`"content":"one"`, `"content":"two"`}},
		"unknown": {artel.RunDone, "read_artifact unknown", 2, "calls 1", [2]string{"create_artifact", "read_artifact"}},
		"early":   {artel.RunDone, "create_artifact exact", 2, "calls 2", [2]string{"list_artifacts", "It is done."}},
		"longer":  {artel.RunDone, "create_artifact exact|list_artifacts exact|list_artifacts exact", 4, "calls 3", [2]string{"It is done.", "list_artifacts"}},
		"broken":  {artel.RunFailed, "create_artifact exact", 1, "fewer 2", [2]string{"list_artifacts", "no more answers"}},
	} {
		t.Run(string(service), func(t *testing.T) {
			got := b.replay(r, service, 0)
			if got.Replayed.Outcome != want.outcome || got.Replayed.Usage.Calls != want.calls || got.Replayed.Usage.InputTokens != int64(100*want.calls) || got.Replayed.Model != "model-"+string(service) {
				t.Errorf("%+v", got.Replayed)
			}
			if a := strings.Join(answersOf(got.Replayed), "|"); a != want.answers {
				t.Errorf("the calls were answered %s, want %s", a, want.answers)
			}
			if got.Recorded.Usage.Calls != 3 || got.Recorded.Text != "It is done.\nRead note." || len(got.Recorded.Steps) != 3 || got.Recorded.Model != "model-first" {
				t.Errorf("recorded: %+v", got.Recorded)
			}
			switch d := got.Difference; {
			case d == nil && want.diff != "" || d != nil && d.Kind+" "+string(rune('0'+d.Step)) != want.diff:
				t.Errorf("the difference is %+v, want %s", d, want.diff)
			case d != nil && (!strings.Contains(d.Recorded, want.in[0]) || !strings.Contains(d.Replayed, want.in[1])):
				t.Errorf("the difference is %+v", d)
			}
		})
	}
	// What the same service is asked is what it was asked, reminders included.
	for i := range 3 {
		if diff := cmp.Diff(textsOf(e.asked["first"][i]), textsOf(e.asked["same"][i])); diff != "" {
			t.Errorf("call %d (-recorded +replayed):\n%s", i+1, diff)
		}
		if diff := cmp.Diff(e.asked["first"][i].Tools, e.asked["same"][i].Tools); diff != "" {
			t.Errorf("tools of call %d: %s", i+1, diff)
		}
	}
	u, err := b.Conversations.Usage(apptest.Context(t), c)
	if err != nil || u.Calls != 3 {
		t.Errorf("the conversation has used %+v, %v", u, err)
	}
}

// TestReplayFrom makes a run again from its third answer.
func TestReplayFrom(t *testing.T) {
	note, list := callOf("create_artifact", `{"id":"note","title":"N","content":"one"}`), callOf("list_artifacts", `{}`)
	e, b := newEnsemble(t, map[artel.ServiceID][]model.Delta{
		"first": {note, list, model.TextDelta("It is done.")},
		"other": {note, list, model.TextDelta("Done.")},
	})
	r := b.ask(b.conversation(), "Write it down.")
	got := b.replay(r, "other", 3)
	if len(e.asked["other"]) != 1 || got.Replayed.Usage.Calls != 1 || got.Recorded.Usage.Calls != 1 || got.Recorded.Usage.InputTokens != 100 || len(got.Recorded.Steps) != 1 {
		t.Errorf("%+v", got)
	}
	if d := got.Difference; d == nil || d.Step != 3 || d.Kind != "text" || d.Recorded != "It is done." || d.Replayed != "Done." {
		t.Errorf("the difference is %+v", d)
	}
	if diff := cmp.Diff(textsOf(e.asked["first"][2]), textsOf(e.asked["other"][0])); diff != "" {
		t.Errorf("the third call (-recorded +replayed):\n%s", diff)
	}
	if len(got.Replayed.Input) < 5 || !strings.Contains(got.Replayed.Input[len(got.Replayed.Input)-1].Content, "<system-reminder>") {
		t.Errorf("the input is %+v", got.Replayed.Input)
	}
	ctx := apptest.Context(t)
	if _, err := b.Replays.Run(ctx, r.ID, "other", 4); !errors.Is(err, artel.Invalid) {
		t.Errorf("from an unknown step: %v", err)
	}
	if _, err := b.Replays.Run(ctx, r.ID, "nowhere", 0); err == nil {
		t.Error("an unknown service is taken")
	}
	if _, err := b.Replays.Run(ctx, r.ID, model.AutoService, 0); !errors.Is(err, artel.Invalid) {
		t.Errorf("a service to be chosen: %v", err)
	}
	if sums := b.compact(r.Conversation); sums.State == artel.RunDone {
		if _, err := b.Replays.Run(ctx, sums.ID, "other", 0); !errors.Is(err, artel.Invalid) {
			t.Errorf("a compaction: %v", err)
		}
	}
}

// TestReplayOnAllDialects makes a run with a picture again at strict services of the
// other dialects: none refuses a request, and each is sent the picture.
func TestReplayOnAllDialects(t *testing.T) {
	dialects := []model.Dialect{model.OpenAI, model.OpenAIResponses, model.Anthropic, model.Gemini}
	bodies := map[artel.ServiceID][]string{}
	var mu sync.Mutex
	answer := func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			end := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}
			var d model.Delta = model.TextDelta("It is noise.")
			if resultsOf(r) == "" {
				d, end.Reason = call("list_artifacts", m{}), model.StopTools
			}
			_ = yield(d, nil) && yield(end, nil)
		}
	}
	b := newBench(t, nil, func(c *app.Config) {
		var all []model.Service
		c.Providers = map[model.Dialect]model.Provider{}
		for _, d := range dialects {
			o, base := fake.Options{Open: true, Responder: answer}, ""
			server := fake.OpenAI(o)
			switch d {
			case model.Anthropic:
				server = fake.Anthropic(o)
			case model.Gemini:
				server = fake.Gemini(o)
			default:
				base = "/v1"
			}
			s := model.DemoService()
			s.ID, s.Dialect, s.Model, s.APIKey = artel.ServiceID("at-"+string(d)), d, "fake-1", "key"
			h := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				bodies[s.ID] = append(bodies[s.ID], string(body))
				mu.Unlock()
				r.Body = io.NopCloser(bytes.NewReader(body))
				server.ServeHTTP(out, r)
			}))
			t.Cleanup(h.Close)
			t.Cleanup(h.Client().CloseIdleConnections)
			s.BaseURL = h.URL + base
			all = append(all, s)
			c.Providers[d] = wingOf(d, provider.Options{Client: h.Client(), Blobs: c.Blobs})
		}
		c.Services = model.NewRegistry(all, all[0].ID)
	})
	c := b.conversation()
	picture := noise(t, 8)
	b.upload(c, "dots.png", picture)
	r := b.ended(b.send(c, run.Input{Text: "What is on it?", Attachments: []string{"dots.png"}}))
	if r.State != artel.RunDone {
		t.Fatalf("%+v", r.Error)
	}
	mu.Lock()
	clear(bodies)
	mu.Unlock()
	for _, d := range dialects {
		s := artel.ServiceID("at-" + string(d))
		got := b.replay(r, s, 0)
		if got.Replayed.Outcome != artel.RunDone || got.Difference != nil || len(got.Replayed.Attachments) != 1 || len(got.Recorded.Attachments) != 1 {
			t.Errorf("%s: %+v, %+v", d, got.Replayed, got.Difference)
		}
		if len(bodies[s]) != 2 || len(got.Recorded.Steps) != 2 || !strings.Contains(bodies[s][0], base64.StdEncoding.EncodeToString([]byte(picture))) {
			t.Errorf("%s was sent %d requests: %.2000s", d, len(bodies[s]), bodies[s])
		}
	}
}

func resultsOf(r *model.Request) string {
	var out strings.Builder
	for _, m := range r.Messages {
		for _, res := range artel.ResultsOf(m.Parts) {
			out.WriteString(res.Content)
		}
	}
	return out.String()
}

// TestReplayOfWhatWasSaidMeanwhile: a message to the run at work reaches its replay at
// the same step.
func TestReplayOfWhatWasSaidMeanwhile(t *testing.T) {
	var b *bench
	var c artel.ConversationID
	var asked []string
	var failed error
	once := sync.OnceFunc(func() {
		r, err := b.Runs.Active(apptest.Context(t), c)
		if err == nil {
			_, err = b.Runs.Inject(apptest.Context(t), r.ID, "By the way.")
		}
		failed = err
	})
	b = newBench(t, provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		asked = append(asked, textsOf(r))
		end := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}
		var d model.Delta = model.TextDelta("It is done.")
		if resultsOf(r) == "" {
			once()
			d, end.Reason = callOf("list_artifacts", "{}"), model.StopTools
		}
		_ = yield(d, nil) && yield(end, nil)
	}))
	c = b.conversation()
	r := b.ask(c, "Go.")
	if failed != nil || r.State != artel.RunDone || len(asked) != 2 {
		t.Fatalf("%v, %+v, %d calls", failed, r, len(asked))
	}
	got := b.replay(r, r.Service, 0)
	if got.Difference != nil || len(asked) != 4 {
		t.Fatalf("%+v", got)
	}
	for i := range 2 {
		if diff := cmp.Diff(asked[i], asked[i+2]); diff != "" {
			t.Errorf("call %d: %s", i+1, diff)
		}
	}
	if strings.Contains(asked[2], "By the way.") || !strings.Contains(asked[3], "By the way.") {
		t.Error("what was said does not come at its step")
	}
}

// TestReplayIsARunAtWork: a replay counts for the limit of runs, ends with its request,
// and is ended by the end of the server.
func TestReplayIsARunAtWork(t *testing.T) {
	var waits bool
	began, may := make(chan struct{}), make(chan struct{})
	b := newBench(t, provide(func(ctx context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		if waits {
			began <- struct{}{}
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-may:
			}
		}
		_ = yield(model.TextDelta("It is done."), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}, nil)
	}), func(c *app.Config) { c.UserRuns = 1 })
	r := b.ask(b.conversation(), "Go.")
	waits = true
	ctx, cancel := context.WithCancel(apptest.Context(t))
	ended := make(chan error, 2)
	again := func(ctx context.Context) {
		_, err := b.Replays.Run(ctx, r.ID, r.Service, 0)
		ended <- err
	}
	go again(ctx)
	<-began
	if _, err := b.Replays.Run(apptest.Context(t), r.ID, r.Service, 0); artel.CodeOf(err) != run.CodeRunLimit {
		t.Errorf("a second one: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its request: %v", err)
	}
	go again(apptest.Context(t))
	<-began
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, artel.Unavailable) {
		t.Errorf("after the end of the server: %v", err)
	}
}

// TestReplayElsewhere makes a run with a picture again at a service that takes text alone,
// and after its records are gone.
func TestReplayElsewhere(t *testing.T) {
	done := []model.Delta{model.TextDelta("It is noise.")}
	e := &ensemble{asked: map[artel.ServiceID][]*model.Request{}, acts: map[artel.ServiceID][]model.Delta{"first": done, "blind": done}}
	b := newBench(t, provide(e.generate), func(c *app.Config) {
		first, blind := model.DemoService(), model.DemoService()
		first.ID, blind.ID, blind.Capabilities = "first", "blind", model.TextOnly()
		c.Services = model.NewRegistry([]model.Service{first, blind}, first.ID)
	})
	c := b.conversation()
	b.upload(c, "dots.png", noise(t, 8))
	r := b.ended(b.send(c, run.Input{Text: "What is on it?", Attachments: []string{"dots.png"}}))
	got := b.replay(r, "blind", 0)
	if len(got.Recorded.Attachments) != 1 || len(got.Replayed.Attachments) != 1 || got.Replayed.Outcome != artel.RunDone {
		t.Fatalf("%+v", got)
	}
	if was, is := got.Recorded.Attachments[0].Route.Step, got.Replayed.Attachments[0].Route.Step; was == is {
		t.Errorf("the picture went as %s to both", was)
	}
	if n := len(artel.MediaOf(e.asked["blind"][0].Messages[len(e.asked["blind"][0].Messages)-1].Parts)); n != 0 {
		t.Errorf("a service that takes text was sent %d pictures", n)
	}
	b.store(func(tx store.Tx) error { return tx.Contexts.Trim(c, 0) })
	if got = b.replay(r, "first", 0); got.Difference != nil || got.Recorded.Usage.Calls != 1 || len(got.Recorded.Input) != 0 || len(got.Replayed.Input) == 0 {
		t.Errorf("without records: %+v", got)
	}
}
