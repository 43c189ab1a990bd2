// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // decoders for image.DecodeConfig
	_ "image/jpeg"
	_ "image/png"
	"io"
	"regexp"
	"strings"
	"unicode"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
)

// findings returns a Markdown list that describes the attachments; without any, a
// sentence about the message, and the list of earlier attachments in their present
// form. It fails only when ctx ends.
func (p *Provider) findings(ctx context.Context, h *history) (string, error) {
	if len(h.attachments) > 0 {
		return p.list(ctx, h, h.attachments)
	}
	if h.text == "" {
		return h.locale.Say(phrase.DemoNoMessage, nil), nil
	}
	if len(h.earlier) == 0 {
		return h.messageSize(), nil
	}
	found, err := p.list(ctx, h, h.earlier)
	return h.messageSize() + " " + h.locale.Say(phrase.DemoEarlier, nil) + "\n\n" + found, err
}

func (p *Provider) list(ctx context.Context, h *history, attachments []attachment) (string, error) {
	var lines []string
	for i, a := range attachments {
		found, err := p.finding(ctx, h, i, a)
		if err != nil {
			return "", err
		}
		lines = append(lines, "- "+a.title(h.locale)+": "+found)
	}
	return strings.Join(lines, "\n"), nil
}

func (p *Provider) finding(ctx context.Context, h *history, i int, a attachment) (string, error) {
	switch {
	case a.text != nil:
		found := textFinding(*a.text, h.locale)
		switch a.origin {
		case extracted:
			return h.locale.Say(phrase.DemoExtracted, map[string]any{"Found": found}), nil
		case transcribed:
			return h.locale.Say(phrase.DemoWritten, map[string]any{"Found": found}), nil
		}
		return found, nil
	case a.media != nil:
		return p.inspectMedia(ctx, *a.media, h.locale)
	}
	for _, c := range h.attempts(fmt.Sprintf("read-%d", i+1)) {
		if c.result == nil {
			continue
		}
		for _, part := range c.result.Parts {
			if m, ok := part.(artel.Media); ok {
				return p.inspectMedia(ctx, m, h.locale)
			}
		}
	}
	return h.locale.Say(phrase.DemoCannotRead, nil), nil
}

// inspectMedia reads the bytes of m and describes them.
func (p *Provider) inspectMedia(ctx context.Context, m artel.Media, l phrase.Locale) (string, error) {
	found, err := p.inspect(ctx, m, l)
	if err == nil {
		return found, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return l.Say(phrase.DemoCannotRead, nil), nil
}

var errNotThere = errors.New("the bytes are not what they are said to be")

func (p *Provider) inspect(ctx context.Context, m artel.Media, l phrase.Locale) (string, error) {
	if p.blobs == nil || !m.Ref.IsBlob() {
		return "", errNotThere
	}
	r, err := p.blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return "", err
	}
	defer r.Close()
	switch {
	case m.Kind == artel.KindImage:
		c, format, err := image.DecodeConfig(r)
		if err != nil {
			return "", err
		}
		return l.Say(phrase.DemoImage, map[string]any{
			"Format": strings.ToUpper(format), "Width": c.Width, "Height": c.Height, "Size": phrase.Size(r.Size()),
		}), nil
	case m.MediaType == "application/pdf":
		return pdfFinding(r, m.Pages, l)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != r.Size() {
		return "", errors.Join(err, errNotThere)
	}
	return l.Say(phrase.DemoFile, map[string]any{"Type": l.TypeName(m.MediaType), "Size": phrase.Size(r.Size())}), nil
}

// maxPDF limits how much of a PDF is searched for pages.
const maxPDF = 4 << 20

var pdfPage = regexp.MustCompile(`/Type\s*/Page[^s\w]`)

// pdfFinding states the number of pages as measured on arrival, or counts the
// uncompressed page objects.
func pdfFinding(r blob.Reader, pages int, l phrase.Locale) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPDF))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(data[:min(len(data), 1024)]), "%PDF-") {
		return "", errNotThere
	}
	if pages == 0 && int64(len(data)) == r.Size() {
		pages = len(pdfPage.FindAllIndex(data, -1))
	}
	k := phrase.DemoPDF
	if pages == 0 {
		k = phrase.DemoPDFNoPages
	}
	return l.Say(k, map[string]any{"Count": pages, "Bytes": r.Size()}), nil
}

// textFinding quotes the first Markdown heading of a text.
func textFinding(text string, l phrase.Locale) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		hashes := len(line) - len(strings.TrimLeft(line, "#"))
		rest := line[hashes:]
		if hashes < 1 || hashes > 6 || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
			continue
		}
		if heading := flatten(strings.TrimRight(rest, "# \t\r"), 120); heading != "" {
			return l.Say(phrase.DemoHeading, map[string]any{"Heading": heading, "Lines": len(lines)})
		}
	}
	return l.Say(phrase.DemoNoHeading, map[string]any{"Lines": len(lines)})
}

// title returns the attachment's name as a Markdown code span, which disables its
// markup.
func (a attachment) title(l phrase.Locale) string {
	name := flatten(strings.ReplaceAll(a.name, "`", "'"), 80)
	if name == "" {
		name = l.Say(phrase.RouteNoName, nil)
	}
	return "`" + name + "`"
}

// flatten returns s as one line of at most n characters.
func flatten(s string, n int) string {
	return shorten(strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " "), n)
}

// shorten cuts s to at most n characters.
func shorten(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
