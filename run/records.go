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

// keptContexts is how many records a conversation has at most; the oldest are
// removed.
const keptContexts = 200

// Record implements [agent.Host]: it stores the context of a model call before
// the call is made.
func (x *execution) Record(ctx context.Context, b agent.Built, failed error) error {
	c := record.New(x.agent.Name, b, failed)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.commit(ctx, func(tx store.Tx) error {
		if err := x.checkLease(tx); err != nil { // before a call that costs something
			return err
		}
		if len(x.pendingStart) > 0 {
			if err := x.write(tx, x.pendingStart...); err != nil {
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
			Conversation: x.run.Conversation, Run: x.run.ID, Summary: summary, Record: record, CreatedAt: x.config.Now(),
		}, c.Segments(b.Segments))
		if err != nil {
			return err
		}
		if failed == nil && x.within == "" {
			if err := x.storeVariables(tx, b.Variables); err != nil {
				return err
			}
		}
		if c.Key.Number == 1 { // once in a run is enough
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
	if len(x.pendingStart) > 0 {
		x.pendingStart = nil
		x.config.notifier().Notify(x.run.Conversation)
	}
	return nil
}

// report stores the usage of the newest model call.
func (x *execution) report(tx store.Tx, u artel.Usage) error {
	if x.call == nil {
		return nil
	}
	err := tx.Contexts.Report(x.call.Key.Run, x.call.Key.Number, store.ContextReport{Usage: &u})
	if errors.Is(err, artel.NotFound) { // its record was removed
		return nil
	}
	return err
}

// compare stores in c the prefix it shares with the call before it, and returns
// that call; nil: there is none.
func (x *execution) compare(tx store.Tx, c *record.Call) (before *record.Call, err error) {
	if before = x.call; before == nil {
		list, err := tx.Contexts.List(store.ContextQuery{Conversation: x.run.Conversation, Limit: 1})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		key := record.ContextKey{Run: list[0].Run, Number: list[0].Number}
		if before = x.runs.latest.Find(key); before == nil {
			before, err = record.Load(tx, key)
		}
		switch {
		case errors.Is(err, record.ErrDamaged): // which must not fail this run
			x.config.Logger.Warn("the record of an earlier model call cannot be read", "run", key.Run, "number", key.Number, "err", err)
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
	c.Facts.Prefix = &record.ContextPrefix{Prefix: p, Ratio: p.Ratio()}
	return before, err
}

// carry stores how the media of a call were sent: when the call is made, so that
// it is known also for a call that fails.
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
			err = x.config.Store.Update(ctx, x.owner, func(tx store.Tx) error {
				return tx.Contexts.Report(c.Key.Run, c.Key.Number, store.ContextReport{Summary: summary})
			})
		}
		if err != nil {
			x.config.Logger.WarnContext(ctx, "how media went to a service could not be kept", "run", c.Key.Run, "number", c.Key.Number, "err", err)
		}
	}
}
