// SPDX-License-Identifier: Apache-2.0

// Package route decides in which form content is sent to a model.
//
// Begin with [Decide], a pure function from the description of some bytes and the
// capabilities of a service to an [artel.Route]. [Describe] writes the text that
// replaces bytes that the service cannot take. [New] makes the answer about one
// artifact for programs and tools; it calls [Source.Makers] for other forms of
// the bytes only if they are needed.
//
// For all bytes, names, declarations and capabilities:
//
//   - the content of a binary file never enters a text field;
//   - text is returned unchanged;
//   - the same content, capabilities and service give the same decision;
//   - every result is either routed or described, with the reason.
//
// A decision reads no bytes. Package media determines the type of bytes, package
// model the capabilities of services, and the providers place parts in requests.
package route

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
)

// A Target is the service that content is routed to. The zero Target takes only
// text.
type Target struct {
	Service      artel.ServiceID
	Capabilities model.Capabilities
	// Suggest names the configured services that have a capability and accept
	// a media type; nil: none are suggested.
	Suggest func(need artel.Capability, mediaType string) []artel.ServiceID
	Forms   Forms
}

// Forms says which other forms may replace media that a service cannot take, and
// which services make them. The zero Forms allows descriptions only.
type Forms struct {
	Converted   bool // pictures may be scaled or re-encoded
	Extracted   bool // text may be extracted from documents
	Transcribed bool // recordings may be transcribed and pictures captioned
	Pages       bool // pages of PDFs may be drawn

	Transcriber  artel.ServiceID // transcribes recordings; "": none
	MaxRecording int64           // bytes; 0: not limited
	Captioner    artel.ServiceID // captions pictures; "": none
}

// With returns f with the requested steps allowed. Steps other than extracted and
// transcribed are ignored.
func (f Forms) With(steps ...artel.Step) Forms {
	f.Extracted = f.Extracted || slices.Contains(steps, artel.StepExtracted)
	f.Transcribed = f.Transcribed || slices.Contains(steps, artel.StepTranscribed)
	return f
}

// Decide returns the form in which content m is sent to t: the first possible one
// of unchanged, converted, extracted text, transcript, description. Text is always
// sent unchanged.
//
// An image needs the capability vision. Audio and video need their own
// capability, or file. All other binary content needs file, even with an unknown
// type. In addition the accepts list and the limits on bytes, sides and pages
// apply. The reason says why the content is not sent unchanged. Content without
// bytes or with an undetected type is described.
//
// A picture is converted only if the service has vision and excludes the
// original. The later forms must be allowed by t.Forms.
//
// Decide is pure if t.Suggest is, and safe for concurrent use. If making a form
// fails later, use [Fallback].
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
	if m.IsLargeText() { // its beginning says more to a model than the file
		if r.Reason = artel.ReasonOverLimit; t.Forms.Extracted {
			r.Step, r.Reason = artel.StepExtracted, artel.ReasonText
		}
		return r
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

// Doubtful returns the route for a PDF whose text turned out to be missing or doubtful, if r
// is that text or a description: its pages as pictures if t sees, else their text as the
// captioner reads it instead of the doubtful text, else r.
func Doubtful(r artel.Route, m artel.MediaInfo, t Target) artel.Route {
	switch {
	case r.Routing != artel.RoutingText || !paged(m) || !t.Forms.Pages:
	case sees(t):
		r.Step, r.Routing = artel.StepConverted, artel.RoutingImage
	case r.Step == artel.StepExtracted && t.Forms.Transcribed && t.Forms.Captioner != "":
		r.Step = artel.StepTranscribed
	}
	return r
}

// paged reports whether m has pages that can be drawn.
func paged(m artel.MediaInfo) bool { return m.MediaType == "application/pdf" && m.Size > 0 }

// sees reports whether t takes pictures that are made for it.
func sees(t Target) bool {
	return t.Capabilities.Has(artel.CanVision) && t.Capabilities.PictureForm().Possible()
}

// Fallback returns the route for content whose form r could not be made.
func Fallback(r artel.Route) artel.Route {
	r.Step, r.Routing, r.Reason = artel.StepDescribed, artel.RoutingText, artel.ReasonNotMade
	return r
}

// RequestFull returns the route for content that exceeds the service's limits per
// request.
func RequestFull(r artel.Route) artel.Route {
	r.Step, r.Routing, r.Reason, r.Suggested = artel.StepDescribed, artel.RoutingText, artel.ReasonRequestFull, nil
	return r
}

// transcribes reports whether a transcriber for media like m is configured.
func (f Forms) transcribes(m artel.MediaInfo) bool {
	return f.Transcriber != "" && (m.Kind == artel.KindAudio || m.Kind == artel.KindVideo) && model.Transcribable(m.MediaType)
}

// Readable reports whether text can be extracted from, or transcribed of, m.
func (f Forms) Readable(m artel.MediaInfo) bool {
	return m.IsBinary() && m.Size > 0 && (m.IsLargeText() || extract.Supports(m.MediaType) || f.transcribes(m))
}

// convertible reports whether m can be converted to a picture for t.
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

// able reports whether the capabilities cover need. Recordings may also be sent as
// files, subject to the accepts list.
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

// undetected reports whether the kind or type of m is missing or malformed, or both
// contradict each other. application/octet-stream is well-formed.
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
// type/subtype in lower case and without parameters (RFC 6838, section 4.2), as a
// data URI needs it.
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

// suggestions returns other services that accept the media.
func suggestions(t Target, need artel.Capability, mediaType string) []artel.ServiceID {
	if t.Suggest == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.Suggest(need, mediaType)), func(id artel.ServiceID) bool {
		return id == t.Service
	})
}
