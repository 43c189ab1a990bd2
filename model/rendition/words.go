// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
)

// A Text is a transcript or caption.
type Text struct {
	Text    string
	Service artel.ServiceID // that made it
}

// plain is the media type of a [Text].
const plain = "text/plain"

// Transcriber returns the transcription service and its limit on bytes; false if
// none is configured or it cannot be called.
func (m *Maker) Transcriber() (service artel.ServiceID, maxBytes int64, ok bool) {
	s, ok := m.service(m.cfg.Options.Transcription.Service)
	ok = ok && s.Dialect.Transcribes()
	return s.ID, cmp.Or(m.cfg.Options.Transcription.MaxBytes, model.MaxRecording), ok
}

// Captioner returns the caption service; false if there is none with vision that
// can be called.
func (m *Maker) Captioner() (artel.ServiceID, bool) {
	s, ok := m.service(m.cfg.Options.Caption.Service)
	if !ok || !s.OnWire().Capabilities.Has(artel.CanVision) {
		return "", false
	}
	return s.ID, true
}

// service looks up a callable service.
func (m *Maker) service(id artel.ServiceID) (model.Service, bool) {
	if id == "" || m.cfg.Services == nil || m.cfg.Caller == nil {
		return model.Service{}, false
	}
	s, ok := m.cfg.Services.Lookup(id)
	return s, ok && s.Callable()
}

// Words returns the caption of a picture, the text of the pages of a scanned PDF of s.Pages
// pages, at most [MaxPages], and the transcript of anything else.
func (m *Maker) Words(ctx context.Context, owner artel.Owner, s Source) (Text, error) {
	switch {
	case s.Kind == artel.KindImage:
		return m.Caption(ctx, owner, s)
	case s.MediaType == typePDF:
		return m.Pages().Words(ctx, owner, s, 1, MaxPages)
	}
	return m.Transcript(ctx, owner, s)
}

// Transcript returns the transcript of a recording. Errors are of kind Unsupported
// without a transcriber for the media type, TooLarge beyond its limit, or those
// of [model.Caller.Transcribe].
func (m *Maker) Transcript(ctx context.Context, owner artel.Owner, s Source) (Text, error) {
	const op = "rendition.Transcript"
	t := m.cfg.Options.Transcription
	id, limit, ok := m.Transcriber()
	switch {
	case !ok:
		return Text{}, artel.Errorf(artel.Unsupported, op, string(s.Digest), "no service that writes recordings down is configured (transcription.service)")
	case !model.Transcribable(s.MediaType):
		return Text{}, artel.Errorf(artel.Unsupported, op, string(s.Digest), "media of type %s are not written down", artel.Shorten(s.MediaType, 80))
	case s.Size > limit:
		return Text{}, artel.Errorf(artel.TooLarge, op, string(s.Digest), "it has %d bytes; a recording that is written down has at most %d", s.Size, limit)
	}
	service, _ := m.service(id)
	service.Model = cmp.Or(t.Model, service.Model)
	form := fmt.Sprintf("transcript/1;service=%s;model=%s;language=%s;type=%s", id, service.Model, t.Language, s.MediaType)
	return m.words(ctx, owner, s, form, id, func(ctx context.Context, src blob.Reader) (string, error) {
		text, err := m.cfg.Caller.Transcribe(ctx, &model.Recording{
			Service: service, Language: t.Language,
			Media: artel.Media{Ref: artel.BlobRef(s.Digest), MediaType: s.MediaType, Kind: s.Kind, Size: src.Size()},
		})
		if err == nil {
			m.report(Call{Service: service, Text: text})
		}
		return text, err
	})
}

// captionSide limits the sides of pictures sent for captions, in pixels: most
// models scale larger ones down to it.
const captionSide = 1568

// captionOutput limits a caption, in tokens.
const captionOutput = 1500

// Caption returns a description of a picture. Errors are of kind Unsupported
// without a captioner for the picture, or those of [Maker.Picture] and
// [model.Caller.Call].
func (m *Maker) Caption(ctx context.Context, owner artel.Owner, s Source) (Text, error) {
	const op = "rendition.Caption"
	id, ok := m.Captioner()
	if !ok {
		return Text{}, artel.Errorf(artel.Unsupported, op, string(s.Digest), "no service that puts pictures into words is configured (caption.service)")
	}
	if s.Kind != artel.KindImage {
		return Text{}, artel.Errorf(artel.Unsupported, op, string(s.Digest), "media of type %s are no pictures", artel.Shorten(s.MediaType, 80))
	}
	service, _ := m.service(id)
	service = service.OnWire()
	prompt := cmp.Or(strings.TrimSpace(m.cfg.Options.Caption.Prompt), DefaultPrompt)
	asked := sha256.Sum256([]byte(prompt))
	form := fmt.Sprintf("caption/1;service=%s;model=%s;prompt=%s", id, service.Model, hex.EncodeToString(asked[:8]))
	return m.words(ctx, owner, s, form, id, func(ctx context.Context, _ blob.Reader) (string, error) {
		shown, err := m.shown(ctx, owner, s, service.Capabilities)
		if err != nil {
			return "", err
		}
		return m.ask(ctx, &model.Request{
			Service: service, MaxOutput: captionOutput,
			Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: prompt}, shown}}},
		})
	})
}

// shown returns a picture in a form that the service takes, scaled down to
// captionSide.
func (m *Maker) shown(ctx context.Context, owner artel.Owner, s Source, c model.Capabilities) (artel.Media, error) {
	r := Rendition(s)
	native := c.Admits(s.MediaType) && c.Fits(s.MediaInfo)
	if picture.Supports(s.MediaType) && (!native || max(s.Width, s.Height) > captionSide) {
		form := c.PictureForm()
		if form.Side == 0 || form.Side > captionSide {
			form.Side = captionSide
		}
		var err error
		if r, err = m.Picture(ctx, owner, s, form); err != nil {
			return artel.Media{}, err
		}
	} else if !native {
		return artel.Media{}, artel.Errorf(artel.Unsupported, "rendition.Caption", string(s.Digest), "pictures of type %s are not put into words", artel.Shorten(s.MediaType, 80))
	}
	return artel.Media{
		Ref: artel.BlobRef(r.Digest), MediaType: r.MediaType, Kind: artel.KindImage, Size: r.Size, Width: r.Width, Height: r.Height,
	}, nil
}

// ask returns the text of a model's answer.
func (m *Maker) ask(ctx context.Context, r *model.Request) (string, error) {
	a, err := m.cfg.Caller.CallText(ctx, r)
	if a.Started {
		m.report(Call{Service: r.Service, Request: r, Text: a.Text, Usage: a.End.Usage})
	}
	if err == nil && strings.TrimSpace(a.Text) == "" {
		err = artel.Errorf(artel.Unavailable, "rendition.Caption", string(r.Service.ID), "the model said nothing about the picture")
	}
	return a.Text, err
}

// words returns a stored text, or makes it with say.
func (m *Maker) words(ctx context.Context, owner artel.Owner, s Source, form string, id artel.ServiceID,
	say func(context.Context, blob.Reader) (string, error),
) (Text, error) {
	if m.cachedOnly {
		r, ok, err := m.lookup(ctx, owner, s.Digest, form)
		if err == nil && !ok {
			err = &artel.Error{
				Op: "rendition.Words", Subject: string(s.Digest), Kind: artel.Unavailable, Code: CodePending,
				Err: fmt.Errorf("it is not in words yet; %s is asked for them when it is sent", id),
			}
		}
		if err != nil {
			return Text{}, err
		}
		return m.text(ctx, r, id)
	}
	r, err := m.getOrMake(ctx, owner, s, form, func(ctx context.Context, src blob.Reader) (io.Reader, artel.MediaInfo, error) {
		if err := m.calls.Acquire(ctx, 1); err != nil {
			return nil, artel.MediaInfo{}, err
		}
		defer m.calls.Release(1)
		text, err := say(ctx, src)
		if err != nil {
			m.cfg.Options.Log.WarnContext(ctx, "a service could not put media into words", "service", id, "source", s.Digest, "error", err)
			return nil, artel.MediaInfo{}, err
		}
		text = strings.ToValidUTF8(strings.TrimSpace(text), string(utf8.RuneError))
		return strings.NewReader(text), artel.MediaInfo{MediaType: plain, Kind: artel.KindText, Charset: "utf-8"}, nil
	})
	if err != nil {
		return Text{}, err
	}
	return m.text(ctx, r, id)
}

// text reads a stored text.
func (m *Maker) text(ctx context.Context, r Rendition, id artel.ServiceID) (w Text, err error) {
	src, err := m.cfg.Blobs.Open(ctx, r.Digest)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	text, err := io.ReadAll(src)
	return Text{string(text), id}, err
}
