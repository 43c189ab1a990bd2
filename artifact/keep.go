// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// Store makes an artifact of bytes that a text brought along: a tool's result,
// a model's answer. Its source is [artel.SourceToolResult], and its id says
// what it is, like image_1.png, unless the bytes came with a name. What the
// branch has kept before is not kept again: that artifact is returned, so that
// the same text always leads to the same ref.
func (w *Workspace) Store(ctx context.Context, s Staged) (artel.Artifact, error) {
	a, err := w.store(ctx, s)
	return a, failed("artifact.Keep", artel.Shorten(s.Filename, 80), err)
}

func (w *Workspace) store(ctx context.Context, s Staged) (artel.Artifact, error) {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	heads, err := w.List(ctx)
	if err != nil {
		return artel.Artifact{}, err
	}
	if a, ok := findStored(heads, s); ok {
		return a, nil
	}
	next := s.Version(w.cfg.Author, w.c.now())
	next.Message, next.Run = w.cfg.Message, w.cfg.Run
	for {
		var id artel.ArtifactID
		err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) (err error) {
			id, err = storedID(tx, w.cfg.Conversation, s)
			return err
		})
		if err != nil {
			return artel.Artifact{}, err
		}
		v := next
		if !hasShape(v.Title) {
			v.Title = string(id)
		}
		made := written{Version: v, whole: true, known: true}
		if s.text != nil {
			made.doc = edit.NewDocument(*s.text)
		}
		a, err := w.commit(ctx, id, made, func(tx store.Tx) error { return w.free(tx, id) })
		if artel.CodeOf(err) != CodeArtifactExists { // somebody else may have taken the id
			return a, err
		}
	}
}

// StoreTx is [Workspace.Store] for bytes that a message brings along, in the
// transaction that stores it: what it makes is visible on every branch until
// the message claims it. It returns an artifact for each of staged, in their
// order, and which of them are new.
func (c *Collection) StoreTx(tx store.Tx, conv artel.ConversationID, at artel.MessageID, staged []Staged) (kept, made []artel.Artifact, err error) {
	if len(staged) == 0 {
		return nil, nil, nil
	}
	heads, err := tx.Artifacts.Heads(conv, at)
	if err != nil {
		return nil, nil, failed("artifact.Keep", string(conv), err)
	}
	for _, s := range staged {
		a, ok := findStored(heads, s)
		if !ok {
			if a, err = c.storeTx(tx, conv, s); err != nil {
				return nil, nil, failed("artifact.Keep", artel.Shorten(s.Filename, 80), err)
			}
			heads, made = append(heads, a), append(made, a)
		}
		kept = append(kept, a)
	}
	return kept, made, nil
}

func (c *Collection) storeTx(tx store.Tx, conv artel.ConversationID, s Staged) (artel.Artifact, error) {
	id, err := storedID(tx, conv, s)
	if err != nil {
		return artel.Artifact{}, err
	}
	v := s.Version(AuthorUser, c.now())
	if !hasShape(v.Title) {
		v.Title = string(id)
	}
	if v.Number, err = tx.Journal.Append(conv, id, v, nil); err != nil {
		return artel.Artifact{}, err
	}
	if err := tx.Journal.Fold(conv, id, v, s.text); err != nil {
		return artel.Artifact{}, err
	}
	return v.Artifact(conv, id, v.CreatedAt), nil
}

func findStored(heads []artel.Artifact, s Staged) (artel.Artifact, bool) {
	for _, a := range heads {
		if a.Digest == s.Digest && a.Source == artel.SourceToolResult && !a.Deleted && a.MediaType == s.Info.MediaType {
			return a, true
		}
	}
	return artel.Artifact{}, false
}

// Text is the decoding of a text; nil for binary content.
func (s Staged) Text() *string { return s.text }

// Version is the first version of an artifact that is made of s because a text
// brought it along; it has no number and belongs to nothing.
func (s Staged) Version(author string, now time.Time) artel.Version {
	v := artel.Version{
		Author: author, Update: artel.UpdateCreate, Provenance: artel.SourceToolResult,
		Title: artel.Beginning(artel.Visible(s.Filename), maxTitle), Filename: s.Filename,
		MediaInfo: s.Info, Digest: s.Digest, InBlob: true, CreatedAt: now,
	}
	if s.text != nil {
		v.Preview = artel.Beginning(*s.text, artel.PreviewChars)
	}
	return v
}

// storedID is a free id from the name that the bytes came with, or from what they
// are.
func storedID(tx store.Tx, conv artel.ConversationID, s Staged) (artel.ArtifactID, error) {
	used := func(id artel.ArtifactID) (bool, error) { return tx.Artifacts.Exists(conv, id) }
	if s.Filename != "" {
		return FreeID(s.Filename, used)
	}
	stem := string(s.Info.Kind)
	switch s.Info.Kind {
	case artel.KindText:
		stem = "result"
	case artel.KindOther, "":
		stem = "file"
	}
	ext := media.Extension(s.Info.MediaType)
	taken := func(n int) (bool, error) { return used(artel.ArtifactID(fmt.Sprintf("%s_%d%s", stem, n, ext))) }
	// The numbers are used from 1 on, so the first free one is found by
	// doubling and halving.
	low, high := 0, 1 // low is taken
	for {
		is, err := taken(high)
		if err != nil {
			return "", err
		}
		if !is {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		mid := (low + high) / 2
		is, err := taken(mid)
		if err != nil {
			return "", err
		}
		if is {
			low = mid
		} else {
			high = mid
		}
	}
	return artel.ArtifactID(fmt.Sprintf("%s_%d%s", stem, high, ext)), nil
}
