// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A PlacedMedia is a media part with its position in a request.
type PlacedMedia struct {
	artel.Media
	Place   Place
	Message int // index of its message
}

// MediaIn returns the media of r in order, with the places that result from the
// service's capabilities.
func MediaIn(r *Request) []PlacedMedia {
	var out []PlacedMedia
	c := r.Service.Capabilities
	for i, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Media:
				out = append(out, PlacedMedia{p, InUser, i})
			case artel.ToolResult:
				for _, inner := range p.Parts {
					media, ok := inner.(artel.Media)
					if !ok {
						continue
					}
					place := AfterTool
					if c.ToolTakes(media.MediaType) {
						place = InTool
					}
					out = append(out, PlacedMedia{media, place, i})
				}
			}
		}
	}
	return out
}

// Diagnose analyses the refusal of r. It returns marks that narrow what the
// service takes, or else the digests of media that may have caused the refusal
// and are to be replaced by descriptions. Without either the media of r are not
// the cause.
func Diagnose(r *Request, err error) (marks []Mark, suspects []artel.Digest) {
	call, ok := errors.AsType[*CallError](err)
	media := MediaIn(r)
	x := Refusal{}
	if ok {
		x = call.Refusal
	}
	if x.Class == RefusedField && r.sends(x.Field) {
		return []Mark{r.Service.mark(Mark{Field: x.Field, Source: FromLearned, Seen: 1, Evidence: call.Message})}, nil
	}
	if !ok || x.Class == RefusedField || x.Class.ofText() || x.Class == "" && call.Status != http.StatusBadRequest && call.Status != http.StatusUnprocessableEntity {
		return nil, nil
	}
	if x.Class == RefusedAfter && !r.Service.Capabilities.NeedsFiller() {
		return []Mark{r.Service.mark(Mark{Place: AfterTool, Source: FromLearned, Seen: 1, Evidence: call.Message})}, nil
	}
	if len(media) == 0 {
		return nil, nil
	}
	for _, m := range x.marks(r, media) {
		m.Source, m.Seen, m.Evidence = FromLearned, 1, call.Message
		marks = append(marks, r.Service.mark(m))
	}
	if len(marks) == 0 {
		suspects = latestMedia(media, x.MediaType)
	}
	return marks, suspects
}

// Lasts reports whether x says what a service does not take, so that it is worth
// knowing for later requests. Words about the label of media, and limits without a
// number, concern one request: what would be learned of them is a guess.
func (x Refusal) Lasts() bool {
	switch x.Class {
	case RefusedMedia, RefusedInTool, RefusedAfter, RefusedPart:
		return true
	case RefusedField:
		return !x.Once
	case RefusedCount, RefusedSide, RefusedPages, RefusedItem, RefusedRequest:
		return x.Limit > 0
	}
	return false
}

// marks returns what x shows about the places, types and limits of media.
func (x Refusal) marks(r *Request, media []PlacedMedia) []Mark {
	switch x.Class {
	case RefusedInTool:
		return refusedTypes(media, x.MediaType, InTool)
	case RefusedMedia:
		// If the message names no place, suspect tool results first: fewer APIs take
		// media there.
		if marks := refusedTypes(media, x.MediaType, InTool); len(marks) > 0 {
			return marks
		}
		return refusedTypes(media, x.MediaType, InUser, AfterTool)
	case RefusedCount:
		images := 0
		for _, m := range media {
			if m.Kind == artel.KindImage {
				images++
			}
		}
		return limit(RefusedCount, x.Limit, int64(images/2))
	case RefusedSide:
		side := 0
		for _, m := range media {
			side = max(side, m.Width, m.Height)
		}
		return limit(RefusedSide, x.Limit, int64(side/2))
	case RefusedPages:
		pages := 0
		for _, m := range media {
			pages = max(pages, m.Pages)
		}
		return limit(RefusedPages, x.Limit, int64(pages/2))
	case RefusedItem:
		size := int64(0)
		for _, m := range media {
			size = max(size, m.Size)
		}
		// APIs count the bytes of the base64.
		return limit(RefusedItem, x.Limit/4*3, size/2)
	case RefusedRequest:
		total := int64(0)
		for _, m := range media {
			total += m.Size / 3 * 4
		}
		return limit(RefusedRequest, x.Limit, total/2)
	}
	return nil
}

// limit returns a mark with the named limit, or with guess if none was named.
func limit(class RefusalClass, named, guess int64) []Mark {
	if named <= 0 {
		named = guess
	}
	if named <= 0 {
		return nil
	}
	return []Mark{{Limit: class, Value: named}}
}

// refusedTypes returns marks against the types of the media at some places that
// mediaType covers; "" covers all.
func refusedTypes(media []PlacedMedia, mediaType string, places ...Place) []Mark {
	var out []Mark
	for _, m := range media {
		if !slices.Contains(places, m.Place) || mediaType != "" && !coversType(mediaType, m.MediaType) {
			continue
		}
		kind := mediaType
		if kind == "" || kind == "application/*" {
			kind = kindOf(m.MediaType)
		}
		mark := Mark{Place: m.Place, MediaType: kind}
		if mark.Place == AfterTool {
			mark.Place = InUser // media after a tool result are in a user message too
		}
		if !slices.ContainsFunc(out, mark.same) {
			out = append(out, mark)
		}
	}
	return out
}

// coversType reports whether a named type or pattern covers media of type t.
func coversType(words, t string) bool {
	major, minor, _ := strings.Cut(words, "/")
	if minor == "*" {
		return strings.HasPrefix(t, major+"/")
	}
	return words == t
}

// kindOf returns the pattern for a refusal without a type: all images, audio or
// video; for other files their type.
func kindOf(mediaType string) string {
	switch needOf(mediaType) {
	case artel.CanVision:
		return "image/*"
	case artel.CanAudio:
		return "audio/*"
	case artel.CanVideo:
		return "video/*"
	}
	return mediaType
}

// latestMedia returns the digests in the last message with media that mediaType
// covers. Media of earlier messages were usually accepted by earlier calls.
func latestMedia(media []PlacedMedia, mediaType string) []artel.Digest {
	var out []artel.Digest
	last := -1
	for _, m := range slices.Backward(media) {
		if mediaType != "" && !coversType(mediaType, m.MediaType) {
			continue
		}
		if last >= 0 && m.Message != last {
			break
		}
		last = m.Message
		if !slices.Contains(out, m.Ref.Digest) {
			out = append(out, m.Ref.Digest)
		}
	}
	return out
}

// Damaged returns the mark for media with which a call of a client was refused, and
// without which it succeeded.
func Damaged(s Service, m PlacedMedia, holder, evidence string) Mark {
	return s.mark(Mark{Place: m.Place, MediaType: m.MediaType, Digest: m.Ref.Digest, Holder: holder, Source: FromLearned, Seen: 1, Evidence: evidence})
}

// A RefusalPolicy is the retry policy of one call after the API refused its media:
// first narrow what [Diagnose] names, finally replace all media by descriptions,
// so that the request can always be sent. The zero value allows one more attempt.
type RefusalPolicy struct {
	Most int // attempts after refusals; the last of several has no media; 0: 1

	attempts int
	refused  *Request // the refused request until Changes compared it; nil: none
	marks    []Mark   // to be learned if the next attempt succeeds
	fields   []Mark   // the same, of fields that were left out
	suspects []artel.Digest
	suspect  *PlacedMedia // the only one, if the API named it as the reason; nil: none
	evidence string       // the API's message
}

// Next returns the changes for another attempt after r was refused: apply marks
// to the service ([Service.Lowered]) and describe some media. again is false if
// another attempt is useless.
func (l *RefusalPolicy) Next(r *Request, refusal error) (lower []Mark, describe []artel.Digest, again bool) {
	most := max(1, l.Most)
	marks, suspects := Diagnose(r, refusal)
	if len(marks) == 0 && len(suspects) == 0 || l.attempts == most {
		return nil, nil, false
	}
	l.attempts++
	l.evidence = refusal.Error()
	if l.attempts == most && most > 1 {
		return nil, l.DescribeAll(r), true
	}
	l.refused, l.marks, l.suspects, l.suspect = r, nil, suspects, nil
	call, _ := errors.AsType[*CallError](refusal) // Diagnose found something in it
	if call.Refusal.Class == RefusedField {
		l.attempts-- // a request has few fields, and each is left out once
		if l.refused = nil; call.Refusal.Lasts() {
			l.fields = append(l.fields, marks...)
		}
		return marks, nil, true
	}
	if !call.Refusal.Lasts() {
		return marks, suspects, true
	}
	l.marks = slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return !m.exceededBy(r) })
	if len(suspects) == 1 {
		media := MediaIn(r)
		l.suspect = &media[slices.IndexFunc(media, func(m PlacedMedia) bool { return m.Ref.Digest == suspects[0] })]
	}
	return marks, suspects, true
}

// exceededBy reports whether r exceeds the limit that m is about; true if it is about
// none. A number in the words about a request within it means something else.
func (m Mark) exceededBy(r *Request) bool {
	images, side, pages := int64(0), 0, 0
	for _, x := range MediaIn(r) {
		if x.Kind == artel.KindImage {
			images++
		}
		side, pages = max(side, x.Width, x.Height), max(pages, x.Pages)
	}
	switch m.Limit {
	case RefusedCount:
		return images > m.Value
	case RefusedSide:
		return int64(side) > m.Value
	case RefusedPages:
		return int64(pages) > m.Value
	}
	return true
}

// Changes reports whether the media of r, or their places, differ from those of
// the refused request. If not, the caller replaces all media by descriptions; see
// [RefusalPolicy.DescribeAll]. Call it once per refusal.
func (l *RefusalPolicy) Changes(r *Request) bool {
	before := l.refused
	l.refused = nil
	if before == nil || before.Service.Capabilities.NeedsFiller() != r.Service.Capabilities.NeedsFiller() {
		return true
	}
	return !slices.Equal(sentMediaIn(before), sentMediaIn(r))
}

// DescribeAll returns the digests of all media of r, to be described in the last
// attempt. Of the marks only limits stay, because the success of a request
// without media does not confirm the others.
func (l *RefusalPolicy) DescribeAll(r *Request) []artel.Digest {
	l.attempts, l.suspects, l.suspect = max(1, l.Most), nil, nil
	l.marks = slices.DeleteFunc(l.marks, func(m Mark) bool { return m.Limit == "" })
	for _, m := range MediaIn(r) {
		if !slices.Contains(l.suspects, m.Ref.Digest) {
			l.suspects = append(l.suspects, m.Ref.Digest)
		}
	}
	return l.suspects
}

// Learned returns the marks that a successful call of a client after refusals
// confirms. Media are marked if they were the only suspect, and the API said that it
// could not read them.
func (l *RefusalPolicy) Learned(s Service, holder string) []Mark {
	marks := append(slices.Clone(l.fields), l.marks...)
	if l.suspect != nil && len(l.marks) == 0 {
		marks = append(marks, Damaged(s, *l.suspect, holder, l.evidence))
	}
	return marks
}

// A sentMedia identifies media and their place in a request.
type sentMedia struct {
	digest artel.Digest
	place  Place
}

func sentMediaIn(r *Request) []sentMedia {
	var out []sentMedia
	for _, m := range MediaIn(r) {
		out = append(out, sentMedia{m.Ref.Digest, m.Place})
	}
	return out
}
