// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A WorkspaceConfig identifies the writer and the branch.
type WorkspaceConfig struct {
	Owner        artel.Owner
	Conversation artel.ConversationID

	// Run is the run that makes the edits; at its beginning [BeginRun] must be
	// called, and at its end [FoldRun].
	// Empty: each edit becomes a visible version at once.
	Run artel.RunID

	// Message is the end of the branch, and the message that new versions belong
	// to: the one that the run answers, or the newest of the branch. Empty: only
	// versions without a message are visible.
	Message artel.MessageID

	Author string       // an agent's name, or AuthorUser
	Source artel.Source // of new artifacts; "": SourceUser for AuthorUser, otherwise SourceAgent

	// OnEdit is called with [artel.ArtifactCreated] or [artel.ArtifactUpdated]
	// inside the transaction that journals the edit. It may be called again for
	// the same edit, and must have no effects outside tx. An error rolls the
	// edit back. May be nil.
	OnEdit func(tx store.Tx, p artel.Payload) error
}

// A Workspace reads and makes the artifacts of a conversation for one run or user;
// its Editor changes them. When a write returns, it is in the journal and visible to all readers. A
// Workspace is safe for concurrent use and needs no closing.
//
// Errors that the writer can correct say how: they have a [*edit.Refusal] in
// their chain, or kind [artel.Conflict], [artel.Invalid], [artel.NotFound],
// [artel.TooLarge] or [artel.Unsupported].
type Workspace struct {
	Edit *Editor

	c   *Collection
	cfg WorkspaceConfig

	storing sync.Mutex // held by Store, so that concurrent calls do not store the same bytes twice
	loading sync.Mutex // held by loadSeen
	loaded  bool       // loadSeen has succeeded; guarded by loading

	mu     sync.Mutex
	texts  map[artel.ArtifactID]numbered
	cached int                      // bytes of texts
	seen   map[artel.ArtifactID]int // the newest version that the writer was shown, or made from one it was shown
	heads  map[artel.ArtifactID]int // the versions at the beginning of the run
}

// An Editor changes the artifacts of its workspace.
type Editor struct{ w *Workspace }

// numbered is a cached text and its version.
type numbered struct {
	number int
	doc    *edit.Document
	cost   replayCost // of reading it from the store
}

// maxCached is the size of a workspace's cache of texts in bytes.
const maxCached = 64 << 20

// maxTitle is the maximum length of a title in code points.
const maxTitle = 256

// Error codes.
const (
	// CodeArtifactExists means that the id to be created is used on the branch.
	CodeArtifactExists = "artifact_exists"

	// CodeStale means that a write was based on an older version, or that a run
	// has not seen the version that it would replace.
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
	w := &Workspace{
		c: c, cfg: cfg,
		texts: map[artel.ArtifactID]numbered{}, seen: map[artel.ArtifactID]int{},
	}
	w.Edit = &Editor{w}
	return w
}

// List returns the heads sorted by id, without deleted artifacts.
func (w *Workspace) List(ctx context.Context) ([]artel.Artifact, error) {
	return w.c.List(ctx, w.cfg.Owner, w.cfg.Conversation, w.cfg.Message)
}

// Get returns the head of an artifact.
func (w *Workspace) Get(ctx context.Context, id artel.ArtifactID) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.c.Get(ctx, w.cfg.Owner, w.cfg.Conversation, id, w.cfg.Message)
	if err == nil && a.Binary { // the metadata is all there is to see of a binary
		w.markSeen(id, a.Version)
	}
	return a, err
}

// Text returns the text of a version, or of the head for version 0, and the
// artifact at that version. Unlike [Collection.Text], it accepts any number, and
// versions of deleted artifacts.
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

// Peek returns the text of the head for showing a part of it: it does not count
// as seen by the writer, and is not cached.
func (w *Workspace) Peek(ctx context.Context, id artel.ArtifactID) (string, artel.Artifact, error) {
	id = normal(id)
	text, v, err := w.c.Text(ctx, w.cfg.Owner, w.cfg.Conversation, id, 0, w.cfg.Message)
	return text, v.Artifact(w.cfg.Conversation, id, v.CreatedAt), err
}

// text also reports whether the version is the newest on the branch.
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

// Create creates a text artifact. An empty mediaType is taken from the id's
// extension, otherwise it is Markdown. An id that exists on this branch is of
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
	return w.make(ctx, id, "", v, edit.NewDocument(content), nil)
}

// make commits v as the first version of a new artifact. An empty id is made
// from name, if that is not empty; a blank title becomes the id. doc is the
// text, nil for binary content. A non-nil check is called in the transaction, to see
// that the bytes are still in use.
func (w *Workspace) make(ctx context.Context, id artel.ArtifactID, name string, v artel.Version, doc *edit.Document, check func(store.Tx) error) (artel.Artifact, error) {
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
	if !isVisible(v.Title) {
		v.Title = string(id)
	}
	if err := checkTitle(v.Title); err != nil {
		return artel.Artifact{}, err
	}
	return w.commit(ctx, id, written{Version: v, doc: doc, whole: true, known: true}, func(tx store.Tx) error {
		if check != nil {
			if err := check(tx); err != nil {
				return err
			}
		}
		return w.free(tx, id)
	})
}

// free returns Conflict if an artifact of this id exists on this branch.
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
	case !isVisible(title):
		return artel.Errorf(artel.Invalid, "", "", "the title has no character that can be seen; give 1 to %d", maxTitle)
	}
	return nil
}

// isVisible reports whether s contains a visible character.
func isVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// Put creates an artifact from stored bytes: those of a version in any
// conversation of the owner, or of a blob. An empty id is made from the filename,
// and an empty title is taken from the version. For an id that exists see Create.
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
	return w.make(ctx, id, name, v, doc, func(tx store.Tx) error {
		// Without this version, nothing may hold the bytes any more, and a sweep may
		// have decided to delete them.
		place, _, err := locate(tx, from, at)
		if err == nil && place.Digest != v.Digest {
			err = missing("its content was removed")
		}
		return err
	})
}

// Add creates an artifact from bytes taken in by [Uploads.Stage]; for id and
// title see Put. Like an upload, a text keeps its original bytes.
func (w *Workspace) Add(ctx context.Context, id artel.ArtifactID, title string, s Staged) (artel.Artifact, error) {
	v := w.version(artel.UpdateCreate, s.Info, "")
	v.MediaInfo, v.Digest, v.InBlob = s.Info, s.Digest, true
	v.Title = cmp.Or(strings.TrimSpace(artel.Visible(title)), artel.Beginning(artel.Visible(s.Filename), maxTitle))
	v.Filename, v.Provenance = s.Filename, w.cfg.Source
	a, err := w.make(ctx, normal(id), cmp.Or(s.Filename, "upload"), v, s.document(), nil)
	return a, failed("artifact.Add", artel.Shorten(cmp.Or(string(normal(id)), s.Filename), 80), err)
}

// UpdateOptions are the options of [Editor.Update]. The zero value edits the
// newest version and allows every layer.
type UpdateOptions struct {
	IfVersion int       // required version of the head; 0: any. Otherwise kind Conflict, code CodeStale
	Mode      edit.Mode // "": edit.Auto
	Indent    bool      // see [edit.Options]
}

// Update applies edits to the head, all or none; see [edit.Apply].
func (e *Editor) Update(ctx context.Context, id artel.ArtifactID, edits []edit.Edit, o UpdateOptions) (artel.Artifact, edit.Result, error) {
	id = normal(id)
	var result edit.Result
	options := edit.Options{Mode: o.Mode, Indent: o.Indent, MaxText: e.w.c.opt.MaxText, Limits: e.w.c.opt.Limits}
	a, err := e.w.editText(ctx, id, o.IfVersion, func(base artel.Artifact, doc *edit.Document) (written, error) {
		var err error
		result, err = doc.Apply(ctx, edits, options)
		if err != nil {
			return written{}, err
		}
		v := e.w.version(updateType(result.Hits), base.MediaInfo, result.Text)
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

// Rewrite replaces the whole text and leaves title and media type unchanged. A
// non-zero ifVersion is the required version of the head. With 0, a run cannot
// replace a version that it has not seen. Both cases are of kind [artel.Conflict]
// with code [CodeStale].
func (e *Editor) Rewrite(ctx context.Context, id artel.ArtifactID, content string, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := e.w.editText(ctx, id, ifVersion, func(base artel.Artifact, doc *edit.Document) (written, error) {
		if err := e.w.checkText(content); err != nil {
			return written{}, err
		}
		if err := e.w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		return e.w.rewritten(artel.UpdateRewrite, base.MediaInfo, doc.Text(), content), nil
	})
	return a, failed("artifact.Rewrite", string(id), err)
}

// rewritten returns a version with another text. A small change is journalled as
// one span.
func (w *Workspace) rewritten(u artel.UpdateType, info artel.MediaInfo, before, after string) written {
	v := w.version(u, info, after)
	change, small := span(before, after)
	if small && change.Old != change.New {
		v.Changes = []artel.Change{change}
	}
	return written{Version: v, doc: edit.NewDocument(after), whole: !small}
}

// Rename changes the title of an artifact to 1 to 256 characters. An unchanged
// title makes no version. For ifVersion see Rewrite; as the content stays, a run
// need not have seen it.
func (e *Editor) Rename(ctx context.Context, id artel.ArtifactID, title string, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	title = strings.TrimSpace(artel.Visible(title))
	if err := checkTitle(title); err != nil {
		return artel.Artifact{}, failed("artifact.Rename", artel.Shorten(string(id), 80), err)
	}
	a, err := e.w.editAny(ctx, id, ifVersion, false, func(_ store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if title == base.Title {
			return written{}, errUnchanged
		}
		v := e.w.like(artel.UpdateRename, base)
		v.Title = title
		return written{Version: v, doc: doc}, nil
	})
	return a, failed("artifact.Rename", string(id), err)
}

// Delete removes an artifact from the branch. Its versions stay, and Restore
// undoes the deletion. For ifVersion see Rewrite.
func (e *Editor) Delete(ctx context.Context, id artel.ArtifactID, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := e.w.editAny(ctx, id, ifVersion, false, func(_ store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if err := e.w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		return written{Version: e.w.like(artel.UpdateDelete, base), doc: doc}, nil
	})
	return a, failed("artifact.Delete", string(id), err)
}

// Restore makes a new version with the content, title and media type of version
// number, which may be any, on any branch. For a deleted artifact, 0 stands for
// the version before the deletion. For ifVersion see Rewrite.
func (e *Editor) Restore(ctx context.Context, id artel.ArtifactID, number, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := e.w.editAny(ctx, id, ifVersion, true, func(tx store.Tx, base artel.Artifact, doc *edit.Document) (written, error) {
		if err := e.w.requireSeen(base, ifVersion); err != nil {
			return written{}, err
		}
		n := number
		switch {
		case n == 0 && !base.Deleted:
			return written{}, artel.Errorf(artel.Invalid, "", "", "say which version; it is at version %d now", base.Version)
		case n == base.Version && !base.Deleted:
			return written{}, artel.Errorf(artel.Invalid, "", "", "it is at version %d already; choose an older one", n)
		case n == 0:
			// The parent of a version is the state before the whole run, so use
			// that of the edit.
			deletion, err := journalled(tx, e.w.cfg.Conversation, id, base.Version)
			if err != nil {
				return written{}, err
			}
			if n = deletion.Parent; n == 0 { // of an imported journal
				n, err = newestBefore(tx, e.w.cfg.Conversation, id, base.Version)
			}
			if err != nil {
				return written{}, err
			}
		}
		old, err := version(tx, e.w.cfg.Conversation, id, n)
		if err != nil {
			return written{}, err
		}
		if old.Update == artel.UpdateDelete {
			return written{}, artel.Errorf(artel.Invalid, "", "", "version %d is its deletion; choose an older one", n)
		}
		return e.w.restored(tx, id, old.Version, doc)
	})
	return a, failed("artifact.Restore", string(id), err)
}

// restored returns a version with the content of old; before is the text of the
// head, nil if it is binary.
func (w *Workspace) restored(tx store.Tx, id artel.ArtifactID, old artel.Version, before *edit.Document) (written, error) {
	var next written
	if !old.IsBinary() {
		text, err := textAt(tx, w.cfg.Conversation, id, old.Number)
		if err != nil {
			return written{}, err
		}
		if before != nil {
			next = w.rewritten(artel.UpdateRestore, old.MediaInfo, before.Text(), text)
		} else {
			next = written{doc: edit.NewDocument(text), whole: true}
		}
	}
	changes := next.Changes
	next.Version = w.like(artel.UpdateRestore, old.Artifact(w.cfg.Conversation, id, old.CreatedAt))
	next.Changes = changes
	return next, nil
}

// normal returns id in NFC, the normal form of ids.
func normal(id artel.ArtifactID) artel.ArtifactID {
	return artel.ArtifactID(norm.NFC.String(string(id)))
}
