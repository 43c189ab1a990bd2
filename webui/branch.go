// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/run"
)

// Siblings are the messages with the same parent.
type Siblings struct {
	Number, Count  int // of this one, from 1
	Previous, Next artel.MessageID
}

// siblingsOf locates a message among its siblings. Previous and next wrap
// around.
func siblingsOf(m artel.MessageID, all []artel.MessageID) Siblings {
	at, n := slices.Index(all, m), len(all)
	if at < 0 || n < 2 {
		return Siblings{}
	}
	return Siblings{Number: at + 1, Count: n, Previous: all[(at+n-1)%n], Next: all[(at+1)%n]}
}

// branchMessages returns the messages of a branch, and their siblings by id.
func branchMessages(turns []app.BranchMessage) ([]artel.Message, map[artel.MessageID]Siblings) {
	branch, siblings := make([]artel.Message, len(turns)), map[artel.MessageID]Siblings{}
	for i, t := range turns {
		branch[i] = t.Message
		if s := siblingsOf(t.ID, t.Siblings); s.Count > 0 {
			siblings[t.ID] = s
		}
	}
	return branch, siblings
}

// renderOne renders a single message of the thread.
func (v view) renderOne(ctx context.Context, id artel.MessageID) (Message, error) {
	turns, err := v.app.Messages.Turns(ctx, v.conversation, id, 1)
	if err != nil {
		return Message{}, err
	}
	if len(turns) == 0 {
		return Message{}, artel.Errorf(artel.NotFound, "webui", string(id), "there is no such message")
	}
	var stored []artel.Message
	stored, v.siblings = branchMessages(turns)
	if v.deliveries, err = v.loadDeliveries(ctx, math.MaxInt64); err != nil {
		return Message{}, err
	}
	if v.events, err = v.loadEvents(ctx); err != nil {
		return Message{}, err
	}
	shown, err := v.app.Rules.Displayed(ctx, v.conversation, stored, 0)
	if err != nil {
		return Message{}, err
	}
	status, err := v.status(ctx)
	if err != nil {
		return Message{}, err
	}
	v.changed(stored, shown)
	messages, err := v.messages(ctx, shown, status.Run)
	if err != nil || len(messages) == 0 {
		return Message{}, errors.Join(err, artel.Errorf(artel.NotFound, "webui", string(id), "the message has no element of its own"))
	}
	messages[0].Text = shownText(stored[0])
	return messages[0], nil
}

// messageOfPath parses the conversation and message ids of a request.
func (ui *handler) messageOfPath(r *http.Request) (view, artel.MessageID, error) {
	v := view{handler: ui, locale: locale(r)}
	c, err := artel.ParseConversationID(r.PathValue("cid"))
	if err != nil {
		return v, "", err
	}
	v.conversation = c
	id := cmp.Or(r.PathValue("mid"), r.PostFormValue("through"))
	m, err := artel.ParseMessageID(id)
	return v, m, err
}

// switchBranch makes the branch through a message the current one.
func (ui *handler) switchBranch(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	v, m, err := ui.messageOfPath(r)
	if err == nil {
		_, err = ui.app.Conversations.Switch(r.Context(), v.conversation, m)
	}
	ui.showDone(w, r, v, err)
}

// showDone answers a change of the message tree; the event stream renders its
// result.
func (ui *handler) showDone(w http.ResponseWriter, r *http.Request, v view, err error) {
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.accepted(w, r, v.conversation)
}

// editMessage shows a message with its text in an input, or unchanged with
// "keep".
func (ui *handler) editMessage(w http.ResponseWriter, r *http.Request) {
	v, id, err := ui.messageOfPath(r)
	var m Message
	if err == nil {
		m, err = v.renderOne(r.Context(), id)
	}
	if err == nil && (m.Summary || m.Role != artel.RoleUser && len(m.Calls) > 0) {
		err = artel.Errorf(artel.Invalid, "webui", string(id), "messages and final answers can be edited, summaries and answers that call tools cannot")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	m.Editing = r.URL.Query().Get("keep") == ""
	if wantsFragment(r) {
		ui.fragments(w, r, http.StatusOK, part{"message", m})
		return
	}
	t, err := ui.thread(r, v.conversation)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for i := range t.Messages {
		if t.Messages[i].ID == id {
			m.Before, m.After = t.Messages[i].Before, t.Messages[i].After
			t.Messages[i] = m
		}
	}
	t.Draft.Quiet = t.Draft.Quiet || m.Editing
	ui.show(w, r, http.StatusOK, "conversation.html", t)
}

// askAgain replaces a message or an answer, or sends a message again, on a new
// branch. The model is
// the composer's choice, otherwise the one that answered before.
func (ui *handler) askAgain(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4*maxField) // URL encoding expands the text
	v, id, err := ui.messageOfPath(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	edit := run.Edit{Service: artel.ServiceID(r.PostFormValue("service")), Queue: true}
	if r.PostForm.Has("text") {
		text := r.PostFormValue("text")
		edit.Text = &text
	}
	if edit.Service == "" {
		turns, err := ui.app.Messages.Turns(r.Context(), v.conversation, id, 1)
		if err == nil && len(turns) > 0 && turns[0].Run != "" {
			var run artel.Run
			run, err = ui.app.Runs.Find(r.Context(), turns[0].Run)
			edit.Service = run.Service
		}
		if err != nil {
			ui.fail(w, r, err)
			return
		}
	}
	_, err = ui.app.Runs.Edit(r.Context(), v.conversation, id, edit)
	ui.showDone(w, r, v, err)
}

// mute hides a message from models, or shows it again.
func (ui *handler) mute(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	v, id, err := ui.messageOfPath(r)
	if err == nil {
		_, err = ui.app.Messages.Mute(r.Context(), v.conversation, id, r.PostFormValue("muted") == "true")
	}
	ui.showDone(w, r, v, err)
}

// Branches is the URL that branch switches post to.
func (m Message) Branches() string {
	c, _, _ := strings.Cut(m.URL, "/m/")
	return c + "/branch"
}

// A Branch is the data of a re-rendered thread.
type Branch struct {
	Older    string
	Messages []Message
}

// userInput shows a new user message: at the end of the thread, or by switching
// to its branch.
func (s *stream) userInput(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.UserInput](e)
	if err != nil {
		return err
	}
	if on, err := s.shows(ctx, p.Message.ID); err != nil || !on {
		return err
	}
	before, behind := s.leaf, s.leafUncertain
	s.leaf, s.otherBranch, s.leafUncertain = p.Message.ID, false, false
	known := 1
	if behind {
		known = 0 // re-render all: without siblings the page already shows this branch
	}
	turns, err := s.app.Messages.Turns(ctx, s.conversation, p.Message.ID, known)
	if err != nil {
		return err
	}
	forks := slices.ContainsFunc(turns, func(t app.BranchMessage) bool { return len(t.Siblings) > 1 })
	if forks || !behind && before != p.Message.Parent {
		return s.branchNow(ctx, out)
	}
	m, err := s.displayed(ctx, p.Message)
	if err != nil {
		return err
	}
	if err := s.put(out, "message", m); err != nil {
		return err
	}
	return s.artifactsNow(ctx, out) // its attachments are artifacts
}

// branchLookback is how many of the newest messages shows checks before it loads the
// whole branch.
const branchLookback = 50

// shows reports whether a message is on the branch on display.
func (s *stream) shows(ctx context.Context, m artel.MessageID) (bool, error) {
	c, err := s.app.Conversations.Find(ctx, s.conversation)
	for limit := branchLookback; err == nil; limit = 0 {
		var branch []artel.Message
		branch, err = s.app.Messages.Branch(ctx, s.conversation, c.Leaf, limit)
		if slices.ContainsFunc(branch, func(b artel.Message) bool { return b.ID == m }) {
			return true, nil
		}
		if limit == 0 || len(branch) < limit {
			break
		}
	}
	return false, err
}

// follows reports whether a run works on the branch on display, or has worked on it
// before the newest message there.
func (s *stream) follows(ctx context.Context, run artel.RunID) (bool, error) {
	c, err := s.app.Conversations.Find(ctx, s.conversation)
	if err != nil || c.Leaf == "" {
		return false, err
	}
	branch, err := s.app.Messages.Branch(ctx, s.conversation, c.Leaf, 1)
	if err != nil || len(branch) == 0 {
		return false, err
	}
	if branch[0].Run == run {
		return true, nil
	}
	r, err := s.app.Runs.Find(ctx, run)
	for limit := branchLookback; err == nil; limit = 0 { // the stream may be behind, and the next run has begun
		if branch, err = s.app.Messages.Branch(ctx, s.conversation, c.Leaf, limit); err != nil {
			break
		}
		if i := slices.IndexFunc(branch, func(m artel.Message) bool { return m.ID == r.Message }); i >= 0 {
			return i == len(branch)-1 || branch[i+1].Run == run || branch[i+1].Role == artel.RoleUser, nil
		}
		if limit == 0 || len(branch) < limit {
			break
		}
	}
	return false, err
}

// branchNow renders the thread from the store, with the answer in progress. The
// store may be ahead of the stream: later events up to s.renderedTo are then already
// rendered, and must not be appended again.
func (s *stream) branchNow(ctx context.Context, out *bytes.Buffer) error {
	last, err := s.app.Events.Last(ctx, s.conversation)
	if err != nil {
		return err
	}
	c, err := s.app.Conversations.Find(ctx, s.conversation)
	if err != nil {
		return err
	}
	var b Branch
	if b.Messages, b.Older, err = s.branch(ctx, c.Leaf, 0); err != nil {
		return err
	}
	s.leaf, s.renderedTo, s.leafUncertain = c.Leaf, last, false
	if err := s.put(out, "thread", b); err != nil {
		return err
	}
	for _, a := range s.answers {
		follows, err := s.follows(ctx, a.run)
		if err != nil {
			return err
		}
		if s.otherBranch = !follows; s.otherBranch {
			continue
		}
		if a.stored, err = s.stored(ctx, a.message); err != nil {
			return err
		}
		if !a.stored {
			if err := s.put(out, "message", a.rendered(s)); err != nil {
				return err
			}
		}
	}
	status, err := s.status(ctx)
	if err != nil {
		return err
	}
	if err := s.put(out, "status", status); err != nil {
		return err
	}
	if n := len(b.Messages); n > 0 && b.Messages[n-1].run != "" {
		if err := s.windowNow(ctx, out, b.Messages[n-1].run); err != nil {
			return err
		}
	}
	if err := s.waitingNow(ctx, out); err != nil {
		return err
	}
	if err := s.usageNow(ctx, out); err != nil {
		return err
	}
	return s.artifactsNow(ctx, out)
}

// branchSwitched shows another branch.
func (s *stream) branchSwitched(ctx context.Context, out *bytes.Buffer) error {
	s.otherBranch = false
	if err := s.put(out, "gone", "switched"); err != nil { // keeps the scroll position
		return err
	}
	return s.branchNow(ctx, out)
}

// muted marks a message as hidden from models, or unmarks it.
func (s *stream) muted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.MessageMuted](e)
	if err != nil {
		return err
	}
	if on, err := s.shows(ctx, p.Message); err != nil || !on {
		return err
	}
	m, err := s.renderOne(ctx, p.Message)
	if artel.KindOf(err) == artel.NotFound {
		return nil // a tool message has no element of its own
	}
	if err != nil {
		return err
	}
	if m.Summary {
		if several, err := s.severalSummaries(ctx); err != nil || several {
			return errors.Join(err, s.branchNow(ctx, out)) // the others change too
		}
	}
	return s.put(out, "message", m)
}
