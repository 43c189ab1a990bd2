// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

const (
	MaxName  = 64 // of a function
	MaxStops = 5  // stop sequences
)

// SkipSignature replaces the signature of a call of another model, as the API
// documents for foreign conversations.
const SkipSignature = "skip_thought_signature_validator"

// form returns the requirements of the API on a conversation.
func form(s model.Service) provider.MessageRules {
	return provider.MessageRules{
		Results: provider.Together, Alternate: true, UserFirst: true, SystemFirst: true, UniqueIDs: true, Own: s.ID,
		ToolTypes: ToolTypes(),
	}
}

// ToolTypes are the media types that function responses hold.
func ToolTypes() []string {
	return []string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
}

// Encode writes r as the body of a call; model and stream are in the URL. No blob
// is read. The error is an [*artel.Error] of kind Unsupported for media that the
// dialect has no part for, or Invalid for media without a digest or type.
func Encode(r *model.Request, blobs blob.Store) (*provider.Body, error) {
	r = toolNames().Fitted(r)
	e := encoder{
		Encoder: provider.NewEncoder("gemini.Encode", r, blobs), signs: Signs(r.Service.Model), names: map[artel.CallID]string{},
	}
	messages := r.Messages
	if f := r.Format; (f.JSON || len(f.Schema) > 0) && !enforcesFormat(r) {
		e.Drop("response_format", model.NotEnforced)
		messages = provider.WithFormatInstruction(messages, f)
	}
	messages = form(r.Service).Conform(messages, r.Service.Capabilities)
	// The most stable parts come first, for caches that compare prefixes.
	e.Body.WriteString("{")
	if len(messages) > 0 && messages[0].Role == artel.RoleSystem {
		e.Body.WriteString(`"systemInstruction":{"parts":[`)
		e.list(messages[0].Parts)
		e.Body.WriteString("]},")
		messages = messages[1:]
	}
	e.settings(r)
	e.Body.WriteString(`"contents":[`)
	provider.EachOf(&e.Encoder, messages, func(_ int, m model.Message) {
		if m.Role == artel.RoleAssistant {
			e.Body.WriteString(`{"role":"model","parts":[`)
			e.model(m.Parts)
		} else {
			e.Body.WriteString(`{"role":"user","parts":[`)
			e.list(m.Parts)
		}
		e.Body.WriteString("]}")
	})
	e.Body.WriteString("]}")
	return e.Body, e.Err
}

// enforcesFormat reports whether the API enforces the form of the answer. Before the
// third generation it refuses JSON answers together with tools.
func enforcesFormat(r *model.Request) bool {
	return (r.Format.JSON || len(r.Format.Schema) > 0) && (len(r.Tools) == 0 || !BeforeThird(r.Service.Model))
}

// settings writes the members except contents, each with a comma after it.
func (e *encoder) settings(r *model.Request) {
	if len(r.Tools) > 0 {
		declared := make([]FunctionDeclaration, len(r.Tools))
		for i, t := range r.Tools {
			declared[i] = FunctionDeclaration{Name: t.Name, Description: t.Description, Parameters: parameters(t.Schema)}
		}
		e.field("tools", []Tool{{FunctionDeclarations: declared}})
		if c := callingConfig(r.Choice); c != nil {
			e.field("toolConfig", ToolConfig{FunctionCallingConfig: c})
		}
	}
	var g GenerationConfig
	s := r.Sampling
	if len(s.Stop) > MaxStops {
		e.Drop("stop", model.TooMany)
	}
	g.StopSequences = s.Stop[:min(len(s.Stop), MaxStops)]
	g.Temperature, g.TopP, g.Seed, g.FrequencyPenalty, g.PresencePenalty = s.Temperature, s.TopP, s.Seed, s.FrequencyPenalty, s.PresencePenalty
	if s.TopK != nil {
		k := float64(*s.TopK)
		g.TopK = &k
	}
	if r.MaxOutput > 0 {
		g.MaxOutputTokens = &r.MaxOutput
	}
	if enforcesFormat(r) {
		g.ResponseMimeType = "application/json"
		g.ResponseSchema = parameters(r.Format.Schema)
	}
	g.ThinkingConfig = e.thinking(r)
	if b := provider.MustMarshal(g); string(b) != "{}" {
		e.field("generationConfig", b)
	}
}

func callingConfig(c model.ToolChoice) *FunctionCallingConfig {
	switch c.Mode {
	case model.ChooseNone:
		return &FunctionCallingConfig{Mode: "NONE"}
	case model.ChooseAny:
		return &FunctionCallingConfig{Mode: "ANY"}
	case model.ChooseNamed:
		return &FunctionCallingConfig{Mode: "ANY", AllowedFunctionNames: []string{c.Name}}
	}
	return nil
}

type encoder struct {
	provider.Encoder

	signs      bool                    // the model wants signatures
	names      map[artel.CallID]string // of the functions that were called
	inResponse bool                    // a function response is written, which holds bytes alone
}

func (e *encoder) field(name string, v any) {
	e.Body.WriteString(`"` + name + `":`)
	e.JSON(v)
	e.Body.WriteString(",")
}

// list writes the parts of a user content, or of the instructions.
func (e *encoder) list(parts artel.Parts) {
	provider.EachOf(&e.Encoder, parts, func(_ int, p artel.Part) { e.user(p) })
}

func (e *encoder) user(p artel.Part) {
	switch p := p.(type) {
	case artel.Text:
		e.JSON(Part{Text: &p.Text})
	case artel.Media:
		e.media(p)
	case artel.ToolResult:
		e.result(p)
	}
}

// state is the opaque state of a call or of reasoning.
type state struct {
	ThoughtSignature string `json:"thoughtSignature"`
	Thought          bool   `json:"thought,omitempty"` // the signature is of a thought, not of the answer
}

// stateOf reads opaque state; that of other dialects is zero.
func stateOf(opaque json.RawMessage) (s state) {
	if json.Unmarshal(opaque, &s) != nil {
		return state{}
	}
	return s
}

// model writes the parts of a model content. A signature of the answer is written
// on the text before it.
func (e *encoder) model(parts artel.Parts) {
	called := false
	var out []Part
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			out = append(out, Part{Text: &p.Text})
		case artel.Reasoning:
			s := stateOf(p.Opaque)
			if n := len(out); !s.Thought && p.Text == "" && n > 0 && out[n-1].Text != nil && !out[n-1].Thought && out[n-1].ThoughtSignature == "" {
				out[n-1].ThoughtSignature = s.ThoughtSignature
				continue
			}
			text := ""
			if s.Thought {
				text = p.Text
			}
			out = append(out, Part{Text: &text, Thought: s.Thought, ThoughtSignature: s.ThoughtSignature})
		case artel.ToolCall:
			e.names[p.ID] = p.Name
			call := Part{FunctionCall: &FunctionCall{ID: string(p.ID), Name: p.Name, Args: json.RawMessage(provider.SentArguments(p.Arguments))}}
			call.ThoughtSignature = stateOf(p.Opaque).ThoughtSignature
			if call.ThoughtSignature == "" && !called && e.signs {
				call.ThoughtSignature = SkipSignature
			}
			called = true
			out = append(out, call)
		}
	}
	provider.EachOf(&e.Encoder, out, func(_ int, p Part) { e.JSON(p) })
}

// result writes the response of a function, with the media that stay in it.
func (e *encoder) result(r artel.ToolResult) {
	texts, media := provider.SplitParts(r.Parts)
	texts = slices.DeleteFunc(append([]string{r.Content}, texts...), func(s string) bool { return s == "" })
	key := "output"
	if r.IsError {
		key = "error"
	}
	e.Body.WriteString(`{"functionResponse":{"id":`)
	e.JSON(string(r.CallID))
	e.Body.WriteString(`,"name":`)
	e.JSON(e.names[r.CallID])
	e.Body.WriteString(`,"response":`)
	e.JSON(map[string]string{key: strings.Join(texts, "\n\n")})
	if len(media) > 0 {
		e.Body.WriteString(`,"parts":[`)
		e.inResponse = true
		e.list(media)
		e.inResponse = false
		e.Body.WriteString("]")
	}
	e.Body.WriteString("}}")
}

func (e *encoder) media(m artel.Media) {
	mediaType, name, ok := e.Media(m)
	if !ok {
		return
	}
	word := MIMEType(mediaType)
	if word == "" {
		e.Fail(artel.Unsupported,
			"%s is %s: Gemini takes PNG, JPEG, WebP, HEIC and HEIF pictures, sound, video, PDF and text", name, mediaType)
		return
	}
	if uri := e.Names[m.Ref.Digest].Text; uri != "" && !e.inResponse {
		e.Body.WriteString(`{"fileData":{"mimeType":"` + word + `","fileUri":"` + uri + `"}}`)
		return
	}
	e.Blob(`{"inlineData":{"mimeType":"`+word+`","data":"`, m, `"}}`)
}

// MIMEType returns the API's name of a media type that it takes, or "".
func MIMEType(mediaType string) string {
	switch mediaType {
	case "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf",
		"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/m4a", "audio/mp4", "audio/opus", "audio/webm", "audio/pcm",
		"video/mp4", "video/mpeg", "video/quicktime", "video/avi", "video/x-flv", "video/webm", "video/wmv", "video/3gpp":
		return mediaType
	case "image/jpg":
		return "image/jpeg"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "audio/wav"
	case "audio/mpga", "audio/mpeg3", "audio/x-mpeg-3":
		return "audio/mpeg"
	case "audio/x-m4a":
		return "audio/m4a"
	case "audio/x-aac":
		return "audio/aac"
	case "audio/x-aiff":
		return "audio/aiff"
	case "audio/x-flac":
		return "audio/flac"
	case "video/mov":
		return "video/quicktime"
	case "video/mpg":
		return "video/mpeg"
	case "video/x-msvideo", "video/msvideo":
		return "video/avi"
	case "video/x-ms-wmv":
		return "video/wmv"
	}
	if strings.HasPrefix(mediaType, "text/") {
		return "text/plain"
	}
	return ""
}

// LegalName matches the names of functions that the API takes.
var LegalName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`) })
