// SPDX-License-Identifier: Apache-2.0

package artel

// A MediaKind is the broad class of some bytes.
type MediaKind string

// The kinds of media.
const (
	KindText     MediaKind = "text"
	KindImage    MediaKind = "image"
	KindAudio    MediaKind = "audio"
	KindVideo    MediaKind = "video"
	KindDocument MediaKind = "document"
	KindArchive  MediaKind = "archive"
	KindOther    MediaKind = "other"
)

// MediaInfo describes some bytes. It is determined once, when they arrive.
type MediaInfo struct {
	MediaType    string      `json:"media_type"`    // as detected, without parameters
	DeclaredType string      `json:"declared_type"` // as declared, cleaned of parameters and quotes
	Kind         MediaKind   `json:"kind"`
	Charset      string      `json:"charset,omitempty"` // of text, also too large to be edited: the source charset, e.g. "utf-8", "gb18030"
	DetectedBy   MediaSource `json:"detected_by,omitempty"`
	Confidence   float64     `json:"confidence,omitempty"` // 0 to 1
	Size         int64       `json:"size"`                 // bytes
	Width        int         `json:"width,omitempty"`
	Height       int         `json:"height,omitempty"`
	Pages        int         `json:"pages,omitempty"`
	Duration     float64     `json:"duration,omitempty"` // seconds
}

// IsBinary reports whether the bytes are not text.
func (m MediaInfo) IsBinary() bool { return m.Kind != KindText }

// IsLargeText reports whether the bytes are a text that is too large to be edited.
// It is stored as a document, of which the beginning can be read.
func (m MediaInfo) IsLargeText() bool { return m.Kind == KindDocument && m.Charset != "" }

// A MediaSource is the evidence for a media type.
type MediaSource string

// The sources, strongest first.
const (
	FromSignature MediaSource = "signature" // the first bytes
	FromDeclared  MediaSource = "declared"  // the declared type
	FromExtension MediaSource = "extension" // the file name
	FromContent   MediaSource = "content"   // analysis of all bytes
)

// A Capability is a kind of input that a model accepts.
type Capability string

// The capability words of a service's configuration.
const (
	CanText   Capability = "text"
	CanVision Capability = "vision"
	CanFile   Capability = "file"
	CanAudio  Capability = "audio"
	CanVideo  Capability = "video"
)

// Needs returns the capability that a model needs for unconverted media of kind k.
func (k MediaKind) Needs() Capability {
	switch k {
	case KindText:
		return CanText
	case KindImage:
		return CanVision
	case KindAudio:
		return CanAudio
	case KindVideo:
		return CanVideo
	default:
		return CanFile
	}
}

// A Step is a form in which a part is sent to a model.
type Step string

// The steps, best first.
const (
	StepNative      Step = "native"      // unchanged
	StepConverted   Step = "converted"   // converted to another format or size
	StepExtracted   Step = "extracted"   // text extracted from it
	StepTranscribed Step = "transcribed" // text that a model made of it
	StepDescribed   Step = "described"   // a short description
)

// A Reason says why a part is sent in its step.
type Reason string

// The reasons.
const (
	ReasonNone              Reason = ""                   // native
	ReasonText              Reason = "text"               // it is text
	ReasonCapabilityMissing Reason = "capability_missing" // the model lacks Need
	ReasonNotAccepted       Reason = "not_accepted"       // the service's accepts list excludes the media type
	ReasonOverLimit         Reason = "over_limit"         // over a limit of the service
	ReasonUndetected        Reason = "undetected"         // its type is unknown
	ReasonUnreadable        Reason = "unreadable"         // the bytes are missing or damaged
	ReasonEmpty             Reason = "empty"              // there are no bytes
	ReasonRefused           Reason = "refused"            // the service has refused these bytes
	ReasonRequestFull       Reason = "request_full"       // newer media use up the service's limit per request
	ReasonNotMade           Reason = "not_made"           // conversion or extraction failed
	ReasonPolicy            Reason = "policy"             // the settings ask for a description
	ReasonStale             Reason = "stale"              // it was sent some turns ago, which suffices by the settings
)

// A Route is the decision about one part for one service: which step, and why.
// The same part, capabilities and target always give the same Route.
type Route struct {
	ContentType string      `json:"contentType"` // "text", "image" or "binary"
	Routing     string      `json:"routing"`     // "text", "image_url" or "file"
	Step        Step        `json:"step"`
	Reason      Reason      `json:"reason"`
	Need        Capability  `json:"need,omitempty"`              // the missing capability
	Suggested   []ServiceID `json:"suggestedServices,omitempty"` // configured services that accept it
}

// The values of [Route.Routing].
const (
	RoutingText  = "text"
	RoutingImage = "image_url"
	RoutingFile  = "file"
)
