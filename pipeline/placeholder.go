// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// placeholder is how a text says where an attachment of its message belongs,
// by the attachment's id, its ref or its filename.
var placeholder = regexp.MustCompile(`【file::([^】]*)】`)

// A weft is an attachment of a message with what is sent in its place.
type attachment struct {
	media    artel.Media
	parts    artel.Parts
	at       int // where they stand among the parts of the message
	inserted bool
}

func (w *attachment) named(name string) bool {
	name = strings.TrimSpace(name)
	r := w.media.Ref
	return name != "" && (name == string(r.Artifact) || name == r.String() || name == w.media.Filename || r.IsBlob() && name == string(r.Digest))
}

// woven puts attachments where the texts of their message ask for them. A name
// that comes again is only named, one that no attachment has stays as it is,
// and attachments that no text asks for stay where they are.
func insertAttachments(ps artel.Parts, attached []attachment) artel.Parts {
	asks := func(p artel.Part) bool { t, ok := p.(artel.Text); return ok && placeholder.MatchString(t.Text) }
	if len(attached) == 0 || !slices.ContainsFunc(ps, asks) {
		return ps
	}
	own := make([]bool, len(ps)) // parts of attachments, whose texts ask for nothing
	for _, w := range attached {
		for i := range w.parts {
			own[w.at+i] = true
		}
	}
	texts := make(map[int]artel.Parts)
	for i, p := range ps {
		if !own[i] && asks(p) {
			texts[i] = insertInText(p.(artel.Text).Text, attached)
		}
	}
	gone := make([]bool, len(ps))
	for _, w := range attached {
		for i := range w.parts {
			gone[w.at+i] = w.inserted
		}
	}
	out := make(artel.Parts, 0, len(ps))
	for i, p := range ps {
		switch {
		case gone[i]:
		case texts[i] != nil:
			out = append(out, texts[i]...)
		default:
			out = append(out, p)
		}
	}
	return out
}

// weave replaces the placeholders of one text.
func insertInText(text string, attached []attachment) artel.Parts {
	var out artel.Parts
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, artel.Text{Text: b.String()})
			b.Reset()
		}
	}
	block := false // what was written last is to end its line
	write := func(s string) {
		if block && s != "" && !strings.HasPrefix(s, "\n") {
			b.WriteByte('\n')
		}
		block = block && s == ""
		b.WriteString(s)
	}
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		write(text[end:at[0]])
		end = at[1]
		i := slices.IndexFunc(attached, func(w attachment) bool { return w.named(text[at[2]:at[3]]) })
		switch {
		case i < 0:
			write(text[at[0]:at[1]])
		case attached[i].inserted:
			write(label(attached[i].media, nil))
		case len(attached[i].parts) == 1:
			attached[i].inserted = true
			if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
				b.WriteByte('\n')
			}
			write(artel.TextOf(attached[i].parts))
			block = true
		default:
			attached[i].inserted = true
			write(artel.TextOf(attached[i].parts))
			flush()
			out = append(out, without(attached[i].parts, isText)...)
		}
	}
	write(text[end:])
	flush()
	return out
}

func isText(p artel.Part) bool { _, ok := p.(artel.Text); return ok }
