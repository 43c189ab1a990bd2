// SPDX-License-Identifier: Apache-2.0

// Package scrub finds bytes that travel as text and hands them to a sink, so
// that a short ref stands in their place.
//
// Begin with [Text] for what is in memory, [Copy] for a stream that is read,
// and [Stream] for one that comes in pieces, such as the answer of a model.
// Each of them calls a [Sink] for every hit, which reads the decoded bytes and
// returns the text that takes their place.
//
// # What is found
//
//   - data URIs of any media type with base64, whatever their parameters, and
//     percent-encoded ones whose bytes begin as a known format does;
//   - bare base64, of both alphabets, padded or not, in wrapped lines or in
//     one, whose bytes begin as a known format does beyond chance;
//   - the payload of media blocks: those of OpenAI (image_url, input_image,
//     input_audio, file, input_file, b64_json), of Anthropic (image and document
//     with a base64 source), of Gemini (inlineData, inline_data), of MCP (image,
//     audio, resource with a blob), of the AI SDK (image, file, image-data,
//     file-data, media) and of LangChain (source_type, base64);
//   - hex dumps of images: digits in one piece or byte by byte, and the output
//     of xxd and hexdump -C.
//
// Text is looked at as bytes, not as a tree, so that it does not matter what
// the media lie in: JSON, JSON in a string of JSON to any depth, Markdown,
// HTML, CSS, a log. Escapes of JSON count as what they stand for; of a media
// block, the members around the payload are read, at its own depth of escapes.
//
// # What comes out
//
// The replacement stands exactly where the base64 or the data URI stood, and
// every other byte is as it was. So JSON stays valid, and a block stays a block
// that names the ref where its payload was:
//
//	{"type":"image","source":{"type":"base64","media_type":"image/png","data":"artifact:cnv_…/image_1.png@1"}}
//
// Bytes without a known signature are found in a data URI and in a block only.
// There, what is no base64, is empty, or is not the kind of media that it is
// said to be becomes [Invalid] and why. Base64 that begins as media do, and is
// cut off in the middle of a byte, does too. A ref, an address and that mark are
// left alone, so what was scrubbed once is not changed a second time.
//
// The same input gives the same output and the same calls of Sink, however it
// is cut into pieces. The work grows with the input; memory does not, beyond
// [MaxBuffered] bytes, which a block is held back for whose type comes after its
// payload. Nothing is decoded but base64, percent signs and hex digits: no
// picture, no archive.
//
// The package opens and stores nothing. What is kept under which name, and
// whose it is, is up to the Sink.
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

// A Sink takes one hit. It reads r, which yields the decoded bytes, and returns
// the text that stands in their place, such as a ref: short, and without
// quotes, backslashes and control characters, which would be replaced.
//
// Reading fails with an error that is [ErrInvalid] where the text turns out not
// to be what it seemed; then the mark of [Invalid] takes its place, whatever
// Sink returns. So does an error of kind [artel.TooLarge] or [artel.Invalid]
// with its text. Any other error ends the scrubbing. What Sink does not read is
// read over.
type Sink func(ctx context.Context, r io.Reader, h Hint) (string, error)

// A Hint is what the text says about a hit.
type Hint struct {
	MediaType string // as declared, in lower case without parameters; empty: nothing is said
	Filename  string // as the block or the URI names it; may be empty
	Signature string // the media type that the first bytes show; empty: they are of no known format
}

// MaxBuffered is the most that is held back, in bytes, to find out what a payload is
// that comes before the members that say so. A longer one that is base64 from
// end to end is taken for media.
const MaxBuffered = 1 << 20

// ErrInvalid is in the chain of what reading a hit fails with where its text is
// not what it seemed.
var ErrInvalid = errors.New("invalid media")

// Invalid is the text in the place of a payload that is none.
func Invalid(why string) string { return "[invalid media: " + why + "]" }

// Copy reads src to its end and writes what is left of it to dst. The error is
// of dst, src or keep, as it was, or of ctx.
func Copy(ctx context.Context, dst io.Writer, src io.Reader, keep Sink) error {
	s := newScanner(ctx, keep)
	s.w.read = src.Read
	s.w.emit = func(p []byte) error {
		_, err := dst.Write(p)
		return err
	}
	return s.run()
}

// Text returns what is left of s: s itself where nothing was found.
func Text(ctx context.Context, text string, keep Sink) (string, error) {
	return whole(ctx, text, keep, false)
}

// Media is [Text], except that what turns out to be no media stays as it is: for
// texts of others, of which nothing may be changed without need.
func Media(ctx context.Context, text string, keep Sink) (string, error) {
	return whole(ctx, text, keep, true)
}

func whole(ctx context.Context, text string, keep Sink, exact bool) (string, error) {
	var out bytes.Buffer
	s := newScanner(ctx, keep)
	s.mediaOnly = exact
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

// Line returns s, such as a title or a line of a log, with a short description
// in the place of each hit. Nothing is kept.
func Line(s string) string {
	// Describe fails as little as reading from memory does.
	out, _ := Text(context.Background(), s, Describe)
	return out
}

// Describe is a [Sink] that keeps nothing: what it returns says what was there,
// like "[image/png, 68 bytes]".
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

// A Stream scrubs text that comes in pieces. It is used by one goroutine, and
// closed or stopped.
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

// inert is text as it may stand inside of a string of JSON, unescaped.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '\\' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, s)
}

// refusal is the mark for an error of a Sink that is about the bytes.
func refusal(err error) (string, bool) {
	if isRefusal(err) {
		return Invalid(artel.Shorten(err.Error(), 200)), true
	}
	return "", false
}

func isRefusal(err error) bool {
	return errors.Is(err, artel.TooLarge) || errors.Is(err, artel.Invalid)
}
