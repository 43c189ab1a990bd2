// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A Draft is the user's new state of an artifact. Nil fields leave it unchanged.
type Draft struct {
	Title *string
	Text  *string // the whole new text
	File  *Staged // instead of Text: the whole new content. Text is stored as UTF-8

	KeepMarkers bool // save a text with the marks of unresolved conflicts
}

// Markers reports that a draft was not saved because it has marks of conflicts
// that the head does not have.
type Markers struct {
	Count int // conflicts in the draft
	Line  int // of the first mark, from 1
}

// CodeMarkers is the error code of a draft with [Markers].
const CodeMarkers = "conflict_markers"

// Error implements error.
func (m *Markers) Error() string {
	return fmt.Sprintf("line %d begins a conflict that is not resolved: keep the lines that are right, and delete the marks from <<<<<<< to >>>>>>>", m.Line)
}

// Unwrap returns [artel.Invalid].
func (m *Markers) Unwrap() error { return artel.Invalid }

// A Stale reports that a draft was not saved because it was based on another
// version than the newest.
type Stale struct {
	Base    int            // version that the draft is based on
	Current artel.Artifact // the head

	// Merged is the three-way merge of the draft and Current. Its text can be
	// saved on Current once it has no conflicts. It is nil if one of the three
	// is not text, or if Base does not exist.
	Merged *diff.Merged
}

// Error implements error.
func (s *Stale) Error() string {
	e := fmt.Sprintf("it is at version %d now, and this was made from version %d", s.Current.Version, s.Base)
	switch {
	case s.Merged == nil:
		return e + "; read it again and decide anew"
	case s.Merged.Clean():
		return e + "; the two can be merged without a conflict"
	}
	return fmt.Sprintf("%s; merging the two leaves %d to decide", e, len(s.Merged.Conflicts))
}

// Unwrap returns [artel.Conflict].
func (s *Stale) Unwrap() error { return artel.Conflict }

// Save makes the next version from a draft based on version base; 0 stands for
// the newest. If base is not the newest, the error has code [CodeStale] and a
// [*Stale] in its chain. A text with new marks of conflicts is refused with code
// [CodeMarkers] and a [*Markers]. A draft equal to the head makes no version,
// whatever its base.
func (e *Editor) Save(ctx context.Context, id artel.ArtifactID, base int, d Draft) (artel.Artifact, error) {
	id = normal(id)
	a, err := e.w.save(ctx, id, base, d)
	return a, failed("artifact.Save", artel.Shorten(string(id), 80), err)
}

func (w *Workspace) save(ctx context.Context, id artel.ArtifactID, base int, d Draft) (artel.Artifact, error) {
	if d.Title != nil {
		title := strings.TrimSpace(artel.Visible(*d.Title))
		if err := checkTitle(title); err != nil {
			return artel.Artifact{}, err
		}
		d.Title = &title
	}
	if d.File != nil {
		d.Text = d.File.text
	}
	if d.Text != nil {
		if err := w.checkText(*d.Text); err != nil {
			return artel.Artifact{}, err
		}
	}
	var three sides
	a, err := w.editAny(ctx, id, 0, false, func(tx store.Tx, head artel.Artifact, doc *edit.Document) (written, error) {
		next, changed, err := w.drafted(head, doc, d)
		switch {
		case err != nil:
			return written{}, err
		case !changed:
			return written{}, errUnchanged
		case base == 0 || base == head.Version:
			return next, checkMarkers(doc, d)
		}
		if three, err = w.sides(tx, head, doc, base, d.Text); err == nil {
			err = &Stale{Base: base, Current: head}
		}
		return written{}, err
	})
	conflict, ok := errors.AsType[*Stale](err)
	if !ok {
		return a, err
	}
	if three.texts {
		merged, err := diff.Merge(ctx, three.base, three.mine, three.theirs, diff.MergeOptions{
			Mine: "yours", Base: fmt.Sprintf("version %d", base), Theirs: fmt.Sprintf("version %d", conflict.Current.Version),
		})
		if err != nil {
			return artel.Artifact{}, err
		}
		conflict.Merged = &merged
	}
	return artel.Artifact{}, &artel.Error{Kind: artel.Conflict, Code: CodeStale, Err: conflict}
}

// checkMarkers returns an error if a draft has more conflicts than the head.
func checkMarkers(head *edit.Document, d Draft) error {
	if d.Text == nil || d.KeepMarkers {
		return nil
	}
	count, line := diff.Markers(*d.Text)
	before := 0
	if count > 0 && head != nil {
		before, _ = diff.Markers(head.Text())
	}
	if count <= before {
		return nil
	}
	return &artel.Error{Kind: artel.Invalid, Code: CodeMarkers, Err: &Markers{Count: count, Line: line}}
}

// drafted returns the version that a draft makes of a head, and whether it
// differs.
func (w *Workspace) drafted(head artel.Artifact, doc *edit.Document, d Draft) (next written, changed bool, err error) {
	switch {
	case d.Text != nil && doc != nil:
		if changed = *d.Text != doc.Text(); changed {
			next = w.rewritten(artel.UpdateRewrite, head.MediaInfo, doc.Text(), *d.Text)
		}
	case d.Text != nil:
		info := artel.MediaInfo{}
		if d.File != nil {
			info = d.File.Info
		} else if info, err = textInfo(head.ID, ""); err != nil {
			return next, false, err
		}
		next = written{Version: w.version(artel.UpdateRewrite, info, *d.Text), doc: edit.NewDocument(*d.Text), whole: true}
		changed = true
	case d.File != nil:
		if changed = d.File.Digest != head.Digest; changed {
			next.Version = w.like(artel.UpdateRewrite, head)
			next.MediaInfo, next.Digest, next.InBlob = d.File.Info, d.File.Digest, true
		}
	}
	if !changed {
		next = written{Version: w.like(artel.UpdateRename, head), doc: doc}
	}
	next.Title, next.Filename = head.Title, head.Filename
	if d.Title != nil && *d.Title != head.Title {
		next.Title, changed = *d.Title, true
	}
	return next, changed, nil
}

// sides are the three texts of a merge.
type sides struct {
	base, mine, theirs string
	texts              bool // all three are texts
}

func (w *Workspace) sides(tx store.Tx, head artel.Artifact, doc *edit.Document, base int, mine *string) (sides, error) {
	if doc == nil || mine == nil {
		return sides{}, nil
	}
	s, err := version(tx, w.cfg.Conversation, head.ID, base)
	if errors.Is(err, artel.NotFound) || err == nil && s.IsBinary() {
		return sides{}, nil
	}
	if err != nil {
		return sides{}, err
	}
	text, err := textAt(tx, w.cfg.Conversation, head.ID, base)
	return sides{base: text, mine: *mine, theirs: doc.Text(), texts: true}, err
}
