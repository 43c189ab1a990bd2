// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// Waiting is what stands below the thread: messages that wait for their turn,
// and what the run at work is about to be told.
type Waiting struct {
	URL        string // where a message is taken back
	Queued     []Queued
	Injections []app.Injection
	Compaction bool // the run sums up before its next step
}

// A Queued message waits for its turn.
type Queued struct {
	app.QueuedMessage
	Files []File
}

// waiting lists what waits.
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

// status is the state of the run that is at work.
func (v view) status(ctx context.Context) (Status, error) {
	run, err := v.app.Runs.Active(ctx, v.conversation)
	if errors.Is(err, artel.NotFound) {
		return Status{}, nil
	}
	return statusOf(run), err
}

// statusAt is the state of the run that an event is of. Where that has ended
// meanwhile, an event that is still to come tells it.
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

// waitingNow renders what waits, after an event that may have changed it.
func (s *stream) waitingNow(ctx context.Context, out *bytes.Buffer) error {
	w, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	return s.put(out, "waiting", w)
}

// takeBack takes a message out of the line. With "edit" it comes back into the
// composer.
func (ui *face) takeBack(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	var run artel.RunID
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxField)
		run, err = artel.ParseRunID(r.PostFormValue("run"))
	}
	var list app.Waiting
	if err == nil {
		list, err = ui.app.Runs.Waiting(r.Context(), id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	at := slices.IndexFunc(list.Queued, func(m app.QueuedMessage) bool { return m.Run == run })
	if at >= 0 {
		_, err = ui.app.Runs.Cancel(r.Context(), run)
	}
	switch {
	case err != nil:
		ui.fail(w, r, err)
	case at < 0 || r.PostFormValue("do") != "edit": // somebody was faster, or that was all
		ui.told(w, r, id)
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

// Returned is a message that came back into the composer.
type Returned struct {
	Run         artel.RunID // "": none did
	Text        string
	Attachments []artel.Ref
}

func returned(m app.QueuedMessage) Returned { return Returned{m.Run, m.Text, m.Attachments} }
