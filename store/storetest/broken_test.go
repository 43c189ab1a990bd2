// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A twin is a store that breaks one promise, and otherwise keeps the contract.
type twin struct {
	store.Store
	update, view func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error
	overdue      func(ctx context.Context, now time.Time) ([]store.Lease, error)
	lock         func(ctx context.Context, name string) (func(), error)
	clock        func(ctx context.Context) (time.Time, error)
	purge        func(ctx context.Context, before time.Time) (int, error)
	digests      func(ctx context.Context) iter.Seq2[store.Use, error]
	leftovers    func(ctx context.Context, before time.Time, remove bool) ([]store.Leftover, error)
	journals     func(ctx context.Context, before time.Time, after store.JournalKey, limit int) ([]store.JournalKey, store.JournalKey, error)
	audit        func() store.AuditLog
	people       store.People
	blobs        blob.Index
	closing      func() error
}

func (t *twin) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	return t.update(ctx, owner, fn)
}

func (t *twin) View(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	return t.view(ctx, owner, fn)
}

func (t *twin) Overdue(ctx context.Context, now time.Time) ([]store.Lease, error) {
	return t.overdue(ctx, now)
}

func (t *twin) Clock(ctx context.Context) (time.Time, error) { return t.clock(ctx) }

func (t *twin) Lock(ctx context.Context, name string) (func(), error) { return t.lock(ctx, name) }

func (t *twin) Purge(ctx context.Context, before time.Time) (int, error) {
	return t.purge(ctx, before)
}

func (t *twin) Digests(ctx context.Context) iter.Seq2[store.Use, error] { return t.digests(ctx) }

func (t *twin) Leftovers(ctx context.Context, before time.Time, remove bool) ([]store.Leftover, error) {
	return t.leftovers(ctx, before, remove)
}

func (t *twin) Journals(ctx context.Context, before time.Time, after store.JournalKey, limit int) ([]store.JournalKey, store.JournalKey, error) {
	return t.journals(ctx, before, after, limit)
}

func (t *twin) Audit() store.AuditLog { return t.audit() }

func (t *twin) People() store.People { return t.people }

func (t *twin) Blobs() blob.Index { return t.blobs }

func (t *twin) Close() error { return t.closing() }

func newTwin(s store.Store) *twin {
	return &twin{Store: s, update: s.Update, view: s.View, overdue: s.Overdue, clock: s.Clock, lock: s.Lock, purge: s.Purge, digests: s.Digests, leftovers: s.Leftovers, journals: s.Journals, audit: s.Audit, people: s.People(), blobs: s.Blobs(), closing: s.Close}
}

// nouns breaks what a transaction hands out.
func nouns(breakIt func(*store.Tx)) func(*twin) {
	return func(t *twin) {
		through := func(call func(context.Context, artel.Owner, func(store.Tx) error) error) func(context.Context, artel.Owner, func(store.Tx) error) error {
			return func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				return call(ctx, owner, func(tx store.Tx) error {
					breakIt(&tx)
					return fn(tx)
				})
			}
		}
		t.update, t.view = through(t.Store.Update), through(t.Store.View)
	}
}

// or returns broken, or real if broken is nil.
func or[F any](broken, real F) F {
	if reflect.ValueOf(broken).IsNil() {
		return real
	}
	return broken
}

// The nouns below break one method each, where its function is set.
type (
	brokenConversations struct {
		store.Conversations
		create  func(artel.Conversation) error
		get     func(artel.ConversationID) (artel.Conversation, error)
		list    func(store.ConversationQuery) ([]store.Listed, string, error)
		update  func(artel.Conversation) error
		delete  func(artel.ConversationID, time.Time) error
		restore func(artel.ConversationID) error
	}
	brokenMessages struct {
		store.Messages
		create func(artel.Message) error
		get    func(artel.MessageID) (artel.Message, error)
		path   func(artel.ConversationID, artel.MessageID, int) ([]artel.Message, error)
		list   func(artel.ConversationID, store.Page) ([]artel.Message, string, error)
		muted  func(artel.MessageID, bool) error
		nested func(artel.ConversationID, artel.RunID) ([]artel.Message, error)
	}
	brokenArtifacts struct {
		store.Artifacts
		heads  func(artel.ConversationID, artel.MessageID) ([]artel.Artifact, error)
		head   func(artel.ConversationID, artel.ArtifactID, artel.MessageID) (artel.Artifact, error)
		exists func(artel.ConversationID, artel.ArtifactID) (bool, error)
	}
	brokenVersions struct {
		store.Versions
		text  func(artel.ConversationID, artel.ArtifactID, int) (string, error)
		claim func(artel.ConversationID, []artel.ArtifactID, artel.MessageID) error
		find  func(artel.Digest) (store.Place, error)
		get   func(artel.ConversationID, artel.ArtifactID, int) (artel.Version, error)
		ids   func(artel.ConversationID) ([]artel.ArtifactID, error)
	}
	brokenJournal struct {
		store.Journal
		add      func(artel.ConversationID, artel.ArtifactID, artel.Version, *string) (int, error)
		fold     func(artel.ConversationID, artel.ArtifactID, artel.Version, *string) error
		edits    func(artel.ConversationID, store.EditQuery) ([]store.Edit, error)
		thin     func(artel.ConversationID, artel.ArtifactID, int) error
		condense func(artel.ConversationID, artel.ArtifactID, []int, []store.Edit) error
		replay   func(artel.ConversationID, artel.ArtifactID, int) (store.Replay, error)
		inner    func(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error)
	}
	brokenRuns struct {
		store.Runs
		create func(artel.Run, store.Lease) error
		get    func(artel.RunID) (artel.Run, error)
		update func(artel.Run) error
		renew  func(store.Lease, time.Time) error
		usage  func(artel.ConversationID) (artel.Usage, error)
	}
	brokenEvents struct {
		store.Events
		add        func(artel.ConversationID, ...artel.Event) (artel.Seq, error)
		read       func(artel.ConversationID, artel.Seq, int) ([]artel.Event, error)
		contexts   func(artel.ConversationID, artel.Seq, int) ([]artel.Event, error)
		milestones func(artel.ConversationID, int) ([]artel.Event, error)
	}
	brokenAnswers struct {
		store.Answers
		get   func(string) (store.Answer, error)
		prune func(time.Time) error
	}
)

func (b brokenConversations) Create(c artel.Conversation) error {
	return or(b.create, b.Conversations.Create)(c)
}

func (b brokenConversations) Get(id artel.ConversationID) (artel.Conversation, error) {
	return or(b.get, b.Conversations.Get)(id)
}

func (b brokenConversations) List(q store.ConversationQuery) ([]store.Listed, string, error) {
	return or(b.list, b.Conversations.List)(q)
}

func (b brokenConversations) Update(c artel.Conversation) error {
	return or(b.update, b.Conversations.Update)(c)
}

func (b brokenConversations) Delete(id artel.ConversationID, at time.Time) error {
	return or(b.delete, b.Conversations.Delete)(id, at)
}

func (b brokenConversations) Restore(id artel.ConversationID) error {
	return or(b.restore, b.Conversations.Restore)(id)
}

func (b brokenMessages) Create(m artel.Message) error {
	return or(b.create, b.Messages.Create)(m)
}

func (b brokenMessages) Get(id artel.MessageID) (artel.Message, error) {
	return or(b.get, b.Messages.Get)(id)
}

func (b brokenMessages) Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
	return or(b.path, b.Messages.Path)(c, leaf, limit)
}

func (b brokenMessages) List(c artel.ConversationID, p store.Page) ([]artel.Message, string, error) {
	return or(b.list, b.Messages.List)(c, p)
}

func (b brokenMessages) SetMuted(id artel.MessageID, muted bool) error {
	return or(b.muted, b.Messages.SetMuted)(id, muted)
}

// backward returns children newest first.
type backward struct{ store.Messages }

func (b backward) Children(c artel.ConversationID, parents ...artel.MessageID) (map[artel.MessageID][]artel.MessageID, error) {
	found, err := b.Messages.Children(c, parents...)
	for _, list := range found {
		slices.Reverse(list)
	}
	return found, err
}

func (b brokenMessages) Nested(c artel.ConversationID, run artel.RunID) ([]artel.Message, error) {
	return or(b.nested, b.Messages.Nested)(c, run)
}

func (b brokenArtifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	return or(b.heads, b.Artifacts.Heads)(c, at)
}

func (b brokenArtifacts) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	return or(b.head, b.Artifacts.Head)(c, id, at)
}

func (b brokenArtifacts) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	return or(b.exists, b.Artifacts.Exists)(c, id)
}

func (b brokenVersions) Get(c artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
	return or(b.get, b.Versions.Get)(c, id, n)
}

func (b brokenVersions) Artifacts(c artel.ConversationID) ([]artel.ArtifactID, error) {
	return or(b.ids, b.Versions.Artifacts)(c)
}

func (b brokenVersions) Text(c artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
	return or(b.text, b.Versions.Text)(c, id, n)
}

func (b brokenVersions) Claim(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error {
	return or(b.claim, b.Versions.Claim)(c, ids, m)
}

func (b brokenVersions) Find(d artel.Digest) (store.Place, error) {
	return or(b.find, b.Versions.Find)(d)
}

func (b brokenRuns) Create(r artel.Run, l store.Lease) error {
	return or(b.create, b.Runs.Create)(r, l)
}

func (b brokenRuns) Get(id artel.RunID) (artel.Run, error) { return or(b.get, b.Runs.Get)(id) }

func (b brokenRuns) Update(r artel.Run) error {
	return or(b.update, b.Runs.Update)(r)
}

func (b brokenRuns) Usage(c artel.ConversationID) (artel.Usage, error) {
	return or(b.usage, b.Runs.Usage)(c)
}

func (b brokenRuns) Renew(l store.Lease, now time.Time) error {
	return or(b.renew, b.Runs.Renew)(l, now)
}

func (b brokenEvents) Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	return or(b.add, b.Events.Append)(c, events...)
}

func (b brokenEvents) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	return or(b.read, b.Events.Read)(c, after, limit)
}

func (b brokenEvents) Milestones(c artel.ConversationID, limit int) ([]artel.Event, error) {
	return or(b.milestones, b.Events.Milestones)(c, limit)
}

func (b brokenEvents) Contexts(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error) {
	return or(b.contexts, b.Events.Contexts)(c, upTo, limit)
}

func (b brokenAnswers) Get(key string) (store.Answer, error) {
	return or(b.get, b.Answers.Get)(key)
}

func (b brokenAnswers) Prune(before time.Time) error {
	return or(b.prune, b.Answers.Prune)(before)
}

// TestTwins holds every clause to a store that must pass it and one that must
// not.
func TestTwins(t *testing.T) {
	broken := twins()
	maps.Copy(broken, messageTwins())
	maps.Copy(broken, ownersTwins())
	maps.Copy(broken, peopleTwins())
	maps.Copy(broken, artifactTwins())
	maps.Copy(broken, importTwins())
	maps.Copy(broken, digestTwins())
	maps.Copy(broken, leftoverTwins())
	maps.Copy(broken, journalTwins())
	maps.Copy(broken, renditionTwins())
	maps.Copy(broken, fileTwins())
	maps.Copy(broken, blobTwins())
	maps.Copy(broken, storageTwins())
	maps.Copy(broken, webhookTwins())
	maps.Copy(broken, noteTwins())
	maps.Copy(broken, contextTwins())
	maps.Copy(broken, gatewayTwins())
	maps.Copy(broken, auditTwins())
	maps.Copy(broken, concurrentTwins())
	contracttest.RunTwins(t, clauses(), broken, func(t *testing.T, cl clause, breakIt func(*twin)) error {
		t.Parallel()
		s, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := newTwin(s)
		breakIt(b)
		return hold(t.Context(), cl, []store.Store{b}, 100*time.Millisecond) // what waits for ever is broken early enough
	})
}

func (b brokenJournal) FoldInner(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error) {
	if b.inner == nil {
		return b.Journal.FoldInner(c, id, run, after, before, limit)
	}
	return b.inner(c, id, run, after, before, limit)
}

func (b brokenJournal) Replay(c artel.ConversationID, id artel.ArtifactID, number int) (store.Replay, error) {
	if b.replay == nil {
		return b.Journal.Replay(c, id, number)
	}
	return b.replay(c, id, number)
}

func (b brokenJournal) Append(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
	return or(b.add, b.Journal.Append)(c, id, v, text)
}

func (b brokenJournal) Fold(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	return or(b.fold, b.Journal.Fold)(c, id, v, text)
}

func (b brokenJournal) Edits(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
	return or(b.edits, b.Journal.Edits)(c, q)
}

func (b brokenJournal) Compact(c artel.ConversationID, id artel.ArtifactID, gone []int, kept []store.Edit) error {
	return or(b.condense, b.Journal.Compact)(c, id, gone, kept)
}

func (b brokenJournal) DropText(c artel.ConversationID, id artel.ArtifactID, n int) error {
	return or(b.thin, b.Journal.DropText)(c, id, n)
}
