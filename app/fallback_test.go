// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A run whose service is down goes on with the next that its service names and
// that can be called, once each, and is one of that service from then on.
func TestRunFallsBack(t *testing.T) {
	down := map[artel.ServiceID]bool{"first": true}
	var asked []artel.ServiceID
	p := provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		asked = append(asked, r.Service.ID)
		if down[r.Service.ID] {
			yield(nil, &artel.Error{Op: "x", Kind: artel.Unavailable, Err: &model.CallError{Service: r.Service.ID, Message: "overloaded"}})
			return
		}
		_ = yield(model.TextDelta("Here."), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 1}}, nil)
	})
	service := func(id artel.ServiceID, fallbacks ...artel.ServiceID) model.Service {
		s := model.DemoService()
		s.ID, s.Fallbacks = id, fallbacks
		return s
	}
	b := newBench(t, p, func(c *app.Config) {
		c.Services = model.NewRegistry([]model.Service{service("first", "gone", "first", "second"), service("second")}, "first")
	})
	c := b.conversation()
	run := b.ask(c, "Who is there?")
	if run.State != artel.RunDone || run.Service != "second" || run.Usage.Calls != 1 || len(asked) != 2 {
		t.Fatalf("%+v after asking %v", run, asked)
	}
	var changed []artel.ServiceChanged
	b.store(func(tx store.Tx) error {
		events, err := tx.Events.Read(c, 0, 100)
		changed = nil
		for _, e := range events {
			var p artel.ServiceChanged
			if e.Type == artel.EventServiceChanged && json.Unmarshal(e.Data, &p) == nil {
				changed = append(changed, p)
			}
		}
		return err
	})
	if len(changed) != 1 || changed[0].From != "first" || changed[0].To != "second" {
		t.Errorf("%+v", changed)
	}

	down["second"], asked = true, nil
	if run := b.ask(c, "And now?"); run.State != artel.RunFailed || run.Error.Kind != artel.Unavailable || len(asked) != 2 {
		t.Errorf("all are down: %+v after asking %v", run, asked)
	}
}
