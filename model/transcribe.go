// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// A Transcriber transcribes recordings. [Provider] values of dialects with an
// endpoint for it implement it. Errors are those of [Provider].
type Transcriber interface {
	// Transcribe returns the transcript of a recording, in UTF-8.
	Transcribe(ctx context.Context, r *Recording) (string, error)
}

// A Recording is audio, or video with audio, to be transcribed.
type Recording struct {
	Service  Service     // its Model transcribes
	Media    artel.Media // with a blob ref, the size and the media type
	Language string      // ISO 639-1 code; "": detected by the service
}

// MaxRecording is the default limit on the bytes of a recording: that of OpenAI.
const MaxRecording = 25 << 20

// Transcribes reports whether the dialect has a transcription endpoint.
func (d Dialect) Transcribes() bool { return d == OpenAI }

// Transcribable reports whether transcription services take media of a type.
func Transcribable(mediaType string) bool { return RecordingExtension(mediaType) != "" }

// recordingExtensions are the file extensions, with their dots, that transcription
// services expect for media types.
var recordingExtensions = map[string]string{
	"audio/mpeg": ".mp3", "audio/mp3": ".mp3",
	"audio/mp4": ".m4a", "audio/x-m4a": ".m4a", "audio/m4a": ".m4a",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/wave": ".wav", "audio/vnd.wave": ".wav",
	"audio/webm": ".webm", "video/webm": ".webm",
	"audio/ogg": ".ogg", "application/ogg": ".ogg",
	"audio/flac": ".flac", "audio/x-flac": ".flac",
	"video/mp4":  ".mp4",
	"video/mpeg": ".mpeg",
}

// RecordingExtension returns the file extension, with its dot, that transcription
// services expect for a media type; "" if they do not take it.
func RecordingExtension(mediaType string) string { return recordingExtensions[mediaType] }

// Transcribe has a service transcribe a recording. Attempts, the concurrency limit
// and the errors are those of [Caller.Call]. The answer is not streamed, so the
// idle timeout bounds a whole attempt. A dialect without a transcription endpoint
// is of kind Unsupported.
func (c *Caller) Transcribe(ctx context.Context, r *Recording) (string, error) {
	p, err := c.provider(r.Service)
	if err != nil {
		return "", err
	}
	t, ok := p.(Transcriber)
	if !ok {
		return "", artel.Errorf(artel.Unsupported, "model.Transcribe", string(r.Service.ID),
			"services of the dialect %q do not transcribe recordings", r.Service.Dialect)
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
	charge := Charge{End: func(Spent) {}}
	if c.opts.Charge != nil {
		if charge, err = c.opts.Charge(ctx, PaidCall{Service: &r.Service, Fixed: true}); err != nil { // its length in tokens is not known
			return "", err
		}
	}
	limit := c.opts.IdleTimeout
	if r.Service.Timeout > 0 {
		limit = r.Service.Timeout
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(limit, func() { cancel(errIdle) })
	defer watch.Stop()
	text, err := t.Transcribe(call, r)
	charge.End(Spent{Started: err == nil, Said: text})
	if err != nil && context.Cause(call) == errIdle && ctx.Err() == nil {
		return "", idleError(r.Service.ID, limit, limit, false)
	}
	return text, err
}
