// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// starter starts the runs of schedules. It implements [schedules.Starter].
type starter struct{ core *core }

// Check implements [schedules.Starter].
func (s starter) Check(ctx context.Context, v store.Schedule) error {
	return s.core.view(ctx, func(tx store.Tx) error {
		if v.Agent != "" {
			if _, err := s.core.settings.Reader.Agent(tx, v.Agent); err != nil {
				return err
			}
		}
		if v.Conversation == "" {
			return nil
		}
		_, err := tx.Conversations.Get(v.Conversation)
		return err
	})
}

// Start implements [schedules.Starter].
func (s starter) Start(ctx context.Context, v store.Schedule, st store.Start) error {
	if _, err := s.core.runs.Find(ctx, st.Run); artel.KindOf(err) != artel.NotFound {
		return err
	}
	if v.Conversation == "" {
		now := s.core.now()
		err := s.core.update(ctx, func(tx store.Tx) error {
			if _, err := tx.Conversations.Get(st.Conversation); artel.KindOf(err) != artel.NotFound {
				return err // an earlier attempt has made it
			}
			return tx.Conversations.Create(artel.Conversation{ID: st.Conversation, Title: v.Name, Agent: v.Agent, CreatedAt: now, UpdatedAt: now})
		})
		if err != nil {
			return err
		}
	}
	_, err := s.core.runs.Send(ctx, st.Conversation, run.Input{Run: st.Run, Text: v.Text, Agent: v.Agent, Queue: true})
	if artel.KindOf(err) == artel.Conflict {
		if _, missing := s.core.runs.Find(ctx, st.Run); missing == nil {
			return nil // another process was quicker
		}
	}
	return err
}

// Active implements [schedules.Starter].
func (s starter) Active(ctx context.Context, id artel.RunID) (bool, error) {
	r, err := s.core.runs.Find(ctx, id)
	if artel.KindOf(err) == artel.NotFound {
		return false, nil // its conversation was deleted
	}
	return err == nil && (r.State.Active() || r.State == artel.RunQueued), err
}
