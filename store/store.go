// SPDX-License-Identifier: Apache-2.0

// Package store is the contract of persistence: conversations, messages,
// artifacts with their versions and edit journal, runs, events.
//
// Begin with [Store]. Everything happens in [Store.View] or [Store.Update],
// which hand out a [Tx] that is bound to one owner: what belongs to somebody
// else is not there. The wing store/sqlite fulfils the contract, and the kit
// store/storetest holds any implementation to it.
//
// The package has no rules about what may follow what; those are in the rooms
// above. It promises that an Update happens whole or not at all, that it is on
// disk when Update returns, and that values share no memory with the store.
package store

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/artelhq/artel"
)

// A Store keeps rows. It is safe for concurrent use.
//
// Errors are [*artel.Error]: [artel.NotFound] for what is missing or foreign,
// [artel.Conflict] for what is there already, [artel.Canceled] where the
// context ended, [artel.Unavailable] where the database failed. An error that
// fn returns comes back as it is.
type Store interface {
	// View runs fn on one consistent state. Writing in it is of kind Internal.
	View(ctx context.Context, owner artel.Owner, fn func(Tx) error) error

	// Update runs fn and commits what it did, or nothing when fn fails,
	// panics, or ctx ends before the commit. Updates happen one after the
	// other; several may share a commit. fn may be run again and must have no
	// outside effects; it must not call View or Update.
	Update(ctx context.Context, owner artel.Owner, fn func(Tx) error) error

	Upkeep

	// Close waits for running calls and closes the database. Calls after
	// Close are of kind Unavailable.
	Close() error
}

// Upkeep is what is done for all owners at once.
type Upkeep interface {
	// Overdue lists the unfinished runs of every owner whose lease ended
	// before now, oldest first.
	Overdue(ctx context.Context, now time.Time) ([]Lease, error)

	// Purge removes for good the conversations of every owner that were
	// deleted before a time, with everything in them, and returns how many are
	// gone. It takes many short turns, so that updates go on beside it. When
	// it fails or ctx ends, what it had begun with is not restored any more,
	// and the next Purge goes on.
	Purge(ctx context.Context, before time.Time) (int, error)

	// Digests tells of every place where a digest stands, of every owner: which
	// blobs are still wanted. What is deleted and not yet purged counts, and
	// so does what is being imported. All is told of one state, that of some
	// moment after the call; a digest that stands in many places comes many
	// times, in no order. The memory that it needs does not grow with the
	// rows. The loop must not call the store. An error is the last thing told.
	Digests(ctx context.Context) iter.Seq2[Use, error]

	// Leftovers returns, the oldest first and at most so many that they fit into
	// memory, what tools have left outside any run before a time and nothing
	// names: artifacts of source tool_result with one version and no other
	// edit. A message, an event that does not tell of an artifact itself, or a
	// text of another artifact of its owner names it: in its conversation by
	// its id, elsewhere by the ids of both, and everywhere by its digest. What
	// may be a name counts as one. With remove, they are gone: missing as
	// artifact, version and text; but their ids stay taken and their numbers
	// too, so that no ref ever means something else, and the journal has an
	// edit without digest in their place.
	Leftovers(ctx context.Context, before time.Time, remove bool) ([]Leftover, error)

	// Journals looks at the next limit artifacts after one, in an order of its
	// own, and returns those that may have edits to condense: folded ones,
	// made before a time, which are not visible themselves. last is the last
	// that it looked at, to go on after; it is zero when there are no more.
	Journals(ctx context.Context, before time.Time, after JournalKey, limit int) (found []JournalKey, last JournalKey, err error)
}

// A JournalKey names the journal of one artifact. The zero JournalKey comes before
// all.
type JournalKey struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Artifact     artel.ArtifactID
}

// A Leftover is an artifact that nothing names.
type Leftover struct {
	Owner artel.Owner
	Place
}

// A Use is one place where a digest stands.
type Use struct {
	Owner        artel.Owner
	Conversation artel.ConversationID // empty: an answer, a rendition or a file has it
	Digest       artel.Digest
	// Of is there where these are the bytes of a rendition: the digest of what
	// it was made of. It is wanted as long as that is, and its row goes by
	// [Renditions.Delete].
	Of artel.Digest
	// Bytes says that these are the bytes of a version, of an edit in the
	// journal or of a file. Else it is written in a message, an answer, an event that does
	// not tell of an artifact itself (which has rows of its own), a segment of
	// a request, or the text of an artifact, as in "blob:sha256-…" or in the address of a file:
	// any 64 lower-case hexadecimal digits count, whatever they mean.
	Bytes bool
}

// A Tx is the state as one owner sees it, inside View or Update. It is used by
// one goroutine, and not after fn has returned.
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
}

// A Page asks for a part of a list.
type Page struct {
	Cursor string // what the page before returned as next; "": the beginning
	Limit  int    // most items; 0: 50, at most 500
}

// Conversations keeps [artel.Conversation] rows.
type Conversations interface {
	Create(c artel.Conversation) error
	Get(id artel.ConversationID) (artel.Conversation, error)
	// List returns the newest updated first, or the best. The next cursor is "" at the end.
	List(q ConversationQuery) (items []Listed, next string, err error)
	// Update replaces all fields but ID and CreatedAt.
	Update(c artel.Conversation) error
	// Delete hides the conversation: from then on it is missing with
	// everything in it, as if it were somebody else's. Only its ids stay
	// taken, and those of its messages and runs, until [Store.Purge].
	Delete(id artel.ConversationID, at time.Time) error
	// Restore brings a deleted conversation back as it was. Of kind NotFound
	// where there is none that is deleted, or where Purge has begun with it.
	Restore(id artel.ConversationID) error
}

// A ConversationQuery selects conversations.
type ConversationQuery struct {
	// Search selects those that hold all of its words, which white space
	// separates: each in the title or in the text that a user or an assistant
	// has written, on any branch, also as a part of a longer word. Case makes no
	// difference, nor does the way in which accents are encoded; every character
	// stands for itself. At most [MaxSearch] code points, else of kind Invalid.
	Search string
	Best   bool // of a search: rare words, titles, then many messages first; of equals the newest
	Page
}

// MaxSearch is the longest search in code points.
const MaxSearch = 200

// A Listed is a conversation in a list.
type Listed struct {
	artel.Conversation
	// Excerpt is the text around the first place in its messages that a
	// search has found, of about 120 code points on one line, with "…" where
	// it goes on. It is empty where the title holds all words, and without a
	// search.
	Excerpt string `json:"excerpt,omitempty"`
}

// Messages keeps the messages of conversations, which form trees.
type Messages interface {
	// Create is of kind Invalid if the parent is not in the conversation.
	Create(m artel.Message) error
	Get(id artel.MessageID) (artel.Message, error)
	// List returns all messages of all branches, oldest first.
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

// Runs keeps runs and their leases. A lease says which process works on a run
// and until when it may go without a sign of life.
type Runs interface {
	// Create refuses (kind Conflict, code "run_active") a run that is at work,
	// running or waiting, where the conversation has one already. Any number
	// may be queued.
	Create(r artel.Run, l Lease) error
	Get(id artel.RunID) (artel.Run, error)
	// Update replaces all fields but ID, Conversation, Message and StartedAt.
	// It refuses as Create does.
	Update(r artel.Run) error
	// Active returns the run of c that is at work; kind NotFound if none.
	Active(c artel.ConversationID) (artel.Run, error)
	// Usage returns the sum of what all runs of c took, on whatever branch.
	Usage(c artel.ConversationID) (artel.Usage, error)
	// Renew lets l.Holder keep the run until l.Until, and keeps l.Worked. Of kind
	// Conflict when somebody else's lease has not ended at now. With a zero
	// l.Until it changes nothing: Conflict when somebody else held the run last.
	Renew(l Lease, now time.Time) error
}

// A Lease is who works on a run.
type Lease struct {
	Owner        artel.Owner
	Run          artel.RunID
	Conversation artel.ConversationID
	Holder       string // names the process
	Until        time.Time
	Worked       time.Duration // how long its holders have been at work on it, kept to the microsecond
}

// Events keeps the logs.
type Events interface {
	// Append gives events the next numbers, without gaps, in order, and returns the last.
	Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error)
	// Read returns at most limit events after a number, in order.
	Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error)
	// Last returns the newest number; 0 for an empty log.
	Last(c artel.ConversationID) (artel.Seq, error)
	// Contexts returns the newest events of type [artel.EventContextBuilt] up
	// to a number, at most limit of them, in order. It is quick however long
	// the log is.
	Contexts(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error)
	// Milestones is Contexts of all "compaction_completed", "service_changed" and "service_chosen".
	Milestones(c artel.ConversationID, limit int) ([]artel.Event, error)
}

// Answers keeps what was answered to requests that carry an idempotency key.
type Answers interface {
	Get(key string) (Answer, error)
	// Put is of kind Conflict when the key is there.
	Put(a Answer) error
	// Prune removes answers older than before.
	Prune(before time.Time) error
}

// An Answer is a remembered response.
type Answer struct {
	Key       string
	Request   artel.Digest // of method, path and body
	Status    int          // HTTP
	Body      []byte
	CreatedAt time.Time
}

// Imports brings whole conversations in, over several transactions. Until the
// last of them a conversation is missing for everybody, as if it were deleted:
// its ids are taken, [Conversations.Restore] does not find it, and
// [Store.Purge] removes it when nobody goes on with it.
type Imports interface {
	// Begin makes a conversation and lets this transaction write in it.
	Begin(c artel.Conversation, at time.Time) error
	// Continue lets another transaction write in it. To Purge, it was deleted
	// at the time that came last. Of kind NotFound where nothing of this id is
	// being imported, or Purge has begun with it.
	Continue(id artel.ConversationID, at time.Time) error
	// Version adds a visible version under the number that it has, which has
	// to be above all of the artifact's (kind Conflict). text is nil for binary
	// content. The journal has an edit of the number without a parent, text and
	// changes, as these may not lead to the text. Of kind NotFound where this
	// transaction does not import c.
	Version(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error
	// Finish shows the conversation. Of kind NotFound as Continue.
	Finish(id artel.ConversationID) error
}

// Renditions keeps which other forms of bytes were made: a smaller picture,
// the words of a recording. They belong to an owner and to no conversation.
type Renditions interface {
	// Get returns the rendition of source in a form. Of kind NotFound where
	// none was made.
	Get(source artel.Digest, form string) (Rendition, error)
	// Put keeps a rendition in the place of an earlier one of its form.
	Put(r Rendition) error
	// Delete forgets all renditions of source. That there are none is no error.
	Delete(source artel.Digest) error
}

// A Rendition is another form of some bytes.
type Rendition struct {
	Source artel.Digest // what it was made of
	Form   string       // says which form it is and how it was made
	Digest artel.Digest // of its own bytes
	artel.MediaInfo
	CreatedAt time.Time
}

// Contexts keeps how the requests of model calls came to be.
type Contexts interface {
	// Add keeps a record under the next number of its run, from 1, which it
	// returns; Number is ignored. With it come the segments that it names:
	// those that the conversation has are not kept twice. Of kind NotFound
	// where the run is not there.
	Add(c Context, segments []Segment) (int, error)
	// Get is of kind NotFound where there is no such record, or no longer.
	Get(run artel.RunID, number int) (Context, error)
	// List returns records without what is in them (Record is nil), the newest
	// first.
	List(q ContextQuery) ([]Context, error)
	// Segments returns what is there of some segments of a conversation.
	Segments(c artel.ConversationID, digests []artel.Digest) ([]Segment, error)
	// Report adds what became known of the call, in the place of what was there.
	// NotFound as Get.
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
	Summary      json.RawMessage // what lists show
	Record       json.RawMessage // everything
	Usage        *artel.Usage    // nil: the call has not ended well, or not yet
	CreatedAt    time.Time
}

// A ContextReport is what becomes known of a model call after its record was
// made; what is nil stays as it is.
type ContextReport struct {
	Usage   *artel.Usage
	Summary json.RawMessage
}

// A ContextQuery selects records.
type ContextQuery struct {
	Conversation artel.ConversationID // needed
	Run          artel.RunID          // "": of all runs
	Before       *ContextKey          // only those that came before this one
	Limit        int                  // most records; 0: 50, at most 500
}

// A ContextKey names a record.
type ContextKey struct {
	Run    artel.RunID
	Number int
}

// A Segment is a piece of requests.
type Segment struct {
	Digest artel.Digest
	Body   []byte
}

// Settings keeps what people have set, by names that mean something to the
// application.
type Settings interface {
	// Get is of kind NotFound where nothing of this name is set.
	Get(name string) (Setting, error)
	// List returns those whose names begin with prefix, by name.
	List(prefix string) ([]Setting, error)
	// Put keeps a value under its name and returns its revision, which is one
	// more than that of the value before, also of one that was deleted; s.Revision
	// is the one that it replaces, 0 where there is none. Of kind Conflict
	// where another is there.
	Put(s Setting) (int, error)
	// Delete removes the value with this revision. Of kind Conflict as Put,
	// NotFound where nothing is set.
	Delete(name string, revision int, at time.Time) error
}

// Variables keeps what macros have set, for each message that was answered:
// all variables, as they are behind it.
type Variables interface {
	// Put keeps the value of a message, in the place of an earlier one.
	Put(c artel.ConversationID, m artel.MessageID, value json.RawMessage) error
	// On returns the value of the last message of a path that has one; nil
	// where none has.
	On(c artel.ConversationID, path []artel.MessageID) (json.RawMessage, error)
	// Messages returns the messages that have a value, by id.
	Messages(c artel.ConversationID) ([]artel.MessageID, error)
}

// A Setting is one value that people have set.
type Setting struct {
	Name      string
	Value     json.RawMessage
	Revision  int // from 1
	UpdatedAt time.Time
}

// GatewayLog keeps what the gateway has done, one entry for each request.
type GatewayLog interface {
	// Add keeps entries in their order, each under a number above those of all
	// before it; Number is ignored.
	Add(entries ...GatewayEntry) error
	// List returns the newest first. The next cursor is "" at the end.
	List(q GatewayQuery) (items []GatewayEntry, next string, err error)
	// Trim removes all but the newest entries.
	Trim(newest int) error
}

// A GatewayEntry tells of one request of the gateway. Digests in it keep no
// bytes.
type GatewayEntry struct {
	Number  int64
	Key     string          // the name of the client's key; may be empty
	Service artel.ServiceID // that was asked; may be empty
	Status  int             // HTTP
	Changed bool            // something of the request was changed
	Body    json.RawMessage // everything
}

// A GatewayQuery selects entries; zero fields select all.
type GatewayQuery struct {
	Key       string
	Service   artel.ServiceID
	MinStatus int
	MaxStatus int
	Changed   bool
	Page
}

// Files keeps names for bytes: what programs have uploaded to send it by id. To
// all but Create and Purge, a file is missing from the time of its expiry on.
type Files interface {
	// Create is of kind Conflict where the id is taken.
	Create(f File) error
	// Get is of kind NotFound where there is none.
	Get(id string, now time.Time) (File, error)
	// List returns those of a holder that q selects. Of kind Invalid where
	// q.After is none of them.
	List(q FileQuery) ([]File, error)
	// Delete is of kind NotFound where there is none. The bytes stay until
	// nothing else refers to them.
	Delete(id string, now time.Time) error
	// Purge forgets those that have expired.
	Purge(now time.Time) error
}

// A FileQuery selects files.
type FileQuery struct {
	Holder string
	Now    time.Time
	After  string // the id of the one that they come after; "": the beginning
	Oldest bool   // the oldest first; else the newest
	Limit  int    // most files; at least 1
}

// A File is a name for bytes.
type File struct {
	ID        string
	Holder    string // which program's it is; may be empty
	Digest    artel.Digest
	Filename  string
	Purpose   string // as the program said
	Info      artel.MediaInfo
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
}

// Notes keeps what people and runs leave for each other: what waits for its
// turn, what is said to a run, questions and their answers.
type Notes interface {
	// Put keeps a note, in the place of an earlier one of its id, of which the
	// conversation, the time and the position in lists stay. Of kind Conflict
	// where the id is that of a note in another conversation.
	Put(n Note) error
	// Get is of kind NotFound where there is none.
	Get(id string) (Note, error)
	// List returns notes in the order in which they came.
	List(q NoteQuery) ([]Note, error)
}

// A NoteQuery selects notes; empty fields select all.
type NoteQuery struct {
	Conversation artel.ConversationID // needed
	Kind         string
	Run          artel.RunID
	Open         bool // only those that are open
}

// A Note is one thing that was left.
type Note struct {
	ID           string
	Conversation artel.ConversationID
	Run          artel.RunID     // that it is for, or from; may be empty
	Message      artel.MessageID // on whose branch it holds; may be empty
	Kind         string
	Open         bool            // somebody has to do something about it
	Body         json.RawMessage // never nil
	CreatedAt    time.Time
}
