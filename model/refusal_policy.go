// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A PlacedMedia is a piece of media with its place in a request.
type PlacedMedia struct {
	artel.Media
	Place   Place
	Message int // index of its message
}

// MediaIn returns the media of r, in order, with the places to which the
// service's capabilities send them.
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

// Next says what to change about a request that an API has refused with err,
// so that another call may go well: marks that lower what is sent, or bytes
// that were perhaps the fault, to be described. Neither: nothing about the
// request's media can have been the reason.
func Diagnose(r *Request, err error) (marks []Mark, suspects []artel.Digest) {
	call, ok := errors.AsType[*CallError](err)
	media := MediaIn(r)
	x := Refusal{}
	if ok {
		x = call.Refusal
	}
	if !ok || x.Class == RefusedContext || x.Class == RefusedThought || x.Class == "" && call.Status != http.StatusBadRequest && call.Status != http.StatusUnprocessableEntity {
		return nil, nil
	}
	if x.Class == RefusedAfter && !r.Service.Capabilities.NeedsFiller() {
		return []Mark{r.Service.mark(Mark{Place: AfterTool, Source: FromLearned, Evidence: call.Message})}, nil
	}
	if len(media) == 0 {
		return nil, nil
	}
	for _, m := range x.marks(r, media) {
		m.Source, m.Evidence = FromLearned, call.Message
		marks = append(marks, r.Service.mark(m))
	}
	if len(marks) == 0 {
		suspects = latestMedia(media, x.MediaType)
	}
	return marks, suspects
}

// marks says what x shows about where media may stand and how much of them.
func (x Refusal) marks(r *Request, media []PlacedMedia) []Mark {
	switch x.Class {
	case RefusedInTool:
		return refusedTypes(media, x.MediaType, InTool)
	case RefusedMedia:
		// Words that name no place are about the stranger one, where it was used.
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
		// What was sent is base64, and so is what they count.
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

// limit is a mark of what was said, or else of less than what was sent.
func limit(class RefusalClass, said, guess int64) []Mark {
	if said <= 0 {
		said = guess
	}
	if said <= 0 {
		return nil
	}
	return []Mark{{Limit: class, Value: said}}
}

// refusedTypes are marks against the types of the media at some places, as far
// as they are what mediaType is about; "" is about anything.
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
			mark.Place = InUser // it is the same message, but for what stands before it
		}
		if !slices.ContainsFunc(out, mark.same) {
			out = append(out, mark)
		}
	}
	return out
}

// about reports whether words about a type or pattern can mean media of type t.
func coversType(words, t string) bool {
	major, minor, _ := strings.Cut(words, "/")
	if minor == "*" {
		return strings.HasPrefix(t, major+"/")
	}
	return words == t
}

// kindOf is the pattern that a refusal without a type closes: images, sound
// and video as a whole, other files by their type.
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

// latest returns the digests of the last message that has media; the earlier
// ones have been taken before, as a rule. What the words exclude is left out.
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

// Damaged is the mark of bytes with which a call was refused, and without
// which it went well.
func Damaged(s Service, d artel.Digest, evidence string) Mark {
	return s.mark(Mark{Place: InUser, Digest: d, Source: FromLearned, Evidence: evidence})
}
