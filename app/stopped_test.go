// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// disableLocal makes the owner of everything a user, and another administrator who
// disables that user.
func (b *bench) disableLocal() {
	b.t.Helper()
	ctx := apptest.Context(b.t)
	const password = "a long password"
	_, err := b.Access.Users.Setup(ctx, access.Setup{Name: "Ann", Email: "ann@example.org", Password: password})
	var code string
	if err == nil {
		_, code, err = b.Access.Users.Invite(ctx, access.NewUser{Name: "Eve", Email: "eve@example.org", Role: store.Admin})
	}
	if err == nil {
		_, err = b.Access.Users.Accept(ctx, code, password)
	}
	if err == nil {
		yes := true
		_, err = b.Access.Users.Update(ctx, artel.Local, access.UserPatch{Disabled: &yes})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// interrupted checks that a run has ended because its user was disabled.
func (b *bench) interrupted(what string, id artel.RunID) {
	b.t.Helper()
	r, err := b.Runs.Find(apptest.Context(b.t), id)
	if err != nil || r.State != artel.RunInterrupted || r.Error == nil || r.Error.Message != "the user was disabled" {
		b.t.Errorf("%s: %v, %s %+v", what, err, r.State, r.Error)
	}
}

// TestRunsOfADisabledUserStop: those at work and those in the queue end before the change
// returns, with the reason in the log, and no further one starts.
func TestRunsOfADisabledUserStop(t *testing.T) {
	g, b, c, first := working(t, "one")
	second := b.send(c, run.Input{Text: "two", Queue: true})
	third := b.send(c, run.Input{Text: "three", Queue: true})
	b.disableLocal()
	b.interrupted("at work", first.ID)
	b.interrupted("queued", second.ID)
	b.interrupted("queued last", third.ID)
	reasons := 0
	for _, e := range b.events(c) {
		if e.Type == artel.EventRunFinished && strings.Contains(string(e.Data), "the user was disabled") {
			reasons++
		}
	}
	if reasons != 3 {
		t.Errorf("%d reasons in the log", reasons)
	}
	if _, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "four"}); artel.KindOf(err) != artel.Denied {
		t.Errorf("a further run: %v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.calls) != 1 {
		t.Errorf("%d calls of the model", len(g.calls))
	}
}

// TestRecoverStopsRunsOfDisabledUsers: a run whose process died before its user was
// disabled is not continued.
func TestRecoverStopsRunsOfDisabledUsers(t *testing.T) {
	b, _, r := crash(t, holds)
	b.App = b.open()
	b.disableLocal()
	if _, err := b.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	b.interrupted("recovered", r.ID)
}
