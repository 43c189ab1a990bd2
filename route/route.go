// SPDX-License-Identifier: Apache-2.0

// Package route decides in which form a piece of content reaches a model, and
// says it.
//
// Begin with [Decide], a pure function from what is known about some bytes and
// what a service can take to an [artel.Route]. [Describe] writes the text that
// stands in the place of bytes which the service cannot take. [New] makes
// the answer that programs and tools get about one artifact.
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
}

// Decide says how content known by m reaches t: as it is where the service
// takes it, else as a description with the reason. Text always goes as it is.
//
// An image needs the capability vision. Audio and video need their own
// capability, or file. Everything else that is not text needs file, also where
// its type is merely unknown. A service's accepts list and its limit per item
// hold on top of that. Content without bytes, and content that nobody could
// identify, is described whatever the service can do.
//
// Decide is pure as long as t.Suggest is, and safe for concurrent use.
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
	switch {
	case m.Size <= 0:
		r.Reason = artel.ReasonEmpty
		return r
	case undetected(m):
		r.ContentType, r.Reason = contentBinary, artel.ReasonUndetected
		return r
	case !able(t.Capabilities, need):
		r.Reason, r.Need = artel.ReasonCapabilityMissing, need
	case !t.Capabilities.Admits(m.MediaType):
		r.Reason = artel.ReasonNotAccepted
	case overLimit(t.Capabilities, m.Size):
		r.Reason = artel.ReasonOverLimit
	default:
		r.Step, r.Routing = artel.StepNative, artel.RoutingFile
		if m.Kind == artel.KindImage {
			r.Routing = artel.RoutingImage
		}
		return r
	}
	r.Suggested = suggestions(t, need, m.MediaType)
	return r
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

func overLimit(c model.Capabilities, size int64) bool {
	limit := c.MaxItemBytes.Value
	return limit > 0 && size > limit
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
