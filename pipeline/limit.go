// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
)

func tokenLimiter() Processor {
	return Processor{
		ID:          TokenLimiter,
		Name:        "Token limiter",
		Description: "Drops the oldest messages so that the request and the reply fit into the model's context window.",
		Priority:    PriorityTokenLimiter,
		Icon:        "✂",
		Core:        true, Required: true,
		Fields: []Field{{
			Key: "reply_reserve", Label: "Tokens kept free for the reply", Type: FieldNumber, Range: From(0),
			Placeholder: "the model's longest reply, at most a quarter of its window",
		}},
		Process: limit,
	}
}

// limited is what the limiter leaves on the blackboard.
type limited struct {
	budget  int
	dropped []string
}

func limit(_ context.Context, d *Draft) error {
	var conf struct {
		ReplyReserve *int `json:"reply_reserve"`
	}
	if err := d.Config(&conf); err != nil {
		return err
	}
	window := d.Service.Capabilities.ContextWindow.Value
	if window <= 0 {
		return nil
	}
	reserve := reserve(window, d.Service.Capabilities.MaxOutput.Value)
	if conf.ReplyReserve != nil {
		reserve = min(max(*conf.ReplyReserve, 0), window)
	}
	cut := limited{budget: window - reserve}
	Set(d, cut)

	first := protected(d.Messages)
	fixed, tail := d.meter.tools(d.Tools), 0
	for i, m := range d.Messages {
		switch n := d.meter.message(m); {
		case m.Origin != OriginHistory:
			fixed += n
		case i >= first:
			tail += n
		}
	}
	room := cut.budget - fixed - tail
	if room < 0 {
		return artel.Errorf(artel.TooLarge, "pipeline.Build", "",
			"the request needs at least %d tokens (%d of the newest messages, %d of prompts, tools and summary), but %d fit: a window of %d less %d for the reply; shorten the message, attach less, or choose a service with a larger window",
			fixed+tail, tail, fixed, cut.budget, window, reserve)
	}
	keep := first
	for _, u := range slices.Backward(units(d.Messages[:first])) {
		n := 0
		for _, m := range d.Messages[u.start:u.end] {
			if m.Origin == OriginHistory {
				n += d.meter.message(m)
			}
		}
		if n > room {
			break
		}
		room -= n
		keep = u.start
	}
	i := -1
	d.Messages = slices.DeleteFunc(slices.Clone(d.Messages), func(m Message) bool {
		i++
		if i >= keep || m.Origin != OriginHistory {
			return false
		}
		cut.dropped = append(cut.dropped, m.ID)
		return true
	})
	if len(cut.dropped) > 0 {
		d.Log(Info, "the oldest messages do not fit and are not sent", map[string]any{"count": len(cut.dropped), "budget": cut.budget})
		Set(d, cut)
	}
	return nil
}

// reserve is what the reply gets of a window: the model's longest output where
// it is known, and at most a quarter.
func reserve(window, maxOutput int) int {
	if maxOutput > 0 {
		return min(maxOutput, window/4)
	}
	return window / 4
}

// protected returns the index from which on nothing is dropped: the last user
// message of the history, or its last exchange where there is none.
func protected(ms []Message) int {
	last := len(ms)
	for _, u := range units(ms) {
		if ms[u.start].Origin == OriginHistory {
			last = u.start
		}
	}
	for i, m := range slices.Backward(ms) {
		if m.Origin == OriginHistory && m.Role == artel.RoleUser {
			return i
		}
	}
	return last
}

type span struct{ start, end int }

// units cuts ms into what is kept or dropped together.
func units(ms []Message) []span {
	var us []span
	for i := 0; i < len(ms); {
		end := exchange(ms, i)
		us = append(us, span{i, end})
		i = end
	}
	return us
}
