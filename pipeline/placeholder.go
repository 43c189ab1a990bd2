// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// placeholder marks the position of an attachment in the text of its message,
// by the attachment's id, ref or filename.
var placeholder = regexp.MustCompile(`【file::([^】]*)】`)

// An attachment is a media part of a message, with the parts that replace it.
type attachment struct {
	media    artel.Media
	parts    artel.Parts
	at       int // index of parts in the message
	inserted bool
}

func (w *attachment) named(name string) bool {
	name = strings.TrimSpace(name)
	r := w.media.Ref
	return name != "" && (name == string(r.Artifact) || name == r.String() || name == w.media.Filename || r.IsBlob() && name == string(r.Digest))
}

// insertAttachments moves attachments to their placeholders in the texts of the
// message. A repeated placeholder becomes the attachment's label, one that
// matches no attachment stays, and attachments without a placeholder keep their
// position.
func insertAttachments(ps artel.Parts, attached []attachment) artel.Parts {
	asks := func(p artel.Part) bool { t, ok := p.(artel.Text); return ok && placeholder.MatchString(t.Text) }
	if len(attached) == 0 || !slices.ContainsFunc(ps, asks) {
		return ps
	}
	own := make([]bool, len(ps)) // parts of attachments: placeholders in their texts do not count
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

// insertInText replaces the placeholders of one text.
func insertInText(text string, attached []attachment) artel.Parts {
	var out artel.Parts
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, artel.Text{Text: b.String()})
			b.Reset()
		}
	}
	block := false // the last insertion has to end its line
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
