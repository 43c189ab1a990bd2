// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
)

// Events are the use cases of a conversation's log.
type Events struct{ core *core }

// MaxEvents is the maximum number of events in one page of a log.
const MaxEvents = 500

// Page returns at most limit events after a number (0: [MaxEvents]). As
// [store.MayContinue] says, there may be more although it returns fewer.
func (es *Events) Page(ctx context.Context, c artel.ConversationID, after artel.Seq, limit int) (events []artel.Event, err error) {
	if limit <= 0 || limit > MaxEvents {
		limit = MaxEvents
	}
	err = es.core.view(ctx, func(tx store.Tx) error {
		if _, err := tx.Conversations.Get(c); err != nil {
			return err
		}
		events, err = tx.Events.Read(c, after, limit)
		return err
	})
	return events, err
}

// Last returns the number of the newest event, or 0 if there is none. An unknown
// conversation is of kind NotFound.
func (es *Events) Last(ctx context.Context, c artel.ConversationID) (seq artel.Seq, err error) {
	err = es.core.view(ctx, func(tx store.Tx) error {
		if _, err := tx.Conversations.Get(c); err != nil {
			return err
		}
		seq, err = tx.Events.Last(c)
		return err
	})
	return seq, err
}

// Contexts returns how the newest model calls sent attachments, up to an event's
// number: at most limit payloads of [artel.EventContextBuilt], in order.
func (es *Events) Contexts(ctx context.Context, c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.ContextBuilt, error) {
	var events []artel.Event
	err := es.core.view(ctx, func(tx store.Tx) (err error) {
		events, err = tx.Events.Contexts(c, upTo, limit)
		return err
	})
	out := make([]artel.ContextBuilt, len(events))
	for i, e := range events {
		if err := json.Unmarshal(e.Data, &out[i]); err != nil {
			return nil, artel.Errorf(artel.Internal, "app.Events.Contexts", string(c), "event %d: %w", e.Seq, err)
		}
	}
	return out, err
}

// maxMilestones is the maximum number of milestones returned for one
// conversation.
const maxMilestones = 1000

// Milestones returns the events of compactions, fallbacks and chosen services,
// in order: the newest thousand.
func (es *Events) Milestones(ctx context.Context, c artel.ConversationID) (events []artel.Event, err error) {
	err = es.core.view(ctx, func(tx store.Tx) error {
		events, err = tx.Events.Milestones(c, maxMilestones)
		return err
	})
	return events, err
}

// Follow yields the events after a number and then new ones until ctx ends: the
// log, streamed text, and a zero event after each heartbeat without events (see
// [event.Log.Follow]). The following payloads carry the content at their version
// if it is not too long: the first event in a run about a text artifact, each
// change without spans, and each tool result that shows a text artifact.
func (es *Events) Follow(ctx context.Context, c artel.ConversationID, after artel.Seq, heartbeat time.Duration) iter.Seq2[artel.Event, error] {
	return es.FollowWith(ctx, c, after, event.FollowOptions{Heartbeat: heartbeat})
}

// FollowWith is Follow with options. Followers of one event share its memory and
// must not change it.
func (es *Events) FollowWith(ctx context.Context, c artel.ConversationID, after artel.Seq, o event.FollowOptions) iter.Seq2[artel.Event, error] {
	return func(yield func(artel.Event, error) bool) {
		type sight struct {
			run artel.RunID
			id  artel.ArtifactID
		}
		seen := map[sight]bool{}
		for e, err := range es.core.log.Follow(ctx, artel.OwnerOf(ctx), c, after, o) {
			switch e.Type {
			case artel.EventArtifactCreated:
				e.Data = enrich(e.Data, func(p *artel.ArtifactCreated) {
					p.Content, p.ContentOmitted = es.snapshot(ctx, c, p.Artifact)
					seen[sight{e.Run, p.Artifact.ID}] = p.Content != nil
				})
			case artel.EventArtifactUpdated:
				e.Data = enrich(e.Data, func(p *artel.ArtifactUpdated) {
					// The spans describe the change to followers that have the previous version.
					if s := (sight{e.Run, p.ID}); !seen[s] || p.ContentOmitted {
						p.Content, p.ContentOmitted = es.snapshot(ctx, c, p.Artifact)
						seen[s] = p.Content != nil
					}
				})
			case artel.EventToolCompleted:
				e.Data = enrich(e.Data, func(p *artel.ToolCompleted) { es.addSnapshot(ctx, c, p.Metadata) })
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// enrich lets add change a payload; an unreadable payload stays unchanged.
func enrich[P artel.Payload](data json.RawMessage, add func(*P)) json.RawMessage {
	var p P
	if json.Unmarshal(data, &p) != nil {
		return data
	}
	add(&p)
	if enriched, err := json.Marshal(p); err == nil {
		return enriched
	}
	return data
}

// snapshot returns the text of a at its version if it is short enough.
func (es *Events) snapshot(ctx context.Context, c artel.ConversationID, a artel.Artifact) (content *string, omitted bool) {
	if a.Binary || a.Deleted {
		return nil, false
	}
	if a.Size > 4*artel.SnapshotLimit {
		return nil, true
	}
	text, err := es.core.artifacts.Versions.Text(ctx, artel.OwnerOf(ctx), c, a.ID, a.Version)
	if err != nil || utf8.RuneCountInString(text) > artel.SnapshotLimit {
		return nil, true
	}
	return &text, false
}

// addSnapshot adds the content of the artifact in a tool's metadata, if it is a
// text of this conversation.
func (es *Events) addSnapshot(ctx context.Context, c artel.ConversationID, metadata map[string]any) {
	snapshot, ok := metadata["artifact_snapshot"].(map[string]any)
	text, _ := metadata["ref"].(string)
	ref, err := artel.ParseRef(text)
	if !ok || err != nil || ref.Conversation != c || ref.Version == 0 {
		return
	}
	size, _ := snapshot["size"].(float64)
	if int64(size) > 4*artel.SnapshotLimit {
		snapshot["content_omitted"] = true
		return
	}
	content, err := es.core.artifacts.Versions.Text(ctx, artel.OwnerOf(ctx), c, ref.Artifact, ref.Version)
	switch {
	case errors.Is(err, artel.Unsupported): // binary
	case err != nil || utf8.RuneCountInString(content) > artel.SnapshotLimit:
		snapshot["content_omitted"] = true
	default:
		snapshot["content"] = content
	}
}
