// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
)

// TestForeignIDs: what belongs to another conversation or to somebody else is
// not there, whatever is asked of it.
func TestForeignIDs(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
	c, other := b.conversation(), b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	strange := b.send(other, run.Input{Text: "Go too."})
	asked := b.question(strange)
	mine, stranger := apptest.Context(t), artel.WithOwner(apptest.Context(t), "somebody_else")
	for name, got := range map[string]error{
		"parent":      second(b.Runs.Send(mine, c, run.Input{Text: "x", Parent: &strange.Message, Queue: true})),
		"edit":        second(b.Runs.Edit(mine, c, strange.Message, run.Edit{Queue: true})),
		"mute":        second(b.Messages.Mute(mine, c, strange.Message, true)),
		"switch":      second(b.Conversations.Switch(mine, c, strange.Message)),
		"branch":      second(b.Messages.Branch(mine, c, strange.Message, 0)),
		"turns":       second(b.Messages.Turns(mine, c, strange.Message, 0)),
		"decide":      second(b.Permissions.Decide(mine, r.ID, asked.Permission, artel.Allow, "")),
		"find":        second(b.Runs.Find(stranger, r.ID)),
		"cancel":      second(b.Runs.Cancel(stranger, r.ID)),
		"inject":      second(b.Runs.Inject(stranger, r.ID, "x")),
		"answer":      second(b.Permissions.Decide(stranger, r.ID, q.Permission, artel.Allow, "")),
		"send":        second(b.Runs.Send(stranger, c, run.Input{Text: "x"})),
		"queue":       second(b.Runs.Send(stranger, c, run.Input{Text: "x", Queue: true})),
		"compact":     second(b.Runs.Compact(stranger, c, "")),
		"their edit":  second(b.Runs.Edit(stranger, c, r.Message, run.Edit{})),
		"their mute":  second(b.Messages.Mute(stranger, c, r.Message, true)),
		"their turns": second(b.Messages.Turns(stranger, c, r.Message, 0)),
		"delete":      b.Conversations.Delete(stranger, c),
	} {
		if !errors.Is(got, artel.NotFound) {
			t.Errorf("%s: got %v, want kind %s", name, got, artel.NotFound)
		}
	}
	for what, list := range map[string]int{
		"nested":    len(first(b.Messages.Nested(mine, c, strange.ID))),
		"questions": len(first(b.Permissions.List(stranger, c))),
		"waiting":   len(first(b.Runs.Waiting(stranger, c)).Permissions),
	} {
		if list != 0 {
			t.Errorf("%s: %d are shown", what, list)
		}
	}
	b.decide(r, q, artel.Deny)
	b.decide(strange, asked, artel.Deny)
	b.ended(r)
	b.ended(strange)
}

func first[T any](v T, _ error) T        { return v }
func second[T any](_ T, err error) error { return err }
