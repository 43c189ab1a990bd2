// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// keptContexts is how many records a conversation has at most; the oldest go.
const keptContexts = 200

// Record implements [agent.Host]: it stores the context of a model call before
// the call is made.
func (x *execution) Record(ctx context.Context, b agent.Built, failed error) error {
	c := record.New(x.agent.Name, b, failed)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.commit(ctx, func(tx store.Tx) error {
		if err := x.hold(tx); err != nil { // before anybody is paid
			return err
		}
		if len(x.begun) > 0 {
			if err := x.write(tx, x.begun...); err != nil {
				return err
			}
		}
		before, err := x.compare(tx, c)
		if err != nil {
			return err
		}
		summary, err := json.Marshal(c.Facts)
		if err != nil {
			return err
		}
		record, err := c.Pack(before)
		if err != nil {
			return err
		}
		c.Key.Run = x.run.ID
		c.Key.Number, err = tx.Contexts.Add(store.Context{
			Conversation: x.run.Conversation, Run: x.run.ID, Summary: summary, Record: record, CreatedAt: x.runs.config.Now(),
		}, c.Segments(b.Segments))
		if err != nil {
			return err
		}
		if failed == nil && x.within == "" {
			if err := x.keepVariables(tx, b.Variables); err != nil {
				return err
			}
		}
		if c.Key.Number == 1 { // once in a run is often enough
			if err := tx.Contexts.Trim(x.run.Conversation, keptContexts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.carry(ctx, c, b)
	x.call = c
	x.runs.latest.Keep(c)
	if len(x.begun) > 0 {
		x.begun = nil
		x.runs.config.notifier().Notify(x.run.Conversation)
	}
	return nil
}

// report keeps what the newest model call took.
func (x *execution) report(tx store.Tx, u artel.Usage) error {
	if x.call == nil {
		return nil
	}
	err := tx.Contexts.Report(x.call.Key.Run, x.call.Key.Number, store.ContextReport{Usage: &u})
	if errors.Is(err, artel.NotFound) { // it is so long ago that its record is gone
		return nil
	}
	return err
}

// compare notes what c has in common with the call before it, which it
// returns; nil: there was none.
func (x *execution) compare(tx store.Tx, c *record.Call) (before *record.Call, err error) {
	if before = x.call; before == nil {
		list, err := tx.Contexts.List(store.ContextQuery{Conversation: x.run.Conversation, Limit: 1})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		key := record.ContextKey{list[0].Run, list[0].Number}
		if before = x.runs.latest.Find(key); before == nil {
			before, err = record.Load(tx, key)
		}
		switch {
		case errors.Is(err, record.ErrDamaged): // the run has nothing to do with that
			x.runs.config.Logger.Warn("the record of an earlier model call cannot be read", "run", key.Run, "number", key.Number, "err", err)
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	c.Facts.Previous = &before.Key
	if c.Facts.Error != nil || before.Facts.Error != nil {
		return before, nil
	}
	p, err := c.Prefix(tx, before)
	c.Facts.Prefix = &record.ContextPrefix{p, p.Ratio()}
	return before, err
}

// carry keeps how the media of a call went: when it is made, so that it is known
// also of a call that fails.
func (x *execution) carry(ctx context.Context, c *record.Call, b agent.Built) {
	if len(c.Facts.Media) == 0 {
		return
	}
	b.Request.OnNames = func(names map[artel.Digest]model.Name) {
		media := record.WithNames(c.Facts.Media, names)
		if slices.Equal(media, c.Facts.Media) {
			return
		}
		c.Facts.Media = media
		summary, err := json.Marshal(c.Facts)
		if err == nil {
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer stop()
			err = x.runs.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
				return tx.Contexts.Report(c.Key.Run, c.Key.Number, store.ContextReport{Summary: summary})
			})
		}
		if err != nil {
			x.runs.config.Logger.Warn("how media went to a service could not be kept", "run", c.Key.Run, "number", c.Key.Number, "err", err)
		}
	}
}
