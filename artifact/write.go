// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// written is a version to be journalled.
type written struct {
	artel.Version
	doc   *edit.Document // its text; nil: binary
	cost  replayCost     // of reading the text of the parent
	whole bool           // Changes do not lead from the text of the parent to this one
	known bool           // the writer knows the content: it has seen the version that it builds on, or gives all of it
}

var (
	// errMoved means that the head changed after an edit was computed.
	errMoved = errors.New("the head has moved")

	// errUnchanged means that the edit changes nothing.
	errUnchanged = errors.New("nothing would change")
)

// editText makes the next version of a text. Editing a long document takes time,
// so compute runs outside the store's only writer. If the head has changed
// meanwhile, compute runs again on the new head.
func (w *Workspace) editText(ctx context.Context, id artel.ArtifactID, ifVersion int,
	compute func(base artel.Artifact, doc *edit.Document) (written, error),
) (artel.Artifact, error) {
	if err := w.loadSeen(ctx); err != nil {
		return artel.Artifact{}, err
	}
	for {
		base, doc, err := w.headText(ctx, id)
		if err != nil {
			return artel.Artifact{}, err
		}
		if err := checkVersion(base, ifVersion); err != nil {
			return artel.Artifact{}, err
		}
		next, err := compute(base, doc)
		if err != nil {
			return artel.Artifact{}, err
		}
		next.Title, next.Filename = base.Title, base.Filename
		a, err := w.commitOn(ctx, id, base, next)
		if !errors.Is(err, errMoved) {
			return a, err
		}
	}
}

// editAny makes the next version of an artifact of any kind; with deleted, the
// artifact may be deleted. compute gets the text of the head, nil if it is
// binary.
func (w *Workspace) editAny(ctx context.Context, id artel.ArtifactID, ifVersion int, deleted bool,
	compute func(tx store.Tx, base artel.Artifact, doc *edit.Document) (written, error),
) (artel.Artifact, error) {
	if err := w.loadSeen(ctx); err != nil {
		return artel.Artifact{}, err
	}
	for {
		var base artel.Artifact
		var next written
		err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
			find := head
			if deleted {
				find = lastHead
			}
			var err error
			if base, err = find(tx, w.cfg.Conversation, id, w.cfg.Message); err != nil {
				return err
			}
			if err := checkVersion(base, ifVersion); err != nil {
				return err
			}
			var doc *edit.Document
			if !base.Binary {
				if doc, err = w.document(tx, base); err != nil {
					return err
				}
			}
			next, err = compute(tx, base, doc)
			return err
		})
		if errors.Is(err, errUnchanged) {
			return base, nil
		}
		if err != nil {
			return artel.Artifact{}, err
		}
		a, err := w.commitOn(ctx, id, base, next)
		if !errors.Is(err, errMoved) {
			return a, err
		}
	}
}

// checkVersion returns Conflict if ifVersion is neither 0 nor the version of the
// head.
func checkVersion(head artel.Artifact, ifVersion int) error {
	if ifVersion == 0 || ifVersion == head.Version {
		return nil
	}
	return stale("it is at version %d now, not %d; read it again and decide anew", head.Version, ifVersion)
}

func stale(format string, args ...any) error {
	e := artel.Errorf(artel.Conflict, "", "", format, args...)
	e.Code = CodeStale
	return e
}

// commitOn journals next as the version after base, if base is still the head.
func (w *Workspace) commitOn(ctx context.Context, id artel.ArtifactID, base artel.Artifact, next written) (artel.Artifact, error) {
	next.known = writesAll(next.Update) || w.hasSeen(base)
	next.Parent, next.Provenance = base.Version, base.Source
	next.cost = w.costOf(id, base.Version)
	return w.commit(ctx, id, next, func(tx store.Tx) error {
		now, err := lastHead(tx, w.cfg.Conversation, id, w.cfg.Message)
		if err == nil && now.Version != base.Version {
			err = errMoved
		}
		return err
	})
}

// commit journals next and calls OnEdit in one transaction, if check finds the
// state for which next was made.
func (w *Workspace) commit(ctx context.Context, id artel.ArtifactID, next written, check func(store.Tx) error) (artel.Artifact, error) {
	v := next.Version
	var text, whole *string // whole: for the journal
	var cost replayCost
	snapshot := false // whole is stored only to make reads cheaper
	if next.doc != nil {
		s := next.doc.Text()
		text = &s
		v.Preview = artel.Beginning(s, artel.PreviewChars)
		if w.cfg.Run != "" { // otherwise the version has the text
			if !next.whole {
				cost, snapshot = next.cost.after(v.Changes, len(s))
			}
			if next.whole || snapshot {
				whole = text
			}
		}
	}
	var a artel.Artifact
	err := w.c.store.Update(ctx, w.cfg.Owner, func(tx store.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		err := w.quota().Within(tx, func() (err error) {
			v.Number, err = tx.Journal.Append(w.cfg.Conversation, id, v, whole)
			if err != nil {
				return err
			}
			if snapshot && cost.snapshot != 0 { // one is enough
				if err := tx.Journal.DropText(w.cfg.Conversation, id, cost.snapshot); err != nil {
					return err
				}
			}
			if w.cfg.Run == "" {
				return foldVersion(tx, w.cfg.Conversation, id, v, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if a, err = tx.Artifacts.Head(w.cfg.Conversation, id, w.cfg.Message); err != nil {
			return err
		}
		if w.cfg.OnEdit == nil {
			return nil
		}
		return w.cfg.OnEdit(tx, payload(a, v, next.whole))
	})
	if err != nil {
		return artel.Artifact{}, err
	}
	if snapshot {
		cost = replayCost{snapshot: a.Version}
	}
	if next.doc != nil {
		w.cache(id, numbered{a.Version, next.doc, cost})
	}
	if next.known {
		w.markSeen(id, a.Version)
	}
	return a, nil
}

// quota is the quota of this writer; none for summaries, which let a run continue.
func (w *Workspace) quota() *Quota {
	if w.cfg.Source == artel.SourceSummary {
		return nil
	}
	return w.c.Quota
}

// payload returns the event for v, the newest edit; a is the artifact after it.
func payload(a artel.Artifact, v artel.Version, whole bool) artel.Payload {
	if v.Update == artel.UpdateCreate {
		return artel.ArtifactCreated{Artifact: a}
	}
	p := artel.ArtifactUpdated{ID: a.ID, Version: v.Number, BaseVersion: v.Parent, Update: v.Update, Spans: v.Changes, Artifact: a}
	size := 0
	for _, c := range v.Changes {
		size += utf8.RuneCountInString(c.Old) + utf8.RuneCountInString(c.New)
	}
	if whole && !a.Binary || size > artel.SnapshotLimit {
		p.Spans, p.ContentOmitted = nil, true
	}
	return p
}

// version returns a version of this writer with a text.
func (w *Workspace) version(u artel.UpdateType, info artel.MediaInfo, text string) artel.Version {
	info.Charset = "utf-8"
	info.Size = int64(len(text))
	return artel.Version{
		Message: w.cfg.Message, Run: w.cfg.Run, Author: w.cfg.Author, Update: u,
		MediaInfo: info, Digest: artel.NewDigest(sha256.Sum256([]byte(text))), CreatedAt: w.c.now(),
	}
}

// like returns a version of this writer with the content of base.
func (w *Workspace) like(u artel.UpdateType, base artel.Artifact) artel.Version {
	return artel.Version{
		Message: w.cfg.Message, Run: w.cfg.Run, Author: w.cfg.Author, Update: u, Title: base.Title, Filename: base.Filename,
		MediaInfo: base.MediaInfo, Digest: base.Digest, InBlob: base.InBlob, CreatedAt: w.c.now(),
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

// span returns one change from before to after, from the first to the last code
// point that differs; it is empty for equal texts. small is false if the change
// is not much shorter than the whole text.
func span(before, after string) (c artel.Change, small bool) {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	for head > 0 && (head < len(before) && !utf8.RuneStart(before[head]) || head < len(after) && !utf8.RuneStart(after[head])) {
		head--
	}
	a, b := before[head:], after[head:]
	tail := 0
	for tail < len(a) && tail < len(b) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (!utf8.RuneStart(a[len(a)-tail]) || !utf8.RuneStart(b[len(b)-tail])) {
		tail--
	}
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	if len(a)+len(b) > len(after)/4 {
		return artel.Change{}, false
	}
	c.Start = utf8.RuneCountInString(before[:head])
	c.End = c.Start + utf8.RuneCountInString(a)
	c.Old, c.New = strings.Clone(a), strings.Clone(b)
	return c, true
}

// headText returns the head and its text, and caches the text.
func (w *Workspace) headText(ctx context.Context, id artel.ArtifactID) (artel.Artifact, *edit.Document, error) {
	var a artel.Artifact
	var doc *edit.Document
	err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		var err error
		if a, err = head(tx, w.cfg.Conversation, id, w.cfg.Message); err != nil {
			return err
		}
		if a.Binary {
			return artel.Errorf(artel.Unsupported, "", "", "it is binary (%s), so it has no text to read or edit", a.MediaType)
		}
		doc, err = w.document(tx, a)
		return err
	})
	if err != nil {
		return artel.Artifact{}, nil, err
	}
	return a, doc, nil
}

// document returns the text of a head, and caches it under its number.
func (w *Workspace) document(tx store.Tx, a artel.Artifact) (*edit.Document, error) {
	w.mu.Lock()
	n := w.texts[a.ID]
	w.mu.Unlock()
	if n.number == a.Version {
		return n.doc, nil
	}
	text, _, cost, err := replayAt(tx, a.Conversation, a.ID, a.Version)
	if err != nil {
		return nil, err
	}
	doc := edit.NewDocument(text)
	w.cache(a.ID, numbered{a.Version, doc, cost})
	return doc, nil
}

// costOf returns the cost of reading a version that document has read; zero if it is
// not cached any more.
func (w *Workspace) costOf(id artel.ArtifactID, number int) replayCost {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.texts[id]; n.number == number {
		return n.cost
	}
	return replayCost{}
}

// cache stores the text of a head. If the cache is full, it drops all other
// texts.
func (w *Workspace) cache(id artel.ArtifactID, n numbered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.texts[id]
	if n.number < before.number {
		return
	}
	if before.doc != nil {
		w.cached -= len(before.doc.Text())
	}
	w.cached += len(n.doc.Text())
	if w.cached > maxCached {
		clear(w.texts)
		w.cached = len(n.doc.Text())
	}
	w.texts[id] = n
}

// textInfo returns the media information of a text written in Artel: the declared
// type, otherwise the type for the extension of its id, otherwise Markdown. The
// content is not examined. A declared type that is not text is of kind
// Unsupported.
func textInfo(id artel.ArtifactID, declared string) (artel.MediaInfo, error) {
	info := media.Detect(nil, media.Hint{DeclaredType: declared, Filename: string(id)})
	if info.IsBinary() && info.DetectedBy == artel.FromDeclared {
		return info, artel.Errorf(artel.Unsupported, "", "", "%s is not a type of text; leave the type out for Markdown", info.DeclaredType)
	}
	if info.IsBinary() || info.DetectedBy == artel.FromContent {
		info = artel.MediaInfo{MediaType: "text/markdown", DeclaredType: info.DeclaredType, Kind: artel.KindText}
	}
	info.Confidence = 1
	return info, nil
}
