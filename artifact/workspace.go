// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A WorkspaceConfig says who writes, where, and on whose behalf.
type WorkspaceConfig struct {
	Owner        artel.Owner
	Conversation artel.ConversationID

	// Run is the run that the edits belong to, and that folds them at its end
	// by [FoldRun]. Empty: each edit becomes a visible version at once.
	Run artel.RunID

	// Message ends the branch that is read, and what is written belongs to
	// it: the message that the run answers, or the newest of the branch.
	// Empty: only what belongs to no message is seen.
	Message artel.MessageID

	Author string       // an agent's name, or AuthorUser
	Source artel.Source // of what is created; "": SourceUser for AuthorUser, else SourceAgent

	// OnEdit is called with [artel.ArtifactCreated] or
	// [artel.ArtifactUpdated] inside the transaction that journals the edit,
	// so that both are kept or neither. It may be called again for the same
	// edit, and must not act outside tx. An error undoes the edit. Nil: not
	// called.
	OnEdit func(tx store.Tx, p artel.Payload) error
}

// A Workspace is one run's or person's view of a conversation's artifacts. Its
// writes are in the journal when they return, and seen by everybody from then
// on. It is safe for concurrent use, and needs no closing.
//
// What a writer can mend is an error whose text says how: a [*edit.Refusal]
// in the chain, or of kind [artel.Conflict], [artel.Invalid],
// [artel.NotFound], [artel.TooLarge] or [artel.Unsupported].
type Workspace struct {
	c   *Collection
	cfg WorkspaceConfig

	opened time.Time

	keeping sync.Mutex // held by Store, so that two calls do not keep the same bytes twice

	mu    sync.Mutex
	texts map[artel.ArtifactID]numbered
	held  int                      // bytes of texts
	seen  map[artel.ArtifactID]int // the newest version that the writer was shown or made knowingly
}

// numbered is the text of a numbered state.
type numbered struct {
	number int
	doc    *edit.Document
}

// maxHeld is how many bytes of text a workspace remembers.
const maxHeld = 64 << 20

// maxTitle is the longest title, in code points.
const maxTitle = 256

// Error codes.
const (
	// CodeArtifactExists is that of creating what is there already.
	CodeArtifactExists = "artifact_exists"

	// CodeStale is that of a write that was made for another version than the
	// newest, or by a run that has not seen what somebody else wrote.
	CodeStale = "stale"
)

// Workspace opens a workspace.
func (c *Collection) Workspace(cfg WorkspaceConfig) *Workspace {
	if cfg.Source == "" {
		cfg.Source = artel.SourceAgent
		if cfg.Author == AuthorUser {
			cfg.Source = artel.SourceUser
		}
	}
	return &Workspace{
		c: c, cfg: cfg, opened: c.now(),
		texts: map[artel.ArtifactID]numbered{}, seen: map[artel.ArtifactID]int{},
	}
}

// List returns the heads by id, without deleted ones.
func (w *Workspace) List(ctx context.Context) ([]artel.Artifact, error) {
	return w.c.List(ctx, w.cfg.Owner, w.cfg.Conversation, w.cfg.Message)
}

// Get returns the head of an artifact.
func (w *Workspace) Get(ctx context.Context, id artel.ArtifactID) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.c.Get(ctx, w.cfg.Owner, w.cfg.Conversation, id, w.cfg.Message)
	if err == nil && a.Binary { // of bytes, this is all that is shown
		w.markSeen(id, a.Version)
	}
	return a, err
}

// Text returns the text of a version, or of the head for version 0, and the
// artifact as it was then. Unlike a reader from outside, a writer may ask for
// any number that it was ever told, and for versions of what was deleted.
func (w *Workspace) Text(ctx context.Context, id artel.ArtifactID, version int) (string, artel.Artifact, error) {
	id = normal(id)
	a, text, newest, err := w.text(ctx, id, version)
	if err != nil {
		return "", artel.Artifact{}, failed("artifact.Text", string(id), err)
	}
	if newest {
		w.markSeen(id, a.Version)
	}
	return text, a, nil
}

// Peek is Text of the head for who shows only a part of it: the writer does
// not count as having seen it, and it is not remembered.
func (w *Workspace) Peek(ctx context.Context, id artel.ArtifactID) (string, artel.Artifact, error) {
	id = normal(id)
	text, v, err := w.c.Text(ctx, w.cfg.Owner, w.cfg.Conversation, id, 0, w.cfg.Message)
	return text, v.Artifact(w.cfg.Conversation, id, v.CreatedAt), err
}

// text also reports whether that is the newest version of the branch.
func (w *Workspace) text(ctx context.Context, id artel.ArtifactID, number int) (a artel.Artifact, text string, newest bool, err error) {
	if number == 0 {
		a, doc, err := w.headText(ctx, id)
		if err != nil {
			return a, "", false, err
		}
		return a, doc.Text(), true, nil
	}
	err = w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		head, err := lastHead(tx, w.cfg.Conversation, id, w.cfg.Message)
		if err != nil {
			return err
		}
		newest = head.Version == number
		s, err := version(tx, w.cfg.Conversation, id, number)
		if err != nil {
			return err
		}
		a = s.Artifact(w.cfg.Conversation, id, head.CreatedAt)
		text, err = textOf(tx, w.cfg.Conversation, id, s.Version)
		return err
	})
	return a, text, newest, err
}

// Create makes a text artifact. An empty mediaType is taken from the id's
// extension, else it is Markdown. An id that is there on this branch is of
// kind [artel.Conflict] with code [CodeArtifactExists].
func (w *Workspace) Create(ctx context.Context, id artel.ArtifactID, title, content, mediaType string) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.create(ctx, id, strings.TrimSpace(artel.Visible(title)), content, mediaType)
	return a, failed("artifact.Create", artel.Shorten(string(id), 80), err)
}

func (w *Workspace) create(ctx context.Context, id artel.ArtifactID, title, content, mediaType string) (artel.Artifact, error) {
	if err := w.checkText(content); err != nil {
		return artel.Artifact{}, err
	}
	info, err := textInfo(id, mediaType)
	if err != nil {
		return artel.Artifact{}, err
	}
	v := w.version(artel.UpdateCreate, info, content)
	v.Title, v.Provenance = title, w.cfg.Source
	return w.make(ctx, id, "", v, edit.NewDocument(content))
}

// make commits v as the first version of a new artifact. An empty id is made
// from name, if that is not empty; a blank title becomes the id. doc is the
// text, nil for binary content.
func (w *Workspace) make(ctx context.Context, id artel.ArtifactID, name string, v artel.Version, doc *edit.Document) (artel.Artifact, error) {
	if id == "" && name != "" {
		err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) (err error) {
			id, err = FreeID(name, func(id artel.ArtifactID) (bool, error) { return tx.Artifacts.Exists(w.cfg.Conversation, id) })
			return err
		})
		if err != nil {
			return artel.Artifact{}, err
		}
	} else if _, err := artel.ParseArtifactID(string(id)); err != nil {
		return artel.Artifact{}, err
	}
	if !hasShape(v.Title) {
		v.Title = string(id)
	}
	if err := checkTitle(v.Title); err != nil {
		return artel.Artifact{}, err
	}
	return w.commit(ctx, id, written{Version: v, doc: doc, whole: true, known: true}, func(tx store.Tx) error {
		return w.free(tx, id)
	})
}

// free is nil where an artifact of this id can be made on this branch.
func (w *Workspace) free(tx store.Tx, id artel.ArtifactID) error {
	a, err := tx.Artifacts.Head(w.cfg.Conversation, id, w.cfg.Message)
	switch {
	case errors.Is(err, artel.NotFound):
		_, err = tx.Conversations.Get(w.cfg.Conversation)
		return err
	case err != nil:
		return err
	case a.Deleted:
		return exists("an artifact of this id was deleted, at version %d; restore_artifact brings it back, or choose another id", a.Version)
	}
	return exists("it is there already, at version %d; update_artifact changes a part of it, rewrite_artifact all of it", a.Version)
}

func exists(format string, args ...any) error {
	e := artel.Errorf(artel.Conflict, "", "", format, args...)
	e.Code = CodeArtifactExists
	return e
}

func checkTitle(title string) error {
	if !utf8.ValidString(title) {
		return artel.Errorf(artel.Invalid, "", "", "the title is not valid UTF-8")
	}
	switch n := utf8.RuneCountInString(title); {
	case n > maxTitle:
		return artel.Errorf(artel.Invalid, "", "", "a title has 1 to %d characters, and this one has %d", maxTitle, n)
	case !hasShape(title):
		return artel.Errorf(artel.Invalid, "", "", "the title has no character that can be seen; give 1 to %d", maxTitle)
	}
	return nil
}

// hasShape reports whether there is anything to see in s.
func hasShape(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// Put makes an artifact of bytes that are there already: those of a version in
// any conversation of the owner, or of a blob. An empty id is made from the
// filename, and an empty title is that of the version. See Create for an id
// that is taken.
func (w *Workspace) Put(ctx context.Context, id artel.ArtifactID, title string, from artel.Ref) (artel.Artifact, error) {
	a, err := w.put(ctx, normal(id), strings.TrimSpace(artel.Visible(title)), from)
	return a, failed("artifact.Put", artel.Shorten(cmp.Or(string(id), from.String()), 80), err)
}

func (w *Workspace) put(ctx context.Context, id artel.ArtifactID, title string, from artel.Ref) (artel.Artifact, error) {
	at := artel.MessageID("") // in another conversation the branch is not known
	if !from.IsBlob() && (from.Conversation == "" || from.Conversation == w.cfg.Conversation) {
		from.Conversation, at = w.cfg.Conversation, w.cfg.Message
	}
	var v artel.Version
	var name string
	var doc *edit.Document
	err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		if from.Version == 0 && from.Conversation == w.cfg.Conversation {
			a, err := head(tx, w.cfg.Conversation, from.Artifact, at)
			if err != nil {
				return err
			}
			from.Version = a.Version // includes the run's live edits
		}
		place, _, err := locate(tx, from, at)
		if err != nil {
			return err
		}
		v = w.version(artel.UpdateCreate, place.MediaInfo, "")
		v.MediaInfo, v.Digest, v.InBlob = place.MediaInfo, place.Digest, place.InBlob
		v.Title, v.Filename, v.Provenance = cmp.Or(title, place.Title), place.Filename, w.cfg.Source
		name = cmp.Or(place.Filename, string(place.Artifact))
		if v.IsBinary() {
			return nil
		}
		text, err := textAt(tx, place.Conversation, place.Artifact, place.Number)
		doc = edit.NewDocument(text)
		return err
	})
	if err != nil {
		return artel.Artifact{}, err
	}
	return w.make(ctx, id, name, v, doc)
}

// Add creates an artifact from bytes taken in by [Collection.Stage]; for id and
// title see Put. Like an upload, a text keeps its original bytes.
func (w *Workspace) Add(ctx context.Context, id artel.ArtifactID, title string, s Staged) (artel.Artifact, error) {
	v := w.version(artel.UpdateCreate, s.Info, "")
	v.MediaInfo, v.Digest, v.InBlob = s.Info, s.Digest, true
	v.Title = cmp.Or(strings.TrimSpace(artel.Visible(title)), artel.Beginning(artel.Visible(s.Filename), maxTitle))
	v.Filename, v.Provenance = s.Filename, w.cfg.Source
	a, err := w.make(ctx, normal(id), cmp.Or(s.Filename, "upload"), v, s.document())
	return a, failed("artifact.Add", artel.Shorten(cmp.Or(string(normal(id)), s.Filename), 80), err)
}

// UpdateOptions of [Workspace.Update]. The zero value takes the newest version
// and every layer.
type UpdateOptions struct {
	IfVersion int       // the version that the head has to be; 0: any. Another one is of kind Conflict, code CodeStale
	Mode      edit.Mode // "": edit.Auto
	Indent    bool      // see [edit.Options]
}

// Update applies edits to the head, all or none; see [edit.Apply].
func (w *Workspace) Update(ctx context.Context, id artel.ArtifactID, edits []edit.Edit, o UpdateOptions) (artel.Artifact, edit.Result, error) {
	id = normal(id)
	var result edit.Result
	options := edit.Options{Mode: o.Mode, Indent: o.Indent, MaxText: w.c.opt.MaxText, Limits: w.c.opt.Limits}
	a, err := w.editText(ctx, id, o.IfVersion, func(base artel.Artifact, doc *edit.Document) (written, error) {
		var err error
		result, err = doc.Apply(ctx, edits, options)
		if err != nil {
			return written{}, err
		}
		v := w.version(updateType(result.Hits), base.MediaInfo, result.Text)
		v.Changes = result.Changes
		return written{Version: v, doc: edit.NewDocument(result.Text)}, nil
	})
	if err != nil {
		return artel.Artifact{}, edit.Result{}, failed("artifact.Update", string(id), err)
	}
	return a, result, nil
}

func updateType(hits []edit.Hit) artel.UpdateType {
	for _, h := range hits {
		if h.Layer != artel.LayerExact {
			return artel.UpdateFuzzy
		}
	}
	return artel.UpdateExact
}

// Rewrite replaces the whole text, and keeps title and media type. An
// ifVersion other than 0 is the version that the head has to be; without one,
// a run does not write over what somebody else has written since the run last
// saw the artifact. Both are of kind [artel.Conflict] with code [CodeStale].
func (w *Workspace) Rewrite(ctx context.Context, id artel.ArtifactID, content string, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.editText(ctx, id, ifVersion, func(base artel.Artifact, doc *edit.Document) (written, error) {
		if err := w.checkText(content); err != nil {
			return written{}, err
		}
		if err := w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		return w.rewritten(artel.UpdateRewrite, base.MediaInfo, doc.Text(), content), nil
	})
	return a, failed("artifact.Rewrite", string(id), err)
}

// rewritten is a version of another text. Where the change is small it is
// told and journalled as one span.
func (w *Workspace) rewritten(u artel.UpdateType, info artel.MediaInfo, before, after string) written {
	v := w.version(u, info, after)
	change, small := span(before, after)
	if small && change.Old != change.New {
		v.Changes = []artel.Change{change}
	}
	return written{Version: v, doc: edit.NewDocument(after), whole: !small}
}

// Rename gives an artifact, text or not, another title of 1 to 256 characters.
// The title that it has makes no version. For ifVersion see Rewrite; what
// others wrote meanwhile stays, so a run need not have seen it.
func (w *Workspace) Rename(ctx context.Context, id artel.ArtifactID, title string, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	title = strings.TrimSpace(artel.Visible(title))
	if err := checkTitle(title); err != nil {
		return artel.Artifact{}, failed("artifact.Rename", artel.Shorten(string(id), 80), err)
	}
	a, err := w.editAny(ctx, id, ifVersion, false, func(_ store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if title == base.Title {
			return written{}, errUnchanged
		}
		v := w.like(artel.UpdateRename, base)
		v.Title = title
		return written{Version: v, doc: doc}, nil
	})
	return a, failed("artifact.Rename", string(id), err)
}

// Delete makes an artifact disappear from the branch. Its versions stay, and
// Restore brings it back. For ifVersion see Rewrite.
func (w *Workspace) Delete(ctx context.Context, id artel.ArtifactID, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.editAny(ctx, id, ifVersion, false, func(_ store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if err := w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		return written{Version: w.like(artel.UpdateDelete, base), doc: doc}, nil
	})
	return a, failed("artifact.Delete", string(id), err)
}

// Restore makes a new version that is as version number was, with its content,
// title and media type; of a deleted artifact, 0 is what it was before. A
// number is any that there ever was, of any branch. For ifVersion see Rewrite.
func (w *Workspace) Restore(ctx context.Context, id artel.ArtifactID, number, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.editAny(ctx, id, ifVersion, true, func(tx store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if err := w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		n := number
		switch {
		case n == 0 && !base.Deleted:
			return written{}, artel.Errorf(artel.Invalid, "", "", "say which version; it is at version %d now", base.Version)
		case n == base.Version && !base.Deleted:
			return written{}, artel.Errorf(artel.Invalid, "", "", "it is at version %d already; choose an older one", n)
		case n == 0:
			// A version's parent is what was there before its whole run.
			deletion, err := journalled(tx, w.cfg.Conversation, id, base.Version)
			if err != nil {
				return written{}, err
			}
			n = deletion.Parent
		}
		then, err := version(tx, w.cfg.Conversation, id, n)
		if err != nil {
			return written{}, err
		}
		if then.Update == artel.UpdateDelete {
			return written{}, artel.Errorf(artel.Invalid, "", "", "version %d is its deletion; choose an older one", n)
		}
		return w.restored(tx, id, then.Version, doc)
	})
	return a, failed("artifact.Restore", string(id), err)
}

// restored is a version that is as then was; before is the text of the head,
// nil where that is binary.
func (w *Workspace) restored(tx store.Tx, id artel.ArtifactID, then artel.Version, before *edit.Document) (written, error) {
	var next written
	if !then.IsBinary() {
		text, err := textAt(tx, w.cfg.Conversation, id, then.Number)
		if err != nil {
			return written{}, err
		}
		if before != nil {
			next = w.rewritten(artel.UpdateRestore, then.MediaInfo, before.Text(), text)
		} else {
			next = written{doc: edit.NewDocument(text), whole: true}
		}
	}
	changes := next.Changes
	next.Version = w.like(artel.UpdateRestore, then.Artifact(w.cfg.Conversation, id, then.CreatedAt))
	next.Changes = changes
	return next, nil
}

// normal is id in the normal form that ids have.
func normal(id artel.ArtifactID) artel.ArtifactID {
	return artel.ArtifactID(norm.NFC.String(string(id)))
}
