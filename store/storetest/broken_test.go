// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A twin is a store that breaks one promise, and otherwise keeps the contract.
type twin struct {
	store.Store
	update, view func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error
	overdue      func(ctx context.Context, now time.Time) ([]store.Lease, error)
	purge        func(ctx context.Context, before time.Time) (int, error)
	digests      func(ctx context.Context) iter.Seq2[store.Use, error]
	leftovers    func(ctx context.Context, before time.Time, remove bool) ([]store.Leftover, error)
	journals     func(ctx context.Context, before time.Time, after store.JournalKey, limit int) ([]store.JournalKey, store.JournalKey, error)
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

func (t *twin) Close() error { return t.closing() }

func newTwin(s store.Store) *twin {
	return &twin{Store: s, update: s.Update, view: s.View, overdue: s.Overdue, purge: s.Purge, digests: s.Digests, leftovers: s.Leftovers, journals: s.Journals, closing: s.Close}
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
	}
	brokenRuns struct {
		store.Runs
		create func(artel.Run, store.Lease) error
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
	if b.create == nil {
		return b.Conversations.Create(c)
	}
	return b.create(c)
}

func (b brokenConversations) Get(id artel.ConversationID) (artel.Conversation, error) {
	if b.get == nil {
		return b.Conversations.Get(id)
	}
	return b.get(id)
}

func (b brokenConversations) List(q store.ConversationQuery) ([]store.Listed, string, error) {
	if b.list == nil {
		return b.Conversations.List(q)
	}
	return b.list(q)
}

func (b brokenConversations) Update(c artel.Conversation) error {
	if b.update == nil {
		return b.Conversations.Update(c)
	}
	return b.update(c)
}

func (b brokenConversations) Delete(id artel.ConversationID, at time.Time) error {
	if b.delete == nil {
		return b.Conversations.Delete(id, at)
	}
	return b.delete(id, at)
}

func (b brokenConversations) Restore(id artel.ConversationID) error {
	if b.restore == nil {
		return b.Conversations.Restore(id)
	}
	return b.restore(id)
}

func (b brokenMessages) Create(m artel.Message) error {
	if b.create == nil {
		return b.Messages.Create(m)
	}
	return b.create(m)
}

func (b brokenMessages) Get(id artel.MessageID) (artel.Message, error) {
	if b.get == nil {
		return b.Messages.Get(id)
	}
	return b.get(id)
}

func (b brokenMessages) Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
	if b.path == nil {
		return b.Messages.Path(c, leaf, limit)
	}
	return b.path(c, leaf, limit)
}

func (b brokenMessages) List(c artel.ConversationID, p store.Page) ([]artel.Message, string, error) {
	if b.list == nil {
		return b.Messages.List(c, p)
	}
	return b.list(c, p)
}

func (b brokenMessages) SetMuted(id artel.MessageID, muted bool) error {
	if b.muted == nil {
		return b.Messages.SetMuted(id, muted)
	}
	return b.muted(id, muted)
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
	if b.nested == nil {
		return b.Messages.Nested(c, run)
	}
	return b.nested(c, run)
}

func (b brokenArtifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	if b.heads == nil {
		return b.Artifacts.Heads(c, at)
	}
	return b.heads(c, at)
}

func (b brokenArtifacts) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	if b.head == nil {
		return b.Artifacts.Head(c, id, at)
	}
	return b.head(c, id, at)
}

func (b brokenArtifacts) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	if b.exists == nil {
		return b.Artifacts.Exists(c, id)
	}
	return b.exists(c, id)
}

func (b brokenVersions) Get(c artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
	if b.get == nil {
		return b.Versions.Get(c, id, n)
	}
	return b.get(c, id, n)
}

func (b brokenVersions) Artifacts(c artel.ConversationID) ([]artel.ArtifactID, error) {
	if b.ids == nil {
		return b.Versions.Artifacts(c)
	}
	return b.ids(c)
}

func (b brokenVersions) Text(c artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
	if b.text == nil {
		return b.Versions.Text(c, id, n)
	}
	return b.text(c, id, n)
}

func (b brokenVersions) Claim(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error {
	if b.claim == nil {
		return b.Versions.Claim(c, ids, m)
	}
	return b.claim(c, ids, m)
}

func (b brokenVersions) Find(d artel.Digest) (store.Place, error) {
	if b.find == nil {
		return b.Versions.Find(d)
	}
	return b.find(d)
}

func (b brokenRuns) Create(r artel.Run, l store.Lease) error {
	if b.create == nil {
		return b.Runs.Create(r, l)
	}
	return b.create(r, l)
}

func (b brokenRuns) Update(r artel.Run) error {
	if b.update == nil {
		return b.Runs.Update(r)
	}
	return b.update(r)
}

func (b brokenRuns) Usage(c artel.ConversationID) (artel.Usage, error) {
	if b.usage == nil {
		return b.Runs.Usage(c)
	}
	return b.usage(c)
}

func (b brokenRuns) Renew(l store.Lease, now time.Time) error {
	if b.renew == nil {
		return b.Runs.Renew(l, now)
	}
	return b.renew(l, now)
}

func (b brokenEvents) Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	if b.add == nil {
		return b.Events.Append(c, events...)
	}
	return b.add(c, events...)
}

func (b brokenEvents) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	if b.read == nil {
		return b.Events.Read(c, after, limit)
	}
	return b.read(c, after, limit)
}

func (b brokenEvents) Milestones(c artel.ConversationID, limit int) ([]artel.Event, error) {
	if b.milestones == nil {
		return b.Events.Milestones(c, limit)
	}
	return b.milestones(c, limit)
}

func (b brokenEvents) Contexts(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error) {
	if b.contexts == nil {
		return b.Events.Contexts(c, upTo, limit)
	}
	return b.contexts(c, upTo, limit)
}

func (b brokenAnswers) Get(key string) (store.Answer, error) {
	if b.get == nil {
		return b.Answers.Get(key)
	}
	return b.get(key)
}

func (b brokenAnswers) Prune(before time.Time) error {
	if b.prune == nil {
		return b.Answers.Prune(before)
	}
	return b.prune(before)
}

// TestTwins holds every clause to a store that must pass it and one that must
// not.
func TestTwins(t *testing.T) {
	broken := twins()
	maps.Copy(broken, artifactTwins())
	maps.Copy(broken, importTwins())
	maps.Copy(broken, digestTwins())
	maps.Copy(broken, leftoverTwins())
	maps.Copy(broken, journalTwins())
	maps.Copy(broken, renditionTwins())
	maps.Copy(broken, fileTwins())
	maps.Copy(broken, noteTwins())
	maps.Copy(broken, contextTwins())
	maps.Copy(broken, gatewayTwins())
	for _, cl := range clauses() {
		breakIt, ok := broken[cl.name]
		delete(broken, cl.name)
		if !ok {
			t.Errorf("clause %q has no broken twin", cl.name)
			continue
		}
		t.Run(cl.name, func(t *testing.T) {
			t.Parallel()
			s, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			b := newTwin(s)
			breakIt(b)
			err = hold(t.Context(), cl, b, 100*time.Millisecond) // what waits for ever is broken early enough
			if err == nil {
				t.Error("the broken twin passes")
			}
			t.Log(err)
		})
	}
	for name := range broken {
		t.Errorf("the twin %q belongs to no clause", name)
	}
}

func (b brokenJournal) Append(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
	if b.add == nil {
		return b.Journal.Append(c, id, v, text)
	}
	return b.add(c, id, v, text)
}

func (b brokenJournal) Fold(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	if b.fold == nil {
		return b.Journal.Fold(c, id, v, text)
	}
	return b.fold(c, id, v, text)
}

func (b brokenJournal) Edits(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
	if b.edits == nil {
		return b.Journal.Edits(c, q)
	}
	return b.edits(c, q)
}

func (b brokenJournal) Compact(c artel.ConversationID, id artel.ArtifactID, gone []int, kept []store.Edit) error {
	if b.condense == nil {
		return b.Journal.Compact(c, id, gone, kept)
	}
	return b.condense(c, id, gone, kept)
}

func (b brokenJournal) DropText(c artel.ConversationID, id artel.ArtifactID, n int) error {
	if b.thin == nil {
		return b.Journal.DropText(c, id, n)
	}
	return b.thin(c, id, n)
}
