// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// threadEvents are the compactions and model changes of a conversation.
type threadEvents struct {
	summaries map[artel.MessageID]artel.CompactionCompleted
	changes   []artel.Event // model changes and choices, in order
}

// A Change reports that another model continued a run, or which was chosen.
type Change struct {
	ID     string // element id
	Into   string // element that contains it; "": the thread
	Text   string
	Reason string // in the words of the service or the caller
}

// loadEvents reads those of the conversation.
func (v view) loadEvents(ctx context.Context) (threadEvents, error) {
	out := threadEvents{summaries: map[artel.MessageID]artel.CompactionCompleted{}}
	list, err := v.app.Events.Milestones(ctx, v.conversation)
	for _, e := range list {
		if e.Type != artel.EventCompactionCompleted {
			out.changes = append(out.changes, e)
			continue
		}
		p, err := payload[artel.CompactionCompleted](e)
		if err != nil {
			return out, err
		}
		if p.Message != nil {
			out.summaries[p.Message.ID] = p
		}
	}
	return out, err
}

// insertChanges inserts the model changes into a thread: before the next message of the
// run, or after its last.
func (v view) insertChanges(ctx context.Context, thread []Message, within artel.CallPath) {
	for _, e := range v.events.changes {
		if e.Within != within {
			continue
		}
		ofRun := func(m Message) bool { return m.run == e.Run }
		last := len(thread) - 1
		for last >= 0 && !ofRun(thread[last]) {
			last--
		}
		if last < 0 {
			continue
		}
		c, err := v.change(ctx, e)
		if err != nil {
			continue // unreadable events are skipped
		}
		next := slices.IndexFunc(thread, func(m Message) bool {
			return ofRun(m) && m.Role == artel.RoleAssistant && !m.At.Before(e.Time)
		})
		if next >= 0 {
			thread[next].Before = append(thread[next].Before, c)
		} else {
			thread[last].After = append(thread[last].After, c)
		}
	}
}

// change renders a model change or choice.
func (v view) change(ctx context.Context, e artel.Event) (Change, error) {
	if e.Type == artel.EventServiceChosen {
		return v.choice(ctx, e)
	}
	p, err := payload[artel.ServiceChanged](e)
	if err != nil {
		return Change{}, err
	}
	c := Change{ID: "v-" + strconv.FormatInt(int64(e.Seq), 10), Into: v.into(e), Reason: p.Reason, Text: v.locale.Say(phrase.PageServiceChanged, map[string]any{
		"From": v.runUsage(ctx, "", p.From, artel.Usage{}).Model, "To": v.runUsage(ctx, "", p.To, artel.Usage{}).Model,
	})}
	return c, nil
}

// choice renders the automatic choice of a model.
func (v view) choice(ctx context.Context, e artel.Event) (Change, error) {
	p, err := payload[artel.ServiceChosen](e)
	if err != nil {
		return Change{}, err
	}
	key := phrase.PageChosenByOrder
	if p.By == artel.ChosenBySelector {
		key = phrase.PageChosenBySelector
	}
	name := func(id artel.ServiceID) string { return v.runUsage(ctx, "", id, artel.Usage{}).Model }
	return Change{ID: "v-" + strconv.FormatInt(int64(e.Seq), 10), Into: v.into(e), Reason: p.Problem, Text: v.locale.Say(key, map[string]any{
		"Name": name(p.Service), "Selector": name(p.Selector), "Count": len(p.Candidates),
	})}, nil
}

// compacted shows the result of a compaction.
func (s *stream) compacted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.CompactionCompleted](e)
	if err != nil {
		return err
	}
	status, err := s.statusAt(ctx, e)
	if err != nil {
		return err
	}
	if err := s.put(out, "status", status); err != nil {
		return err
	}
	if err := s.waitingNow(ctx, out); err != nil {
		return err
	}
	if p.Message == nil {
		why := ""
		if p.Error != nil {
			why = p.Error.Message
		}
		return s.put(out, "toast", Toast{ID: "toast-compaction", Text: s.locale.Say(phrase.PageCompactionFailed, map[string]any{"Reason": why}), Bad: true})
	}
	m := s.message(*p.Message)
	m.Into = s.into(e)
	m.Summarised = s.summarised(*p.Message, p)
	if e.Within == "" {
		if on, err := s.shows(ctx, m.ID); err != nil || !on {
			return err
		}
		if several, err := s.severalSummaries(ctx); err != nil || several {
			return errors.Join(err, s.branchNow(ctx, out)) // the others change too
		}
		s.leaf = m.ID
	}
	return s.put(out, "message", m)
}

// A Retry shows that a model call will be repeated.
type Retry struct {
	Service string // "": none
	Attempt int    // number of the next attempt
	Of      int
	Until   time.Time // time of the next attempt
	Reason  string
}

// retryOf builds the Retry of an event, with display names.
func (v view) retryOf(ctx context.Context, e artel.Event) (Retry, error) {
	p, err := payload[artel.Retrying](e)
	return Retry{
		Service: v.runUsage(ctx, "", p.Service, artel.Usage{}).Model, Attempt: p.Attempt, Of: p.Of, Reason: p.Reason,
		Until: e.Time.Add(time.Duration(p.Wait * float64(time.Second))),
	}, err
}

// retryNow is the pending retry of a run, in a log that ends with the event
// last.
func (v view) retryNow(ctx context.Context, run artel.Run, last artel.Seq) (Retry, error) {
	e, err := v.retryAt(ctx, last)
	if err != nil || e == nil || e.Run != run.ID || e.Within == "" && run.Retrying == nil { // the log has no deltas: the event says nothing about an answer in progress
		return Retry{}, err
	}
	return v.retryOf(ctx, *e)
}

// retryLookback is how many events back retryAt searches. While a call waits, the
// log grows by user input only.
const retryLookback = 50

// retryAt is the newest pending retry up to the event last; nil: none.
func (v view) retryAt(ctx context.Context, last artel.Seq) (*artel.Event, error) {
	var events []artel.Event
	for from := max(0, last-retryLookback); from < last; {
		page, err := v.app.Events.Page(ctx, v.conversation, from, int(last-from))
		if err != nil || len(page) == 0 {
			return nil, err
		}
		for i := range page {
			if from = page[i].Seq; page[i].Type != artel.EventRetrying {
				page[i].Data = nil // which may be long
			}
		}
		events = append(events, page...)
	}
	type thread struct {
		run    artel.RunID
		within artel.CallPath
	}
	over, ended := map[thread]bool{}, map[artel.RunID]bool{}
	for i, e := range slices.Backward(events) {
		switch t := (thread{e.Run, e.Within}); {
		case e.Type == artel.EventRunFinished:
			ended[e.Run] = true
		case ended[e.Run] || fromOutside(e):
		case e.Type == artel.EventRetrying && !over[t]:
			return &events[i], nil
		default:
			over[t] = true
		}
	}
	return nil, nil
}

// fromOutside reports whether an event is user input, not progress of the run.
func fromOutside(e artel.Event) bool {
	return e.Type == artel.EventInjectionReceived || e.Type == artel.EventCompactionRequested
}

// retrying shows a retry until the next event of the same thread.
func (s *stream) retrying(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	shown, err := s.retryOf(ctx, e)
	if err != nil || time.Now().After(shown.Until) {
		return err // too late: the result follows
	}
	s.pendingRetry = &e
	return s.all(out, []part{{"retrying", shown}, {"announcement", s.locale.Say(phrase.PageRetrying, map[string]any{"Name": shown.Service, "Number": shown.Attempt, "Count": shown.Of})}}, nil)
}

// clearRetry hides a retry at the first event after it.
func (s *stream) clearRetry(out *bytes.Buffer, e artel.Event) error {
	switch shown := s.pendingRetry; {
	case shown == nil, e.Type == artel.EventRetrying, fromOutside(e):
		return nil
	case e.Run != shown.Run, e.Within != shown.Within && e.Type != artel.EventRunFinished:
		return nil
	}
	s.pendingRetry = nil
	return s.put(out, "retrying", Retry{})
}

// serviceChanged shows a model change or choice.
func (s *stream) serviceChanged(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	if on, err := s.follows(ctx, e.Run); err != nil || !on {
		return err
	}
	c, err := s.change(ctx, e)
	if err != nil {
		return err
	}
	return s.all(out, []part{{"change", c}, {"announcement", c.Text}}, nil)
}
