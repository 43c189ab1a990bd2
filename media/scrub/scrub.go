// SPDX-License-Identifier: Apache-2.0

// Package scrub replaces encoded media in text by short refs. It finds base64 and
// percent-encoded data URIs, base64 with the signature of a known format, the
// payloads of media blocks in JSON (OpenAI, Anthropic, Gemini, MCP, AI SDK,
// LangChain), and hex dumps of images.
//
// Begin with [Text] for a string, [Copy] for a reader, and [Stream] for text that
// arrives in pieces. Each calls a [Sink] for every match, which stores the decoded
// bytes and returns the replacement. The package itself stores nothing.
//
// Text is scanned as bytes, so matches are found in JSON, in JSON inside of JSON
// strings, in Markdown, HTML and logs. Only the base64 or data URI is replaced, so
// that JSON stays valid:
//
//	{"type":"image","source":{"type":"base64","media_type":"image/png","data":"artifact:cnv_…/image_1.png@1"}}
//
// Bytes without a known signature are found in data URIs and media blocks only.
// A payload there that is not base64, is empty, or contradicts its media type is
// replaced by [Invalid]. Refs, URLs and that mark are never changed, so scrubbing
// twice changes nothing.
//
// The result does not depend on how the input is cut into pieces. Memory is
// bounded by [MaxBuffered].
package scrub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/artelhq/artel"
)

// A Sink handles one match. It reads the decoded bytes from r and returns the
// replacement, such as a ref: short and without quotes, backslashes and control
// characters, which would become "_".
//
// If reading fails with [ErrInvalid], the payload is replaced by an [Invalid] mark
// regardless of the result. The same happens if Sink returns an error of kind
// [artel.TooLarge] or [artel.Invalid]; any other error ends the scrubbing. Unread
// bytes are skipped.
type Sink func(ctx context.Context, r io.Reader, h Hint) (string, error)

// A Hint is the text's description of a match.
type Hint struct {
	MediaType string // as declared, in lower case without parameters; empty: none
	Filename  string // of the block or the URI; may be empty
	Signature string // the media type by the first bytes; empty: unknown
}

// MaxBuffered limits how many bytes are buffered while a payload precedes the JSON
// members that declare it. A longer payload of valid base64 counts as media.
const MaxBuffered = 1 << 20

// ErrInvalid is wrapped by errors of reading a match that turns out to be no
// media.
var ErrInvalid = errors.New("invalid media")

// Invalid returns the replacement of an invalid payload.
func Invalid(why string) string { return "[invalid media: " + why + "]" }

// Copy writes src to dst with every match replaced. The error is that of dst, src,
// sink or ctx.
func Copy(ctx context.Context, dst io.Writer, src io.Reader, keep Sink) error {
	s := newScanner(ctx, keep)
	s.w.read = src.Read
	s.w.emit = func(p []byte) error {
		_, err := dst.Write(p)
		return err
	}
	return s.run()
}

// Text returns text with every match replaced; text itself without a match.
func Text(ctx context.Context, text string, keep Sink) (string, error) {
	return whole(ctx, text, keep, nil)
}

// Media is [Text], except that invalid payloads stay unchanged: for text that must
// not be changed without need. After each match it calls replaced with the matched text
// and the result of sink, and puts the result of replaced in the text.
func Media(ctx context.Context, text string, sink Sink, replaced func(original, by string) string) (string, error) {
	return whole(ctx, text, sink, replaced)
}

func whole(ctx context.Context, text string, keep Sink, replaced func(original, by string) string) (string, error) {
	var out bytes.Buffer
	s := newScanner(ctx, keep)
	s.replaced = replaced
	s.w.whole([]byte(text))
	s.w.emit = func(p []byte) error {
		_, err := out.Write(p)
		return err
	}
	err := s.run()
	if err != nil || !s.found {
		return text, err
	}
	return out.String(), nil
}

// Line returns s, such as a title or a line of a log, with every match replaced by
// a short description.
func Line(s string) string {
	// Describe fails only if reading does, and s is in memory.
	out, _ := Text(context.Background(), s, Describe)
	return out
}

// Describe is a [Sink] that stores nothing and returns a description like
// "[image/png, 68 bytes]".
func Describe(_ context.Context, r io.Reader, h Hint) (string, error) {
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return "", err
	}
	name := "media"
	if h.Signature != "" {
		name = h.Signature
	} else if h.MediaType != "" {
		name = h.MediaType
	}
	return fmt.Sprintf("[%s, %d bytes]", name, n), nil
}

// A Stream scrubs text that arrives in pieces. It is for one goroutine, which must
// close or stop it.
type Stream struct {
	s    *scanner
	out  bytes.Buffer
	in   string
	last bool

	next func() (struct{}, bool)
	stop func()
	err  error
	done bool
}

// sanitize replaces characters that would need an escape in a JSON string by "_".
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '\\' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, s)
}

// refusal returns the [Invalid] mark for an error of a Sink about the bytes.
func refusal(err error) (string, bool) {
	if isRefusal(err) {
		return Invalid(artel.Shorten(err.Error(), 200)), true
	}
	return "", false
}

func isRefusal(err error) bool {
	return errors.Is(err, artel.TooLarge) || errors.Is(err, artel.Invalid)
}
