// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Limits of what one update may read in a [Metered] store. They stand for the 50 ms
// for which an update may hold the only writer: this much takes a slow machine about
// that long to read, decode and process.
const (
	MaxUpdateBytes = 1 << 20 // of texts, changes and bodies
	MaxUpdateRows  = 1000
)

// Metered returns s with a limit on what one update may read, so that work that grows
// with a text or a history fails a test instead of stopping all owners. It counts
// bytes and rows, not time, so that it says the same on every machine; work on what
// was read outside of the update does not count. report is called for each update
// above a limit, with the format and arguments of testing.T.Errorf.
func Metered(s store.Store, report func(format string, args ...any)) store.Store {
	return Counted(s, func(rows, bytes int, most string) {
		if rows > MaxUpdateRows || bytes > MaxUpdateBytes {
			report("an update reads %d rows and %d bytes, most of them by %s; the limits are %d and %d: do it in a view before",
				rows, bytes, most, MaxUpdateRows, MaxUpdateBytes)
		}
	})
}

// Counted returns s with a count of what each update reads: rows, bytes of texts,
// and the call that has read most.
func Counted(s store.Store, count func(rows, bytes int, most string)) store.Store {
	return metered{s, count}
}

type metered struct {
	store.Store
	count func(rows, bytes int, most string)
}

// Update implements [store.Store].
func (m metered) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	return m.Store.Update(ctx, owner, func(tx store.Tx) error {
		count := &meter{}
		defer func() { m.count(count.rows, count.bytes, count.most) }()
		tx.Messages = meteredMessages{tx.Messages, count}
		tx.Artifacts = meteredArtifacts{tx.Artifacts, count}
		tx.Notes = meteredNotes{tx.Notes, count}
		tx.Versions = meteredVersions{tx.Versions, count}
		tx.Journal = meteredJournal{tx.Journal, count}
		tx.Events = meteredEvents{tx.Events, count}
		tx.Contexts = meteredContexts{tx.Contexts, count}
		return fn(tx)
	})
}

// A meter counts what one update reads.
type meter struct {
	mu          sync.Mutex
	rows, bytes int
	largest     int
	most        string // the call that has read most bytes
}

func (m *meter) add(call string, rows, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows, m.bytes = m.rows+rows, m.bytes+bytes
	if size := bytes + 100*rows; size >= m.largest {
		m.largest, m.most = size, call
	}
}

func changesSize(changes []artel.Change) int {
	n := 0
	for _, c := range changes {
		n += len(c.Old) + len(c.New)
	}
	return n
}

type meteredMessages struct {
	store.Messages
	*meter
}

func (x meteredMessages) count(call string, list []artel.Message) {
	n := 0
	for _, m := range list {
		n += len(artel.TextOf(m.Parts))
	}
	x.add(call, len(list), n)
}

func (x meteredMessages) List(c artel.ConversationID, p store.Page) ([]artel.Message, string, error) {
	list, next, err := x.Messages.List(c, p)
	x.count("Messages.List", list)
	return list, next, err
}

func (x meteredMessages) Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
	list, err := x.Messages.Path(c, leaf, limit)
	x.count("Messages.Path", list)
	return list, err
}

func (x meteredMessages) Nested(c artel.ConversationID, run artel.RunID) ([]artel.Message, error) {
	list, err := x.Messages.Nested(c, run)
	x.count("Messages.Nested", list)
	return list, err
}

func (x meteredMessages) Children(c artel.ConversationID, parents ...artel.MessageID) (map[artel.MessageID][]artel.MessageID, error) {
	of, err := x.Messages.Children(c, parents...)
	for _, list := range of {
		x.add("Messages.Children", len(list), 0)
	}
	return of, err
}

type meteredArtifacts struct {
	store.Artifacts
	*meter
}

func (x meteredArtifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	list, err := x.Artifacts.Heads(c, at)
	n := 0
	for _, a := range list {
		n += len(a.Preview)
	}
	x.add("Artifacts.Heads", len(list), n)
	return list, err
}

type meteredNotes struct {
	store.Notes
	*meter
}

func (x meteredNotes) List(q store.NoteQuery) ([]store.Note, error) {
	list, err := x.Notes.List(q)
	n := 0
	for _, note := range list {
		n += len(note.Body)
	}
	x.add("Notes.List", len(list), n)
	return list, err
}

type meteredVersions struct {
	store.Versions
	*meter
}

func (x meteredVersions) List(c artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	list, err := x.Versions.List(c, id)
	n := 0
	for _, v := range list {
		n += changesSize(v.Changes)
	}
	x.add("Versions.List", len(list), n)
	return list, err
}

func (x meteredVersions) Get(c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, error) {
	v, err := x.Versions.Get(c, id, number)
	x.add("Versions.Get", 1, changesSize(v.Changes))
	return v, err
}

func (x meteredVersions) Text(c artel.ConversationID, id artel.ArtifactID, number int) (string, error) {
	text, err := x.Versions.Text(c, id, number)
	x.add("Versions.Text", 1, len(text))
	return text, err
}

type meteredJournal struct {
	store.Journal
	*meter
}

func (x meteredJournal) Edits(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
	list, err := x.Journal.Edits(c, q)
	n := 0
	for _, e := range list {
		n += changesSize(e.Changes)
		if e.Text != nil {
			n += len(*e.Text)
		}
	}
	x.add("Journal.Edits", len(list), n)
	return list, err
}

func (x meteredJournal) Replay(c artel.ConversationID, id artel.ArtifactID, number int) (store.Replay, error) {
	r, err := x.Journal.Replay(c, id, number)
	x.add("Journal.Replay", 1+r.Edits, len(r.Text)+changesSize(r.Changes))
	return r, err
}

func (x meteredJournal) FoldInner(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error) {
	n, err := x.Journal.FoldInner(c, id, run, after, before, limit)
	x.add("Journal.FoldInner", n, 0)
	return n, err
}

type meteredEvents struct {
	store.Events
	*meter
}

func (x meteredEvents) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	list, err := x.Events.Read(c, after, limit)
	n := 0
	for _, e := range list {
		n += len(e.Data)
	}
	x.add("Events.Read", len(list), n)
	return list, err
}

type meteredContexts struct {
	store.Contexts
	*meter
}

func (x meteredContexts) Segments(c artel.ConversationID, digests []artel.Digest) ([]store.Segment, error) {
	list, err := x.Contexts.Segments(c, digests)
	n := 0
	for _, s := range list {
		n += len(s.Body)
	}
	x.add("Contexts.Segments", len(list), n)
	return list, err
}
