// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
)

// Events are the use cases of a conversation's log.
type Events struct{ *core }

// MaxEvents is the most that one page of a log holds.
const MaxEvents = 500

// Page returns at most limit events after a number (0: [MaxEvents]).
func (es *Events) Page(ctx context.Context, c artel.ConversationID, after artel.Seq, limit int) (events []artel.Event, err error) {
	if limit <= 0 || limit > MaxEvents {
		limit = MaxEvents
	}
	err = es.view(ctx, func(tx store.Tx) error {
		if _, err := tx.Conversations.Get(c); err != nil {
			return err
		}
		events, err = tx.Events.Read(c, after, limit)
		return err
	})
	return events, err
}

// Last returns the number of the newest event; 0 where there is none.
func (es *Events) Last(ctx context.Context, c artel.ConversationID) (seq artel.Seq, err error) {
	err = es.view(ctx, func(tx store.Tx) error {
		seq, err = tx.Events.Last(c)
		return err
	})
	return seq, err
}

// Follow yields the events after a number and then what comes, until ctx
// ends: the log, live text, and a zero event after each heartbeat of silence
// (see [event.Log.Follow]). The first event in a run about a text artifact
// carries its content.
func (es *Events) Follow(ctx context.Context, c artel.ConversationID, after artel.Seq, heartbeat time.Duration) iter.Seq2[artel.Event, error] {
	return func(yield func(artel.Event, error) bool) {
		type sight struct {
			run artel.RunID
			id  artel.ArtifactID
		}
		seen := map[sight]bool{}
		for e, err := range es.log.Follow(ctx, ownerOf(ctx), c, after, event.FollowOptions{Heartbeat: heartbeat}) {
			if err == nil {
				switch e.Type {
				case artel.EventArtifactCreated:
					var p artel.ArtifactCreated
					if json.Unmarshal(e.Data, &p) == nil {
						seen[sight{e.Run, p.Artifact.ID}] = true
						p.Content, p.ContentOmitted = es.snapshot(ctx, p.Artifact)
						e.Data = mustMarshal(p)
					}
				case artel.EventArtifactUpdated:
					var p artel.ArtifactUpdated
					if json.Unmarshal(e.Data, &p) == nil && !seen[sight{e.Run, p.ID}] {
						seen[sight{e.Run, p.ID}] = true
						p.Content, p.ContentOmitted = es.snapshot(ctx, p.Artifact)
						e.Data = mustMarshal(p)
					}
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// snapshot returns the text of a at its version, where it is short enough.
func (es *Events) snapshot(ctx context.Context, a artel.Artifact) (content *string, omitted bool) {
	if a.Binary || a.Deleted {
		return nil, false
	}
	if a.Size > 4*artel.SnapshotLimit {
		return nil, true
	}
	text, _, err := es.core.artifacts.Text(ctx, ownerOf(ctx), a.Conversation, a.ID, a.Version, "")
	if err != nil || utf8.RuneCountInString(text) > artel.SnapshotLimit {
		return nil, true
	}
	return &text, false
}

// mustMarshal encodes a payload that came out of JSON a moment ago.
func mustMarshal(p artel.Payload) json.RawMessage {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return b
}

// appendEvents writes payloads to the log of c inside somebody's transaction.
func appendEvents(k *core, tx store.Tx, c artel.ConversationID, run artel.RunID, agent artel.AgentName, payloads ...artel.Payload) error {
	events := make([]artel.Event, len(payloads))
	for i, p := range payloads {
		e, err := artel.NewEvent(run, agent, k.now(), p)
		if err != nil {
			return err
		}
		events[i] = e
	}
	_, err := tx.Events.Append(c, events...)
	return err
}
