// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// turnings are where a conversation took a turn of its own.
type turnings struct {
	summaries map[artel.MessageID]artel.CompactionCompleted
	changes   []artel.Event // of the model, or which was chosen, in order
}

// A Change tells that another model went on with a run, or which was chosen.
type Change struct {
	ID     string // of its element
	Into   string // the element that it stands in; "": the thread
	Text   string
	Reason string // in the words of the service or of who called it
}

// turnings reads those of the conversation.
func (v view) turnings(ctx context.Context) (turnings, error) {
	out := turnings{summaries: map[artel.MessageID]artel.CompactionCompleted{}}
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

// boundary says for how many messages a summary stands, and where it is kept.
func (v view) boundary(p artel.CompactionCompleted) (stands int, shelf string) {
	if p.Artifact != nil {
		shelf = artifactURL(v.conversation, artel.Ref{Artifact: p.Artifact.ID})
	}
	return p.Replaced, shelf
}

// weave puts the changes of model of a thread where they happened: before what
// the next model said, or where it said nothing any more, behind the run.
func (v view) weave(ctx context.Context, thread []Message, within artel.CallPath) {
	for _, e := range v.told.changes {
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
			continue // what cannot be read is not shown
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

// change says that another model goes on, or which was chosen.
func (v view) change(ctx context.Context, e artel.Event) (Change, error) {
	if e.Type == artel.EventServiceChosen {
		return v.choice(ctx, e)
	}
	p, err := payload[artel.ServiceChanged](e)
	if err != nil {
		return Change{}, err
	}
	c := Change{ID: "v-" + strconv.FormatInt(int64(e.Seq), 10), Into: v.into(e), Reason: p.Reason, Text: v.locale.Say(phrase.PageServiceChanged, map[string]any{
		"From": v.took(ctx, "", p.From, artel.Usage{}).Model, "To": v.took(ctx, "", p.To, artel.Usage{}).Model,
	})}
	return c, nil
}

// choice says which model was chosen for a message, and how.
func (v view) choice(ctx context.Context, e artel.Event) (Change, error) {
	p, err := payload[artel.ServiceChosen](e)
	if err != nil {
		return Change{}, err
	}
	key := phrase.PageChosenByOrder
	if p.By == artel.ChosenBySelector {
		key = phrase.PageChosenBySelector
	}
	name := func(id artel.ServiceID) string { return v.took(ctx, "", id, artel.Usage{}).Model }
	return Change{ID: "v-" + strconv.FormatInt(int64(e.Seq), 10), Into: v.into(e), Reason: p.Problem, Text: v.locale.Say(key, map[string]any{
		"Name": name(p.Service), "Selector": name(p.Selector), "Count": len(p.Candidates),
	})}, nil
}

// compacted shows what came of summing up.
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
	m.Stands, m.Shelf = s.boundary(p)
	if e.Within == "" {
		if on, err := s.shows(ctx, m.ID); err != nil || !on {
			return err
		}
		s.leaf = m.ID
	}
	return s.put(out, "message", m)
}

// A Retry tells that a model call is made again after a while.
type Retry struct {
	Service string // "": none is
	Attempt int    // that comes next
	Of      int
	Until   time.Time // when it comes
	Reason  string
}

// retryTold says so in the names that people know.
func (v view) retryTold(ctx context.Context, e artel.Event) (Retry, error) {
	p, err := payload[artel.Retrying](e)
	return Retry{
		Service: v.took(ctx, "", p.Service, artel.Usage{}).Model, Attempt: p.Attempt, Of: p.Of, Reason: p.Reason,
		Until: e.Time.Add(time.Duration(p.Wait * float64(time.Second))),
	}, err
}

// retryNow is the one that a run is at in a log whose newest event is last.
func (v view) retryNow(ctx context.Context, run artel.Run, last artel.Seq) (Retry, error) {
	e, err := v.retryAt(ctx, last)
	if err != nil || e == nil || e.Run != run.ID || e.Within == "" && run.Retrying == nil { // of an answer that is being written the log does not tell
		return Retry{}, err
	}
	return v.retryTold(ctx, *e)
}

// retriedBack is how many events back a retry is looked for. While a call waits,
// hardly anything is told but what people send.
const retriedBack = 50

// retryAt is the newest retry that a log does not tell the end of, up to the
// event last; nil: there is none.
func (v view) retryAt(ctx context.Context, last artel.Seq) (*artel.Event, error) {
	events, err := v.app.Events.Page(ctx, v.conversation, max(0, last-retriedBack), int(min(last, retriedBack)))
	if err != nil {
		return nil, err
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

// fromOutside reports whether an event tells what people want of a run, and
// nothing of how it goes on.
func fromOutside(e artel.Event) bool {
	return e.Type == artel.EventInjectionReceived || e.Type == artel.EventCompactionRequested
}

// retrying shows that a model call is made again, until something else comes
// of the same thread.
func (s *stream) retrying(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	shown, err := s.retryTold(ctx, e)
	if err != nil || time.Now().After(shown.Until) {
		return err // the page is late, and what came of it follows
	}
	s.retries = &e
	return s.all(out, []part{{"retrying", shown}, {"announcement", s.locale.Say(phrase.PageRetrying, map[string]any{"Name": shown.Service, "Number": shown.Attempt, "Count": shown.Of})}}, nil)
}

// goesOn takes away that a call is made again, with the first event that comes
// after.
func (s *stream) goesOn(out *bytes.Buffer, e artel.Event) error {
	switch shown := s.retries; {
	case shown == nil, e.Type == artel.EventRetrying, fromOutside(e):
		return nil
	case e.Run != shown.Run, e.Within != shown.Within && e.Type != artel.EventRunFinished:
		return nil
	}
	s.retries = nil
	return s.put(out, "retrying", Retry{})
}

// serviceChanged shows that another model goes on, or which was chosen.
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
