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

// A Service is one configured model endpoint. The registry returns copies.
type Service struct {
	ID            artel.ServiceID
	Name          string
	Dialect       Dialect
	BaseURL       string   // without a trailing slash; empty: the service is for routing only
	Model         string   // empty: the service is for routing only
	Models        []string // further models of the endpoint; see [CompleteAll]
	OtherModels   []string // models of the endpoint that do not chat, such as embeddings; the gateway passes requests for them on; * stands for any characters
	AllModels     bool     // every chat model that the endpoint lists; see [CompleteAll]
	NamedByHost   bool     // the names of its services have the host of BaseURL in the place of Name
	APIKey        Secret
	Auth          Auth
	Capabilities  Capabilities
	Server        Server            // how it is asked for its capabilities
	Carries       []string          // media types of the endpoint if fewer than the dialect's; nil: all of the dialect
	Output        []string          // declared outputs, for display: "text", "tool_calling", …
	Tags          []string          // capabilityTags, for users and the selector
	Description   string            // for users and the selector
	MaxConcurrent int               // concurrent calls; 0: no limit
	Fallbacks     []artel.ServiceID // tried in this order if the service is unavailable
	ForContext    []artel.ServiceID // asked by the gateway, in this order, if a request is too long for the service
	ForFilter     []artel.ServiceID // asked by the gateway, in this order, if a content filter refuses a request
	Timeout       time.Duration     // longest wait between deltas; 0: the Caller's
	FirstTimeout  time.Duration     // longest wait for the first delta; 0: Timeout
	QuirkSettings QuirkSettings     // override the quirks of its server
	Extra         ExtraFields       // what its requests have beyond the dialect
	Processors    json.RawMessage   // settings of the context pipeline, opaque here; nil: none
	Problem       string            // why it cannot be called, for display; "": none
	Origin        string            // where it was found, for display: a file, an environment variable, "built in"
}

// clone returns a deep copy of s.
func (s Service) clone() Service {
	s.Models = slices.Clone(s.Models)
	s.OtherModels = slices.Clone(s.OtherModels)
	s.Output = slices.Clone(s.Output)
	s.Tags = slices.Clone(s.Tags)
	s.Carries = slices.Clone(s.Carries)
	s.Processors = slices.Clone(s.Processors)
	s.Fallbacks = slices.Clone(s.Fallbacks)
	s.ForContext = slices.Clone(s.ForContext)
	s.ForFilter = slices.Clone(s.ForFilter)
	s.Extra = s.Extra.clone()
	s.QuirkSettings.Takes.Value = slices.Clone(s.QuirkSettings.Takes.Value)
	s.Capabilities.Input.Value = slices.Clone(s.Capabilities.Input.Value)
	s.Capabilities.Accepts.Value = slices.Clone(s.Capabilities.Accepts.Value)
	s.Capabilities.Refuses.Value = slices.Clone(s.Capabilities.Refuses.Value)
	s.Capabilities.Transport.Value = slices.Clone(s.Capabilities.Transport.Value)
	return s
}

// Carries returns the media types that requests of a dialect can hold, which no
// configuration can extend. nil: not restricted.
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

// builtIn returns the facts about s that need no query: those of the catalog about
// its model, and those of its dialect about places of media.
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
		// Since the third generation function responses may have parts.
		yes = !strings.Contains(s.Model, "gemini-1") && !strings.Contains(s.Model, "gemini-2")
	}
	if yes {
		c.ToolImage, c.ToolFile = known(FromDialect, true), known(FromDialect, true)
	}
	if s.Dialect == Anthropic && sameHost(s.BaseURL, anthropicBase) {
		// Other servers with this dialect have no file API and fetch no URLs.
		c.Transport = known(FromDialect, Transports())
	}
	if s.Dialect == OpenAI && s.Quirks().NoUserAfterTool {
		c.UserAfterTool = known(FromDialect, false)
	}
	return c
}

// OnWire returns s with its accepted media types limited to those that its dialect
// and endpoint can carry. An endpoint that does not take bytes gets no media.
func (s Service) OnWire() Service {
	if by := s.Capabilities.Transport; by.Value != nil && !slices.Contains(by.Value, ByBytes) {
		s.Capabilities.Accepts = Fact[[]string]{[]string{}, by.Source}
		return s
	}
	types := s.Dialect.Carries()
	if takes := s.Quirks().Takes; s.Dialect == OpenAI && takes != nil {
		types = slices.Clone(takes)
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

// narrowed returns s without inputs for which its endpoint takes no media type.
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

// Demo reports whether the answers of s are scripted.
func (s Service) Demo() bool { return s.Dialect == Demo }

// A Secret is hidden when printed or marshalled.
type Secret string

// String returns "" for an empty secret and a fixed mark otherwise.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(secret)"
}

// GoString is like String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText is like String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the secret itself. Only code that writes a request header calls
// it.
func (s Secret) Reveal() string { return string(s) }
