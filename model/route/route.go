// SPDX-License-Identifier: Apache-2.0

// Package route decides in which form a piece of content reaches a model, and
// says it.
//
// Begin with [Decide], a pure function from what is known about some bytes and
// what a service can take to an [artel.Route]. [Describe] writes the text that
// stands in the place of bytes which the service cannot take. [New] makes
// the answer that programs and tools get about one artifact. Other forms of
// bytes are made by those who are asked for them ([Source.Makers]), and only
// when they are the answer.
//
// It promises, whatever the bytes, names, declarations and capabilities:
//
//   - the content of a binary file never enters a text field;
//   - text comes back as it is, never encoded, parsed or re-typed;
//   - the same content, capabilities and service give the same decision;
//   - every result is complete: routed, or described, and says why;
//   - what cannot be routed is described, and nothing fails for it.
//
// A decision needs no bytes, so an answer without a payload costs the same for
// every size. What bytes are is decided before, in package media; which models
// can do what is known to package model; the placement of a part in a request
// is the business of the provider wings.
package route

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
)

// A Target is the service that content is routed to. The zero Target takes
// text and nothing else.
type Target struct {
	Service      artel.ServiceID
	Capabilities model.Capabilities
	// Suggest names the configured services that have a capability and accept
	// a media type; nil: none are suggested.
	Suggest func(need artel.Capability, mediaType string) []artel.ServiceID
	Forms   Forms
}

// Forms says what may be made in the place of what a service cannot take, and
// by whom. The zero Forms is nothing: what does not go as it is is described.
type Forms struct {
	Converted   bool // pictures may be made smaller or of another type
	Extracted   bool // text may be taken out of documents
	Transcribed bool // recordings may be written down, and pictures captioned

	Transcriber  artel.ServiceID // writes recordings down; "": nobody does
	MaxRecording int64           // bytes of one recording that it takes; 0: not limited
	Captioner    artel.ServiceID // puts pictures into words; "": nobody does
}

// With returns f with the rungs that somebody asked for. Others than extracted
// and transcribed are for the router to choose, and change nothing.
func (f Forms) With(steps ...artel.Step) Forms {
	f.Extracted = f.Extracted || slices.Contains(steps, artel.StepExtracted)
	f.Transcribed = f.Transcribed || slices.Contains(steps, artel.StepTranscribed)
	return f
}

// Decide says how content known by m reaches t, by the first rung of the ladder
// that holds: as it is; converted; as the text taken out of it; written down by
// a service; as a description. Text always goes as it is.
//
// An image needs the capability vision. Audio and video need their own
// capability, or file. Everything else that is not text needs file, also where
// its type is merely unknown. A service's accepts list and its limits on bytes,
// sides and pages hold on top of that. The reason is why the content does not
// go as it is. Content without bytes, and content that nobody could identify,
// is described whatever the service can do.
//
// A picture is converted only where the service sees, and its lists or limits
// exclude the original. The rungs below need t.Forms to allow them.
//
// Decide is pure as long as t.Suggest is, and safe for concurrent use. Whether
// a form can really be made shows when it is; who makes it turns to
// [Fallback] where not.
func Decide(m artel.MediaInfo, t Target) artel.Route {
	if m.Kind == artel.KindText {
		return artel.Route{
			ContentType: contentText, Routing: artel.RoutingText,
			Step: artel.StepNative, Reason: artel.ReasonText,
		}
	}
	r := artel.Route{ContentType: contentBinary, Routing: artel.RoutingText, Step: artel.StepDescribed}
	if m.Kind == artel.KindImage {
		r.ContentType = contentImage
	}
	need := m.Kind.Needs()
	able := able(t.Capabilities, need)
	switch {
	case m.Size <= 0:
		r.Reason = artel.ReasonEmpty
		return r
	case undetected(m):
		r.ContentType, r.Reason = contentBinary, artel.ReasonUndetected
		return r
	case !able:
		r.Reason, r.Need = artel.ReasonCapabilityMissing, need
	case !t.Capabilities.Admits(m.MediaType):
		r.Reason = artel.ReasonNotAccepted
	case overLimit(m, t.Capabilities):
		r.Reason = artel.ReasonOverLimit
	default:
		r.Step, r.Routing = artel.StepNative, artel.RoutingFile
		if m.Kind == artel.KindImage {
			r.Routing = artel.RoutingImage
		}
		return r
	}
	if able && convertible(m, t) {
		r.Step, r.Routing = artel.StepConverted, artel.RoutingImage
		return r
	}
	r.Suggested = suggestions(t, need, m.MediaType)
	switch {
	case t.Forms.Extracted && extract.Supports(m.MediaType):
		r.Step = artel.StepExtracted
	case t.Forms.Transcribed && m.Kind == artel.KindImage && t.Forms.Captioner != "":
		r.Step = artel.StepTranscribed
	case t.Forms.Transcribed && t.Forms.transcribes(m) && t.Forms.MaxRecording > 0 && m.Size > t.Forms.MaxRecording:
		r.Reason, r.Need = artel.ReasonOverLimit, ""
	case t.Forms.Transcribed && t.Forms.transcribes(m):
		r.Step = artel.StepTranscribed
	}
	return r
}

// Fallback is the route of what has r, where the bytes could not be given the
// form that it says.
func Fallback(r artel.Route) artel.Route {
	r.Step, r.Routing, r.Reason = artel.StepDescribed, artel.RoutingText, artel.ReasonNotMade
	return r
}

// RequestFull is the route of what has r, where the service takes no more of its
// kind in one request.
func RequestFull(r artel.Route) artel.Route {
	r.Step, r.Routing, r.Reason, r.Suggested = artel.StepDescribed, artel.RoutingText, artel.ReasonRequestFull, nil
	return r
}

// writes reports whether somebody writes media like m down.
func (f Forms) transcribes(m artel.MediaInfo) bool {
	return f.Transcriber != "" && (m.Kind == artel.KindAudio || m.Kind == artel.KindVideo) && model.Transcribable(m.MediaType)
}

// Readable reports whether there is text in content like m to read, which is
// not in its bytes as they are.
func (f Forms) Readable(m artel.MediaInfo) bool {
	return m.IsBinary() && m.Size > 0 && (extract.Supports(m.MediaType) || f.transcribes(m))
}

// convertible reports whether a picture can be made that t takes.
func convertible(m artel.MediaInfo, t Target) bool {
	return t.Forms.Converted && m.Kind == artel.KindImage && picture.Supports(m.MediaType) &&
		int64(m.Width)*int64(m.Height) <= picture.MaxPixels && t.Capabilities.PictureForm().Possible()
}

// The values of [artel.Route.ContentType].
const (
	contentText   = "text"
	contentImage  = "image"
	contentBinary = "binary"
)

// able reports whether the capabilities cover need. Recordings may also travel
// as files; whether the service takes their type is for its accepts list.
func able(c model.Capabilities, need artel.Capability) bool {
	if c.Has(need) {
		return true
	}
	return (need == artel.CanAudio || need == artel.CanVideo) && c.Has(artel.CanFile)
}

func overLimit(m artel.MediaInfo, c model.Capabilities) bool {
	switch limit := c.ItemLimit(); {
	case limit > 0 && m.Size > limit:
		return true
	case m.Kind == artel.KindImage:
		return !c.Fits(m)
	case m.MediaType == "application/pdf":
		return c.MaxPages.Value > 0 && m.Pages > c.MaxPages.Value
	}
	return false
}

// undetected reports whether m says nothing that could be relied on: the kind
// or the type is missing or damaged, or they contradict each other. An unknown
// type is no such case; it has a name that says so.
func undetected(m artel.MediaInfo) bool {
	switch m.Kind {
	case artel.KindImage:
		return !strings.HasPrefix(m.MediaType, "image/") || !wellFormed(m.MediaType)
	case artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther:
		return !wellFormed(m.MediaType)
	}
	return true
}

// wellFormed reports whether s is a media type as detection writes it:
// type/subtype in lower case and without parameters (RFC 6838, section 4.2).
// Whatever is not cannot stand in a data URI.
func wellFormed(s string) bool {
	major, minor, ok := strings.Cut(s, "/")
	return ok && len(s) <= 255 && name(major) && name(minor)
}

func name(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("!#$&-^_.+", c) < 0) {
			return false
		}
	}
	return s != ""
}

// suggestions asks for other services; the one that cannot is never among them.
func suggestions(t Target, need artel.Capability, mediaType string) []artel.ServiceID {
	if t.Suggest == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.Suggest(need, mediaType)), func(id artel.ServiceID) bool {
		return id == t.Service
	})
}
