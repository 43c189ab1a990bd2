// SPDX-License-Identifier: Apache-2.0

// Package artifact keeps the documents and files of conversations: what is
// uploaded, what agents write, and every state that either was in.
//
// Begin with [Collection], which reads and takes uploads in, and
// [Collection.Workspace], through which a run or a person writes.
//
// # Versions and the journal
//
// An artifact is a chain of immutable versions, of text or of bytes. Every
// edit takes the next number, over all branches, by being appended to the
// journal in the same transaction that tells of it: whoever was told that an
// edit is done can rely on it, whatever crashes afterwards.
//
// # Folding
//
// A run that edits an artifact five times leaves one visible version, not
// five. When the run ends, or after a crash, [FoldRun] folds its edits: the
// last of them becomes a visible version, with the whole text, all changes in
// order, the strongest update type and, as parent, what was there before the
// first. Until then they are live: every reader sees the newest edit as the
// head, by replaying the journal on the visible version below it. So the
// visible numbers are sparse, and the numbers between stay in the journal.
// Edits outside any run are folded at once.
//
// Reading an old state replays edits too: the text of a version is stored
// while it is the newest of its branch, and of older ones about every 32nd
// keeps its text. So a thousand small edits to a long document take the room
// of a few copies of it, and the newest version opens as fast as if it were
// the only one.
//
// The edits between versions stay in the journal until somebody asks for them
// to go ([Collection.CompactJournal]): what is visible then follows from what is
// left, byte for byte, and the numbers between are not found any more.
//
// # Deleting
//
// A deletion is a version like any other, at which the artifact is not shown
// any more. All that it was stays, and restoring makes a version that is as an
// older one was.
//
// # People and runs
//
// A person writes to the same journal while a run goes on. An update finds
// its place in what is there now or is refused. Whoever puts something else in
// the place of the whole content, or deletes it, has to have seen what is
// there: a person says from which version they started ([Workspace.Save],
// which offers a merge), and of a run the workspace knows what it was shown.
//
// # Branches
//
// Messages form a tree, and a version belongs to the message whose run made
// it. At a message, the head of an artifact is the newest version or live edit
// that belongs to that message or one before it on its path, or to none: what
// is uploaded is seen everywhere until a message sends it. Each edit builds on
// the head of its own branch and names it as its parent, so that following
// parents never leaves the branch. An id may be made on two branches; its
// versions then share one row of numbers.
//
// # Two faces of text
//
// An upload keeps its bytes as they came, in the blob store, and of text also
// the decoding to UTF-8, which is what is read and edited. The first edit
// makes a version whose bytes are that UTF-8 text itself.
//
// # Text of documents
//
// Of a Word file, a PDF and the like, [Collection.Derived] takes the text out
// when somebody asks for it. It belongs to the version and is never an
// artifact of its own; the bytes stay what they are.
//
// The package promises that no write loses another: a writer that was
// overtaken computes its edit anew on what is there, or is refused. It leaves
// to others who may write, when a run ends, what a message sends, and the
// removal of blobs that nothing refers to.
package artifact

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

// Default limits of one version.
const (
	DefaultMaxBytes = 200 << 20
	DefaultMaxText  = edit.DefaultMaxText
)

// AuthorUser is the author of what a person uploads or writes.
const AuthorUser = "user"

// Options of [New].
type Options struct {
	MaxBytes int64            // bytes of a binary version; 0: DefaultMaxBytes
	MaxText  int              // bytes of a text, in UTF-8; 0: DefaultMaxText
	Limits   *edit.Limits     // of approximate matches; nil: edit.DefaultLimits
	Now      func() time.Time // nil: time.Now
}

// A Collection is the artifacts of all conversations. It is safe for
// concurrent use. What belongs to another owner is of kind
// [artel.NotFound]; a missing artifact or version has the code
// [artel.CodeArtifactNotFound]. A method that takes at reads the branch that
// ends in that message; an empty at shows only what belongs to no message.
type Collection struct {
	store store.Store
	blobs blob.Store
	opt   Options

	derived *derivedTexts
}

// New returns the artifacts in s, whose uploads have their bytes in b.
func New(s store.Store, b blob.Store, o Options) *Collection {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxText == 0 {
		o.MaxText = DefaultMaxText
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Collection{store: s, blobs: b, opt: o, derived: newDerivedTexts()}
}

// now is the time as rows keep it.
func (c *Collection) now() time.Time { return c.opt.Now().UTC().Truncate(time.Microsecond) }

// List returns the heads on the branch that ends in at, live edits included
// and deleted artifacts left out, by id.
func (c *Collection) List(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	return c.list(ctx, "artifact.List", owner, conv, at, false)
}

// Deleted returns those that List leaves out: what can be restored.
func (c *Collection) Deleted(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	return c.list(ctx, "artifact.Deleted", owner, conv, at, true)
}

func (c *Collection) list(ctx context.Context, op string, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, deleted bool) ([]artel.Artifact, error) {
	var list []artel.Artifact
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		var err error
		list, err = tx.Artifacts.Heads(conv, at)
		list = slices.DeleteFunc(list, func(a artel.Artifact) bool { return a.Deleted != deleted })
		return err
	})
	return list, failed(op, string(conv), err)
}

// Get returns the head of an artifact, live edits included. Where the row that
// says what it is was damaged, its bytes say it.
func (c *Collection) Get(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	var a artel.Artifact
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		var err error
		a, err = head(tx, conv, id, at)
		return err
	})
	if err == nil && a.InBlob {
		a.MediaInfo = c.repairInfo(ctx, a.MediaInfo, a.Digest, a.Filename)
	}
	return a, failed("artifact.Get", string(id), err)
}

// head returns the head of an artifact that is there and not deleted.
func head(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	a, err := lastHead(tx, conv, id, at)
	if err == nil && a.Deleted {
		return artel.Artifact{}, missing("it was deleted, at version %d; restoring it brings it back", a.Version)
	}
	return a, err
}

// lastHead returns the head of an artifact, which may say that it is deleted.
func lastHead(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	a, err := tx.Artifacts.Head(conv, id, at)
	if errors.Is(err, artel.NotFound) {
		return artel.Artifact{}, missing("there is no such artifact here")
	}
	return a, err
}

// Text returns the text of a visible version, or, for number 0, of the head
// with its live edits, and that version. A binary one is of kind
// [artel.Unsupported].
func (c *Collection) Text(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, number int, at artel.MessageID) (string, artel.Version, error) {
	var text string
	var v artel.Version
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		n := number
		if n == 0 {
			a, err := head(tx, conv, id, at)
			if err != nil {
				return err
			}
			n = a.Version
		}
		e, err := version(tx, conv, id, n)
		if err != nil {
			return err
		}
		if number != 0 && !e.visible {
			return missing("version %d is not among the visible ones", n)
		}
		v = e.Version
		text, err = textOf(tx, conv, id, v)
		return err
	})
	return text, v, failed("artifact.Text", string(id), err)
}

// TextAt returns the text of any state that was ever told of, also of one that
// only the journal has.
func (c *Collection) TextAt(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, number int) (string, error) {
	var text string
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		s, err := version(tx, conv, id, number)
		if err != nil {
			return err
		}
		text, err = textOf(tx, conv, id, s.Version)
		return err
	})
	return text, failed("artifact.TextAt", string(id), err)
}

// Versions returns the visible versions of every branch, oldest first.
func (c *Collection) Versions(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	var list []artel.Version
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		var err error
		list, err = versions(tx, conv, id)
		return err
	})
	return list, failed("artifact.Versions", string(id), err)
}

// Version returns one visible version.
func (c *Collection) Version(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
	var v artel.Version
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		e, err := version(tx, conv, id, n)
		if err == nil && !e.visible {
			err = missing("version %d is not among the visible ones", n)
		}
		v = e.Version
		return err
	})
	return v, failed("artifact.Version", string(id), err)
}

// missing is the error for an artifact or version that is not there.
func missing(format string, args ...any) error {
	e := artel.Errorf(artel.NotFound, "", "", format, args...)
	e.Code = artel.CodeArtifactNotFound
	return e
}

// failed names the operation and its subject. An error that names them already
// stays as it is, and a kind is kept.
func failed(op, subject string, err error) error {
	e, ok := err.(*artel.Error)
	switch {
	case err == nil:
		return nil
	case !ok:
		return &artel.Error{Op: op, Subject: subject, Kind: artel.KindOf(err), Err: err}
	case e.Op != "":
		return e
	}
	named := *e
	named.Op, named.Subject = op, subject
	return &named
}

// An Overview is what a model is told of the artifacts on a branch before each
// call. Live edits are in it.
type Overview struct {
	Plan     artel.Artifact // the task plan; without an id: there is none
	PlanText string
	Others   []artel.Artifact // by id
}

// Overview returns the task plan and the other heads on a branch, without
// deleted ones and without the summaries of compactions, which are for people.
// The preview of each text among the others has its first chars code points; up
// to [artel.PreviewChars] no text is read for it.
func (c *Collection) Overview(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, chars int) (Overview, error) {
	var out Overview
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		all, err := tx.Artifacts.Heads(conv, at)
		if err != nil {
			return err
		}
		out = Overview{}
		if i := slices.IndexFunc(all, func(a artel.Artifact) bool { return a.ID == artel.TaskPlan && !a.Deleted && !a.Binary }); i >= 0 {
			out.Plan = all[i]
			if out.PlanText, err = textAt(tx, conv, artel.TaskPlan, all[i].Version); err != nil {
				return err
			}
		}
		out.Others = slices.DeleteFunc(all, func(a artel.Artifact) bool {
			return a.Deleted || a.ID == artel.TaskPlan || a.Source == artel.SourceSummary
		})
		for i := range out.Others {
			if err := preview(tx, &out.Others[i], chars); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Overview{}, failed("artifact.Overview", string(conv), err)
	}
	return out, nil
}

// preview makes that of a chars code points long. It reads the text where more
// is wanted than is kept, and of states from before previews were.
func preview(tx store.Tx, a *artel.Artifact, chars int) error {
	if chars < artel.PreviewChars {
		a.Preview = artel.Beginning(a.Preview, chars)
	}
	switch {
	case a.Binary, a.Size == 0, chars == 0:
		return nil
	case a.Preview != "" && (chars <= artel.PreviewChars || utf8.RuneCountInString(a.Preview) < artel.PreviewChars):
		return nil
	}
	text, err := textAt(tx, a.Conversation, a.ID, a.Version)
	a.Preview = strings.Clone(artel.Beginning(text, chars)) // and nothing more of it
	return err
}
