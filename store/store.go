// SPDX-License-Identifier: Apache-2.0

// Package store defines how conversations, messages, artifacts, runs and
// events are stored.
//
// Begin with [Store]. All reads and writes happen in [Store.View] or
// [Store.Update], which pass a [Tx] bound to one owner; rows of other owners
// are invisible to it. Packages store/sqlite and store/postgres implement the
// contract, and the kit store/storetest tests implementations.
//
// The package enforces no rules about what may follow what; callers do. It
// guarantees that an Update is applied completely or not at all, that it is on
// disk when Update returns, and that values share no memory with the store. Text
// may hold any character, zero too, and is ordered by its bytes. Ids and names are
// keys of indexes: up to 512 bytes of each are safe in every database.
package store

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// A Store is a database. It is safe for concurrent use.
//
// Errors are [*artel.Error]: [artel.Unauthenticated] without an owner,
// [artel.NotFound] for a row that is missing or belongs to another owner, [artel.Conflict] for one that already exists,
// [artel.Canceled] if the context ended, [artel.Unavailable] if the database
// failed. An error of fn is returned unchanged.
type Store interface {
	// View runs fn on one consistent state. A write in it fails with kind
	// Internal.
	View(ctx context.Context, owner artel.Owner, fn func(Tx) error) error

	// Update runs fn and commits its writes. It commits nothing if fn fails or
	// panics, or if ctx ends before the commit. Updates of one conversation are
	// serial, also those of several processes: from the first that fn reads or
	// writes of a conversation, until the commit, no other update writes to it. A
	// store may run updates of different conversations at the same time; what
	// belongs to no conversation then decides by itself, as Settings.Put does by
	// the revision, and Create and Put by kind Conflict. Several updates may share
	// a commit. An error of fn is returned after the commit of what fn has
	// read; if that fails, Update returns its error instead. fn may run more than
	// once, as to end a deadlock, so it must have no outside effects, and it must
	// not call View or Update. With the code [artel.CodeOutcomeUnknown] it is not
	// known whether the commit was made. fn may keep all other updates waiting, so it reads and writes rows, and
	// does no work that grows with a text.
	Update(ctx context.Context, owner artel.Owner, fn func(Tx) error) error

	Upkeep

	Unowned

	Locker

	// Close waits for running calls and closes the database. Calls after
	// Close are of kind Unavailable.
	Close() error
}

// Unowned holds the rows that belong to no owner.
type Unowned interface {
	// Audit returns the audit log of the deployment, for its operators. Acts are
	// added by [Tx.Audit].
	Audit() AuditLog

	// People returns the users of the deployment and their credentials.
	People() People

	// Blobs returns the index of a store of blobs that keeps them in a bucket.
	Blobs() blob.Index

	Watcher
}

// Upkeep holds the maintenance operations, which cover all owners.
type Upkeep interface {
	// Overdue lists the unfinished runs of every owner whose lease ended
	// before now, oldest first.
	Overdue(ctx context.Context, now time.Time) ([]Lease, error)

	// Clock returns the time by which all processes go that share the database, as for
	// their leases; the zero time if they can only be processes of one machine, which
	// has one clock.
	Clock(ctx context.Context) (time.Time, error)

	// Purge permanently removes the conversations that were deleted before a
	// time, with all their rows, and returns their number. It works in many
	// short transactions, so that other updates can run in between. If it fails
	// or ctx ends, a conversation that is partly removed can no longer be
	// restored; the next Purge removes the rest.
	Purge(ctx context.Context, before time.Time) (int, error)

	// Digests yields every reference to a digest, which shows the blobs in
	// use. Deleted rows that are not yet purged count, and so do unfinished
	// imports. All uses come from one state after the call, in no order; a
	// digest is yielded once for each reference. Memory use does not grow with
	// the number of rows. The loop must not call the store. An error is yielded
	// last.
	Digests(ctx context.Context) iter.Seq2[Use, error]

	// Leftovers lists unreferenced tool-result artifacts created before a given
	// time outside any run, oldest first, in batches that fit in memory. Such
	// an artifact has source tool_result, one version and no other edit.
	// References are looked for in messages, in events other than those about
	// artifacts, and in the texts of the owner's other artifacts. A reference is
	// the artifact's id (in its conversation), its conversation's id and its own
	// (in others), or its digest (anywhere). When in doubt, text counts as a
	// reference.
	//
	// With remove, the listed artifacts, their versions and texts are removed.
	// Their ids and numbers stay taken, so that a ref never gets another
	// meaning, and the journal keeps an edit without a digest.
	Leftovers(ctx context.Context, before time.Time, remove bool) ([]Leftover, error)

	// Journals examines the next limit artifacts after one, in an unspecified
	// order, and returns those that may have edits to compact: folded edits,
	// made before a time, that are not visible versions. last is the last
	// artifact examined, to be passed as the next after; zero at the end.
	Journals(ctx context.Context, before time.Time, after JournalKey, limit int) (found []JournalKey, last JournalKey, err error)
}

// A JournalKey names the journal of one artifact. The zero JournalKey comes before
// all.
type JournalKey struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Artifact     artel.ArtifactID
}

// A Leftover is an artifact without references.
type Leftover struct {
	Owner artel.Owner
	Place
}

// A Use is one reference to a digest.
type Use struct {
	Owner        artel.Owner
	Conversation artel.ConversationID // empty for an answer, a rendition or a file
	Digest       artel.Digest
	// Of is set for the bytes of a rendition: the digest of its source. The
	// rendition is in use as long as its source is; its row is removed by
	// [Renditions.Delete].
	Of artel.Digest
	// Bytes reports that the digest is the content of a version, an edit or a
	// file. Otherwise it occurs in the text of a message, an answer, an event
	// (except those about artifacts, which have rows of their own), a segment
	// or an artifact, as in "blob:sha256-…" or in the address of a file. Any 64
	// lower-case hexadecimal digits count.
	Bytes bool
}

// A Tx gives access to the rows of one owner inside View or Update. It must be
// used by one goroutine, and not after fn has returned.
type Tx struct {
	Conversations Conversations
	Messages      Messages
	Artifacts     Artifacts
	Versions      Versions
	Journal       Journal
	Runs          Runs
	Events        Events
	Answers       Answers
	Imports       Imports
	Renditions    Renditions
	Contexts      Contexts
	Settings      Settings
	Variables     Variables
	GatewayLog    GatewayLog
	Files         Files
	Notes         Notes
	Audit         Audit
	Storage       Storage
	Hooks         Hooks
}

// A Page selects a part of a list.
type Page struct {
	Cursor string // the next value of the previous page; "": the beginning
	Limit  int    // maximum; 0: 50, at most 500
}

// Conversations stores [artel.Conversation] rows.
type Conversations interface {
	Create(c artel.Conversation) error
	Get(id artel.ConversationID) (artel.Conversation, error)
	// List returns the most recently updated first, or the best matches of a
	// search. next is "" at the end.
	List(q ConversationQuery) (items []Listed, next string, err error)
	// Update replaces all fields but ID and CreatedAt.
	Update(c artel.Conversation) error
	// Delete hides the conversation and all its rows; reading them is of kind
	// NotFound. Its id and those of its messages and runs stay taken until
	// [Upkeep.Purge].
	Delete(id artel.ConversationID, at time.Time) error
	// Restore undoes Delete. It is of kind NotFound if the conversation is not
	// deleted, or if Purge has begun to remove it.
	Restore(id artel.ConversationID) error
}

// A ConversationQuery selects conversations.
type ConversationQuery struct {
	// Search selects conversations that contain all of its words, separated by
	// white space. A word may occur in the title or in the text of a user or
	// assistant message on any branch, also inside a longer word. Case and the
	// encoding of accents are ignored; there are no wildcards. More than
	// [MaxSearch] code points are of kind Invalid.
	Search string
	Best   bool // rank matches: rare words, titles, then number of messages; ties newest first
	// Filled leaves out conversations with neither a message nor an artifact,
	// except Also.
	Filled bool
	Also   artel.ConversationID
	Page
}

// MaxSearch is the maximum length of a search in code points.
const MaxSearch = 200

// A Listed is a conversation in a list.
type Listed struct {
	artel.Conversation
	// Excerpt is the text around the first match in the messages: about 120
	// code points on one line, with "…" where text is cut. It is empty if the
	// title contains all words, and without a search.
	Excerpt string `json:"excerpt,omitempty"`
}

// Messages keeps the messages of conversations, which form trees.
type Messages interface {
	// Create is of kind Invalid if the parent is not in the conversation.
	Create(m artel.Message) error
	Get(id artel.MessageID) (artel.Message, error)
	// List returns all messages of all branches, oldest first. A page ends with the
	// message that makes its parts [MaxMessageBytes] long.
	List(c artel.ConversationID, p Page) (items []artel.Message, next string, err error)
	SetMuted(id artel.MessageID, muted bool) error
	// Nested returns the messages of a run's subagents (Within is set), in
	// order of creation.
	Nested(c artel.ConversationID, run artel.RunID) ([]artel.Message, error)

	Branches
}

// Branches walks the trees of messages.
type Branches interface {
	// Path returns the last limit messages of the branch that ends in leaf,
	// root first; limit 0 returns all. The cost depends on the number of
	// messages returned, not on the length of the branch. An empty leaf has an
	// empty path.
	Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error)
	// Children returns the direct children of each parent, in order of
	// creation; the children of "" are the roots. Messages of subagents are
	// left out. The cost does not depend on the size of the conversation.
	Children(c artel.ConversationID, parents ...artel.MessageID) (map[artel.MessageID][]artel.MessageID, error)
}

// Runs stores runs and their leases. A lease names the process that executes a
// run and the time until which it must be renewed.
type Runs interface {
	// Create is of kind Conflict, with code "run_active", if r is running or
	// waiting and the conversation already has such a run. Any number may be
	// queued.
	Create(r artel.Run, l Lease) error
	Get(id artel.RunID) (artel.Run, error)
	// Update replaces all fields but ID, Conversation, Message and StartedAt.
	// It returns the same Conflict as Create.
	Update(r artel.Run) error
	// Active returns the running or waiting run of c; kind NotFound if none.
	Active(c artel.ConversationID) (artel.Run, error)
	// Usage returns the sum of the usage of all runs of c, on all branches.
	Usage(c artel.ConversationID) (artel.Usage, error)
	// Renew gives l.Holder the lease until l.Until and stores l.Worked. The holder names
	// its term. Another one takes a lease that has ended at now, with a greater term, so
	// that of several that have read the same lease only one gets it, whatever time they
	// think it is. Otherwise the error is of kind Conflict. With a zero l.Until it only
	// checks: Conflict if the last lease had another holder or another term.
	Renew(l Lease, now time.Time) error
}

// Events stores the event logs of conversations.
type Events interface {
	// Append stores events under the next numbers, in order and without gaps,
	// and returns the last number.
	Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error)
	// Read returns at most limit events after a number, in order. It ends early
	// with the event that makes their data [MaxEventBytes] long, so only
	// [MayContinue] says whether there are more.
	Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error)
	// Last returns the newest number; 0 for an empty log.
	Last(c artel.ConversationID) (artel.Seq, error)
	// Contexts returns the newest events of type [artel.EventContextBuilt] up
	// to a number, at most limit of them and [MaxEventBytes], in order. The cost
	// does not depend on the length of the log.
	Contexts(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error)
	// Milestones returns the newest compaction and service-change events
	// ("compaction_completed", "service_changed", "service_chosen"), at most
	// limit of them and [MaxEventBytes], in order.
	Milestones(c artel.ConversationID, limit int) ([]artel.Event, error)
}

// MaxMessageBytes is how much a page of messages holds, beside its last one.
const MaxMessageBytes = 4 << 20

// MaxEventBytes is how much data a read of events returns, beside that of the last
// event.
const MaxEventBytes = 4 << 20

// MayContinue reports whether there may be more events than a read with a limit has
// returned.
func MayContinue(events []artel.Event, limit int) bool {
	bytes := 0
	for _, e := range events {
		bytes += len(e.Data)
	}
	return len(events) >= limit || bytes >= MaxEventBytes
}

// Answers stores the responses to requests with an idempotency key.
type Answers interface {
	Get(key string) (Answer, error)
	// Put is of kind Conflict if the key exists.
	Put(a Answer) error
	// Prune removes answers older than before.
	Prune(before time.Time) error
}

// An Answer is a stored response.
type Answer struct {
	Key       string
	Request   artel.Digest // of method, path and body
	Status    int          // HTTP
	Body      []byte
	CreatedAt time.Time
}

// Imports writes whole conversations in several transactions. Until Finish, the
// conversation is hidden as if it were deleted: its ids are taken,
// [Conversations.Restore] does not find it, and [Upkeep.Purge] removes it if the
// import is abandoned.
type Imports interface {
	// Begin creates a conversation and lets this transaction write to it.
	Begin(c artel.Conversation, at time.Time) error
	// Continue lets this transaction write to a conversation begun earlier. For
	// Purge, at replaces its time of deletion. It is of kind NotFound if no
	// import of this id is open, or if Purge has begun to remove it.
	Continue(id artel.ConversationID, at time.Time) error
	// Version adds a visible version under v.Number, which must be above all
	// numbers of the artifact (otherwise kind Conflict). text is nil for binary
	// content. The journal gets an edit of this number without parent, text and
	// changes, because the imported changes may not produce the text. It is of
	// kind NotFound if this transaction does not import c.
	Version(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error
	// Finish makes the conversation visible. It is of kind NotFound like
	// Continue.
	Finish(id artel.ConversationID) error
}

// Renditions records derived forms of bytes, such as a smaller picture or the
// transcript of a recording. They belong to an owner, not to a conversation.
type Renditions interface {
	// Get returns the rendition of source in a form. It is of kind NotFound if
	// there is none.
	Get(source artel.Digest, form string) (Rendition, error)
	// Put stores a rendition and replaces an earlier one of the same form.
	Put(r Rendition) error
	// Delete removes all renditions of source, if any.
	Delete(source artel.Digest) error
}

// A Rendition is a derived form of some bytes.
type Rendition struct {
	Source artel.Digest // the original
	Form   string       // the form and how it was made
	Digest artel.Digest // of the derived bytes
	artel.MediaInfo
	CreatedAt time.Time
}

// Contexts stores how the requests of model calls were built.
type Contexts interface {
	// Add stores a record under the next number of its run, from 1, and
	// returns the number; c.Number is ignored. segments are those that the
	// record names; each is stored once for a conversation. It is of kind
	// NotFound if the run does not exist.
	Add(c Context, segments []Segment) (int, error)
	// Get is of kind NotFound if there is no such record.
	Get(run artel.RunID, number int) (Context, error)
	// List returns records newest first, with a nil Record.
	List(q ContextQuery) ([]Context, error)
	// Segments returns those of the named segments that are stored.
	Segments(c artel.ConversationID, digests []artel.Digest) ([]Segment, error)
	// Report replaces the fields that r sets. It is of kind NotFound like Get.
	Report(run artel.RunID, number int, r ContextReport) error
	// Trim removes all but the newest records of a conversation, and the
	// segments that only they have named.
	Trim(c artel.ConversationID, newest int) error
}

// A Context is the record of one model call.
type Context struct {
	Conversation artel.ConversationID
	Run          artel.RunID
	Number       int             // in the run, from 1
	Summary      json.RawMessage // for lists
	Record       json.RawMessage // complete
	Usage        *artel.Usage    // nil: the call failed or has not ended
	CreatedAt    time.Time
}

// A ContextReport holds the result of a model call. Nil fields change nothing.
type ContextReport struct {
	Usage   *artel.Usage
	Summary json.RawMessage
}

// A ContextQuery selects records.
type ContextQuery struct {
	Conversation artel.ConversationID // required
	Run          artel.RunID          // "": all runs
	Before       *ContextKey          // only records older than this one
	Limit        int                  // maximum; 0: 50, at most 500
}

// A ContextKey names a record.
type ContextKey struct {
	Run    artel.RunID
	Number int
}

// A Segment is a piece of a request.
type Segment struct {
	Digest artel.Digest
	Body   []byte
}

// Settings stores the users' settings under names chosen by the application.
type Settings interface {
	// Get is of kind NotFound if the name is not set.
	Get(name string) (Setting, error)
	// List returns the settings whose names begin with prefix, sorted by name.
	List(prefix string) ([]Setting, error)
	// Put stores a value and returns its revision, which is one more than the
	// revision of the previous value, even if that was deleted. s.Revision is
	// the revision to replace, 0 for none. It is of kind Conflict if the
	// current revision is another.
	Put(s Setting) (int, error)
	// Delete removes the value with this revision. It is of kind Conflict like
	// Put, and NotFound if the name is not set.
	Delete(name string, revision int, at time.Time) error
}

// Variables stores the macro variables of branches: for each answered message,
// all variables after the answer.
type Variables interface {
	// Put stores the value of a message and replaces an earlier one.
	Put(c artel.ConversationID, m artel.MessageID, value json.RawMessage) error
	// On returns the value of the last message on a path that has one, or nil.
	On(c artel.ConversationID, path []artel.MessageID) (json.RawMessage, error)
	// Messages returns the messages that have a value, sorted by id.
	Messages(c artel.ConversationID) ([]artel.MessageID, error)
}

// A Setting is one stored setting.
type Setting struct {
	Name      string
	Value     json.RawMessage
	Revision  int // from 1
	UpdatedAt time.Time
}

// GatewayLog stores one entry for each request of the gateway and each call of MCP.
type GatewayLog interface {
	// Add stores entries in order, under increasing numbers; Number is ignored.
	Add(entries ...GatewayEntry) error
	// List returns entries newest first. next is "" at the end.
	List(q GatewayQuery) (items []GatewayEntry, next string, err error)
	// Trim removes all but the newest requests and the newest calls of MCP, that many of each.
	Trim(newest int) error
}

// A GatewayEntry describes one request of the gateway, or one call of MCP. Digests in it do not
// count as references to blobs.
type GatewayEntry struct {
	Number  int64
	Key     string          // name of the client's key; may be empty
	Service artel.ServiceID // may be empty
	Server  string          // that was called by MCP; empty: a request of the gateway
	Status  int             // HTTP
	Changed bool            // the request was changed
	Body    json.RawMessage // complete
}

// LogOf says which entries of the gateway's log are meant.
type LogOf string

// The values of LogOf.
const (
	LogOfAll     LogOf = ""
	LogOfGateway LogOf = "gateway" // requests of the gateway
	LogOfMCP     LogOf = "mcp"     // calls of MCP
)

// A GatewayQuery selects entries; zero fields select all.
type GatewayQuery struct {
	Key       string
	Service   artel.ServiceID
	Server    string
	Of        LogOf
	MinStatus int
	MaxStatus int
	Changed   bool
	Page
}

// Files stores the files that programs have uploaded to refer to them by id. An
// expired file is missing for every method but Create and Purge.
type Files interface {
	// Create is of kind Conflict if the id is taken.
	Create(f File) error
	// Get is of kind NotFound if there is none.
	Get(id string, now time.Time) (File, error)
	// List returns the files that q selects. It is of kind Invalid if q.After
	// is not a file of the holder.
	List(q FileQuery) ([]File, error)
	// Delete is of kind NotFound if there is none. The bytes stay until they
	// have no other reference.
	Delete(id string, now time.Time) error
	// Purge removes the expired files.
	Purge(now time.Time) error
}

// A FileQuery selects files.
type FileQuery struct {
	Holder string
	Now    time.Time
	After  string // id of the last file of the previous page; "": the beginning
	Oldest bool   // oldest first; otherwise newest first
	Limit  int    // maximum; at least 1
}

// A File is an uploaded file.
type File struct {
	ID        string
	Holder    string // the program that uploaded it; may be empty
	Digest    artel.Digest
	Filename  string
	Purpose   string // as stated by the program
	Info      artel.MediaInfo
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
}

// Notes stores what users and runs leave for each other: queued messages,
// messages injected into a run, questions and their answers.
type Notes interface {
	// Put stores a note. It replaces an earlier one with the same id, but keeps
	// its conversation, time and position in lists. It is of kind Conflict if
	// the id belongs to a note of another conversation.
	Put(n Note) error
	// Get is of kind NotFound if there is none.
	Get(id string) (Note, error)
	// List returns notes in order of creation.
	List(q NoteQuery) ([]Note, error)
	// Delete is of kind NotFound if there is none.
	Delete(id string) error
}

// A NoteQuery selects notes; empty fields select all.
type NoteQuery struct {
	Conversation artel.ConversationID // required
	Kind         string
	Run          artel.RunID
	Open         bool // only open notes
}

// A Note is one message left by a user or a run.
type Note struct {
	ID           string
	Conversation artel.ConversationID
	Run          artel.RunID     // its recipient or sender; may be empty
	Message      artel.MessageID // the note applies to its branch; may be empty
	Kind         string
	Open         bool            // still to be handled
	Body         json.RawMessage // never nil
	CreatedAt    time.Time
}
