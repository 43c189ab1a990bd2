// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/artelhq/artel"
)

// defaultInline is how many characters of a text attachment are sent.
const defaultInline = 50_000

// transcriptionTime is the time limit for transcribing recordings.
const transcriptionTime = 10 * time.Minute

func transcriptionProcessor() Processor {
	return Processor{
		ID:          TranscriptionProcessor,
		Name:        "Transcription",
		Description: "Decides the form of every attachment: unchanged if the model supports it, otherwise converted, as its text, or as a description.",
		Priority:    PriorityTranscription,
		Icon:        "📎",
		Core:        true, Required: true,
		Timeout: transcriptionTime + time.Minute,
		Fields: []Field{
			{Key: "inline_limit", Label: "Longest text of an attachment, in characters", Type: FieldNumber, Default: defaultInline, Range: From(1)},
			{Key: "always", Label: "Kinds to describe in words even if the model supports them: image, audio, video", Type: FieldList, Check: checkKinds},
			{Key: "never", Label: "Kinds never described in words by a service: image, audio, video", Type: FieldList, Check: checkKinds},
			{Key: "stale_images", Label: "User messages after which a picture is sent as words; 0: never", Type: FieldNumber, Default: 0, Range: From(0)},
		},
		Adds:    Session,
		Process: transcribe,
	}
}

// transcribe replaces every media part by the form that is sent. A part that
// stays media has a decision and an entry in Draft.sources.
func transcribe(ctx context.Context, d *Draft) error {
	conf := attaching{InlineLimit: defaultInline}
	if err := d.Config(&conf); err != nil {
		return err
	}
	Set(d, conf)
	a := attacher{d: d, conf: conf}
	if err := a.prepareAll(ctx); err != nil {
		return err
	}
	if d.unchanged = len(a.prepared) == 0; d.unchanged {
		return nil
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		parts, err := a.message(ctx, m)
		if err != nil {
			return err
		}
		m.Parts = parts
	}
	return nil
}

// attaching is the configuration of the transcription processor.
type attaching struct {
	InlineLimit int               `json:"inline_limit"`
	Always      []artel.MediaKind `json:"always"`
	Never       []artel.MediaKind `json:"never"`
	StaleImages int               `json:"stale_images"`
}

func checkKinds(v json.RawMessage) error {
	var kinds []artel.MediaKind
	if err := json.Unmarshal(v, &kinds); err != nil {
		return err
	}
	for _, k := range kinds {
		if k != artel.KindImage && k != artel.KindAudio && k != artel.KindVideo {
			return fmt.Errorf("%q is not a kind that can be transcribed: want image, audio or video", artel.Shorten(string(k), 40))
		}
	}
	return nil
}

// An attacher prepares the media parts of a draft.
type attacher struct {
	d         *Draft
	conf      attaching
	stale     map[string]bool // ids of messages with stale pictures
	resolving bool            // in the asset resolver: most parts are prepared already
	from      []string        // ids of the messages merged into the current one
	late      int             // parts prepared while resolving
	prepared  map[mediaKey]preparedPart
}

// A mediaKey is a media part, by its index among those of a message.
type mediaKey struct {
	message string
	n       int
}

// A preparedPart replaces a media part: a label and a media part, or one text.
type preparedPart struct {
	parts    artel.Parts
	decision Decision
}

// prepareAll decides all media parts, the newest first: if a request takes no
// more of them, the oldest are described.
func (a *attacher) prepareAll(ctx context.Context) error {
	type place struct {
		mediaKey
		media artel.Media
	}
	var all []place
	for i := range a.d.Messages {
		m := &a.d.Messages[i]
		for n, part := range artel.MediaOf(m.Parts) {
			all = append(all, place{mediaKey{m.ID, n}, part})
		}
	}
	if len(all) == 0 {
		return nil
	}
	parts := make([]artel.Media, len(all))
	for i, x := range all {
		parts[i] = x.media
	}
	a.stale = stale(a.d.Messages, a.conf.StaleImages)
	old := func(i int) bool { return a.stale[all[i].message] }
	if err := a.d.transcribeAll(ctx, parts, a.conf, old); err != nil {
		return err
	}
	a.d.limitForImageCount(parts, old)
	room := newMediaBudget(a.d)
	a.prepared = make(map[mediaKey]preparedPart, len(all))
	for _, x := range slices.Backward(all) {
		s, err := a.d.prepare(ctx, x.message, x.media, a.preference(x.message), room)
		if err != nil {
			return err
		}
		a.prepared[x.mediaKey] = s
	}
	return nil
}

// stale returns the ids of messages followed by at least n messages of the
// user; 0: none.
func stale(ms []Message, n int) map[string]bool {
	if n == 0 {
		return nil
	}
	old := map[string]bool{}
	turns := 0
	for _, m := range slices.Backward(ms) {
		if turns >= n {
			old[m.ID] = true
		}
		if m.Role == artel.RoleUser && m.Origin == OriginHistory {
			turns++
		}
	}
	return old
}

// preference returns the preferences for the media of a message.
func (a *attacher) preference(message string) preference { return preference{a.conf, a.stale[message]} }

// message returns the parts to send; m.Parts itself if it holds no media.
func (a *attacher) message(ctx context.Context, m *Message) (artel.Parts, error) {
	if !slices.ContainsFunc(m.Parts, carriesMedia) {
		return m.Parts, nil
	}
	next := mediaKey{message: m.ID}
	if a.from = m.MergedFrom; len(a.from) == 0 {
		a.from = []string{m.ID}
	}
	var names []attachment
	out := make(artel.Parts, 0, len(m.Parts)+1)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Media:
			ps, err := a.partsFor(ctx, &next, p)
			if err != nil {
				return nil, err
			}
			names = append(names, attachment{media: p, parts: ps, at: len(out)})
			out = append(out, ps...)
		case artel.ToolResult:
			r, err := a.result(ctx, &next, p)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		default:
			out = append(out, p)
		}
	}
	if a.resolving {
		return out, nil
	}
	return insertAttachments(out, names), nil
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

// result prepares the media of a tool result. Media get no label here; the
// codec, which places them, adds it. If no media are left, all text moves into
// Content, which every API supports.
func (a *attacher) result(ctx context.Context, next *mediaKey, r artel.ToolResult) (artel.ToolResult, error) {
	out := make(artel.Parts, 0, len(r.Parts))
	for _, p := range r.Parts {
		m, ok := p.(artel.Media)
		if !ok {
			out = append(out, p)
			continue
		}
		ps, err := a.partsFor(ctx, next, m)
		if err != nil {
			return r, err
		}
		if a.d.isPage(ps[len(ps)-1]) { // which pages they are, only the labels say
			out = append(out, ps...)
			continue
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

// partsFor returns the parts that replace m, the next media part of its
// message. Only the end of ctx is an error.
func (a *attacher) partsFor(ctx context.Context, next *mediaKey, m artel.Media) (artel.Parts, error) {
	s, ok := a.prepared[*next]
	next.n++
	if !ok {
		if a.resolving {
			if a.d.pages[m.Ref] || a.d.hasDecision(a.from, m.Ref) {
				return artel.Parts{m}, nil
			}
			a.late++
		}
		var err error
		if s, err = a.d.prepare(ctx, next.message, m, a.preference(next.message), nil); err != nil {
			return nil, err
		}
	}
	a.d.decisions = append(a.d.decisions, s.decision)
	return s.parts, nil
}
