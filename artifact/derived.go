// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/store"
)

// A Derived is the readable text of a version. For a document, an HTML page or a
// CSV table it is Markdown extracted from the bytes on demand; any other text is
// returned unchanged, of a large one the beginning.
type Derived struct {
	extract.Extracted
	Version artel.Version

	Visible bool // false if the version is only in the journal
	Made    bool // Text was extracted; false if it is the version itself
}

// Derivable reports whether [Collection.Derived] can extract text from the bytes
// of a media type. A file may still contain none.
func Derivable(m artel.MediaInfo) bool { return m.IsLargeText() || extract.Supports(m.MediaType) }

// Derived returns the readable text of the version that ref points to. A ref
// without a version stands for the head on the branch that ends in at, with live
// edits; a version may be any. Concurrent calls for the same bytes share one
// extraction. Results, and errors of unreadable documents, are cached.
//
// Beside the errors of [Collection.Open], errors are of kind [artel.Unsupported]
// if no text can be extracted or the document is encrypted, [artel.Invalid] if it
// is damaged, and [artel.TooLarge] if it unpacks to too many bytes. The caller
// must not modify LeftOut.
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

// DerivedFrom is like [Collection.Derived] for a blob that is not a version. It
// does not check the owner.
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

// decoded returns the text of a blob, "" for binary content.
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

// extract returns the text extracted from the bytes of a version or, if it is
// text, from its decoding.
func (c *Collection) extract(ctx context.Context, v artel.Version, text string) (x extract.Extracted, err error) {
	options := extract.Options{MaxText: int64(c.opt.MaxText), PDF: c.opt.PDF}
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
	if info.IsLargeText() {
		return c.beginning(r, info)
	}
	return extract.Text(ctx, r, r.Size(), info, options)
}

// beginning returns the first lines of a text that is too large to be edited, up
// to [Options.MaxText], and a last line that says so.
func (c *Collection) beginning(r blob.Reader, info artel.MediaInfo) (extract.Extracted, error) {
	most := int64(c.opt.MaxText)
	text, err := media.DecodeText(io.LimitReader(r, most), info.Charset)
	if err != nil {
		return extract.Extracted{}, err
	}
	if len(text) > c.opt.MaxText {
		text = strings.ToValidUTF8(text[:c.opt.MaxText], "")
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[:i+1]
	}
	text += fmt.Sprintf("<!-- cut here: the file has %s, of which the first %s can be read -->\n", megabytes(r.Size()), megabytes(most))
	return extract.Extracted{Text: text, MediaType: info.MediaType, Cut: true}, nil
}

// unnamed removes operation and subject from an error of package extract, so that
// failed can name the artifact.
func unnamed(err error) error {
	e, ok := err.(*artel.Error)
	if !ok {
		return err
	}
	bare := *e
	bare.Op, bare.Subject = "", ""
	return &bare
}

// Derived is [Collection.Derived] for an artifact of this conversation; version 0
// stands for the head.
func (w *Workspace) Derived(ctx context.Context, id artel.ArtifactID, version int) (Derived, error) {
	ref := artel.Ref{Conversation: w.cfg.Conversation, Artifact: normal(id), Version: version}
	return w.c.Derived(ctx, w.cfg.Owner, ref, w.cfg.Message)
}

// Limits of the cache. Package extract limits concurrent extractions. Extracted texts are cached in memory only: extraction is
// cheap compared with a model call, a newer program may extract more, and deleted
// artifacts leave nothing on disk.
const (
	maxDerived  = 64 << 20 // bytes of cached texts
	entryWeight = 1 << 10  // overhead of each entry in bytes
)

// A derivedKey identifies the source of an extracted text. The same bytes may have
// different media types under different names.
type derivedKey struct {
	digest             artel.Digest
	mediaType, charset string
}

// An extraction is in progress or finished. Until done is closed, only its owner
// uses the other fields.
type extraction struct {
	key  derivedKey
	done chan struct{}
	text extract.Extracted
	err  error
}

func (m *extraction) weight() int { return len(m.text.Text) + entryWeight }

// derivedTexts is an LRU cache of extractions.
type derivedTexts struct {
	mu      sync.Mutex
	byKey   map[derivedKey]*list.Element // of *extraction
	order   *list.List                   // finished ones, most recently used first
	weight  int                          // of all in order
	running map[derivedKey]*extraction
}

func newDerivedTexts() *derivedTexts {
	return &derivedTexts{
		byKey: map[derivedKey]*list.Element{}, order: list.New(), running: map[derivedKey]*extraction{},
	}
}

// get returns the text of v. The first caller extracts it while the others wait.
// If its context ends, one of the others starts again. No goroutine outlives its
// caller.
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

// find returns the cached or running extraction for key, or a new one that the
// caller must fill.
func (d *derivedTexts) find(key derivedKey) (m *extraction, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.byKey[key]; ok {
		d.order.MoveToFront(e)
		return e.Value.(*extraction), false
	}
	if m, ok := d.running[key]; ok {
		return m, false
	}
	m = &extraction{key: key, done: make(chan struct{})}
	d.running[key] = m
	return m, true
}

// fill runs produce and caches the result.
func (d *derivedTexts) fill(ctx context.Context, m *extraction, produce func(context.Context) (extract.Extracted, error)) {
	m.err = artel.Errorf(artel.Internal, "", "", "reading the document broke off") // if produce panics
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.running, m.key)
		switch artel.KindOf(m.err) {
		case "", artel.Invalid, artel.Unsupported, artel.TooLarge: // deterministic results
			d.add(m)
		}
		close(m.done)
	}()
	m.text, m.err = produce(ctx)
}

// add caches an extraction and drops the least recently used ones beyond the
// limit. The caller holds mu.
func (d *derivedTexts) add(m *extraction) {
	d.byKey[m.key] = d.order.PushFront(m)
	d.weight += m.weight()
	for d.weight > maxDerived && d.order.Len() > 1 {
		oldest := d.order.Remove(d.order.Back()).(*extraction)
		delete(d.byKey, oldest.key)
		d.weight -= oldest.weight()
	}
}
