// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/edit"
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

	mu    sync.Mutex
	texts map[artel.ArtifactID]numbered
	held  int // bytes of texts
}

// numbered is the text of a numbered state.
type numbered struct {
	number int
	text   string
}

// maxHeld is how many bytes of text a workspace remembers.
const maxHeld = 64 << 20

// maxTitle is the longest title, in code points.
const maxTitle = 256

// CodeArtifactExists is the error code of creating what is there already.
const CodeArtifactExists = "artifact_exists"

// Workspace opens a workspace.
func (c *Collection) Workspace(cfg WorkspaceConfig) *Workspace {
	if cfg.Source == "" {
		cfg.Source = artel.SourceAgent
		if cfg.Author == AuthorUser {
			cfg.Source = artel.SourceUser
		}
	}
	return &Workspace{c: c, cfg: cfg, texts: map[artel.ArtifactID]numbered{}}
}

// List returns the heads by id, without deleted ones.
func (w *Workspace) List(ctx context.Context) ([]artel.Artifact, error) {
	return w.c.List(ctx, w.cfg.Owner, w.cfg.Conversation, w.cfg.Message)
}

// Get returns the head of an artifact.
func (w *Workspace) Get(ctx context.Context, id artel.ArtifactID) (artel.Artifact, error) {
	return w.c.Get(ctx, w.cfg.Owner, w.cfg.Conversation, normal(id), w.cfg.Message)
}

// Text returns the text of a version, or of the head for version 0, and the
// artifact as it was then. Unlike a reader from outside, a writer may ask for
// any number that it was ever told.
func (w *Workspace) Text(ctx context.Context, id artel.ArtifactID, version int) (string, artel.Artifact, error) {
	id = normal(id)
	a, text, err := w.text(ctx, id, version)
	if err != nil {
		return "", artel.Artifact{}, failed("artifact.Text", string(id), err)
	}
	return text, a, nil
}

func (w *Workspace) text(ctx context.Context, id artel.ArtifactID, number int) (artel.Artifact, string, error) {
	if number == 0 {
		return w.headText(ctx, id)
	}
	var a artel.Artifact
	var text string
	err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		newest, err := head(tx, w.cfg.Conversation, id, w.cfg.Message)
		if err != nil {
			return err
		}
		s, err := version(tx, w.cfg.Conversation, id, number)
		if err != nil {
			return err
		}
		a = s.Artifact(w.cfg.Conversation, id, newest.CreatedAt)
		text, err = textOf(tx, w.cfg.Conversation, id, s.Version)
		return err
	})
	return a, text, err
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
	if _, err := artel.ParseArtifactID(string(id)); err != nil {
		return artel.Artifact{}, err
	}
	if err := w.checkText(content); err != nil {
		return artel.Artifact{}, err
	}
	if title == "" {
		title = string(id)
	}
	if n := utf8.RuneCountInString(title); n > maxTitle || !utf8.ValidString(title) {
		return artel.Artifact{}, artel.Errorf(artel.Invalid, "", "", "a title is valid UTF-8 of at most %d characters, and this one has %d", maxTitle, n)
	}
	info, err := textInfo(id, mediaType)
	if err != nil {
		return artel.Artifact{}, err
	}
	v := w.version(artel.UpdateCreate, info, content)
	v.Title, v.Provenance = title, w.cfg.Source
	return w.write(ctx, id, v, content, func(tx store.Tx) error {
		a, err := tx.Artifacts.Head(w.cfg.Conversation, id, w.cfg.Message)
		switch {
		case errors.Is(err, artel.NotFound):
			_, err = tx.Conversations.Get(w.cfg.Conversation)
			return err
		case err != nil:
			return err
		case a.Deleted:
			return exists("an artifact of this id was deleted; choose another id")
		}
		return exists("it is there already, at version %d; update_artifact changes a part of it, rewrite_artifact all of it", a.Version)
	})
}

func exists(format string, args ...any) error {
	e := artel.Errorf(artel.Conflict, "", "", format, args...)
	e.Code = CodeArtifactExists
	return e
}

// Update applies edits to the head, all or none; see [edit.Apply]. An
// ifVersion other than 0 is the version that the head has to be: another one
// is of kind [artel.Conflict].
func (w *Workspace) Update(ctx context.Context, id artel.ArtifactID, edits []edit.Edit, ifVersion int) (artel.Artifact, edit.Result, error) {
	id = normal(id)
	var result edit.Result
	a, err := w.change(ctx, id, ifVersion, func(base artel.Artifact, text string) (artel.Version, string, error) {
		var err error
		result, err = edit.Apply(ctx, text, edits, edit.Options{MaxText: w.c.opt.MaxText})
		if err != nil {
			return artel.Version{}, "", err
		}
		v := w.version(updateType(result.Hits), base.MediaInfo, result.Text)
		v.Changes = result.Changes
		return v, result.Text, nil
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

// Rewrite replaces the whole text, and keeps title and media type. For
// ifVersion see Update.
func (w *Workspace) Rewrite(ctx context.Context, id artel.ArtifactID, content string, ifVersion int) (artel.Artifact, error) {
	id = normal(id)
	a, err := w.change(ctx, id, ifVersion, func(base artel.Artifact, _ string) (artel.Version, string, error) {
		if err := w.checkText(content); err != nil {
			return artel.Version{}, "", err
		}
		return w.version(artel.UpdateRewrite, base.MediaInfo, content), content, nil
	})
	return a, failed("artifact.Rewrite", string(id), err)
}

// errMoved says that the head is no longer what an edit was computed on.
var errMoved = errors.New("the head has moved")

// change makes the next version of a text. Long documents take a while to
// edit, so compute runs on the text as it was seen, outside of the one writer
// of the store; where somebody else was faster, it runs again on theirs.
func (w *Workspace) change(ctx context.Context, id artel.ArtifactID, ifVersion int,
	compute func(base artel.Artifact, text string) (artel.Version, string, error),
) (artel.Artifact, error) {
	for {
		base, text, err := w.headText(ctx, id)
		if err != nil {
			return artel.Artifact{}, err
		}
		if ifVersion != 0 && ifVersion != base.Version {
			return artel.Artifact{}, artel.Errorf(artel.Conflict, "", "",
				"it is at version %d now, not %d; read it again and decide anew", base.Version, ifVersion)
		}
		v, next, err := compute(base, text)
		if err != nil {
			return artel.Artifact{}, err
		}
		v.Parent, v.Title, v.Filename, v.Provenance = base.Version, base.Title, base.Filename, base.Source
		a, err := w.write(ctx, id, v, next, func(tx store.Tx) error {
			now, err := head(tx, w.cfg.Conversation, id, w.cfg.Message)
			if err == nil && now.Version != base.Version {
				err = errMoved
			}
			return err
		})
		if !errors.Is(err, errMoved) {
			return a, err
		}
	}
}

// write journals v, with text as its content, if check finds the state that
// it was made for, and tells of it in the same transaction.
func (w *Workspace) write(ctx context.Context, id artel.ArtifactID, v artel.Version, text string, check func(store.Tx) error) (artel.Artifact, error) {
	var whole *string // what the journal has to keep until the run is folded
	if w.cfg.Run != "" && (v.Update == artel.UpdateCreate || v.Update == artel.UpdateRewrite) {
		whole = &text
	}
	var a artel.Artifact
	err := w.c.store.Update(ctx, w.cfg.Owner, func(tx store.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		var err error
		v.Number, err = tx.Versions.Append(w.cfg.Conversation, id, v, whole)
		if err != nil {
			return err
		}
		if w.cfg.Run == "" {
			if err := tx.Versions.Fold(w.cfg.Conversation, id, v, &text); err != nil {
				return err
			}
		}
		if a, err = tx.Artifacts.Head(w.cfg.Conversation, id, w.cfg.Message); err != nil {
			return err
		}
		if w.cfg.OnEdit == nil {
			return nil
		}
		return w.cfg.OnEdit(tx, payload(a, v))
	})
	if err != nil {
		return artel.Artifact{}, err
	}
	w.remember(id, a.Version, text)
	return a, nil
}

// payload tells of v, the newest edit, which left the artifact as a.
func payload(a artel.Artifact, v artel.Version) artel.Payload {
	if v.Update == artel.UpdateCreate {
		return artel.ArtifactCreated{Artifact: a}
	}
	p := artel.ArtifactUpdated{ID: a.ID, Version: v.Number, BaseVersion: v.Parent, Update: v.Update, Spans: v.Changes, Artifact: a}
	size := 0
	for _, c := range v.Changes {
		size += utf8.RuneCountInString(c.Old) + utf8.RuneCountInString(c.New)
	}
	if len(v.Changes) == 0 || size > artel.SnapshotLimit {
		p.Spans, p.ContentOmitted = nil, true
	}
	return p
}

// version is a version of text by this writer.
func (w *Workspace) version(u artel.UpdateType, info artel.MediaInfo, text string) artel.Version {
	info.Charset = "utf-8"
	info.Size = int64(len(text))
	return artel.Version{
		Message: w.cfg.Message, Run: w.cfg.Run, Author: w.cfg.Author, Update: u,
		MediaInfo: info, Digest: artel.NewDigest(sha256.Sum256([]byte(text))), CreatedAt: w.c.now(),
	}
}

func (w *Workspace) checkText(text string) error {
	if len(text) > w.c.opt.MaxText {
		return w.c.textTooLarge(int64(len(text)))
	}
	if !utf8.ValidString(text) {
		return artel.Errorf(artel.Invalid, "", "", "the content is not valid UTF-8")
	}
	return nil
}

// headText returns the head and its text, which it remembers.
func (w *Workspace) headText(ctx context.Context, id artel.ArtifactID) (artel.Artifact, string, error) {
	var a artel.Artifact
	var text string
	err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		var err error
		if a, err = head(tx, w.cfg.Conversation, id, w.cfg.Message); err != nil {
			return err
		}
		if a.Binary {
			return artel.Errorf(artel.Unsupported, "", "", "it is binary (%s), so it has no text to read or edit", a.MediaType)
		}
		if n := w.recall(id); n.number == a.Version {
			text = n.text
			return nil
		}
		text, err = textAt(tx, w.cfg.Conversation, id, a.Version)
		return err
	})
	if err != nil {
		return artel.Artifact{}, "", err
	}
	w.remember(id, a.Version, text)
	return a, text, nil
}

func (w *Workspace) recall(id artel.ArtifactID) numbered {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts[id]
}

// remember keeps the text of a head, which is immutable under its number. A
// workspace that holds too much forgets everything else.
func (w *Workspace) remember(id artel.ArtifactID, number int, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number < w.texts[id].number {
		return
	}
	w.held += len(text) - len(w.texts[id].text)
	if w.held > maxHeld {
		clear(w.texts)
		w.held = len(text)
	}
	w.texts[id] = numbered{number, text}
}

// normal is id in the normal form that ids have.
func normal(id artel.ArtifactID) artel.ArtifactID {
	return artel.ArtifactID(norm.NFC.String(string(id)))
}
