// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Thread is the conversation page.
type Thread struct {
	frame
	Draft        Draft
	Conversation artel.Conversation
	Older        string // URL of earlier messages; "": none
	Messages     []Message
	Waiting      Waiting
	Retry        Retry
	Total        Usage
	Panel        Panel
	After        artel.Seq // the page includes the events up to this one
}

// A Status is the state of the conversation's active run.
type Status struct {
	Run      artel.RunID // "": none
	Active   bool
	Waits    bool // for an answer of the user
	Sums     bool // compacts the history before its next step
	Compacts bool // is a compaction without an answer
}

func (ui *handler) conversation(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if wantsFragment(r) {
		p, err := ui.panel(r, id)
		if err != nil {
			ui.fail(w, r, err)
			return
		}
		ui.fragments(w, r, http.StatusOK, part{"panel", p})
		return
	}
	t, err := ui.thread(r, id)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	t.Toast = importedToast(w, r, id)
	ui.show(w, r, http.StatusOK, "conversation.html", t)
}

func (ui *handler) thread(r *http.Request, id artel.ConversationID) (Thread, error) {
	ctx := r.Context()
	var t Thread
	var err error
	// Read the number first: events during the following reads are streamed
	// again as fragments, which is idempotent.
	if t.After, err = ui.app.Events.Last(ctx, id); err != nil {
		return t, err
	}
	if t.Conversation, err = ui.app.Conversations.Find(ctx, id); err != nil {
		return t, err
	}
	if t.frame, err = ui.frame(r, id); err != nil {
		return t, err
	}
	v := view{handler: ui, conversation: id, locale: locale(r)}
	t.Draft = Draft{Action: conversationURL(id), Models: t.Models, Servers: len(ui.app.Library.Offers(r.Context())) > 0}
	// Before the messages: a run that ends in between counts as active until
	// the fragment of its end arrives, which completes its message.
	run, err := ui.app.Runs.Active(ctx, id)
	switch {
	case err == nil:
		t.Draft.Status = statusOf(run)
		if t.Retry, err = v.retryNow(ctx, run, t.After); err != nil {
			return t, err
		}
	case !errors.Is(err, artel.NotFound):
		return t, err
	}
	if t.Messages, t.Older, err = v.branch(ctx, t.Conversation.Leaf, 0); err != nil {
		return t, err
	}
	t.Title = t.Conversation.Title
	service, last, err := ui.lastRun(r, t.Conversation)
	if err != nil {
		return t, err
	}
	t.Draft.Models = t.Models.choosing(service)
	t.Draft.Last = last
	if t.Total, err = v.total(ctx); err != nil {
		return t, err
	}
	if t.Waiting, err = v.waiting(ctx); err != nil {
		return t, err
	}
	t.Panel, err = ui.panel(r, id)
	t.Draft.Quiet = t.Panel.Viewer != nil && t.Panel.Viewer.Editing != nil
	return t, err
}

// lastRun returns the service that answered last, which is preselected in the
// composer, and the last run; "": none yet.
func (ui *handler) lastRun(r *http.Request, c artel.Conversation) (artel.ServiceID, LastCall, error) {
	newest, err := ui.app.Messages.Branch(r.Context(), c.ID, c.Leaf, 1)
	if err != nil || len(newest) == 0 || newest[0].Run == "" {
		return c.Service, LastCall{}, err
	}
	run, err := ui.app.Runs.Find(r.Context(), newest[0].Run)
	if err != nil {
		return "", LastCall{}, err
	}
	last, err := ui.lastCall(r.Context(), run.ID)
	if cmp.Or(c.Service, ui.app.Models.Preferred(r.Context())) == model.AutoService {
		return model.AutoService, last, err
	}
	return run.Service, last, err
}

// shownMessages is the page size of a thread.
const shownMessages = 40

// branch reads the last messages of the branch that ends in leaf, and the URL
// of the earlier ones. The first message is never a tool message, because its
// card would be missing. behind is the number of messages after leaf.
func (v view) branch(ctx context.Context, leaf artel.MessageID, behind int) (shown []Message, older string, err error) {
	id := v.conversation
	status, err := v.status(ctx)
	if err != nil {
		return nil, "", err
	}
	for limit := shownMessages; ; limit *= 2 {
		var branch []artel.Message
		if leaf != "" {
			turns, err := v.app.Messages.Turns(ctx, id, leaf, limit)
			if err != nil {
				return nil, "", err
			}
			branch, v.siblings = branchMessages(turns)
		}
		whole := len(branch) < limit
		for len(branch) > 0 && branch[0].Role == artel.RoleTool && branch[0].Parent != "" {
			branch = branch[1:]
		}
		if len(branch) == 0 && !whole {
			continue // more tool messages than one page
		}
		if len(branch) > 0 && branch[0].Parent != "" {
			older = conversationURL(id) + "/older?before=" + string(branch[0].Parent) + "&behind=" + strconv.Itoa(behind+len(branch))
		}
		if v.deliveries, err = v.loadDeliveries(ctx, math.MaxInt64); err != nil {
			return nil, "", err
		}
		if err = v.loadQuestions(ctx); err != nil {
			return nil, "", err
		}
		if v.events, err = v.loadEvents(ctx); err != nil {
			return nil, "", err
		}
		displayed, err := v.app.Rules.Displayed(ctx, id, branch, behind)
		if err != nil {
			return nil, "", err
		}
		v.changed(branch, displayed)
		shown, err = v.messages(ctx, displayed, status.Run)
		if err == nil && behind > 0 {
			err = v.markCoveredBelow(ctx, shown)
		}
		return shown, older, err
	}
}

// older renders the messages before those on display.
func (ui *handler) older(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	var before artel.MessageID
	if err == nil {
		before, err = artel.ParseMessageID(r.URL.Query().Get("before"))
	}
	var t Thread
	if err == nil {
		behind, _ := strconv.Atoi(r.URL.Query().Get("behind")) // not a number: count from the newest
		v := view{handler: ui, conversation: id, locale: locale(r)}
		t.Messages, t.Older, err = v.branch(r.Context(), before, max(0, behind))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if wantsFragment(r) {
		ui.fragments(w, r, http.StatusOK, part{"messages", t})
		return
	}
	if t.frame, err = ui.frame(r, id); err == nil {
		t.Conversation, err = ui.app.Conversations.Find(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	t.Title = t.Conversation.Title
	ui.show(w, r, http.StatusOK, "older.html", t)
}
