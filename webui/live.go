// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/internal/sse"
)

const heartbeat = 15 * time.Second

// live streams fragments as server-sent events: unnamed, the id is the number
// of the event, the data is HTML.
func (ui *handler) live(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	var c artel.Conversation
	if err == nil {
		c, err = ui.app.Conversations.Find(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		// Answer without opening a stream, which would occupy the connection.
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if n, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = n
	}
	out, err := sse.NewWriter(w)
	if err != nil {
		return
	}
	s := &stream{leaf: c.Leaf, view: view{handler: ui, conversation: id, locale: locale(r)}, cards: map[artel.CallID]Call{}, answers: map[artel.CallPath]*answer{}}
	if err := s.loadState(r.Context(), artel.Seq(max(after, 0))); err != nil {
		if r.Context().Err() == nil {
			ui.o.Log.ErrorContext(r.Context(), "a page's stream could not begin", "conversation", id, "err", err)
		}
		return
	}
	for e, err := range ui.app.Events.Follow(r.Context(), id, artel.Seq(max(after, 0)), heartbeat) {
		if err == nil {
			err = s.send(r.Context(), out, e)
		}
		if err != nil {
			if r.Context().Err() == nil && artel.KindOf(err) != artel.Canceled {
				ui.o.Log.ErrorContext(r.Context(), "a page's stream ended", "conversation", id, "err", err)
			}
			return // the browser reconnects with its last event id
		}
	}
}

// loadState determines the state of a browser that has the events up to after.
func (s *stream) loadState(ctx context.Context, after artel.Seq) error {
	last, err := s.app.Events.Last(ctx, s.conversation)
	if err != nil {
		return err
	}
	s.leafUncertain = after < last
	if after > 0 {
		s.pendingRetry, err = s.retryAt(ctx, after)
	}
	return err
}

// A stream renders the fragments of one browser.
type stream struct {
	view
	answers       map[artel.CallPath]*answer // in progress, of the run and its subagents
	leaf          artel.MessageID            // last message of the branch on display, as far as known
	leafUncertain bool                       // the browser may show another branch than leaf
	otherBranch   bool                       // the active run is on another branch
	pendingRetry  *artel.Event               // retry on display; nil: none
	renderedTo    artel.Seq                  // the re-rendered thread includes the events up to this one
	cards         map[artel.CallID]Call
}

// An answer is a message in progress, as far as the browser has it.
type answer struct {
	message   artel.MessageID
	run       artel.RunID
	into      string // element that contains it; "": the thread
	at        time.Time
	reasoning strings.Builder
	blocks    *render.Stream
	shown     int  // number of blocks sent
	stored    bool // the store has the message: its pieces are not sent any more
}

// send renders one event. An event that changes nothing only advances the event
// id.
func (s *stream) send(ctx context.Context, out *sse.Writer, e artel.Event) error {
	if e.Type == "" {
		return out.KeepAlive()
	}
	var html bytes.Buffer
	if err := s.clearRetry(&html, e); err != nil {
		return err
	}
	if e.Seq == 0 || e.Seq > s.renderedTo {
		if err := s.fragments(ctx, &html, e); err != nil {
			return err
		}
	}
	switch e.Type {
	case artel.EventMessageCompleted:
		delete(s.answers, e.Within)
	case artel.EventRunFinished:
		maps.DeleteFunc(s.answers, func(_ artel.CallPath, a *answer) bool { return a.run == e.Run })
	}
	frame := sse.Event{Data: html.String()}
	if e.Seq > 0 {
		frame.ID = strconv.FormatInt(int64(e.Seq), 10)
	}
	return out.Send(frame)
}

func (s *stream) put(out *bytes.Buffer, name string, data any) error {
	return s.render(out, s.locale, name, data)
}

// all renders parts in order.
func (s *stream) all(out *bytes.Buffer, parts []part, err error) error {
	for _, p := range parts {
		if err == nil {
			err = s.put(out, p.name, p.data)
		}
	}
	return err
}

// fragments renders the changes of an event.
func (s *stream) fragments(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	switch e.Type {
	case artel.EventRunStarted:
		if err := s.put(out, "announcement", ""); err != nil { // so that a repeated announcement counts as a change
			return err
		}
		p, err := payload[artel.RunStarted](e)
		if err != nil {
			return err
		}
		if err := s.put(out, "status", Status{Run: e.Run, Active: true, Compacts: p.Purpose == artel.RunCompacts}); err != nil {
			return err
		}
		return s.waitingNow(ctx, out)
	case artel.EventMessageQueued, artel.EventInjectionReceived, artel.EventCompactionRequested:
		return s.waitingNow(ctx, out)
	case artel.EventMessageInjected:
		p, err := payload[artel.MessageInjected](e)
		if err != nil {
			return err
		}
		m, err := s.displayed(ctx, p.Message)
		if err != nil {
			return err
		}
		m.Injected = true
		if on, err := s.shows(ctx, p.Message.ID); err != nil || !on {
			return errors.Join(err, s.waitingNow(ctx, out))
		}
		s.leaf = p.Message.ID
		if err := s.put(out, "message", m); err != nil {
			return err
		}
		return s.waitingNow(ctx, out)
	case artel.EventPermissionRequested:
		parts, err := s.permissionRequested(ctx, e)
		return s.all(out, parts, err)
	case artel.EventPermissionResolved:
		parts, err := s.permissionResolved(ctx, e)
		return s.all(out, parts, err)
	case artel.EventElicitationRequested:
		parts, err := s.elicitationRequested(ctx, e)
		return s.all(out, parts, err)
	case artel.EventElicitationResolved:
		parts, err := s.elicitationResolved(ctx, e)
		return s.all(out, parts, err)
	case artel.EventUserInput:
		return s.userInput(ctx, out, e)
	case artel.EventBranchSwitched:
		return s.branchSwitched(ctx, out)
	case artel.EventMessageMuted:
		return s.muted(ctx, out, e)
	case artel.EventContextBuilt:
		if err := s.waysNow(ctx, out, e); err != nil {
			return err
		}
		return s.windowNow(ctx, out, e.Run)
	case artel.EventMessageDelta:
		p, err := payload[artel.MessageDelta](e)
		if err != nil {
			return err
		}
		return s.delta(ctx, out, p, e)
	case artel.EventMessageCompleted:
		p, err := payload[artel.MessageCompleted](e)
		if err != nil {
			return err
		}
		m, err := s.displayed(ctx, p.Message)
		if err != nil {
			return err
		}
		m.Partial, m.Into = p.Partial, s.into(e)
		for _, c := range m.Calls {
			s.cards[c.ID] = c
		}
		if e.Within == "" {
			if on, err := s.shows(ctx, p.Message.ID); err != nil || !on {
				return err
			}
			s.leaf = p.Message.ID
		}
		return s.put(out, "message", m)
	case artel.EventCompactionStarted:
		status, err := s.statusAt(ctx, e)
		status.Sums = true
		return s.all(out, []part{{"status", status}}, err)
	case artel.EventCompactionCompleted:
		return s.compacted(ctx, out, e)
	case artel.EventRetrying:
		return s.retrying(ctx, out, e)
	case artel.EventServiceChanged, artel.EventServiceChosen:
		return s.serviceChanged(ctx, out, e)
	case artel.EventUsage:
		if e.Within == "" {
			if err := s.windowNow(ctx, out, e.Run); err != nil {
				return err
			}
		}
		return s.usageNow(ctx, out)
	case artel.EventSubagentStarted:
		return s.subagentStarted(ctx, out, e)
	case artel.EventSubagentCompleted:
		return s.subagentCompleted(ctx, out, e)
	case artel.EventToolStarted:
		p, err := payload[artel.ToolStarted](e)
		if err != nil {
			return err
		}
		s.cards[p.Call] = s.call(p.Call, p.Name, p.Arguments)
		if on, err := s.follows(ctx, e.Run); err != nil || !on {
			return err
		}
		return s.put(out, "call", s.cards[p.Call])
	case artel.EventToolProgress:
		p, err := payload[artel.ToolProgress](e)
		if err != nil {
			return err
		}
		card, ok := s.cards[p.Call]
		if on, err := s.follows(ctx, e.Run); err != nil || !on || !ok {
			return err
		}
		card.Progress = p.Message
		return s.put(out, "call", card)
	case artel.EventToolCompleted:
		return s.toolCompleted(ctx, out, e)
	case artel.EventArtifactCreated, artel.EventArtifactUpdated:
		return s.artifactsNow(ctx, out)
	case artel.EventRunFinished:
		return s.runFinished(ctx, out, e)
	case artel.EventConversationTitled:
		return s.titled(ctx, out)
	}
	return nil
}

// delta renders the progress of an answer: the whole message at first and when
// its text begins, afterwards the changed blocks, or the next piece of
// reasoning.
func (s *stream) delta(ctx context.Context, out *bytes.Buffer, p artel.MessageDelta, e artel.Event) error {
	a := s.answers[e.Within]
	if a == nil {
		a = &answer{}
		s.answers[e.Within] = a
	}
	begins := p.Reset || p.Message != a.message
	if begins {
		*a = answer{message: p.Message, run: e.Run, into: s.into(e), at: e.Time, blocks: render.NewStream(s.options())}
		follows, err := s.follows(ctx, e.Run)
		if err != nil {
			return err
		}
		s.otherBranch = !follows
		if a.stored, err = s.stored(ctx, p.Message); err != nil {
			return err
		}
	}
	thought := a.reasoning.Len() > 0
	a.reasoning.WriteString(p.Reasoning)
	from, changed := a.blocks.Append(p.Text)
	before := a.shown
	a.shown = from + len(changed)
	switch {
	case a.stored:
		return nil // a thread from the store has it, or its end follows
	case s.otherBranch:
		return nil // it is rendered as a whole when the user switches to its branch
	case !begins && p.Text == "" && thought:
		return s.put(out, "thought", Thought{p.Message, p.Reasoning})
	case !begins && p.Reasoning == "" && before > 0 && a.shown >= before:
		return s.put(out, "blocks", Blocks{ID: bodyID(p.Message), From: from, Items: s.withCopyButtons(changed)})
	}
	return s.put(out, "message", a.rendered(s))
}

// rendered is the message so far.
func (a *answer) rendered(s *stream) Message {
	return Message{
		ID: a.message, Role: artel.RoleAssistant, At: a.at, Into: a.into, Writing: true, Thinking: a.shown == 0 && a.reasoning.Len() > 0,
		Reasoning: strings.TrimLeft(a.reasoning.String(), " \n"), Body: Blocks{ID: bodyID(a.message), Items: s.withCopyButtons(a.blocks.Blocks())},
	}
}

// into is the element that contains the messages of an event's thread.
func (view) into(e artel.Event) string {
	if e.Within == "" {
		return ""
	}
	return "#" + subagentID(e.Run, e.Within) + "-b"
}

// A Thought is a piece of reasoning.
type Thought struct {
	Message artel.MessageID
	Text    string
}

func (s *stream) toolCompleted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.ToolCompleted](e)
	if err != nil {
		return err
	}
	card, ok := s.cards[p.Call]
	if !ok {
		// The browser connected after the call; its card is already on the
		// page.
		if card, err = s.findCall(ctx, p); err != nil {
			return err
		}
	}
	before := 0
	for _, res := range artel.ResultsOf(p.Message.Parts) {
		s.finish(&card, p.Message.ID, before, res)
		before += mediaIn(res)
	}
	delete(s.cards, p.Call)
	if e.Within == "" {
		on, err := s.shows(ctx, p.Message.ID)
		if err != nil || !on {
			return err
		}
		s.leaf = p.Message.ID
	}
	return s.put(out, "call", card)
}

// callLookback is how many messages back recall searches; calls and results of a
// turn are close together.
const callLookback = 200

// findCall rebuilds the card of a call from the stored messages.
func (s *stream) findCall(ctx context.Context, p artel.ToolCompleted) (Call, error) {
	branch, err := s.app.Messages.Branch(ctx, s.conversation, p.Message.Parent, callLookback)
	if err != nil {
		return Call{}, err
	}
	for _, m := range slices.Backward(branch) {
		for _, c := range artel.CallsOf(m.Parts) {
			if c.ID == p.Call {
				return s.call(c.ID, c.Name, c.Arguments), nil
			}
		}
	}
	return s.call(p.Call, p.Name, json.RawMessage("{}")), nil
}

func (s *stream) runFinished(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.RunFinished](e)
	if err != nil {
		return err
	}
	if began, err := s.hasStarted(ctx, e.Run); err != nil || !began {
		return errors.Join(err, s.waitingNow(ctx, out))
	}
	if err := s.put(out, "status", Status{}); err != nil {
		return err
	}
	run, err := s.app.Runs.Find(ctx, e.Run)
	if err != nil {
		return err
	}
	on, err := s.shows(ctx, cmp.Or(p.Reply, run.Message))
	if err != nil {
		return err
	}
	if err := s.usageNow(ctx, out); err != nil {
		return err
	}
	if on && p.Reply != "" {
		if err := s.put(out, "took", s.runUsage(ctx, p.Reply, run.Service, p.Usage)); err != nil {
			return err
		}
	}
	if p.Error != nil && on {
		if err := s.endLeftCalls(ctx, out, e.Run); err != nil {
			return err
		}
		if err := s.put(out, "notice", s.notice(e.Run, p.State, p.Error)); err != nil {
			return err
		}
	} else if err := s.put(out, "announcement", s.locale.Say(phrase.PageDone, nil)); err != nil {
		return err
	}
	return s.artifactsNow(ctx, out)
}

// hasStarted reports whether a run ever started: one that was cancelled in the queue
// leaves no message.
func (s *stream) hasStarted(ctx context.Context, id artel.RunID) (bool, error) {
	r, err := s.app.Runs.Find(ctx, id)
	if err != nil {
		return false, err
	}
	return s.stored(ctx, r.Message)
}

// stored reports whether a message is stored.
func (s *stream) stored(ctx context.Context, id artel.MessageID) (bool, error) {
	m, err := s.app.Messages.Branch(ctx, s.conversation, id, 1)
	if errors.Is(err, artel.NotFound) {
		return false, nil
	}
	return len(m) > 0, err
}

// windowNow renders how full the window was in the last call of a run.
func (s *stream) windowNow(ctx context.Context, out *bytes.Buffer, run artel.RunID) error {
	l, err := s.lastCall(ctx, run)
	if err != nil || l.URL == "" {
		return err
	}
	return s.put(out, "last call", l)
}

// waysNow renders how a model call sent its attachments, each at its message.
func (s *stream) waysNow(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.ContextBuilt](e)
	if err != nil {
		return err
	}
	deliveries, err := s.loadDeliveries(ctx, e.Seq)
	if err != nil {
		return err
	}
	next := map[artel.MessageID]int{}
	for _, a := range p.Attachments {
		w := deliveries[place{a.Message, next[a.Message]}]
		next[a.Message]++
		if err := s.put(out, "delivery", w); err != nil {
			return err
		}
	}
	return nil
}

// notice explains why a run ended early, and suggests what to do.
func (v view) notice(run artel.RunID, state artel.RunState, why *artel.RunError) Notice {
	n := Notice{ID: run, Text: why.Message, Hint: whatToDo(state, why)}
	if limit, ok := strings.CutPrefix(why.Code, "limit_"); ok {
		n.Text, n.Hint = v.locale.Say(phrase.Key("page.limit_"+limit), nil), phrase.PageAfterLimit
		if why.Code == artel.CodeLimitCostUnknown {
			n.Hint = phrase.PageAfterUnpriced
		}
		return n
	}
	// The error text of these is English, and the state says enough.
	switch state {
	case artel.RunCancelled:
		n.Text = v.locale.Say(phrase.PageRunCancelled, nil)
	case artel.RunInterrupted:
		n.Text = v.locale.Say(phrase.PageRunInterrupted, nil)
	case artel.RunTimedOut:
		n.Text = v.locale.Say(phrase.PageRunTimedOut, nil)
	}
	return n
}

// whatToDo returns the suggestion after a run that ended early.
func whatToDo(state artel.RunState, why *artel.RunError) phrase.Key {
	switch state {
	case artel.RunCancelled:
		return phrase.PageAfterCancel
	case artel.RunInterrupted:
		return phrase.PageAfterStop
	case artel.RunTimedOut:
		return phrase.PageAfterTimeout
	}
	switch why.Kind {
	case artel.Denied:
		return phrase.PageAfterDenied
	case artel.Unavailable:
		return phrase.PageAfterUnavailable
	case artel.TooLarge:
		return phrase.PageAfterTooLarge
	case artel.Invalid, artel.Unsupported:
		return phrase.PageAfterRefused
	}
	return phrase.PageAfterFailure
}

func (s *stream) artifactsNow(ctx context.Context, out *bytes.Buffer) error {
	a, err := s.artifacts(ctx)
	if err != nil {
		return err
	}
	if err := s.put(out, "artifacts", a); err != nil {
		return err
	}
	if err := s.put(out, "deleted", a); err != nil {
		return err
	}
	if err := s.put(out, "progress", a); err != nil {
		return err
	}
	return s.put(out, "count", a)
}

func payload[P artel.Payload](e artel.Event) (P, error) {
	var p P
	err := json.Unmarshal(e.Data, &p)
	return p, err
}

// displayed applies the display rules to the newest message.
func (s *stream) displayed(ctx context.Context, m artel.Message) (Message, error) {
	stored := []artel.Message{m}
	shown, err := s.app.Rules.Displayed(ctx, s.conversation, stored, 0)
	if err != nil {
		return Message{}, err
	}
	v := s.view
	v.originals = nil
	v.changed(stored, shown)
	return v.message(shown[0]), nil
}
