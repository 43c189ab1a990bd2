// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// A Transcriber turns recordings into text. A [Provider] whose dialect has an
// endpoint for that is one. Its errors are those of [Provider].
type Transcriber interface {
	// Transcribe returns what is said in a recording, in UTF-8.
	Transcribe(ctx context.Context, r *Recording) (string, error)
}

// A Recording is sound, or video with sound, that is to be written down.
type Recording struct {
	Service  Service     // its Model writes it down
	Media    artel.Media // with a blob ref, the size and the media type
	Language string      // of what is said, as ISO 639-1 has it; "": the service finds out
}

// MaxRecording is the most bytes of a recording that transcription services
// take where nobody knows better: the limit of OpenAI's.
const MaxRecording = 25 << 20

// Transcribes reports whether services of the dialect can have an endpoint that
// writes recordings down.
func (d Dialect) Transcribes() bool { return d == OpenAI }

// Transcribable reports whether transcription services take media of a type.
func Transcribable(mediaType string) bool { return RecordingExtension(mediaType) != "" }

// RecordingExtension returns the extension by which transcription services know
// a media type, with its dot; "" where they do not take it.
func RecordingExtension(mediaType string) string {
	switch mediaType {
	case "audio/mpeg", "audio/mp3":
		return ".mp3"
	case "audio/mp4", "audio/x-m4a", "audio/m4a":
		return ".m4a"
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return ".wav"
	case "audio/webm", "video/webm":
		return ".webm"
	case "audio/ogg", "application/ogg":
		return ".ogg"
	case "audio/flac", "audio/x-flac":
		return ".flac"
	case "video/mp4":
		return ".mp4"
	case "video/mpeg":
		return ".mpeg"
	}
	return ""
}

// Transcribe has a service write a recording down. Attempts, the limit on calls
// at once and the classes of errors are those of [Caller.Call]; the answer
// comes whole, so the longest silence of the service is the most that one
// attempt may take. A service whose dialect has no such endpoint is of kind
// Unsupported.
func (c *Caller) Transcribe(ctx context.Context, r *Recording) (string, error) {
	p, err := c.provider(r.Service)
	if err != nil {
		return "", err
	}
	t, ok := p.(Transcriber)
	if !ok {
		return "", artel.Errorf(artel.Unsupported, "model.Transcribe", string(r.Service.ID),
			"services of the dialect %q write no recordings down", r.Service.Dialect)
	}
	for attempt := 1; ; attempt++ {
		text, err := c.transcribe(ctx, t, r)
		if err == nil {
			return text, nil
		}
		wait, again := c.next(attempt, err)
		if !again || ctx.Err() != nil {
			return "", finalError(ctx, r.Service.ID, attempt, err)
		}
		c.opts.Log.WarnContext(ctx, "transcription failed, trying again", "service", r.Service.ID, "attempt", attempt, "wait", wait, "error", err)
		if err := sleep(ctx, wait); err != nil {
			return "", finalError(ctx, r.Service.ID, attempt, err)
		}
	}
}

func (c *Caller) transcribe(ctx context.Context, t Transcriber, r *Recording) (string, error) {
	leave, err := c.enter(ctx, r.Service)
	if err != nil {
		return "", err
	}
	defer leave()
	limit := c.opts.IdleTimeout
	if r.Service.Timeout > 0 {
		limit = r.Service.Timeout
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(limit, func() { cancel(errIdle) })
	defer watch.Stop()
	text, err := t.Transcribe(call, r)
	if err != nil && context.Cause(call) == errIdle && ctx.Err() == nil {
		return "", idleError(r.Service.ID, limit, limit, false)
	}
	return text, err
}
