// SPDX-License-Identifier: Apache-2.0

// Package rendition makes other forms of bytes once, and remembers them: a
// picture that is smaller or of another type, the words of a recording, what a
// picture shows.
//
// Begin with [New] and the methods of [Maker]. What was made is a blob, and a
// row says of which bytes and in which form; whoever asks for the same form of
// the same bytes gets it, also after a restart. Those who ask at once wait for
// one making; nobody's leaving ends what another waits for. A failure is
// remembered for a while, so that a damaged picture is not decoded and a
// service that refuses is not paid for again and again.
//
// Renditions belong to an owner: nobody learns from them what somebody else
// has. When a source goes, its rows go by store.Renditions.Delete, and their
// blobs with the next collection. Which form somebody needs is decided in
// package route, and which text a document holds in package extract.
package rendition

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Config is what a [Maker] is made of. Store and Blobs are needed; without a
// Caller or Services nothing is written down or captioned.
type Config struct {
	Store    store.Store
	Blobs    blob.Store
	Caller   *model.Caller
	Services *model.Registry
	Options  Options
}

// Options are what may be left out.
type Options struct {
	Transcription Transcription
	Caption       Caption
	Log           *slog.Logger     // told about what could not be made; nil: nobody
	Now           func() time.Time // nil: time.Now
}

// Transcription says who writes recordings down. The zero value is nobody.
type Transcription struct {
	Service  artel.ServiceID // of a dialect that has an endpoint for it
	Model    string          // "": the service's own
	Language string          // of what is said, as ISO 639-1 has it; "": the service finds out
	MaxBytes int64           // of one recording; 0: model.MaxRecording
}

// Caption says who puts pictures into words. The zero value is nobody.
type Caption struct {
	Service artel.ServiceID
	Prompt  string // what it is asked about each picture; "": DefaultPrompt
}

// DefaultPrompt asks for a caption.
const DefaultPrompt = "Describe this picture for somebody who cannot see it: first what it is, then what it shows from the most to the least important, " +
	"and all text in it, word for word. Write plain text, without an introduction. If something cannot be made out, say so."

// A Maker makes renditions. It is safe for concurrent use and starts no
// goroutine.
type Maker struct {
	cfg        Config
	jobs       *jobs
	memory     *semaphore.Weighted // bytes that pictures take while they are decoded
	calls      *semaphore.Weighted // calls of services
	cachedOnly bool                // nobody is asked
}

// CodePending is the error code of words that a maker of [Maker.CachedOnly] would
// have to ask a service for.
const CodePending = "pending"

// CachedOnly returns a maker that asks no service, which might cost something: it
// knows the words that were made before. What is made on this machine, it makes.
func (m *Maker) CachedOnly() *Maker {
	c := *m
	c.cachedOnly = true
	return &c
}

// Bounds on making.
const (
	pictureMemory = 512 << 20 // bytes that all pictures take together while they are made
	calls         = 4         // transcripts and captions that are made at once
)

// New returns a maker.
func New(c Config) *Maker {
	if c.Options.Now == nil {
		c.Options.Now = time.Now
	}
	if c.Options.Log == nil {
		c.Options.Log = slog.New(slog.DiscardHandler)
	}
	return &Maker{
		cfg: c, jobs: newJobs(c.Options.Now),
		memory: semaphore.NewWeighted(pictureMemory), calls: semaphore.NewWeighted(calls),
	}
}

// A Source is the bytes of which something is made.
type Source struct {
	Digest artel.Digest
	artel.MediaInfo
}

// A Rendition is made bytes.
type Rendition struct {
	Digest artel.Digest
	artel.MediaInfo
}

// Picture returns a picture in form f. Errors are those of [picture.Convert],
// and of the blob store.
func (m *Maker) Picture(ctx context.Context, owner artel.Owner, s Source, f picture.Form) (Rendition, error) {
	return m.getOrMake(ctx, owner, s, f.String(), func(ctx context.Context, src blob.Reader) (io.Reader, artel.MediaInfo, error) {
		return m.convert(ctx, src, f)
	})
}

func (m *Maker) convert(ctx context.Context, src blob.Reader, f picture.Form) (_ io.Reader, _ artel.MediaInfo, err error) {
	info, err := picture.Look(ctx, src, src.Size())
	if err != nil {
		return nil, artel.MediaInfo{}, err
	}
	// The result has at most the pixels of the source, at four bytes each.
	need := min(info.Memory+8*info.Pixels(), pictureMemory)
	if err := m.memory.Acquire(ctx, need); err != nil {
		return nil, artel.MediaInfo{}, err
	}
	defer m.memory.Release(need)
	p, err := picture.Convert(ctx, src, src.Size(), f)
	if err != nil {
		return nil, artel.MediaInfo{}, err
	}
	return bytes.NewReader(p.Data), artel.MediaInfo{
		MediaType: p.MediaType, Kind: artel.KindImage, DetectedBy: artel.FromSignature, Confidence: 1,
		Size: int64(len(p.Data)), Width: p.Width, Height: p.Height,
	}, nil
}

// Open returns the bytes of a rendition or of a source; the caller closes them.
func (m *Maker) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	return m.cfg.Blobs.Open(ctx, d)
}

// made returns the rendition of a form, made by produce where there is none.
func (m *Maker) getOrMake(ctx context.Context, owner artel.Owner, s Source, form string, produce producer) (Rendition, error) {
	return m.jobs.once(ctx, key{owner, s.Digest, form}, func(ctx context.Context) (Rendition, error) {
		if r, ok, err := m.lookup(ctx, owner, s.Digest, form); ok || err != nil {
			return r, err
		}
		return m.make(ctx, owner, s, form, produce)
	})
}

// producer makes bytes of a source.
type producer func(ctx context.Context, src blob.Reader) (io.Reader, artel.MediaInfo, error)

// found looks for what was made before. A row whose bytes are gone counts for
// nothing: they are made again.
func (m *Maker) lookup(ctx context.Context, owner artel.Owner, d artel.Digest, form string) (Rendition, bool, error) {
	var row store.Rendition
	err := m.cfg.Store.View(ctx, owner, func(tx store.Tx) (err error) {
		row, err = tx.Renditions.Get(d, form)
		return err
	})
	if err == nil {
		_, err = m.cfg.Blobs.Stat(ctx, row.Digest)
	}
	if errors.Is(err, artel.NotFound) {
		return Rendition{}, false, nil
	}
	return Rendition{row.Digest, row.MediaInfo}, err == nil, err
}

func (m *Maker) make(ctx context.Context, owner artel.Owner, s Source, form string, produce producer) (r Rendition, err error) {
	src, err := m.cfg.Blobs.Open(ctx, s.Digest)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	data, info, err := produce(ctx, src)
	if err != nil {
		return r, err
	}
	kept, err := m.cfg.Blobs.Put(ctx, data, 0)
	if err != nil {
		return r, err
	}
	info.Size = kept.Size
	r = Rendition{kept.Digest, info}
	return r, m.cfg.Store.Update(ctx, owner, func(tx store.Tx) error {
		return tx.Renditions.Put(store.Rendition{
			Source: s.Digest, Form: form, Digest: r.Digest, MediaInfo: info, CreatedAt: m.cfg.Options.Now().UTC().Truncate(time.Microsecond),
		})
	})
}
