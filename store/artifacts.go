// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/artelhq/artel"

// Artifacts reads the heads of artifacts on a branch. A head is the version or
// unfolded edit with the highest number whose message is empty or on the path
// that ends in at. Deleted artifacts are included, with Deleted set. With an
// empty at, only states without a message are visible.
type Artifacts interface {
	// Heads returns all heads sorted by ID. It reads no text; the cost grows
	// with the number of artifacts and unfolded edits.
	Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error)
	Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error)
	// Exists reports whether id was ever used in c, on any branch.
	Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error)
}

// Versions reads the visible versions of artifacts.
type Versions interface {
	// List returns the visible versions of every branch, oldest first.
	List(c artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error)

	// Get returns one visible version. It is of kind NotFound if there is none
	// with that number.
	Get(c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, error)

	// Text returns the text of a visible version. It is of kind NotFound if
	// there is no such version or its text was dropped by [Journal.DropText],
	// and Unsupported if the version is binary.
	Text(c artel.ConversationID, id artel.ArtifactID, number int) (string, error)

	// Artifacts returns the ids of artifacts with a visible version on any
	// branch, sorted, including deleted ones.
	Artifacts(c artel.ConversationID) ([]artel.ArtifactID, error)

	// Find returns one place where the owner has a version or an edit with
	// these bytes.
	Find(d artel.Digest) (Place, error)

	// Claim assigns the versions and edits of ids that have no message to m.
	Claim(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error
}

// Journal keeps the edits of artifacts. Edits and visible versions of an
// artifact share one sequence of numbers, over all branches.
type Journal interface {
	// Append stores an edit under the next number of the artifact and returns
	// the number; v.Number is ignored. The first edit creates the artifact.
	// text is the whole new text. It is required if it does not follow from
	// v.Changes and v.Parent, and otherwise saves the next readers replaying
	// long chains. It is nil if the content is binary, or if the same
	// transaction folds the edit.
	Append(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error)

	// Fold makes v, whose number must be in the journal, a visible version.
	// text is nil for binary content. Fold marks as folded the edits up to
	// v.Number with the same Run; if v.Run is empty, only edit v.Number.
	Fold(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error

	// FoldInner marks as folded at most limit unfolded edits of a run between
	// two numbers, which do not count, newest first. It returns their number. It
	// prepares Fold of the edit before: the more edits are marked already, the
	// shorter Fold keeps other updates waiting. The head stays the same.
	FoldInner(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error)

	// Edits returns edits sorted by artifact and number.
	Edits(c artel.ConversationID, q EditQuery) ([]Edit, error)

	// Replay returns what the text of a version or edit is made from. The cost
	// grows with the number of edits since the nearest stored text, not with
	// the length of the journal. It is of kind NotFound if there is no such
	// number, or no stored text before it.
	Replay(c artel.ConversationID, id artel.ArtifactID, number int) (Replay, error)

	Compaction
}

// Compaction removes from a journal what can be rebuilt, or is not needed.
type Compaction interface {
	// DropText drops the text of a visible version, or of an unfolded edit, that
	// can be rebuilt from the rest of the journal. It is idempotent. It is of kind
	// NotFound if there is neither, and Conflict if the version is binary.
	DropText(c artel.ConversationID, id artel.ArtifactID, number int) error

	// Compact removes folded edits from the journal and rewrites Parent,
	// Changes and Text of those in rewritten, which are also folded. It is of
	// kind Conflict, and changes nothing, if one of them is missing or not
	// folded, or if the artifact's newest edit would be removed.
	Compact(c artel.ConversationID, id artel.ArtifactID, remove []int, rewritten []Edit) error
}

// A Replay is a text as the nearest ancestor with a stored text, or the state itself,
// and the changes since.
type Replay struct {
	Base    int // the number of the state with the stored text
	Text    string
	Changes []artel.Change // of all edits since, in order
	Edits   int            // their number
}

// An EditQuery selects edits; empty fields select all.
type EditQuery struct {
	Artifact artel.ArtifactID
	Run      artel.RunID
	Number   int  // only this number
	After    int  // only higher numbers
	Unfolded bool // only edits that are not part of a visible version
	NoText   bool // without Text
	Outline  bool // without Changes and Text
	Spans    bool // only Number, Parent, Run, Update and Changes, and Artifact and Folded
}

// An Edit is one row of the journal.
type Edit struct {
	Artifact artel.ArtifactID
	artel.Version
	Text   *string // the whole new text; nil: it follows from Changes, or the content is binary
	Folded bool
}

// A Place locates a version.
type Place struct {
	Conversation artel.ConversationID
	Artifact     artel.ArtifactID
	artel.Version
}
