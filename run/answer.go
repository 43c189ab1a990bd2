// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// An openQuestion is an open note of a run that a person answers.
type openQuestion struct {
	op       string
	run      artel.RunID
	id, kind string
	resolved string // code of the error if it is not open any more
	action   audit.Action
}

// answer applies an answer in one update, which also stores the state of the run and an
// entry of the audit log with the returned detail. It returns the closed note.
func (rs *Runs) answer(ctx context.Context, q openQuestion, apply func(tx store.Tx, x *execution, n store.Note) (detail string, err error)) (n store.Note, err error) {
	err = rs.config.update(ctx, func(tx store.Tx) error {
		r, err := tx.Runs.Get(q.run)
		if err != nil {
			return err
		}
		if n, err = tx.Notes.Get(q.id); err != nil {
			return err
		}
		if n.Kind != q.kind || n.Run != q.run {
			return artel.Errorf(artel.NotFound, q.op, q.id, "the run has asked no such question")
		}
		if !n.Open {
			return &artel.Error{Op: q.op, Subject: q.id, Kind: artel.Conflict, Code: q.resolved, Err: errors.New("it is answered already, or what asked it has ended")}
		}
		x := execution{runs: rs, config: rs.config, owner: artel.OwnerOf(ctx), run: r}
		detail, err := apply(tx, &x, n)
		if err != nil {
			return err
		}
		if n, err = tx.Notes.Get(n.ID); err != nil {
			return err
		}
		if r.State, err = x.stateAtWork(tx); err != nil {
			return err
		}
		if err := tx.Runs.Update(r); err != nil {
			return err
		}
		return audit.Record(ctx, tx, rs.config.Now(), audit.Act{Action: q.action, Target: string(q.run) + "/" + q.id, Detail: detail})
	})
	if err == nil {
		rs.config.notifier().Notify(n.Conversation)
	}
	return n, err
}
