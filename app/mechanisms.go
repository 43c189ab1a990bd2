// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline/token"
)

// Mechanisms are the stateless use cases: bytes or text in, an answer out,
// nothing stored. Only transcripts and captions from services are cached for a
// while, because they cost money.
type Mechanisms struct {
	core     *core
	spoolDir string
	maxBytes int64 // per call
	limits   *edit.Limits
	work     *semaphore.Weighted // bodies extracted or decoded at once
}

// maxWork is the number of bodies extracted or decoded at once, each within the
// limits of packages extract and picture.
const maxWork = 2

// one runs work when fewer than maxWork others are running.
func one[T any](ctx context.Context, m *Mechanisms, do func() (T, error)) (t T, err error) {
	if err := m.work.Acquire(ctx, 1); err != nil {
		return t, err
	}
	defer m.work.Release(1)
	return do()
}

// Detect returns the type of the bytes.
func (m *Mechanisms) Detect(ctx context.Context, u Upload) (artel.MediaInfo, error) {
	s, err := m.spool(u)
	if err != nil {
		return artel.MediaInfo{}, err
	}
	defer s.remove()
	return media.Measure(ctx, s.info, s.file), nil
}

// Sniff returns the type of bytes in memory, without dimensions or duration;
// Body is not read.
func (m *Mechanisms) Sniff(raw []byte, u Upload) artel.MediaInfo {
	info := media.Detect(raw, media.Hint{DeclaredType: u.DeclaredType, Filename: u.Filename})
	info.Size = int64(len(raw))
	return info
}

// Route calls encode with the form in which a model would get the bytes. The
// result is valid until encode returns.
func (m *Mechanisms) Route(ctx context.Context, u Upload, t Target, encode func(*route.Result) error) error {
	s, err := m.spool(u)
	if err != nil {
		return err
	}
	defer s.remove()
	info := media.Measure(ctx, s.info, s.file)
	result, err := m.core.route(route.Source{
		Filename: u.Filename, Info: info, CreatedAt: m.core.now(), Makers: m.spooled(ctx, s, info),
		Text: func() (string, error) {
			r, err := s.reader()
			if err != nil {
				return "", err
			}
			return media.DecodeText(r, s.info.Charset)
		},
		Open: func() (io.ReadCloser, error) {
			r, err := s.reader()
			return io.NopCloser(r), err
		},
	}, t)
	if err != nil {
		return err
	}
	return encode(result)
}

// Limits returns the limits of approximate matching for tools, which are the
// defaults everywhere.
func (m *Mechanisms) Limits() edit.Limits {
	if m.limits == nil {
		return edit.DefaultLimits()
	}
	return *m.limits
}

// spooled makes derived forms of a request body.
func (m *Mechanisms) spooled(ctx context.Context, s *spool, info artel.MediaInfo) route.Makers {
	return route.Makers{
		Extract: func() (extract.Extracted, error) {
			return one(ctx, m, func() (extract.Extracted, error) {
				return extract.Text(ctx, s.file, info.Size, info, extract.Options{PDF: m.core.pdf})
			})
		},
		Transcribe: func(pages int) (string, error) {
			info := info
			info.Pages = pages
			r, err := s.reader()
			if err != nil {
				return "", err
			}
			kept, err := m.core.blobs.Put(ctx, r, 0)
			if err != nil {
				return "", err
			}
			text, err := m.core.renditions.Words(ctx, artel.OwnerOf(ctx), rendition.Source{Digest: kept.Digest, MediaInfo: info})
			return text.Text, err
		},
		Convert: func(f picture.Form) (route.Converted, error) {
			return route.InMemory(one(ctx, m, func() (picture.Picture, error) { return picture.Convert(ctx, s.file, info.Size, f) }))
		},
		Pages: func(first, last int, f picture.Form) ([]route.Converted, error) {
			return route.AllInMemory(one(ctx, m, func() ([]picture.Picture, error) {
				return rendition.Draw(ctx, m.core.pdf, s.file, info.Size, first, last, f)
			}))
		},
	}
}

// Edit applies edits to a text; see [edit.Apply]. Missing limits default to
// those of the tools.
func (m *Mechanisms) Edit(ctx context.Context, text string, edits []edit.Edit, o edit.Options) (edit.Result, error) {
	if o.Limits == nil {
		limits := m.Limits()
		o.Limits = &limits
	}
	return edit.Apply(ctx, text, edits, o)
}

// CountTokens counts the tokens of a text in a vocabulary; see
// [token.Counter.Count].
func (m *Mechanisms) CountTokens(vocabulary, text string) (int, error) {
	return m.core.counter.Count(vocabulary, text)
}

// A Vocabulary describes the accuracy of counts in it.
type Vocabulary = token.Vocabulary

// Vocabularies returns the supported vocabularies, exact ones first.
func (m *Mechanisms) Vocabularies() []Vocabulary { return token.Known() }

// A spool is a request body on disk, so that it is never whole in memory.
type spool struct {
	file *os.File
	info artel.MediaInfo
}

func (m *Mechanisms) spool(u Upload) (*spool, error) {
	f, err := os.CreateTemp(m.spoolDir, "artel-spool-*")
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "app.Mechanisms", "", "no room for the request body: %w", err)
	}
	s := &spool{file: f}
	sniffer := media.NewSniffer(media.Hint{DeclaredType: u.DeclaredType, Filename: u.Filename})
	n, err := io.Copy(io.MultiWriter(f, sniffer), io.LimitReader(u.Body, m.maxBytes+1))
	if err != nil {
		s.remove()
		return nil, spoolError(err)
	}
	if n > m.maxBytes {
		s.remove()
		return nil, artel.Errorf(artel.TooLarge, "app.Mechanisms", "body", "more than the limit of %s; send less, or have the limit raised", phrase.Size(m.maxBytes))
	}
	s.info = sniffer.Info()
	return s, nil
}

// spoolError distinguishes a client that stopped sending from a full disk.
func spoolError(err error) error {
	if _, disk := errors.AsType[*os.PathError](err); disk {
		return artel.Errorf(artel.Unavailable, "app.Mechanisms", "", "no room for the request body: %w", err)
	}
	if artel.KindOf(err) != artel.Internal {
		return err
	}
	return artel.Errorf(artel.Invalid, "app.Mechanisms", "body", "it broke off: %w", err)
}

func (s *spool) reader() (io.Reader, error) {
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) remove() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name())
}
