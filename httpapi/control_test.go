// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/run"
)

// TestSteering walks through the endpoints that steer a run.
func TestSteering(t *testing.T) {
	b := newBench(t, "-- turn 1 --\n@call create_artifact {\"id\": \"note\", \"title\": \"N\", \"content\": \"one\"}\n-- turn 2 --\nDone.\n-- turn 3 --\nTwo.\n",
		func(c *app.Config) { c.Permissions = agent.Permissions{"create_artifact": agent.Ask} })
	ctx := apptest.Context(t)
	c, err := b.client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := b.client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Go."})
	if err != nil || first.State != artel.RunRunning {
		t.Fatalf("got %+v, %v", first, err)
	}
	var question artel.PermissionID
	b.until(string(c.ID), func(e artel.Event) bool { return e.Type == artel.EventPermissionRequested })
	w, err := b.client.Waiting(ctx, c.ID)
	if err != nil || len(w.Permissions) != 1 {
		t.Fatalf("got %+v, %v", w, err)
	}
	question = w.Permissions[0].ID
	queued, err := b.client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Then this.", IfActive: "queue"})
	if err != nil || queued.State != artel.RunQueued {
		t.Errorf("got %+v, %v", queued, err)
	}
	if i, err := b.client.Inject(ctx, first.RunID, "And mind the tide."); err != nil || i.Run != first.RunID {
		t.Errorf("got %+v, %v", i, err)
	}
	if w, err = b.client.Waiting(ctx, c.ID); err != nil || len(w.Queued) != 1 || len(w.Injections) != 1 {
		t.Errorf("got %+v, %v", w, err)
	}
	if sums, err := b.client.Compact(ctx, c.ID, ""); err != nil || sums.RunID != first.RunID {
		t.Errorf("summing up meanwhile: got %+v, %v", sums, err)
	}
	if w, err = b.client.Waiting(ctx, c.ID); err != nil || !w.Compaction {
		t.Errorf("got %+v, %v", w, err)
	}
	if p, err := b.client.Decide(ctx, first.RunID, question, httpapi.NewDecision{Decision: artel.Always}); err != nil || p.Decision != artel.Always {
		t.Errorf("got %+v, %v", p, err)
	}
	b.until(string(c.ID), func(e artel.Event) bool { return e.Type == artel.EventRunFinished && e.Run == queued.RunID })
	var problem *httpapi.Problem
	if _, err := b.client.Inject(ctx, first.RunID, "Late."); !errors.As(err, &problem) || problem.Status != http.StatusConflict || problem.Code != run.CodeRunNotActive {
		t.Errorf("got %v", err)
	}
	if _, err := b.client.Decide(ctx, first.RunID, question, httpapi.NewDecision{Decision: artel.Deny}); !errors.As(err, &problem) || problem.Code != run.CodePermissionResolved {
		t.Errorf("got %v", err)
	}
	if _, err := b.client.Decide(ctx, first.RunID, artel.NewPermissionID(c.CreatedAt), httpapi.NewDecision{Decision: artel.Deny, Comment: "no"}); !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
	if u, err := b.client.Usage(ctx, c.ID); err != nil || u.Calls < 3 || u.InputTokens == 0 || u.Cost != (artel.Cost{Calls: u.Calls}) {
		t.Errorf("all of it took %+v, %v", u, err)
	}
	all, err := b.client.Messages(ctx, c.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	users := ""
	for _, m := range all.Items {
		switch {
		case m.Summary:
			users += "SUMMARY "
		case m.Role == artel.RoleUser:
			users += artel.TextOf(m.Parts) + " "
		}
	}
	if want := "Go. And mind the tide. SUMMARY Then this. "; users != want {
		t.Errorf("got %q, want %q", users, want)
	}
}

// TestSubagentsAsk: a question of a subagent names the agent over HTTP, and is
// answered like any other.
func TestSubagentsAsk(t *testing.T) {
	scenario, err := os.ReadFile("../testdata/scenario/delegation.txtar")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, string(scenario), func(c *app.Config) {
		c.Permissions = agent.Permissions{"create_artifact": agent.Ask, "update_artifact": agent.Ask}
	})
	ctx := apptest.Context(t)
	c, err := b.client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := b.client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Who painted the crane, and when?"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"create_artifact", "update_artifact"} {
		var e artel.Event
		b.until(string(c.ID), func(one artel.Event) bool {
			e = one
			return one.Type == artel.EventPermissionRequested && strings.Contains(string(one.Data), `"name":"`+name)
		})
		w, err := b.client.Waiting(ctx, c.ID)
		if err != nil || len(w.Permissions) != 1 {
			t.Fatalf("got %+v, %v", w, err)
		}
		p := w.Permissions[0]
		if p.Name != name || p.Agent != "research_agent" || p.Within == "" || e.Agent != p.Agent || e.Within != p.Within {
			t.Errorf("asked %+v by %s within %q", p, e.Agent, e.Within)
		}
		if r, err := b.client.Run(ctx, sent.RunID); err != nil || r.State != artel.RunWaiting {
			t.Errorf("got %+v, %v", r, err)
		}
		if p, err = b.client.Decide(ctx, sent.RunID, p.ID, httpapi.NewDecision{Decision: artel.Allow}); err != nil || p.Decision != artel.Allow {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	b.until(string(c.ID), func(e artel.Event) bool { return e.Type == artel.EventRunFinished })
	if r, err := b.client.Run(ctx, sent.RunID); err != nil || r.State != artel.RunDone {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestBranches walks through the endpoints of the tree.
func TestBranches(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nOne.\n")
	ctx := apptest.Context(t)
	c, err := b.client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	ended := func(s httpapi.Sent, err error) httpapi.Sent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b.until(string(c.ID), func(e artel.Event) bool { return e.Type == artel.EventRunFinished && e.Run == s.RunID })
		return s
	}
	first := ended(b.client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Go."}))
	text := "Go on."
	edited := ended(b.client.Edit(ctx, c.ID, first.MessageID, httpapi.MessageEdit{Text: &text}))
	again := ended(b.client.Retry(ctx, c.ID, edited.MessageID, httpapi.MessageRetry{}))
	branch, err := b.client.Branch(ctx, c.ID, "")
	if err != nil || len(branch.Items) == 0 || branch.Items[0].ID != again.MessageID || len(branch.Items[0].Siblings) != 3 {
		t.Errorf("got %+v, %v", branch, err)
	}
	if found, err := b.client.Switch(ctx, c.ID, first.MessageID); err != nil || found.Leaf == c.Leaf {
		t.Errorf("got %+v, %v", found, err)
	}
	if m, err := b.client.Mute(ctx, c.ID, first.MessageID, true); err != nil || !m.Muted {
		t.Errorf("got %+v, %v", m, err)
	}
	b.problem(b.do("PATCH", "/conversations/"+string(c.ID), `{}`), 422, "invalid")
}
