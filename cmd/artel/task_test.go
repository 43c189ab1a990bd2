// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/webui/webuitest"
)

// The long task has so many steps, so many of them in answer to one message.
const (
	taskSteps = 50
	taskPart  = 10
)

// Some of its steps are special.
var (
	taskScouts = []int{7, 33} // first somebody else looks
	taskDelete = 15           // asks to delete something, which is denied
	taskInject = 22           // somebody says something while it is done
)

const taskCrane = "Mention the crane, too."

// A worker is the model of the long task. It remembers nothing: what it does
// next follows from the plan and what else it is sent, so it can be cut off
// anywhere.
type worker struct {
	mu         sync.Mutex
	calls      int
	craned     bool // a request had the call that mentions the crane
	unexpected []string
}

var (
	planLine  = regexp.MustCompile(`- \[([ x])\] step (\d+)\n`)
	partAsked = regexp.MustCompile(`Do steps (\d+) to (\d+)\.`)
	lookAt    = regexp.MustCompile(`Look at (\d+)\.`)
)

// answer implements [fake.Responder].
func (w *worker) answer(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	var texts []string
	var whole strings.Builder
	crane := false
	for _, m := range r.Messages {
		text := artel.TextOf(m.Parts)
		texts = append(texts, text)
		whole.WriteString(text + "\n")
		switch m.Role {
		case artel.RoleUser:
			crane = crane || strings.Contains(text, taskCrane) // a summary quotes it, too
		case artel.RoleAssistant:
			for _, p := range m.Parts {
				c, ok := p.(artel.ToolCall)
				w.craned = w.craned || ok && strings.Contains(string(c.Arguments), "There is a crane.")
			}
		}
	}
	crane = crane && !w.craned
	last := texts[len(texts)-1]
	switch all := whole.String(); {
	case strings.Contains(last, "it is compacted now"):
		return w.say("## Current work\n\nThe plan says what is done.\n\n## Next step\n\nThe first open step of the plan.")
	case strings.Contains(all, "You are the scout."):
		return w.scout(r, all)
	case strings.Contains(all, "Spoil it."):
		if strings.Contains(all, "report was spoiled") {
			return w.say("It is spoiled, and the report was spoiled on this branch only.")
		}
		return w.do("The report was spoiled.", call("rewrite_artifact", "report", map[string]any{"content": "spoiled"}))
	default:
		return w.work(all, crane)
	}
}

func (w *worker) work(all string, crane bool) iter.Seq2[model.Delta, error] {
	next, steps := 0, planLine.FindAllStringSubmatch(all, -1)
	for _, s := range steps {
		n, _ := strconv.Atoi(s[2])
		if s[1] == " " && (next == 0 || n <= next) {
			next = n
		} else if s[1] == "x" && n == next {
			next = 0 // the newest plan is the last
		}
	}
	if len(steps) == 0 {
		var plan strings.Builder
		for n := range taskSteps {
			fmt.Fprintf(&plan, "- [ ] step %d\n", n+1)
		}
		return w.do("I plan it.",
			call("create_artifact", "task_plan", map[string]any{"title": "Plan", "content": plan.String(), "content_type": "text/markdown"}),
			call("create_artifact", "report", map[string]any{"title": "Report", "content": "# Report\nEND\n", "content_type": "text/markdown"}),
			call("create_artifact", "keepsake", map[string]any{"title": "Keepsake", "content": "Keep me."}))
	}
	asked := partAsked.FindAllStringSubmatch(all, -1)
	to, _ := strconv.Atoi(asked[len(asked)-1][2])
	if crane {
		return w.do("It shall have one.", add("There is a crane."))
	}
	if next == 0 || next > to {
		return w.say(fmt.Sprintf("All steps to %d are done.", to))
	}
	for _, s := range taskScouts {
		if s == next && !strings.Contains(all, fmt.Sprintf("note_%d", s)) {
			return w.do("I ask a scout.", model.CallDelta{Name: "call_subagent", Arguments: arguments(map[string]any{"agent": "scout", "instruction": fmt.Sprintf("Look at %d.", s)})})
		}
	}
	calls := []model.Delta{
		add(fmt.Sprintf("Step %d is done.", next)),
		call("update_artifact", "task_plan", map[string]any{"edits": []any{map[string]any{"old": fmt.Sprintf("- [ ] step %d\n", next), "new": fmt.Sprintf("- [x] step %d\n", next)}}}),
	}
	if next == taskDelete {
		calls = append([]model.Delta{call("delete_artifact", "keepsake", map[string]any{})}, calls...)
	}
	return w.do(strings.Repeat(fmt.Sprintf("This is what I think of step %d, at some length, so that the history grows. ", next), 12), calls...)
}

// scout writes a note and says so.
func (w *worker) scout(r *model.Request, all string) iter.Seq2[model.Delta, error] {
	what := lookAt.FindStringSubmatch(all)
	if what == nil {
		w.unexpected = append(w.unexpected, "the scout was asked: "+artel.Shorten(all, 200))
		return w.say("What?")
	}
	for _, m := range r.Messages {
		if m.Role == artel.RoleTool {
			return w.say("I looked at it; see the note.")
		}
	}
	return w.do("I look.", call("create_artifact", "note_"+what[1], map[string]any{"title": "Note", "content": "Seen: " + what[1]}))
}

func (w *worker) say(text string) iter.Seq2[model.Delta, error] { return w.do(text) }

func (w *worker) do(text string, calls ...model.Delta) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for piece := range strings.SplitAfterSeq(text, ". ") {
			if !yield(model.TextDelta(piece), nil) {
				return
			}
		}
		for _, c := range calls {
			c := c.(model.CallDelta)
			c.ID = artel.CallID("call_" + rand.Text())
			if !yield(c, nil) {
				return
			}
		}
		reason := model.StopEnd
		if len(calls) > 0 {
			reason = model.StopTools
		}
		yield(model.Finish{Reason: reason, Usage: artel.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 100}}, nil)
	}
}

func arguments(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is a map of texts
	}
	return b
}

func call(name, id string, args map[string]any) model.CallDelta {
	args["id"] = id
	return model.CallDelta{Name: name, Arguments: arguments(args)}
}

// add puts a line before the end of the report.
func add(line string) model.CallDelta {
	return call("update_artifact", "report", map[string]any{"edits": []any{map[string]any{"old": "END\n", "new": line + "\nEND\n"}}})
}

const taskConfig = `agents_dir: agents
default_service: hand
services:
  - {id: hand, name: Hand, baseURL: %s/v1, model: hand-1, apiKey: sk-task, price: {input: 2, output: 8}}
`

const taskAgents = `---
name: worker
description: Works through a plan.
tools: [create_artifact, update_artifact, rewrite_artifact, delete_artifact]
subagents: [scout]
permissions: {delete_artifact: ask}
limits: {turns: 200, tool_calls: 500}
context: {max_tokens: 5200, reply_reserve: 1000}
---
You are the worker.
`

const taskScout = `---
name: scout
description: Looks at things.
tools: [create_artifact]
---
You are the scout.
`

// A task is what the client of the long task has seen and done.
type task struct {
	t      *testing.T
	dir    string
	env    []string
	rnd    *mathrand.Rand
	worker *worker

	server       *process
	client       *httpapi.Client
	conversation artel.ConversationID
	events       []artel.Event
	page         *webuitest.Tab
	door         door  // to the server that is there now
	kills, drops []int // the lengths of the log after which the server is killed, the stream dropped
	killed       int
	dropped      int
	injected     bool
}

// TestLongTask has an agent work through a plan of fifty steps in more than
// sixty turns, with three compactions, two subagents, a branch, an injection and
// a denied permission, while the server is killed ten times and the client loses
// the stream five times more. Everything is done once, and the page shows all of
// it: one that was open all along as well as one that is opened afterwards.
func TestLongTask(t *testing.T) {
	t.Parallel()
	seed := uint64(number(t, "ARTEL_SEED", int(time.Now().UnixNano())))
	t.Logf("ARTEL_SEED=%d", seed)
	dir := t.TempDir()
	w := &worker{}
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Responder: w.answer}))
	defer upstream.Close()
	for name, text := range map[string]string{
		"agents/worker.md": taskAgents, "agents/scout.md": taskScout, "artel.yaml": fmt.Sprintf(taskConfig, upstream.URL),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := &task{
		t: t, dir: dir, worker: w, rnd: mathrand.New(mathrand.NewPCG(seed, seed)),
		env: bareEnvironment(dir),
	}
	for i := range 10 {
		k.kills = append(k.kills, 20+30*i+k.rnd.IntN(25))
	}
	for i := range 5 {
		k.drops = append(k.drops, 35+60*i+k.rnd.IntN(20))
	}
	k.start()
	c, err := k.client.CreateConversation(t.Context(), httpapi.NewConversation{Agent: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	k.conversation = c.ID
	k.open()
	var at *string
	for from := 1; from <= taskSteps; from += taskPart {
		k.ask(fmt.Sprintf("Do steps %d to %d.", from, from+taskPart-1), at)
		at = nil
		if from == 1+taskPart {
			reply := string(k.run().Reply)
			k.ask("Spoil it.", nil)
			at = &reply // what follows is on a branch without that
		}
	}
	k.check()
	k.checkPage()
}

func (k *task) start() {
	k.server = serving(k.t, k.dir, k.env, "--config", filepath.Join(k.dir, "artel.yaml"))
	k.client = httpapi.NewClient(k.server.url, nil)
	if err := k.door.lead(k.server.url); err != nil {
		k.t.Fatal(err)
	}
}

// ask sends a message and follows until its run has ended.
func (k *task) ask(text string, at *string) {
	k.t.Helper()
	ctx, stop := context.WithTimeout(k.t.Context(), 3*patience)
	defer stop()
	sent, err := k.client.Send(ctx, k.conversation, httpapi.NewMessage{Text: text, ParentID: at})
	if err != nil {
		k.t.Fatal(err)
	}
	for !k.follow(ctx, sent.RunID) {
		if err := ctx.Err(); err != nil {
			k.t.Fatalf("%s: %v; the last of %d events is %s", text, err, len(k.events), k.events[len(k.events)-1].Type)
		}
	}
}

// follow reads from where it ended, and reports whether the run is over.
func (k *task) follow(ctx context.Context, id artel.RunID) (over bool) {
	k.t.Helper()
	for e, err := range k.client.Events(ctx, k.conversation, artel.Seq(len(k.events)), 0) {
		if err != nil {
			return false
		}
		if e.Seq == 0 {
			continue
		}
		k.events = append(k.events, e)
		if int(e.Seq) != len(k.events) {
			k.t.Fatalf("event %d came as number %d", e.Seq, len(k.events))
		}
		switch e.Type {
		case artel.EventPermissionRequested:
			k.deny(ctx, id)
		case artel.EventArtifactUpdated:
			if !k.injected && strings.Contains(string(e.Data), fmt.Sprintf("Step %d is done.", taskInject)) {
				_, err := k.client.Inject(ctx, id, taskCrane)
				if k.injected = err == nil; err != nil {
					k.t.Fatal(err)
				}
			}
		}
		over := e.Type == artel.EventRunFinished && e.Run == id
		switch n := len(k.events); {
		case k.killed < len(k.kills) && n >= k.kills[k.killed]:
			k.killed++
			time.Sleep(time.Duration(k.rnd.Int64N(int64(10 * time.Millisecond)))) // anywhere in what it does next
			k.server.kill()
			k.start()
			return over
		case k.dropped < len(k.drops) && n >= k.drops[k.dropped]:
			k.dropped++
			return over
		}
		if over {
			return true
		}
	}
	return false
}

// deny says no to all that is asked.
func (k *task) deny(ctx context.Context, id artel.RunID) {
	k.t.Helper()
	w, err := k.client.Waiting(ctx, k.conversation)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, p := range w.Permissions {
		if _, err := k.client.Decide(ctx, id, p.ID, httpapi.NewDecision{Decision: artel.Deny}); err != nil {
			k.t.Fatal(err)
		}
	}
}

// run is the one that has ended last.
func (k *task) run() artel.Run {
	k.t.Helper()
	r, err := k.client.Run(k.t.Context(), k.events[len(k.events)-1].Run)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *task) check() {
	t := k.t
	t.Helper()
	text := func(id artel.ArtifactID) string {
		a, err := k.client.Artifact(t.Context(), artel.Ref{Conversation: k.conversation, Artifact: id})
		if err != nil || a.Content == nil {
			t.Errorf("%s: %v", id, err)
			return ""
		}
		return *a.Content
	}
	if plan := text("task_plan"); strings.Count(plan, "- [x] ") != taskSteps || strings.Contains(plan, "[ ]") {
		t.Errorf("the plan is\n%s", plan)
	}
	want := "# Report\n"
	for n := range taskSteps {
		want += fmt.Sprintf("Step %d is done.\n", n+1)
		if n+1 == taskInject {
			want += "There is a crane.\n"
		}
	}
	if got := text("report"); strings.Replace(got, "There is a crane.\n", "", 1) != strings.Replace(want+"END\n", "There is a crane.\n", "", 1) || strings.Count(got, "There is a crane.") != 1 {
		t.Errorf("the report is\n%s", got)
	}
	if text("keepsake") != "Keep me." || text("note_7") != "Seen: 7" || text("note_33") != "Seen: 33" {
		t.Error("the keepsake or a note is not what it was")
	}
	log := wholeLog(t.Context(), t, k.client, k.conversation)
	(&witness{conversation: k.conversation, events: k.events}).checkEvents(t, log)
	told := map[artel.EventType]int{}
	for _, e := range log {
		told[e.Type]++
		if e.Type == artel.EventRunFinished && !strings.Contains(string(e.Data), `"state":"done"`) {
			t.Errorf("a run ended as %s", e.Data)
		}
	}
	for kind, least := range map[artel.EventType]int{
		artel.EventMessageCompleted: 60, artel.EventCompactionCompleted: 3, artel.EventSubagentStarted: 2, artel.EventSubagentCompleted: 2,
		artel.EventMessageInjected: 1, artel.EventPermissionResolved: 1, artel.EventRunResumed: 1,
	} {
		if told[kind] < least {
			t.Errorf("the log tells of %s %d times, want %d", kind, told[kind], least)
		}
	}
	if k.killed != 10 || k.dropped != 5 || told[artel.EventRunFinished] != taskSteps/taskPart+1 || told[artel.EventSubagentStarted] != 2 {
		t.Errorf("%d kills, %d lost streams, events %v", k.killed, k.dropped, told)
	}
	for _, u := range k.worker.unexpected {
		t.Error(u)
	}
	t.Logf("%d calls of the model, %d events: %v", k.worker.calls, len(log), told)
}
