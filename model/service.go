// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// A Dialect names a wire API.
type Dialect string

// The dialects.
const (
	OpenAI          Dialect = "openai"
	OpenAIResponses Dialect = "openai-responses"
	Anthropic       Dialect = "anthropic"
	Gemini          Dialect = "gemini"
	Demo            Dialect = "demo"
)

// Dialects returns all dialects.
func Dialects() []Dialect { return []Dialect{OpenAI, OpenAIResponses, Anthropic, Gemini, Demo} }

// A Service is one configured model endpoint. It is a value: the registry
// hands out copies.
type Service struct {
	ID            artel.ServiceID
	Name          string
	Dialect       Dialect
	BaseURL       string // without a trailing slash; empty: the service serves for routing only
	Model         string // empty: the service serves for routing only
	APIKey        Secret
	Capabilities  Capabilities
	Server        Server            // how it is asked what its model takes
	Carries       []string          // media types that its endpoint takes, where these are fewer than its dialect's; nil: they are not
	Output        []string          // what it can produce, as declared: "text", "tool_calling", …; for people
	Tags          []string          // capabilityTags: words for people and for selection
	Description   string            // for people and for selection
	MaxConcurrent int               // calls at once; 0: no limit
	Fallbacks     []artel.ServiceID // asked in this order where it is not available, by those who may change the service
	Timeout       time.Duration     // longest silence of a call; 0: the Caller's
	FirstTimeout  time.Duration     // longest wait for the beginning of an answer; 0: Timeout
	QuirkSettings QuirkSettings     // replace what is known of its server's quirks
	Processors    json.RawMessage   // settings of the context pipeline, which are not for this package to understand; nil: none
	Problem       string            // why it cannot be called although it was meant to be, for people; "": nothing is wrong
	Origin        string            // where it was found, for people: a file, an environment variable, "built in"
}

// clone returns a copy that shares no memory with s.
func (s Service) clone() Service {
	s.Output = slices.Clone(s.Output)
	s.Tags = slices.Clone(s.Tags)
	s.Carries = slices.Clone(s.Carries)
	s.Processors = slices.Clone(s.Processors)
	s.Fallbacks = slices.Clone(s.Fallbacks)
	s.QuirkSettings.Takes.Value = slices.Clone(s.QuirkSettings.Takes.Value)
	s.Capabilities.Input.Value = slices.Clone(s.Capabilities.Input.Value)
	s.Capabilities.Accepts.Value = slices.Clone(s.Capabilities.Accepts.Value)
	s.Capabilities.Refuses.Value = slices.Clone(s.Capabilities.Refuses.Value)
	s.Capabilities.Transport.Value = slices.Clone(s.Capabilities.Transport.Value)
	return s
}

// Carries returns the media types that requests of a dialect can hold: a hard
// limit, whatever a model or an operator says. nil: not restricted.
func (d Dialect) Carries() []string {
	switch d {
	case OpenAI: // Chat Completions; PDF is its only type of file
		return []string{
			"image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf",
			"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3",
		}
	case Anthropic: // "Vision" and "PDF support" of the API's documentation
		return []string{"image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf"}
	case OpenAIResponses: // "File inputs" of the API's documentation
		const office = "application/vnd.openxmlformats-officedocument."
		return []string{
			"image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf",
			office + "wordprocessingml.document", office + "spreadsheetml.sheet", office + "presentationml.presentation",
			"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint",
			"application/vnd.oasis.opendocument.text", "application/rtf", "text/rtf",
		}
	case Gemini: // "Image", "Audio", "Video" and "Document understanding" of the API's documentation, and names in use
		return []string{
			"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf",
			"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3", "audio/aiff", "audio/x-aiff",
			"audio/aac", "audio/x-aac", "audio/ogg", "audio/opus", "audio/flac", "audio/x-flac", "audio/mp4", "audio/m4a", "audio/x-m4a", "audio/webm",
			"video/mp4", "video/mpeg", "video/quicktime", "video/x-msvideo", "video/avi", "video/x-flv", "video/webm", "video/x-ms-wmv", "video/wmv", "video/3gpp",
		}
	}
	return nil
}

// builtIn returns what is known of s when nobody has been asked: what the
// catalog says of its model, and where its dialect lets media stand.
func (s Service) builtIn() Capabilities {
	c := Catalog(s.Model)
	if !listPriced(s.BaseURL) {
		c.Price = Fact[Price]{}
	}
	yes := false
	switch s.Dialect {
	case Anthropic, OpenAIResponses:
		yes = true
	case Gemini:
		// Parts of a function's response came with the third generation.
		yes = !strings.Contains(s.Model, "gemini-1") && !strings.Contains(s.Model, "gemini-2")
	}
	if yes {
		c.ToolImage, c.ToolFile = known(FromDialect, true), known(FromDialect, true)
	}
	if s.Dialect == Anthropic && sameHost(s.BaseURL, anthropicBase) {
		// Others that speak the dialect have no files, and fetch nothing.
		c.Transport = known(FromDialect, Transports())
	}
	if s.Dialect == OpenAI && s.Quirks().NoUserAfterTool {
		c.UserAfterTool = known(FromDialect, false)
	}
	return c
}

// OnWire returns s as a call sees it: what its dialect or its endpoint cannot
// carry is not accepted, whatever the model could do with it. Bytes are what
// calls carry, so an endpoint that takes other transports alone gets no media.
func (s Service) OnWire() Service {
	if by := s.Capabilities.Transport; by.Value != nil && !slices.Contains(by.Value, ByBytes) {
		s.Capabilities.Accepts = Fact[[]string]{[]string{}, by.Source}
		return s
	}
	types := s.Dialect.Carries()
	if takes := s.Quirks().Takes; s.Dialect == OpenAI && takes != nil {
		types = takes
	}
	if s.Carries != nil {
		types = slices.Clone(s.Carries)
	}
	if types == nil {
		return s
	}
	said := s.Capabilities
	from := FromDialect
	if said.Accepts.Value != nil {
		from = said.Accepts.Source
		types = slices.DeleteFunc(types, func(t string) bool { return !said.Admits(t) })
	}
	s.Capabilities.Accepts = Fact[[]string]{types, from}
	return s
}

// narrowed returns s without the inputs for which its endpoint takes no media
// type at all, so that whoever looks at s sees what can be sent.
func (s Service) narrowed() Service {
	if s.Carries == nil {
		return s
	}
	can := map[artel.Capability]bool{}
	for _, t := range s.Carries {
		major, _, _ := strings.Cut(t, "/")
		switch major {
		case "image":
			can[artel.CanVision] = true
		case "audio":
			can[artel.CanAudio] = true
		case "video":
			can[artel.CanVideo] = true
		default:
			can[artel.CanFile] = true
		}
	}
	for c := range can {
		can[c] = s.Capabilities.Has(c)
	}
	accepts := s.OnWire().Capabilities.Accepts.Value
	s.Capabilities.Input = known(FromDialect, inputsOf(can))
	s.Capabilities.Accepts = known(FromDialect, accepts)
	return s
}

// Callable reports whether s names an endpoint and a model.
func (s Service) Callable() bool { return s.Dialect == Demo || s.BaseURL != "" && s.Model != "" }

// Demo reports whether the answers of s are scripted, so that no model is asked.
func (s Service) Demo() bool { return s.Dialect == Demo }

// A Secret never shows itself when printed or marshalled.
type Secret string

// String returns "" for an empty secret and a fixed mark otherwise.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(secret)"
}

// GoString is like String, so that %#v shows nothing either.
func (s Secret) GoString() string { return s.String() }

// MarshalText is like String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the secret itself. Only the code that writes a request's
// header calls it.
func (s Secret) Reveal() string { return string(s) }
