// SPDX-License-Identifier: Apache-2.0

// Package artifact stores the documents and files of conversations: uploads,
// what agents write, and all earlier versions of both.
//
// Begin with [Collection], which reads artifacts and takes uploads, and
// [Collection.Workspace], through which a run or a user writes.
//
// An artifact is a chain of immutable versions. Every edit gets the next
// number, over all branches, and is appended to the journal in the same
// transaction as its event. [FoldRun] combines the edits of a run into one
// visible version when the run ends; until then readers see the newest edit by
// replaying the journal. Visible numbers are therefore sparse. Texts of older
// versions are dropped where the journal can rebuild them, and
// [Collection.CompactJournal] removes edits between visible versions.
//
// A version belongs to the message whose run made it. The head of an artifact
// at a message is the newest version or live edit that belongs to a message on
// its path, or to none, like an upload that no message has claimed yet. An edit
// builds on the head of its own branch, which is its parent.
//
// A deletion is a version too; restoring makes a new one. The bytes of an upload
// stay unchanged in the blob store, beside the decoded text that is edited.
//
// No write loses another: an edit whose base has changed is computed again on
// the new head, or refused. A run replaces only content that it has seen, counted
// in version numbers from [BeginRun] on, also after another process has resumed it.
// Callers decide who may write and when runs begin and end.
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
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/store"
)

// Default limits of one version.
const (
	DefaultMaxBytes = 200 << 20
	DefaultMaxText  = edit.DefaultMaxText
)

// AuthorUser is the author of versions that a user uploads or writes.
const AuthorUser = "user"

// Options of [New].
type Options struct {
	MaxBytes int64            // bytes of a binary version; 0: DefaultMaxBytes
	MaxText  int              // bytes of a text, in UTF-8; 0: DefaultMaxText
	Limits   *edit.Limits     // of approximate matches; nil: edit.DefaultLimits
	Now      func() time.Time // nil: time.Now
	PDF      *pdf.Engine      // opens PDFs; nil: an engine is started for each
	Quota    int64            // bytes that each owner may store; 0: any number
}

// A Collection holds the artifacts of all conversations. It is safe for
// concurrent use. Artifacts of other owners are of kind [artel.NotFound]; a
// missing artifact or version has the code [artel.CodeArtifactNotFound]. A
// method with a parameter at reads the branch that ends in that message; an
// empty at shows only versions without a message.
type Collection struct {
	Versions *Versions
	Uploads  *Uploads
	Quota    *Quota // nil: none

	store store.Store
	blobs blob.Store
	opt   Options

	derived *derivedTexts
}

// Versions reads the states of artifacts on all branches, beyond the heads.
type Versions struct{ c *Collection }

// Uploads takes in bytes from outside, in two steps: [Uploads.Stage] stores and
// identifies them, and the others make artifacts of them.
type Uploads struct{ c *Collection }

// New returns the artifacts in s, with the bytes of uploads in b.
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
	c := &Collection{store: s, blobs: b, opt: o, derived: newDerivedTexts(), Quota: NewQuota(s, o.Quota, o.Now)}
	c.Versions, c.Uploads = &Versions{c}, &Uploads{c}
	return c
}

// now returns the time in the precision of the store.
func (c *Collection) now() time.Time { return c.opt.Now().UTC().Truncate(time.Microsecond) }

// List returns the heads on the branch that ends in at, sorted by id, with live
// edits and without deleted artifacts.
func (c *Collection) List(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	return c.list(ctx, "artifact.List", owner, conv, at, false)
}

// Deleted returns the deleted artifacts, which can be restored.
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

// Get returns the head of an artifact, with live edits. If the stored media
// information is damaged, it is detected again from the bytes.
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

// head returns the head of an artifact that is not deleted.
func head(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	a, err := lastHead(tx, conv, id, at)
	if err == nil && a.Deleted {
		return artel.Artifact{}, missing("it was deleted, at version %d; restoring it brings it back", a.Version)
	}
	return a, err
}

// lastHead returns the head of an artifact, which may be a deletion.
func lastHead(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	a, err := tx.Artifacts.Head(conv, id, at)
	if errors.Is(err, artel.NotFound) {
		return artel.Artifact{}, missing("there is no such artifact here")
	}
	return a, err
}

// Text returns a visible version and its text; number 0 stands for the head with
// its live edits. A binary version is of kind [artel.Unsupported].
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

// Text returns the text of any numbered state, also of one that is only in the
// journal.
func (vs *Versions) Text(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, number int) (string, error) {
	var text string
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		s, err := version(tx, conv, id, number)
		if err != nil {
			return err
		}
		text, err = textOf(tx, conv, id, s.Version)
		return err
	})
	return text, failed("artifact.TextAt", string(id), err)
}

// List returns the visible versions of every branch, oldest first.
func (vs *Versions) List(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	var list []artel.Version
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		var err error
		list, err = versions(tx, conv, id)
		return err
	})
	return list, failed("artifact.Versions", string(id), err)
}

// Get returns one visible version.
func (vs *Versions) Get(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
	var v artel.Version
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		e, err := version(tx, conv, id, n)
		if err == nil && !e.visible {
			err = missing("version %d is not among the visible ones", n)
		}
		v = e.Version
		return err
	})
	return v, failed("artifact.Version", string(id), err)
}

// missing returns the error for a missing artifact or version.
func missing(format string, args ...any) error {
	e := artel.Errorf(artel.NotFound, "", "", format, args...)
	e.Code = artel.CodeArtifactNotFound
	return e
}

// failed adds the operation and its subject to an error that has none. It keeps
// the kind.
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

// An Overview describes the artifacts on a branch to a model before each call. It
// includes live edits.
type Overview struct {
	Plan     artel.Artifact // the task plan; its ID is empty if there is none
	PlanText string
	Others   []artel.Artifact // by id
}

// Overview returns the task plan and the other heads on a branch, without deleted
// artifacts and summaries of compactions. The preview of each other text has at
// most chars code points; up to [artel.PreviewChars] it is stored, and beyond
// that the text is read.
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

// preview sets a's preview to chars code points. It reads the text if the stored
// preview is shorter, or missing in an old row.
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
	a.Preview = strings.Clone(artel.Beginning(text, chars)) // do not retain the whole text
	return err
}
