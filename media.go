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

// MediaInfo is what is known about some bytes, decided once when they arrive.
type MediaInfo struct {
	MediaType    string      `json:"media_type"`    // as detected, without parameters
	DeclaredType string      `json:"declared_type"` // as declared, cleaned of parameters and quotes
	Kind         MediaKind   `json:"kind"`
	Charset      string      `json:"charset,omitempty"` // of text: the source charset, e.g. "utf-8", "gb18030"
	DetectedBy   MediaSource `json:"detected_by,omitempty"`
	Confidence   float64     `json:"confidence,omitempty"` // 0 to 1
	Size         int64       `json:"size"`                 // bytes
	Width        int         `json:"width,omitempty"`
	Height       int         `json:"height,omitempty"`
	Pages        int         `json:"pages,omitempty"`
	Duration     float64     `json:"duration,omitempty"` // seconds
}

// IsBinary reports whether the bytes may never enter a text field.
func (m MediaInfo) IsBinary() bool { return m.Kind != KindText }

// A MediaSource says which evidence decided the media type.
type MediaSource string

// The sources, strongest first.
const (
	FromSignature MediaSource = "signature" // the first bytes
	FromDeclared  MediaSource = "declared"  // the declared type
	FromExtension MediaSource = "extension" // the file name
	FromContent   MediaSource = "content"   // what the bytes look like as a whole
)

// A Capability is something a model can take as input.
type Capability string

// The capability words of a service's configuration.
const (
	CanText   Capability = "text"
	CanVision Capability = "vision"
	CanFile   Capability = "file"
	CanAudio  Capability = "audio"
	CanVideo  Capability = "video"
)

// Needs returns the capability that a model must have to take media of kind k
// as it is.
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

// A Step is a rung of the ladder by which a part reaches a model.
type Step string

// The ladder, best first.
const (
	StepNative      Step = "native"      // as it is
	StepConverted   Step = "converted"   // as other bytes of the same kind
	StepExtracted   Step = "extracted"   // as text taken out of it
	StepTranscribed Step = "transcribed" // as text made from it by a model
	StepDescribed   Step = "described"   // as a short description
)

// A Reason says why a part took its step.
type Reason string

// The reasons.
const (
	ReasonNone              Reason = ""                   // native: nothing to explain
	ReasonText              Reason = "text"               // it is text
	ReasonCapabilityMissing Reason = "capability_missing" // the model lacks Need
	ReasonNotAccepted       Reason = "not_accepted"       // the service's accepts list excludes the media type
	ReasonOverLimit         Reason = "over_limit"         // larger than the service takes
	ReasonUndetected        Reason = "undetected"         // nobody could say what it is
	ReasonUnreadable        Reason = "unreadable"         // the bytes are missing or damaged
	ReasonEmpty             Reason = "empty"              // there are no bytes
	ReasonRefused           Reason = "refused"            // the service has refused these bytes
	ReasonRequestFull       Reason = "request_full"       // newer media fill what the service takes in one request
	ReasonNotMade           Reason = "not_made"           // another form would have done, and could not be made
	ReasonPolicy            Reason = "policy"             // the settings want it in words
	ReasonStale             Reason = "stale"              // it was shown a while ago, and the settings say that this is enough
)

// A Route is the decision about one part for one service: which step, and why.
// The same part, capabilities and target always give the same Route.
type Route struct {
	ContentType string      `json:"contentType"` // "text", "image" or "binary"
	Routing     string      `json:"routing"`     // "text", "image_url" or "file"
	Step        Step        `json:"step"`
	Reason      Reason      `json:"reason"`
	Need        Capability  `json:"need,omitempty"`              // the missing capability
	Suggested   []ServiceID `json:"suggestedServices,omitempty"` // configured services that could take it
}

// The values of [Route.Routing].
const (
	RoutingText  = "text"
	RoutingImage = "image_url"
	RoutingFile  = "file"
)
