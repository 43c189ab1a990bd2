// SPDX-License-Identifier: Apache-2.0

// Package rendition makes and stores other forms of media: converted pictures,
// transcripts of recordings and captions of pictures.
//
// Begin with [New] and the methods of [Maker]. A rendition is a blob, with a row
// for its source and form; it is reused, also after a restart. Concurrent
// requests for one rendition share one job; if its caller cancels, a waiting
// caller takes over. Failures are cached for a while, so that damaged pictures
// are not decoded, and refusing services not called, again and again.
//
// Renditions belong to an owner and are not shared between owners. With a source
// its rows are deleted by store.Renditions.Delete, and their blobs with the next
// collection. Package route decides which form is needed.
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
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Config configures a [Maker]. Store and Blobs are required; without Caller or
// Services nothing is transcribed or captioned.
type Config struct {
	Store    store.Store
	Blobs    blob.Store
	Caller   *model.Caller
	Services *model.Registry
	PDF      *pdf.Engine // draws pages of PDFs; nil: none are drawn
	Options  Options
}

// Options are optional settings.
type Options struct {
	Transcription Transcription
	Caption       Caption
	Log           *slog.Logger     // receives failures; nil: no log
	Now           func() time.Time // nil: time.Now
}

// Transcription names the service for transcripts. The zero value disables them.
type Transcription struct {
	Service  artel.ServiceID // of a dialect with a transcription endpoint
	Model    string          // "": the service's own
	Language string          // ISO 639-1 code; "": detected by the service
	MaxBytes int64           // of one recording; 0: model.MaxRecording
}

// Caption names the service for captions. The zero value disables them.
type Caption struct {
	Service artel.ServiceID
	Prompt  string // the question about each picture; "": DefaultPrompt
}

// DefaultPrompt asks for a caption.
const DefaultPrompt = "Describe this picture for somebody who cannot see it: first what it is, then what it shows from the most to the least important, " +
	"and all text in it, word for word. Write plain text, without an introduction. If something cannot be made out, say so."

// A Maker makes renditions. It is safe for concurrent use and starts no
// goroutine.
type Maker struct {
	cfg        Config
	jobs       *jobs
	memory     *semaphore.Weighted // bytes of pictures being decoded
	calls      *semaphore.Weighted // concurrent calls of services
	cachedOnly bool                // makes no calls
	reported   func(Call)          // nil: calls are not reported
}

// A Call is a call of a service, also one whose answer broke off.
type Call struct {
	Service model.Service
	Request *model.Request // of a caption; nil: of a transcript
	Text    string         // of the answer
	Usage   artel.Usage    // as reported; zero: nothing was
}

// Reporting returns a maker that passes its calls to reported, from the goroutine
// that makes them. A rendition that another caller is already making is reported
// to that one.
func (m *Maker) Reporting(reported func(Call)) *Maker {
	c := *m
	c.reported = reported
	return &c
}

func (m *Maker) report(c Call) {
	if m.reported != nil {
		m.reported(c)
	}
}

// CodePending is the error code for text that would need a call, which a maker of
// [Maker.CachedOnly] does not make.
const CodePending = "pending"

// CachedOnly returns a maker that calls no service: it returns stored transcripts and
// captions only. It does convert pictures.
func (m *Maker) CachedOnly() *Maker {
	c := *m
	c.cachedOnly = true
	return &c
}

// Limits.
const (
	pictureMemory = 512 << 20 // bytes of all pictures being converted
	calls         = 4         // concurrent transcripts and captions
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

// A Source is the original bytes.
type Source struct {
	Digest artel.Digest
	artel.MediaInfo
}

// A Rendition is another form of a [Source].
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
	// Scaling needs up to two copies of the source's pixels at four bytes each.
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

// getOrMake returns the stored rendition of a form, or makes it with produce.
func (m *Maker) getOrMake(ctx context.Context, owner artel.Owner, s Source, form string, produce producer) (Rendition, error) {
	return m.jobs.once(ctx, key{owner, s.Digest, form}, func(ctx context.Context) (Rendition, error) {
		if r, ok, err := m.lookup(ctx, owner, s.Digest, form); ok || err != nil {
			return r, err
		}
		return m.make(ctx, owner, s, form, produce)
	})
}

// A producer makes the bytes of a rendition.
type producer func(ctx context.Context, src blob.Reader) (io.Reader, artel.MediaInfo, error)

// lookup returns the stored rendition, if any. A row without its blob does not
// count.
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
