// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
)

// A source is the content of a media part.
type source struct {
	media  artel.Media // pinned to a version
	info   artel.MediaInfo
	digest artel.Digest
	text   string // set if info says that it is text
	err    error  // set if the bytes are missing or damaged
}

// hasDecision reports whether the ref already has a decision in one of these
// messages, and is sent as media.
func (d *Draft) hasDecision(messages []string, ref artel.Ref) bool {
	return slices.ContainsFunc(d.decisions, func(x Decision) bool {
		return x.Ref == ref && x.Routing != artel.RoutingText && slices.Contains(messages, string(x.Message))
	})
}

// find reads the source of m, once per ref and build. Only the end of ctx is an
// error; for unreadable content, the source's err is set.
func (d *Draft) find(ctx context.Context, m artel.Media) (source, error) {
	if s, ok := d.sources[m.Ref]; ok {
		return s, nil
	}
	s := source{media: m, info: m.Info()}
	if err := d.open(ctx, &s); err != nil {
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		}
		s.err = err
	}
	d.sources[m.Ref] = s
	d.sources[s.media.Ref] = s
	return s, nil
}

var errNoSources = errors.New("no source to read attachments from")

func (d *Draft) open(ctx context.Context, s *source) (err error) {
	if d.Sources == nil {
		return errNoSources
	}
	ref, at := d.resolveRef(s.media.Ref)
	c, err := d.Sources.Open(ctx, d.Owner, ref, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	v := c.Version
	s.digest = v.Digest
	if v.MediaType != "" {
		s.info = v.MediaInfo
		s.media = withVersion(s.media, v)
	}
	if !s.media.Ref.IsBlob() {
		s.media.Ref.Version = v.Number
	}
	if c.Size() != s.info.Size {
		return fmt.Errorf("the blob has %d bytes, but its version says %d", c.Size(), s.info.Size)
	}
	switch {
	case !s.info.IsBinary():
		s.text, err = media.DecodeText(c, s.info.Charset)
	case s.info.Kind == artel.KindImage && s.digest != "" && picture.Supports(s.info.MediaType): // without a digest only the beginning is there
		if err := picture.Check(ctx, c, c.Size()); errors.Is(err, artel.Invalid) {
			return err
		}
	}
	return err
}

// resolveRef returns ref as Sources expects it, and the branch to read it on.
func (d *Draft) resolveRef(ref artel.Ref) (artel.Ref, artel.MessageID) {
	switch ref.Conversation {
	case "":
		if !ref.IsBlob() {
			ref.Conversation = d.Conversation
		}
	case d.Conversation:
	default:
		return ref, "" // the branch belongs to this conversation only
	}
	return ref, d.At
}

// withVersion returns m with the media info of the version that it refers to.
func withVersion(m artel.Media, v artel.Version) artel.Media {
	m.MediaType, m.Kind, m.Size = v.MediaType, v.Kind, v.Size
	m.Width, m.Height, m.Pages, m.Duration = v.Width, v.Height, v.Pages, v.Duration
	if m.Filename == "" {
		m.Filename = v.Filename
	}
	return m
}

// label is the text before the media of a message. For a converted picture it
// states the original size too, so that the model can convert coordinates.
func label(m artel.Media, sent *artel.SentForm) string {
	if sent == nil || sent.Width == m.Width && sent.Height == m.Height {
		return fmt.Sprintf("attachment %s (%s)", name(m), oneLine(m.Filename))
	}
	return fmt.Sprintf("attachment %s (%s, %d × %d pixels, shown as %d × %d)", name(m), oneLine(m.Filename), m.Width, m.Height, sent.Width, sent.Height)
}

// pageLabel returns the text before page n of a document whose pages are pictures.
func pageLabel(m artel.Media, n int, sent *artel.SentForm) string {
	text := fmt.Sprintf("attachment %s (%s), page %d of %d", name(m), oneLine(m.Filename), n, sent.Pages+sent.PagesLeft)
	if n == sent.Pages && sent.PagesLeft > 0 {
		text += fmt.Sprintf(", the last that is shown; pages %d to %d are not", n+1, n+sent.PagesLeft)
	}
	return text
}

// inlineText formats a text attachment, or the text of one: a line with its
// name and the origin of a derived text, then the text in a fence longer than
// any run of backticks in it. The rows of a CSV or TSV have their numbers before
// them, so that the model can name a cell. If the text is cut, the last line says
// how to read the rest.
func inlineText(m artel.Media, origin, text string, limit int) (string, artel.SentForm) {
	shown, rest := cut(text, limit)
	sent := artel.SentForm{Characters: utf8.RuneCountInString(shown), Cut: rest != ""}
	body := shown
	if origin == "" && (m.MediaType == "text/csv" || m.MediaType == "text/tab-separated-values") {
		var columns string
		columns, body = extract.Addressed(shown, m.MediaType)
		origin = " (each row after its number, which is not in the file; columns: " + columns + ")"
	}
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	var b strings.Builder
	fmt.Fprintf(&b, "attachment %s (%s, %s)%s:\n%s\n%s", name(m), oneLine(m.Filename), m.MediaType, origin, fence, body)
	if !strings.HasSuffix(body, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(fence)
	if rest != "" {
		b.WriteString("\n" + rest)
		b.WriteString(continueHint(m, shown))
	}
	return b.String(), sent
}

// cut returns the first limit characters of text, up to the last line end among
// them, and the beginning of the note about the rest; "" if nothing was cut.
func cut(text string, limit int) (shown, rest string) {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text, ""
	}
	end := 0
	for range limit {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	if i := strings.LastIndexByte(text[:end], '\n'); i >= 0 {
		end = i + 1
	}
	return text[:end], fmt.Sprintf("[%d of %d characters are shown", utf8.RuneCountInString(text[:end]), utf8.RuneCountInString(text))
}

// continueHint returns the end of the note after a cut: how to read the rest.
func continueHint(m artel.Media, shown string) string {
	if m.Ref.IsBlob() {
		return "]"
	}
	line := strings.Count(shown, "\n") + 1
	column := utf8.RuneCountInString(shown[strings.LastIndexByte(shown, '\n')+1:]) + 1
	at := fmt.Sprintf("offset=%d", line)
	if column > 1 {
		at += fmt.Sprintf(", column=%d", column)
	}
	return fmt.Sprintf("; to continue: read_artifact(id='%s', %s, version=%d)]", m.Ref.Artifact, at, m.Ref.Version)
}

// name returns the artifact and version that m refers to, or the blob.
func name(m artel.Media) string {
	if m.Ref.IsBlob() {
		return m.Ref.String()
	}
	return fmt.Sprintf("%s v%d", m.Ref.Artifact, m.Ref.Version)
}

func oneLine(s string) string { return artel.Shorten(s, 255) }

func longestRun(s string, c byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
