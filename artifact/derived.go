// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/store"
)

// A Derived is what there is to read of a version. The text of a document, and
// also of a page in HTML and of a table in CSV, was taken out of it as
// Markdown; any other text is itself. It is made from the bytes whenever it is
// asked for and belongs to the version, which never changes.
type Derived struct {
	extract.Extracted
	Version artel.Version

	Visible bool // false where only the journal has the version
	Made    bool // false where the version is this text
}

// Derivable reports whether [Collection.Derived] can take text out of the
// bytes of a media type. Whether a file has any shows only when it is read.
func Derivable(m artel.MediaInfo) bool { return extract.Supports(m.MediaType) }

// Derived returns what there is to read of the version that ref points to.
// Without a number, that is the head on the branch that ends in at, live edits
// included; a pinned version may be any that ever was. Those who ask for the
// same bytes at once wait for one reading of them, and what was read is
// remembered for a while, as is the failure of a document that cannot be read.
//
// Beside what [Collection.Open] fails with, errors are of kind
// [artel.Unsupported] where no text can be taken out or the document is
// encrypted, [artel.Invalid] where it is damaged, and [artel.TooLarge] where
// it grows beyond all measure when it is unpacked. The caller does not change
// what LeftOut holds.
func (c *Collection) Derived(ctx context.Context, owner artel.Owner, ref artel.Ref, at artel.MessageID) (Derived, error) {
	var d Derived
	var text string
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		if !ref.IsBlob() && ref.Version == 0 {
			a, err := head(tx, ref.Conversation, ref.Artifact, at)
			if err != nil {
				return err
			}
			ref.Version = a.Version
		}
		place, visible, err := locate(tx, ref, at)
		if err != nil {
			return err
		}
		d = Derived{Version: place.Version, Visible: visible}
		if place.IsBinary() {
			return nil
		}
		text, err = textOf(tx, place.Conversation, place.Artifact, place.Version)
		return err
	})
	subject := string(ref.Artifact)
	if ref.IsBlob() {
		subject = ref.String()
	}
	if err != nil {
		return Derived{}, failed("artifact.Derived", subject, err)
	}
	if !d.Version.IsBinary() && !Derivable(d.Version.MediaInfo) {
		d.Text, d.MediaType = text, d.Version.MediaType
		return d, nil
	}
	d.Made = true
	d.Extracted, err = c.derived.get(ctx, d.Version, func(ctx context.Context) (extract.Extracted, error) {
		return c.extract(ctx, d.Version, text)
	})
	if err != nil {
		return Derived{}, failed("artifact.Derived", subject, unnamed(err))
	}
	return d, nil
}

// DerivedFrom returns the text in the bytes of a blob that is no version, as
// [Collection.Derived] does in those of one. It asks nobody whose they are.
func (c *Collection) DerivedFrom(ctx context.Context, d artel.Digest, info artel.MediaInfo) (Derived, error) {
	v := artel.Version{Digest: d, MediaInfo: info, InBlob: true}
	out := Derived{Version: v, Made: true}
	var err error
	out.Extracted, err = c.derived.get(ctx, v, func(ctx context.Context) (extract.Extracted, error) {
		text, err := c.decoded(ctx, v)
		if err != nil {
			return extract.Extracted{}, err
		}
		return c.extract(ctx, v, text)
	})
	if err != nil {
		return Derived{}, failed("artifact.DerivedFrom", string(d), unnamed(err))
	}
	return out, nil
}

// decoded reads the text of a blob that is text; "" for others.
func (c *Collection) decoded(ctx context.Context, v artel.Version) (_ string, err error) {
	if v.IsBinary() {
		return "", nil
	}
	r, err := c.blobs.Open(ctx, v.Digest)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() > 4*int64(c.opt.MaxText) {
		return "", c.textTooLarge(r.Size())
	}
	return media.DecodeText(r, v.Charset)
}

// extract takes the text out of a version: out of its bytes, or where it is
// text itself, out of its decoding.
func (c *Collection) extract(ctx context.Context, v artel.Version, text string) (x extract.Extracted, err error) {
	options := extract.Options{MaxText: int64(c.opt.MaxText)}
	info := v.MediaInfo
	if !v.IsBinary() {
		info.Charset = "utf-8"
		return extract.Text(ctx, strings.NewReader(text), int64(len(text)), info, options)
	}
	r, err := c.blobs.Open(ctx, v.Digest)
	if err != nil {
		return x, err
	}
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	return extract.Text(ctx, r, r.Size(), info, options)
}

// unnamed takes the media type off an error of package extract, so that it
// names the artifact in its place.
func unnamed(err error) error {
	e, ok := err.(*artel.Error)
	if !ok {
		return err
	}
	bare := *e
	bare.Op, bare.Subject = "", ""
	return &bare
}

// Derived is [Collection.Derived] of an artifact of this conversation as the
// writer sees it: for version 0 the head, else any version that ever was.
func (w *Workspace) Derived(ctx context.Context, id artel.ArtifactID, version int) (Derived, error) {
	ref := artel.Ref{Conversation: w.cfg.Conversation, Artifact: normal(id), Version: version}
	return w.c.Derived(ctx, w.cfg.Owner, ref, w.cfg.Message)
}

// Bounds on making texts. What was taken out of a document is kept in memory
// only: making it again costs little beside what a model does with it, a newer
// program may read more of the same bytes, and what was deleted leaves nothing
// behind.
const (
	maxDerived  = 64 << 20 // bytes of texts that are remembered
	entryWeight = 1 << 10  // bytes that each counts for beside its own
	maxMakers   = 2        // documents that are read at the same time, each within the bounds of package extract
)

// A derivedKey says out of what a text was taken. The same bytes may be two
// things, by the name that they came under.
type derivedKey struct {
	digest             artel.Digest
	mediaType, charset string
}

// A making is a text that is being made or was made. Before done is closed,
// only its maker touches the rest.
type making struct {
	key  derivedKey
	done chan struct{}
	text extract.Extracted
	err  error
}

func (m *making) weight() int { return len(m.text.Text) + entryWeight }

// derivedTexts remembers texts, the ones that were asked for last.
type derivedTexts struct {
	makers *semaphore.Weighted

	mu    sync.Mutex
	byKey map[derivedKey]*list.Element // of *making
	order *list.List                   // of those that are made, the last used in front
	held  int                          // weight of all in order
	going map[derivedKey]*making
}

func newDerivedTexts() *derivedTexts {
	return &derivedTexts{
		makers: semaphore.NewWeighted(maxMakers),
		byKey:  map[derivedKey]*list.Element{}, order: list.New(), going: map[derivedKey]*making{},
	}
}

// get returns the text of v, which the first who asks makes while the others
// wait. Where that one gives up, the next makes it: nobody's context ends what
// another waits for, and no goroutine goes on without somebody who does.
func (d *derivedTexts) get(ctx context.Context, v artel.Version, produce func(context.Context) (extract.Extracted, error)) (extract.Extracted, error) {
	key := derivedKey{v.Digest, v.MediaType, v.Charset}
	for {
		m, mine := d.find(key)
		if mine {
			d.fill(ctx, m, produce)
			return m.text, m.err
		}
		select {
		case <-m.done:
			if artel.KindOf(m.err) != artel.Canceled || ctx.Err() != nil {
				return m.text, m.err
			}
		case <-ctx.Done():
			return extract.Extracted{}, ctx.Err()
		}
	}
}

// find returns the text of a key as it is remembered or being made, or one
// that the caller has to fill.
func (d *derivedTexts) find(key derivedKey) (m *making, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.byKey[key]; ok {
		d.order.MoveToFront(e)
		return e.Value.(*making), false
	}
	if m, ok := d.going[key]; ok {
		return m, false
	}
	m = &making{key: key, done: make(chan struct{})}
	d.going[key] = m
	return m, true
}

// fill makes a text and remembers it.
func (d *derivedTexts) fill(ctx context.Context, m *making, produce func(context.Context) (extract.Extracted, error)) {
	m.err = artel.Errorf(artel.Internal, "", "", "reading the document broke off") // where produce panics
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.going, m.key)
		switch artel.KindOf(m.err) {
		case "", artel.Invalid, artel.Unsupported, artel.TooLarge: // the same bytes would give the same again
			d.keep(m)
		}
		close(m.done)
	}()
	if err := d.makers.Acquire(ctx, 1); err != nil {
		m.err = err
		return
	}
	defer d.makers.Release(1)
	m.text, m.err = produce(ctx)
}

// keep remembers a text and forgets those that were not asked for the longest.
// It is called with mu held.
func (d *derivedTexts) keep(m *making) {
	d.byKey[m.key] = d.order.PushFront(m)
	d.held += m.weight()
	for d.held > maxDerived && d.order.Len() > 1 {
		oldest := d.order.Remove(d.order.Back()).(*making)
		delete(d.byKey, oldest.key)
		d.held -= oldest.weight()
	}
}
