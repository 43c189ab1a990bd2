// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// Waiting is shown below the thread: queued messages, and messages to be sent
// to the active run.
type Waiting struct {
	URL        string // address that cancels a message
	Queued     []Queued
	Injections []run.Injection
	Compaction bool // the run compacts before its next step
}

// A Queued message is sent after the active run.
type Queued struct {
	run.QueuedMessage
	Files []File
}

// waiting lists the queued messages.
func (v view) waiting(ctx context.Context) (Waiting, error) {
	w := Waiting{URL: conversationURL(v.conversation) + "/waiting"}
	list, err := v.app.Runs.Waiting(ctx, v.conversation)
	if err != nil {
		return w, err
	}
	w.Injections, w.Compaction = list.Injections, list.Compaction
	for _, m := range list.Queued {
		q := Queued{QueuedMessage: m}
		for _, ref := range m.Attachments {
			q.Files = append(q.Files, File{Name: string(ref.Artifact), Icon: "file", URL: artifactURL(v.conversation, ref)})
		}
		w.Queued = append(w.Queued, q)
	}
	return w, nil
}

// status is the state of the active run.
func (v view) status(ctx context.Context) (Status, error) {
	run, err := v.app.Runs.Active(ctx, v.conversation)
	if errors.Is(err, artel.NotFound) {
		return Status{}, nil
	}
	return statusOf(run), err
}

// statusAt is the state of the run of an event. If that run has ended already,
// a later event shows its end.
func (s *stream) statusAt(ctx context.Context, e artel.Event) (Status, error) {
	status, err := s.status(ctx)
	if err != nil || status.Run == e.Run {
		return status, err
	}
	run, err := s.app.Runs.Find(ctx, e.Run)
	return Status{Run: e.Run, Active: true, Compacts: run.Purpose == artel.RunCompacts}, err
}

func statusOf(r artel.Run) Status {
	return Status{Run: r.ID, Active: true, Waits: r.State == artel.RunWaiting, Compacts: r.Purpose == artel.RunCompacts}
}

// waitingNow renders the queued messages.
func (s *stream) waitingNow(ctx context.Context, out *bytes.Buffer) error {
	w, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	return s.put(out, "waiting", w)
}

// cancelQueued cancels a queued message. With "edit" its text returns to the
// composer.
func (ui *handler) cancelQueued(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	var queued artel.RunID
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxField)
		queued, err = artel.ParseRunID(r.PostFormValue("run"))
	}
	var list run.Waiting
	if err == nil {
		list, err = ui.app.Runs.Waiting(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	at := slices.IndexFunc(list.Queued, func(m run.QueuedMessage) bool { return m.Run == queued })
	if at >= 0 {
		_, err = ui.app.Runs.Cancel(r.Context(), queued)
	}
	switch {
	case err != nil:
		ui.fail(w, r, err)
	case at < 0 || r.PostFormValue("do") != "edit": // it has just been sent, or nothing else is to do
		ui.accepted(w, r, id)
	case wantsFragment(r):
		ui.fragments(w, r, http.StatusOK, part{"returned", returned(list.Queued[at])})
	default:
		t, err := ui.thread(r, id)
		if err != nil {
			ui.fail(w, r, err)
			return
		}
		t.Draft.Text, t.Draft.Returned = list.Queued[at].Text, returned(list.Queued[at])
		ui.show(w, r, http.StatusOK, "conversation.html", t)
	}
}

// Returned is a cancelled message, back in the composer.
type Returned struct {
	Run         artel.RunID // "": none
	Text        string
	Attachments []artel.Ref
}

func returned(m run.QueuedMessage) Returned { return Returned{m.Run, m.Text, m.Attachments} }
