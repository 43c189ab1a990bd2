// SPDX-License-Identifier: Apache-2.0

// Package storetest tests implementations of [store.Store].
//
// Begin with [Run]. Each clause of the contract is one subtest on its own store.
// The kit itself is tested with stores that are broken on purpose: each clause
// must fail for one of them. It does not test speed.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/store"
)

// Run holds the stores that open returns to the contract. open is called once
// for each clause, several times at once. It returns one or several handles on an
// empty database of its own, which it closes with the test. Several stand for
// processes that share the database.
func Run(t *testing.T, open func(testing.TB) []store.Store) {
	contracttest.Run(t, clauses(), func(t *testing.T, cl clause) error {
		t.Parallel()
		return hold(t.Context(), cl, open(t), patience)
	})
}

// A clause is one promise of the contract.
type clause = contracttest.Clause[*check]

func clauses() []clause {
	return []clause{
		{"conversations/round trip", conversationsRoundTrip},
		{"conversations/update", conversationsUpdate},
		{"conversations/paging", conversationsPaging},
		{"conversations/filled", conversationsFilled},
		{"conversations/delete hides", deleteHides},
		{"conversations/deleted ids", deletedIDs},
		{"conversations/restore", restoreBringsBack},
		{"conversations/restore refuses", restoreRefuses},
		{"search/words", searchWords},
		{"search/scripts", searchScripts},
		{"search/plain text", searchPlain},
		{"search/text alone", searchText},
		{"search/excerpt", searchExcerpt},
		{"search/paging", searchPaging},
		{"search/best", searchBest},
		{"search/bound", searchBound},
		{"messages/round trip", messagesRoundTrip},
		{"messages/parent", messagesParent},
		{"messages/path", messagesPath},
		{"messages/end of a path", messagesPathEnd},
		{"messages/paging", messagesPaging},
		{"messages/pages of long ones", messagesPagesBytes},
		{"messages/nested", messagesNested},
		{"messages/children", messagesChildren},
		{"messages/muted", messagesMuted},
		{"artifacts/head by branch", artifactsByBranch},
		{"artifacts/unfolded edits", artifactsUnfolded},
		{"artifacts/tombstone", artifactsTombstone},
		{"artifacts/exists", artifactsExists},
		{"artifacts/histories", artifactsHistories},
		{"versions/round trip", versionsRoundTrip},
		{"versions/numbers", versionsNumbers},
		{"versions/fold marks", versionsFold},
		{"versions/fold twice", versionsFoldTwice},
		{"versions/fold in parts", versionsFoldInner},
		{"versions/edit query", versionsEdits},
		{"versions/get", versionsGet},
		{"versions/artifacts", versionsArtifacts},
		{"versions/thin", versionsThin},
		{"versions/replay", versionsReplay},
		{"versions/text", versionsText},
		{"versions/large text", versionsLargeText},
		{"versions/utf-8", versionsUTF8},
		{"versions/outline", versionsOutline},
		{"versions/condense", versionsCondense},
		{"versions/claim", versionsClaim},
		{"versions/find", versionsFind},
		{"runs/round trip", runsRoundTrip},
		{"runs/one at a time", runsActive},
		{"runs/lease", runsLease},
		{"runs/usage", runsUsage},
		{"runs/terms", runsTerms},
		{"runs/overdue", runsOverdue},
		{"runs/clock", runsClock},
		{"runs/worked", runsWorked},
		{"events/round trip", eventsRoundTrip},
		{"events/numbers", eventsNumbers},
		{"events/read", eventsRead},
		{"events/read long ones", eventsReadBytes},
		{"events/contexts", eventsContexts},
		{"events/milestones", eventsMilestones},
		{"answers/round trip", answersRoundTrip},
		{"answers/prune", answersPrune},
		{"locks", locks},
		{"renditions/round trip", renditionsRoundTrip},
		{"renditions/replace", renditionsReplace},
		{"renditions/delete", renditionsDelete},
		{"contexts/round trip", contextsRoundTrip},
		{"contexts/report", contextsReport},
		{"contexts/list", contextsList},
		{"contexts/keep", contextsKeep},
		{"settings/round trip", settingsRoundTrip},
		{"settings/revisions", settingsRevisions},
		{"variables/branches", variablesBranches},
		{"notes/round trip", notesRoundTrip},
		{"notes/list", notesList},
		{"gateway/list", gatewayList},
		{"gateway/keep", gatewayKeep},
		{"audit/list", auditList},
		{"audit/prune", auditPrune},
		{"files/round trip", filesRoundTrip},
		{"files/list", filesList},
		{"files/expire", filesExpire},
		{"imports/hidden", importsHidden},
		{"imports/versions", importsVersions},
		{"imports/refuse", importsRefuse},
		{"imports/purge", importsPurge},
		{"storage/blobs", storageBlobs},
		{"storage/texts", storageTexts},
		{"blobs/keep", blobsKeep},
		{"blobs/reserved keys", blobsReserved},
		{"blobs/drop", blobsDrop},
		{"blobs/list", blobsList},
		{"blobs/keep beside drop", blobsRace},
		{"people/users", peopleUsers},
		{"people/invitations", peopleInvitations},
		{"people/identities", peopleIdentities},
		{"people/sessions", peopleSessions},
		{"people/sessions that end", peopleSessionsEnd},
		{"people/tokens", peopleTokens},
		{"people/keys", peopleKeys},
		{"people/key parents", peopleKeyParents},
		{"people/token parents", peopleTokenParents},
		{"people/ledger", peopleLedger},
		{"people/deleted user", peopleDeleted},
		{"people/entries", peopleEntries},
		{"people/transactions", peopleTransactions},
		{"people/webhooks", peopleWebhooks},
		{"webhooks/queue", webhooksQueue},
		{"webhooks/take", webhooksTake},
		{"webhooks/report", webhooksReport},
		{"people/schedules", peopleSchedules},
		{"schedules/starts", schedulesStarts},
		{"concurrent/runs", lostRuns},
		{"concurrent/notes", lostNotes},
		{"concurrent/messages", lostMessages},
		{"concurrent/settings", lostSettings},
		{"concurrent/opposite order", oppositeOrder},
		{"concurrent/ordered events", orderedVisibility},
		{"concurrent/edits", gaplessEdits},
		{"concurrent/lease", takenOnce},
		{"concurrent/answer", answeredOnce},
		{"concurrent/active run", oneActiveRun},
		{"concurrent/purge", purgeBesideWriters},
		{"store/no owner", noOwner},
		{"store/foreign is missing", foreignIsMissing},
		{"store/foreign rows", foreignRows},
		{"store/error undoes", errorUndoes},
		{"store/panic undoes", panicUndoes},
		{"store/cancel undoes", cancelUndoes},
		{"store/cancel in line", cancelInLine},
		{"store/cancel a view", cancelView},
		{"store/no shared memory", noSharedMemory},
		{"store/updates are serial", updatesAreSerial},
		{"store/view is consistent", viewIsConsistent},
		{"store/view cannot write", viewCannotWrite},
		{"store/purge by time", purgeByTime},
		{"store/purge for good", purgeForGood},
		{"store/digests", digestsEverywhere},
		{"store/digests until the loop ends", digestsEnd},
		{"store/digests of one state", digestsOfOneState},
		{"store/leftovers", leftoversOfTools},
		{"store/leftovers that are named", leftoversNamed},
		{"store/journals", journalsPages},
		{"store/closed", closedIsUnavailable},
	}
}

// patience is how long a call may take that must not wait.
const patience = 5 * time.Minute

// hold runs cl on a database.
func hold(ctx context.Context, cl clause, handles []store.Store, patience time.Duration) error {
	return contracttest.Hold(ctx, func(c *contracttest.Check) {
		cl.Check(&check{Check: c, s: handles[0], handles: handles, patience: patience, now: time.Date(2026, 3, 4, 5, 6, 7, 89_012_000, time.UTC)})
	})
}

const (
	me   artel.Owner = "me"
	them artel.Owner = "them"
)

// A check runs one clause.
type check struct {
	*contracttest.Check
	s        store.Store   // the first handle
	handles  []store.Store // all of one database
	now      time.Time     // with microseconds
	patience time.Duration
}

// update and view run fn as me; its error ends the clause.
func (c *check) update(fn func(store.Tx) error) { c.Must("update", c.s.Update(c.Context(), me, fn)) }
func (c *check) view(fn func(store.Tx) error)   { c.Must("view", c.s.View(c.Context(), me, fn)) }

// refused expects fn to fail with a kind, in an update.
func (c *check) refused(what string, want artel.Kind, fn func(store.Tx) error) {
	c.Kind(what, c.s.Update(c.Context(), me, fn), want)
}

// missing expects fn to fail with NotFound, in a view.
func (c *check) missing(what string, fn func(store.Tx) error) {
	c.Kind(what, c.s.View(c.Context(), me, fn), artel.NotFound)
}

// reads expects read, in a view, to return want.
func reads[T any](c *check, what string, want T, read func(store.Tx) (T, error)) {
	c.view(func(tx store.Tx) error {
		got, err := read(tx)
		c.Same(what, got, want)
		return err
	})
}

// at returns a time n seconds after the beginning of the clause.
func (c *check) at(n int) time.Time { return c.now.Add(time.Duration(n) * time.Second) }

// conversation makes one that is otherwise empty.
func (c *check) conversation() artel.ConversationID {
	v := artel.Conversation{ID: artel.NewConversationID(c.now), CreatedAt: c.now, UpdatedAt: c.now}
	c.update(func(tx store.Tx) error { return tx.Conversations.Create(v) })
	return v.ID
}

// message makes a message under parent.
func (c *check) message(conv artel.ConversationID, parent artel.MessageID) artel.MessageID {
	m := artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Parent: parent, Role: artel.RoleUser, CreatedAt: c.now}
	c.update(func(tx store.Tx) error { return tx.Messages.Create(m) })
	return m.ID
}

// edit journals one and returns its number.
func (c *check) edit(conv artel.ConversationID, id artel.ArtifactID, v artel.Version, text string) int {
	n := 0
	c.update(func(tx store.Tx) (err error) {
		n, err = tx.Journal.Append(conv, id, v, &text)
		return err
	})
	return n
}

// version journals an edit and folds it.
func (c *check) version(conv artel.ConversationID, id artel.ArtifactID, v artel.Version, text string) int {
	v.Number = c.edit(conv, id, v, text)
	c.update(func(tx store.Tx) error { return tx.Journal.Fold(conv, id, v, &text) })
	return v.Number
}

// heads returns the numbers of the artifacts at a message.
func (c *check) heads(conv artel.ConversationID, at artel.MessageID) map[artel.ArtifactID]int {
	out := map[artel.ArtifactID]int{}
	c.view(func(tx store.Tx) error {
		heads, err := tx.Artifacts.Heads(conv, at)
		for _, a := range heads {
			out[a.ID] = a.Version
			one, err := tx.Artifacts.Head(conv, a.ID, at)
			if err != nil {
				return err
			}
			c.Same("Head and Heads", one, a)
		}
		return err
	})
	return out
}

// awkward is text that a store may be tempted to change.
const awkward = "nul \x00, CRLF \r\n, lone mark \u0301, e\u0301 é, 中文, 🧵, \u2028, <&>, \\ufffd \ufffd, \ufeff, '\"%_"
