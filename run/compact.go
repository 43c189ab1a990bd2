// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/store"
)

// Compact starts a run that summarises the active branch of a conversation, with
// the service and the agent of the branch's newest run. If a run is active, that
// run compacts its own branch before its next model call, or before it ends, and
// is returned; an active compaction is returned unchanged. focus is what the summary
// keeps in detail, in the user's words; "": nothing in particular. A conversation
// without messages is of kind Invalid.
func (rs *Runs) Compact(ctx context.Context, c artel.ConversationID, focus string) (artel.Run, error) {
	focus = strings.TrimSpace(focus)
	if n := utf8.RuneCountInString(focus); n > maxFocus {
		return artel.Run{}, artel.Errorf(artel.TooLarge, "run.Runs.Compact", "focus", "has %d characters; at most %d tell a summary what to keep", n, maxFocus)
	}
	focus = scrub.Line(focus)
	now := rs.config.Now()
	job := execution{
		runs: rs, config: rs.config, owner: artel.OwnerOf(ctx), clock: Input{}.clock(),
		run: artel.Run{ID: artel.NewRunID(now), Conversation: c, Purpose: artel.RunCompacts, State: artel.RunRunning, StartedAt: now},
	}
	registered, err := rs.admit(ctx, job.run.ID)
	if err != nil {
		return artel.Run{}, err
	}
	var active artel.Run
	err = rs.startRun(ctx, func(tx store.Tx, conversation artel.Conversation) error {
		var err error
		if active, err = tx.Runs.Active(c); errors.Is(err, artel.NotFound) {
			if err := rs.takeSlot(registered, c, false); err != nil {
				return err
			}
			return job.startCompaction(tx, conversation, focus)
		}
		if err == nil && active.Purpose == artel.RunAnswers {
			err = rs.requestCompaction(tx, active, focus, now)
		}
		return err
	}, c)
	if err != nil || active.ID != "" {
		rs.unregister(registered)
		rs.config.notifier().Notify(c)
		return active, err
	}
	return rs.launch(registered, &job), nil
}

// maxFocus is how many characters may tell what a summary keeps.
const maxFocus = 2000

// compactionRequest is the body of its note.
type compactionRequest struct {
	Focus string `json:"focus,omitempty"`
}

// compactionNote is the request of a run for a compaction. That of a run which does
// nothing else is never open.
func compactionNote(r artel.Run, now time.Time) store.Note {
	return store.Note{ID: "compaction_" + string(r.ID), Conversation: r.Conversation, Run: r.ID, Kind: noteCompaction, CreatedAt: now}
}

// requestCompaction asks an active run to compact, unless it was asked for the same
// already.
func (rs *Runs) requestCompaction(tx store.Tx, r artel.Run, focus string, now time.Time) error {
	n := compactionNote(r, now)
	n.Open = true
	old, err := tx.Notes.Get(n.ID)
	if err == nil && old.Open {
		asked, err := bodyOf[compactionRequest](old)
		if err != nil || focus == "" || asked.Focus == focus {
			return err
		}
	}
	if err != nil && !errors.Is(err, artel.NotFound) {
		return err
	}
	if err := putNote(tx, n, compactionRequest{focus}); err != nil {
		return err
	}
	return rs.config.Events.Append(tx, r.Conversation, artel.Event{Run: r.ID, Agent: r.Agent}, artel.CompactionRequested{Focus: focus})
}

// focus returns what the summary of a run that only compacts is to keep.
func (x *execution) focus(tx store.Tx) (string, error) {
	n, err := tx.Notes.Get(compactionNote(x.run, time.Time{}).ID)
	if errors.Is(err, artel.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	asked, err := bodyOf[compactionRequest](n)
	return asked.Focus, err
}

// compacted closes the request for a compaction in the transaction that stores
// its outcome.
func (x *execution) compacted(tx store.Tx, p artel.CompactionCompleted) error {
	if p.Reason != artel.CompactRequested {
		return nil
	}
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Kind: noteCompaction, Run: x.run.ID, Open: true})
	for _, n := range list {
		n.Open = false
		if err := tx.Notes.Put(n); err != nil {
			return err
		}
	}
	return err
}

// startRun runs the transaction that starts a run in c. On a conflict it takes
// over runs without a process, and tries once more.
func (rs *Runs) startRun(ctx context.Context, open func(store.Tx, artel.Conversation) error, c artel.ConversationID) error {
	begin := func() error {
		return rs.config.updateFolded(ctx, artel.OwnerOf(ctx), c, func(tx store.Tx) error {
			conversation, err := tx.Conversations.Get(c)
			if err != nil {
				return err
			}
			return open(tx, conversation)
		})
	}
	err := begin()
	if errors.Is(err, artel.Conflict) {
		if n, _ := rs.Recover(ctx, false); n > 0 {
			err = begin()
		}
	}
	return err
}

// launch works on a started run in a goroutine.
func (rs *Runs) launch(a *activeRun, job *execution) artel.Run {
	rs.config.notifier().Notify(job.run.Conversation)
	begun := job.run
	go func() {
		defer rs.unregister(a)
		job.execute(a.ctx)
	}()
	return begun
}

// startCompaction writes the first rows of a run that compacts a branch.
func (x *execution) startCompaction(tx store.Tx, c artel.Conversation, focus string) error {
	if c.Leaf == "" {
		return artel.Errorf(artel.Invalid, "run.Runs.Compact", string(c.ID), "there are no messages to summarise")
	}
	var in Input
	leaf, err := tx.Messages.Get(c.Leaf)
	if err != nil {
		return err
	}
	if last, err := tx.Runs.Get(leaf.Run); err == nil {
		in.Agent, in.Service = last.Agent, last.Service
	}
	if err := x.choose(tx, c, in); err != nil {
		return err
	}
	if err := requireFolded(tx, c.ID); err != nil {
		return err
	}
	x.run.Message, x.run.Agent, x.run.Service = c.Leaf, x.agent.Name, x.service.ID
	if err := tx.Runs.Create(x.run, x.begin(0)); err != nil {
		return err
	}
	if focus != "" {
		if err := putNote(tx, compactionNote(x.run, x.run.StartedAt), compactionRequest{focus}); err != nil {
			return err
		}
	}
	return x.appendEvents(tx, artel.RunStarted{Message: c.Leaf, Service: x.service.ID, Purpose: x.run.Purpose})
}

// mostSummaries is how many names of summaries are tried.
const mostSummaries = 10_000

// KeepSummary implements [agent.Host]. The artifact and the message that
// replaces the summarised ones are stored in one transaction.
func (x *execution) KeepSummary(ctx context.Context, text string, end artel.CompactionCompleted) (bool, error) {
	w := x.config.Artifacts.Workspace(artifact.WorkspaceConfig{
		Owner: x.owner, Conversation: x.run.Conversation, Run: x.run.ID, Message: x.run.Message,
		Author: string(x.agent.Name), Source: artel.SourceSummary,
		OnEdit: func(tx store.Tx, p artel.Payload) error {
			told := end
			if made, ok := p.(artel.ArtifactCreated); ok {
				told.Artifact = &made.Artifact
			}
			return x.write(tx, p, told)
		},
	})
	defer x.config.notifier().Notify(x.run.Conversation)
	for n := 1; ; n++ {
		id := artel.ArtifactID(fmt.Sprintf("summary_%d", n))
		taken := false
		err := x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
			taken, err = tx.Artifacts.Exists(x.run.Conversation, id)
			return err
		})
		if err != nil {
			return false, err
		}
		if taken && n < mostSummaries {
			continue
		}
		title := x.buildInput.Locale.Say(phrase.CompactTitle, map[string]any{"Number": n})
		_, err = w.Create(ctx, id, title, "# "+title+"\n\n"+text, "text/markdown")
		return err == nil, err
	}
}
