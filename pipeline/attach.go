// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/route"
)

// defaultInline is how much of a text attachment is sent, in characters.
const defaultInline = 50_000

func transcriptionProcessor() Processor {
	return Processor{
		ID:          TranscriptionProcessor,
		Name:        "Transcription",
		Description: "Decides the form of every attachment: as it is where the model takes it, text inline, else a description.",
		Priority:    PriorityTranscription,
		Core:        true, Required: true,
		Fields: []Field{{
			Key: "inline_limit", Label: "Longest text attachment, in characters", Type: "number", Default: defaultInline,
		}},
		Process: transcribe,
	}
}

// transcribe replaces every media part by what is sent in its place. What
// stays media has a decision and an entry in Draft.found.
func transcribe(ctx context.Context, d *Draft) error {
	conf := struct {
		InlineLimit int `json:"inline_limit"`
	}{defaultInline}
	if err := d.Config(&conf); err != nil {
		return err
	}
	if conf.InlineLimit < 1 {
		return artel.Errorf(artel.Invalid, "pipeline.Build", "inline_limit", "want a number of characters from 1")
	}
	a := attacher{d: d, inline: conf.InlineLimit}
	for i := range d.Messages {
		m := &d.Messages[i]
		parts, err := a.message(ctx, *m)
		if err != nil {
			return err
		}
		m.Parts = parts
	}
	return nil
}

// attacher settles the media parts of a draft.
type attacher struct {
	d      *Draft
	inline int  // characters of a text
	again  bool // most parts are settled
	late   int  // with again: parts that were not
}

// message returns the parts to send; m.Parts itself where no media is in it.
func (a *attacher) message(ctx context.Context, m Message) (artel.Parts, error) {
	if !slices.ContainsFunc(m.Parts, carriesMedia) {
		return m.Parts, nil
	}
	out := make(artel.Parts, 0, len(m.Parts)+1)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Media:
			ps, err := a.settle(ctx, m.ID, p)
			if err != nil {
				return nil, err
			}
			out = append(out, ps...)
		case artel.ToolResult:
			r, err := a.result(ctx, m.ID, p)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		default:
			out = append(out, p)
		}
	}
	return out, nil
}

func carriesMedia(p artel.Part) bool {
	switch p := p.(type) {
	case artel.Media:
		return true
	case artel.ToolResult:
		return slices.ContainsFunc(p.Parts, carriesMedia)
	}
	return false
}

// result settles the media of a tool result. What stays media has no label
// here: the codec, which places it, says where it comes from. Where no media
// is left, all text moves into the content, for which every API has a place.
func (a *attacher) result(ctx context.Context, id string, r artel.ToolResult) (artel.ToolResult, error) {
	out := make(artel.Parts, 0, len(r.Parts))
	for _, p := range r.Parts {
		m, ok := p.(artel.Media)
		if !ok {
			out = append(out, p)
			continue
		}
		ps, err := a.settle(ctx, id, m)
		if err != nil {
			return r, err
		}
		out = append(out, ps[len(ps)-1])
	}
	if !slices.ContainsFunc(out, carriesMedia) {
		text := artel.TextOf(out)
		if r.Content != "" && text != "" {
			text = r.Content + "\n\n" + text
		}
		r.Content, out = cmp.Or(text, r.Content), nil
	}
	r.Parts = out
	return r, nil
}

// settle returns what is sent in the place of m: a label and m itself, or one
// text. Only the end of ctx is an error.
func (a *attacher) settle(ctx context.Context, id string, m artel.Media) (artel.Parts, error) {
	if a.again {
		if a.d.settledAs(id, m.Ref) {
			return artel.Parts{m}, nil
		}
		a.late++
	}
	s, err := a.d.find(ctx, m)
	if err != nil {
		return nil, err
	}
	m = s.media
	var parts artel.Parts
	var sent *artel.SentForm
	r := route.Decide(s.info, a.d.target)
	switch {
	case s.err != nil:
		a.d.Log(Warn, "the bytes of an attachment cannot be read", map[string]any{"message_id": id, "ref": m.Ref.String(), "error": s.err.Error()})
		r = artel.Route{ContentType: "binary", Routing: artel.RoutingText, Step: artel.StepDescribed, Reason: artel.ReasonUnreadable}
		parts = artel.Parts{artel.Text{Text: route.Unreadable(m, a.d.Locale)}}
	case r.ContentType == artel.RoutingText && r.Step == artel.StepNative:
		text, form := inlined(m, s.text, a.inline)
		parts, sent = artel.Parts{artel.Text{Text: text}}, &form
	case a.d.Refused != nil && a.d.Refused(s.digest):
		r.Step, r.Routing, r.Reason = artel.StepDescribed, artel.RoutingText, artel.ReasonRefused
		parts = artel.Parts{artel.Text{Text: route.Describe(m, a.d.Locale)}}
	case r.Step == artel.StepNative:
		parts = artel.Parts{artel.Text{Text: label(m)}, m}
	default:
		parts = artel.Parts{artel.Text{Text: route.Describe(m, a.d.Locale)}}
	}
	a.d.decisions = append(a.d.decisions, Decision{Digest: s.digest, AttachmentRoute: artel.AttachmentRoute{
		Message: artel.MessageID(id), Ref: m.Ref, Filename: m.Filename, Kind: s.info.Kind, MediaType: s.info.MediaType, Size: s.info.Size,
		Route: r, Sent: sent, Tokens: a.d.meter.parts(parts),
	}})
	return parts, nil
}

// A source is what a media part leads to.
type source struct {
	media  artel.Media // pinned to a version
	info   artel.MediaInfo
	digest artel.Digest
	text   string // where info says that it is text
	err    error  // the bytes are missing or damaged
}

// settledAs reports whether the part of this message has its decision.
func (d *Draft) settledAs(message string, ref artel.Ref) bool {
	return slices.ContainsFunc(d.decisions, func(x Decision) bool {
		return string(x.Message) == message && x.Ref == ref && x.Step == artel.StepNative && x.ContentType != artel.RoutingText
	})
}

// find looks m up, once for each ref in a build. Only the end of ctx is an
// error; what cannot be read is a source that says so.
func (d *Draft) find(ctx context.Context, m artel.Media) (source, error) {
	if s, ok := d.found[m.Ref]; ok {
		return s, nil
	}
	s := source{media: m, info: infoOf(m)}
	if err := d.open(ctx, &s); err != nil {
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		}
		s.err = err
	}
	d.found[m.Ref] = s
	d.found[s.media.Ref] = s
	return s, nil
}

var errNoSources = errors.New("there is nothing to read attachments from")

func (d *Draft) open(ctx context.Context, s *source) (err error) {
	if d.Sources == nil {
		return errNoSources
	}
	ref, at := s.media.Ref, d.At
	switch ref.Conversation {
	case "":
		if !ref.IsBlob() {
			ref.Conversation = d.Conversation
		}
	case d.Conversation:
	default:
		at = "" // the branch is none of that conversation
	}
	c, err := d.Sources.Open(ctx, d.Owner, ref, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	v := c.Version
	s.digest = v.Digest
	if v.MediaType != "" {
		s.info = v.MediaInfo
		s.media = restate(s.media, v)
	}
	if !s.media.Ref.IsBlob() {
		s.media.Ref.Version = v.Number
	}
	if c.Size() != s.info.Size {
		return fmt.Errorf("%d bytes are there, %d were kept", c.Size(), s.info.Size)
	}
	if !s.info.IsBinary() {
		s.text, err = media.DecodeText(c, s.info.Charset)
	}
	return err
}

// restate gives m the facts of the version that it leads to.
func restate(m artel.Media, v artel.Version) artel.Media {
	m.MediaType, m.Kind, m.Size = v.MediaType, v.Kind, v.Size
	m.Width, m.Height, m.Pages, m.Duration = v.Width, v.Height, v.Pages, v.Duration
	if m.Filename == "" {
		m.Filename = v.Filename
	}
	return m
}

func infoOf(m artel.Media) artel.MediaInfo {
	return artel.MediaInfo{
		MediaType: m.MediaType, Kind: m.Kind, Size: m.Size,
		Width: m.Width, Height: m.Height, Pages: m.Pages, Duration: m.Duration,
	}
}

// label is the text before media of a message.
func label(m artel.Media) string {
	return fmt.Sprintf("attachment %s (%s)", name(m), oneLine(m.Filename))
}

// inlined writes a text attachment: a line that names it, then the text in a
// fence that it cannot break out of. A cut says how to read on.
func inlined(m artel.Media, text string, limit int) (string, artel.SentForm) {
	shown, rest := cut(text, limit)
	sent := artel.SentForm{Characters: utf8.RuneCountInString(shown), Cut: rest != ""}
	fence := strings.Repeat("`", max(3, longestRun(shown, '`')+1))
	var b strings.Builder
	fmt.Fprintf(&b, "attachment %s (%s, %s):\n%s\n%s", name(m), oneLine(m.Filename), m.MediaType, fence, shown)
	if !strings.HasSuffix(shown, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(fence)
	if rest != "" {
		b.WriteString("\n" + rest)
		b.WriteString(readOn(m, shown))
	}
	return b.String(), sent
}

// cut returns the first characters of text, up to a line's end where one is
// among them, and what to say about the rest; "" where there is none.
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

// readOn says how to read what follows the shown text.
func readOn(m artel.Media, shown string) string {
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

// name writes the artifact and version that m leads to, or the blob.
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
