// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/elicit"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
)

// eliciting are tools that ask a person as those of servers do: "order" may be repeated,
// "pay" may not, and "book" keeps what it needs to go on.
func eliciting(answered chan<- tool.ElicitResult, then func(ctx context.Context)) []tool.Tool {
	make := func(name string, repeat tool.Repeat) tool.Tool {
		t := tool.Func(name, "Asks.", func(ctx context.Context, e *tool.Env, _ struct{}) (tool.Result, error) {
			if name == "book" && e.Host.Kept(e.Call) == nil {
				if err := e.Host.Keep(ctx, e.Call, json.RawMessage(`{"seat":7}`)); err != nil {
					return tool.Result{}, err
				}
			}
			got, err := e.Host.Elicit(ctx, e.Call, []tool.Elicitation{{
				Key: "1", Name: name, Server: "shop", Mode: artel.ElicitForm, Message: "How many?",
				Schema: json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer","minimum":1}},"required":["count"]}`),
			}})
			if err != nil {
				return tool.Result{}, err
			}
			answered <- got[0]
			then(ctx)
			return tool.Result{Content: fmt.Sprint(got[0].Action, got[0].Content, string(e.Host.Kept(e.Call)))}, ctx.Err()
		})
		t.Repeat, t.Parallel = repeat, true
		return t
	}
	return []tool.Tool{make("order", tool.RepeatAlways), make("pay", tool.RepeatNever), make("book", tool.RepeatNever)}
}

func shoppers(tools []tool.Tool) func(*app.Config) {
	return func(c *app.Config) {
		c.Tools = tools
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"buyer"}, Tools: []string{"order", "pay", "book"}},
			{Name: "buyer", Description: "Buys.", Prompt: "You buy.", Tools: []string{"order", "pay", "book"}},
		}
	}
}

const (
	shopping = "-- turn 1 --\n@call %s {}\n-- turn 2 --\nDone.\n"
	sending  = "-- message 1 --\n-- turn 1 --\n@call call_subagent {\"agent\": \"buyer\", \"instruction\": \"go\"}\n-- turn 2 --\nDone.\n" +
		"-- asked go --\n-- turn 1 --\n@call order {}\n-- turn 2 --\nBought.\n"
)

// asked waits for the question of a server.
func (b *bench) elicited(c artel.ConversationID) run.Elicitation {
	b.t.Helper()
	b.until(c, func(e artel.Event) bool { return e.Type == artel.EventElicitationRequested })
	w, err := b.Runs.Waiting(apptest.Context(b.t), c)
	if err != nil || len(w.Elicitations) != 1 {
		b.t.Fatalf("want one question, got %+v, %v", w, err)
	}
	return w.Elicitations[0]
}

func (b *bench) restart() {
	b.t.Helper()
	if err := b.Close(apptest.Context(b.t)); err != nil {
		b.t.Fatal(err)
	}
	b.App = b.open()
	if _, err := b.Recover(apptest.Context(b.t), true); err != nil {
		b.t.Fatal(err)
	}
}

// TestServersAskPeople: the question of a server waits over a restart, takes only what its
// form takes, and its answer is used again by the call that another restart repeats.
func TestServersAskPeople(t *testing.T) {
	for name, scenario := range map[string]string{"lead": fmt.Sprintf(shopping, "order"), "subagent": sending} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan tool.ElicitResult, 2)
			var calls atomic.Int32
			b := newBench(t, play(t, scenario), shoppers(eliciting(answered, func(ctx context.Context) {
				if calls.Add(1) == 1 { // the first one ends with its server
					<-ctx.Done()
				}
			})))
			c := b.conversation()
			r := b.send(c, run.Input{Text: "Go."})
			q := b.elicited(c)
			if b.state(r) != artel.RunWaiting || q.Server != "shop" || q.Name != "order" || (q.Within != "") != (name == "subagent") {
				t.Errorf("the run is %s, the question %+v", b.state(r), q)
			}
			b.restart()
			_, err := b.Elicitations.Answer(apptest.Context(t), r.ID, q.ID, artel.ElicitAccept, map[string]any{"count": 0.5, "more": "x"})
			if wrong, ok := errors.AsType[*run.FormError](err); !ok || len(wrong.Mistakes) != 2 || wrong.Mistakes[0].Code != elicit.Wrong || artel.KindOf(err) != artel.Invalid {
				t.Errorf("a wrong answer: %v", err)
			}
			if _, err := b.Elicitations.Answer(apptest.Context(t), r.ID, q.ID, artel.ElicitAccept, map[string]any{"count": 3.0}); err != nil {
				t.Fatal(err)
			}
			if got := <-answered; got.Content["count"] != 3.0 {
				t.Errorf("the server got %+v", got)
			}
			b.restart()
			if got := <-answered; got.Content["count"] != 3.0 {
				t.Errorf("the repeated call got %+v", got)
			}
			if r = b.ended(r); r.State != artel.RunDone {
				t.Errorf("it ended as %s: %+v", r.State, r.Error)
			}
			if n := strings.Count(typesOf(b.events(c)), "elicitation_requested"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			_, err = b.Elicitations.Answer(apptest.Context(t), r.ID, q.ID, artel.ElicitDecline, nil)
			if artel.CodeOf(err) != run.CodeElicitationResolved {
				t.Errorf("a second answer: %v", err)
			}
			if _, err := b.Elicitations.Answer(apptest.Context(t), r.ID, artel.NewElicitationID(time.Now()), artel.ElicitDecline, nil); artel.KindOf(err) != artel.NotFound {
				t.Errorf("an unknown question: %v", err)
			}
		})
	}
}

// TestQuestionsOfCallsThatAreCutOff: a call that must not be repeated has an unknown outcome
// after a restart, and its question is closed; one that has kept its state goes on.
func TestQuestionsOfCallsThatAreCutOff(t *testing.T) {
	for name, want := range map[string]string{"pay": "outcome unknown", "book": `acceptmap[count:2]{"seat":7}`} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan tool.ElicitResult, 1)
			b := newBench(t, play(t, fmt.Sprintf(shopping, name)), shoppers(eliciting(answered, func(context.Context) {})))
			c := b.conversation()
			r := b.send(c, run.Input{Text: "Go."})
			q := b.elicited(c)
			b.restart()
			if name == "book" {
				if _, err := b.Elicitations.Answer(apptest.Context(t), r.ID, q.ID, artel.ElicitAccept, map[string]any{"count": 2.0}); err != nil {
					t.Fatal(err)
				}
			}
			if r = b.ended(r); r.State != artel.RunDone {
				t.Errorf("it ended as %s: %+v", r.State, r.Error)
			}
			list, err := b.Elicitations.List(apptest.Context(t), c)
			if err != nil || len(list) != 1 || name == "pay" && (list[0].Action != artel.ElicitCancel || list[0].Reason != artel.ResolvedByServer) {
				t.Errorf("the questions are %+v, %v", list, err)
			}
			result := ""
			for _, m := range b.messages(c) {
				for _, res := range artel.ResultsOf(m.Parts) {
					result += res.Content
				}
			}
			if !strings.Contains(result, want) {
				t.Errorf("the model got %q, want %q", result, want)
			}
		})
	}
}

// TestServersGetNoAnswer: no one answers in time, or the run is cancelled.
func TestServersGetNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan tool.ElicitResult, 1)
		b := newBench(t, play(t, fmt.Sprintf(shopping, "pay")), shoppers(eliciting(answered, func(context.Context) {})))
		c := b.conversation()
		r := b.send(c, run.Input{Text: "Go."})
		b.elicited(c)
		time.Sleep(301 * time.Second)
		synctest.Wait()
		if got := <-answered; got.Action != artel.ElicitCancel {
			t.Errorf("the server got %+v", got)
		}
		b.ended(r)
		r = b.send(c, run.Input{Text: "Again."})
		b.until(c, func(e artel.Event) bool { return e.Type == artel.EventElicitationRequested && e.Run == r.ID })
		if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
			t.Fatal(err)
		}
		list, err := b.Elicitations.List(apptest.Context(t), c)
		if err != nil || len(list) != 2 || list[0].Reason != artel.ResolvedByTimeout || list[1].Action != artel.ElicitCancel {
			t.Errorf("the questions are %+v, %v", list, err)
		}
	})
}
