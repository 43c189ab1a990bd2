// SPDX-License-Identifier: Apache-2.0

// Package gemini holds the rules of generateContent: [Validate] refuses a request as
// Google does.
package gemini

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/segmentio/asm/base64"

	"github.com/artelhq/artel/model/provider"
	wire "github.com/artelhq/artel/model/provider/gemini"
)

// The API's limits.
const (
	maxRequest  = 100 << 20 // bytes of a body
	maxDocument = 50 << 20  // bytes of an inline document
	maxImages   = 3600
)

// ValidateJSON is [Validate] for the JSON of a request for a model.
func ValidateJSON(name string, body []byte) error {
	r, err := wire.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{MaxText: len(body) + 1<<20})
	if err != nil {
		return err
	}
	r.Model = name
	return Validate(r, Options{})
}

// Options are what a server knows beside the request.
type Options struct {
	// Signed reports whether a signature is the server's for this call; nil: every
	// signature is.
	Signed func(call wire.FunctionCall, signature string) bool
	// File reports whether the API has a file, such as "files/abc"; nil: it has none.
	File func(name string) bool
	// ToolMedia allows media in the function responses of every model.
	ToolMedia bool
}

// Validate checks r against the rules of the real API. The error is an [*APIError]
// as the API answers it.
func Validate(r *wire.Request, o Options) error {
	if err := r.UnknownFields(); err != nil {
		return err
	}
	v := validator{request: r, options: o}
	for _, check := range []func() *wire.APIError{v.size, v.tools, v.calling, v.generation, v.contents, v.turns, v.signatures} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request *wire.Request
	options Options
	images  int
}

func (v *validator) size() *wire.APIError {
	n := int64(len(v.request.Extraction().JSON()))
	for _, m := range v.request.Extraction().Payloads() {
		n += (m.Size + 2) / 3 * 4
	}
	if n > maxRequest {
		return wire.Bad("Request payload size exceeds the limit: %d bytes. Please use the Files API (https://ai.google.dev/gemini-api/docs/files) for larger files.", maxRequest)
	}
	return nil
}

// fieldError makes the error of a field with an invalid value.
func fieldError(at, format string, args ...any) *wire.APIError {
	return wire.Bad("* GenerateContentRequest.%s: %s\n", at, fmt.Sprintf(format, args...))
}

func (v *validator) tools() *wire.APIError {
	seen := map[string]bool{}
	for i, t := range v.request.Tools {
		for j, f := range t.FunctionDeclarations {
			at := fmt.Sprintf("tools[%d].function_declarations[%d]", i, j)
			switch {
			case len(f.Name) > wire.MaxName || !wire.LegalName().MatchString(f.Name):
				return fieldError(at+".name", "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of %d.", wire.MaxName)
			case seen[f.Name]:
				return wire.Bad("Duplicate function declaration found: %s", f.Name)
			case len(f.Parameters) > 0 && len(f.ParametersJSONSchema) > 0:
				return fieldError(at+".parameters", "only one of parameters and parameters_json_schema may be set")
			}
			seen[f.Name] = true
			if len(f.Parameters) == 0 {
				continue
			}
			if kind := strings.ToUpper(wireType(f.Parameters)); kind != "OBJECT" {
				return fieldError(at+".parameters.type", "should be OBJECT")
			}
			if err := checkSchema(at+".parameters", f.Parameters, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *validator) declared() []string {
	var names []string
	for _, t := range v.request.Tools {
		for _, f := range t.FunctionDeclarations {
			names = append(names, f.Name)
		}
	}
	return names
}

func (v *validator) calling() *wire.APIError {
	if v.request.ToolConfig == nil || v.request.ToolConfig.FunctionCallingConfig == nil {
		return nil
	}
	c, names := v.request.ToolConfig.FunctionCallingConfig, v.declared()
	switch {
	case !slices.Contains([]string{"", "MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}, c.Mode):
		return badEnum("tool_config.function_calling_config.mode", "FunctionCallingConfig.Mode", c.Mode)
	case len(names) == 0:
		return wire.Bad("Function calling config is set without function_declarations.")
	case len(c.AllowedFunctionNames) > 0 && c.Mode != "ANY" && c.Mode != "VALIDATED":
		return fieldError("tool_config.function_calling_config.allowed_function_names", "should only be set when mode is ANY or VALIDATED")
	}
	for i, name := range c.AllowedFunctionNames {
		if !slices.Contains(names, name) {
			return fieldError(fmt.Sprintf("tool_config.function_calling_config.allowed_function_names[%d]", i), "%s is not in function_declarations", name)
		}
	}
	return nil
}

func badEnum(at, kind, value string) *wire.APIError {
	return wire.Violated([]wire.Violation{{Field: at, Description: fmt.Sprintf("Invalid value at '%s' (type.googleapis.com/google.ai.generativelanguage.v1beta.%s), %q", at, kind, value)}})
}

func (v *validator) generation() *wire.APIError {
	g, name := v.request.GenerationConfig, v.request.Model
	const at = "generation_config."
	isJSON := g.ResponseMimeType == "application/json"
	switch {
	case g.Temperature != nil && (*g.Temperature < 0 || *g.Temperature > 2):
		return fieldError(at+"temperature", "temperature must be in the range [0.0, 2.0].")
	case g.TopP != nil && (*g.TopP < 0 || *g.TopP > 1):
		return fieldError(at+"top_p", "top_p must be in the range [0.0, 1.0].")
	case g.MaxOutputTokens != nil && *g.MaxOutputTokens < 1:
		return fieldError(at+"max_output_tokens", "max_output_tokens must be positive.")
	case g.CandidateCount != nil && *g.CandidateCount != 1:
		return wire.Bad("Multiple candidates is not enabled for models/%s", name)
	case len(g.StopSequences) > wire.MaxStops:
		return fieldError(at+"stop_sequences", "the number of stop_sequences must be at most %d.", wire.MaxStops)
	case !slices.Contains([]string{"", "text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum"}, g.ResponseMimeType):
		return fieldError(at+"response_mime_type", "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`.")
	case (len(g.ResponseSchema) > 0 || len(g.ResponseJSONSchema) > 0) && !isJSON && g.ResponseMimeType != "text/x.enum":
		return fieldError(at+"response_schema", "is only supported with response_mime_type `application/json` or `text/x.enum`.")
	case len(g.ResponseSchema) > 0 && len(g.ResponseJSONSchema) > 0:
		return fieldError(at+"response_schema", "only one of response_schema and response_json_schema may be set")
	case isJSON && len(v.declared()) > 0 && wire.BeforeThird(name):
		return wire.Bad("Function calling with a response mime type: 'application/json' is unsupported")
	case g.ThinkingConfig != nil && g.ThinkingConfig.IncludeThoughts && wire.BeforeThird(name) && !wire.Thinks(name):
		return wire.Bad("Thinking is not enabled for models/%s", name)
	}
	if err := checkThinking(g.ThinkingConfig, name); err != nil {
		return err
	}
	for i, s := range g.StopSequences {
		if s == "" {
			return fieldError(fmt.Sprintf(at+"stop_sequences[%d]", i), "cannot be empty.")
		}
	}
	if len(g.ResponseSchema) > 0 {
		return checkSchema(at+"response_schema", g.ResponseSchema, true)
	}
	return nil
}

func (v *validator) contents() *wire.APIError {
	r := v.request
	if len(r.Contents) == 0 {
		return fieldError("contents", "contents is not specified")
	}
	if s := r.SystemInstruction; s != nil {
		if len(s.Parts) == 0 {
			return fieldError("system_instruction.parts", "contents.parts must not be empty.")
		}
		for i, p := range s.Parts {
			if p.Text == nil {
				return wire.Bad("System instructions take text alone: system_instruction.parts[%d] has none.", i)
			}
		}
	}
	for i, c := range r.Contents {
		if !slices.Contains([]string{"", "user", "model", "function"}, c.Role) {
			return wire.Bad("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return fieldError(fmt.Sprintf("contents[%d].parts", i), "contents.parts must not be empty.")
		}
		for j, p := range c.Parts {
			if err := v.part(fmt.Sprintf("contents[%d].parts[%d]", i, j), c.Role, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// part checks that exactly one data field is set, and its content.
func (v *validator) part(at, role string, p wire.Part) *wire.APIError {
	set := 0
	for _, is := range []bool{
		p.Text != nil, p.InlineData != nil, p.FileData != nil, p.FunctionCall != nil, p.FunctionResponse != nil,
		len(p.ExecutableCode) > 0, len(p.CodeExecutionResult) > 0, len(p.ToolCall) > 0, len(p.ToolResponse) > 0,
	} {
		if is {
			set++
		}
	}
	switch {
	case set == 0:
		return fieldError(at+".data", "required oneof field 'data' must have one initialized field")
	case set > 1:
		return wire.Violated([]wire.Violation{{Field: at, Description: fmt.Sprintf("Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set more than one of its fields", at)}})
	case p.ThoughtSignature != "" && !isBase64(p.ThoughtSignature):
		return badBase64(at+".thought_signature", p.ThoughtSignature)
	case p.FunctionCall != nil && role != "model":
		return wire.Bad("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	case p.FunctionCall != nil && p.FunctionCall.Name == "":
		return fieldError(at+".function_call.name", "Name cannot be empty.")
	case p.FunctionResponse != nil:
		return v.response(at+".function_response", role, *p.FunctionResponse)
	}
	return v.media(at, p)
}

func (v *validator) media(at string, p wire.Part) *wire.APIError {
	switch {
	case p.InlineData != nil:
		return v.inline(at+".inline_data", *p.InlineData)
	case p.FileData != nil:
		return v.file(at+".file_data", *p.FileData)
	}
	return nil
}

func (v *validator) inline(at string, b wire.Blob) *wire.APIError {
	m := wire.DecodeBase64(v.request.Extraction(), b.Data)
	switch {
	case b.MimeType == "":
		return fieldError(at+".mime_type", "mime_type must not be empty.")
	case wire.MIMEType(b.MimeType) == "":
		return wire.Bad("Unsupported MIME type: %s", b.MimeType)
	case m.Bad:
		return badBase64(at+".data", "…")
	case m.Size == 0:
		return fieldError(at+".data", "data must not be empty.")
	case b.MimeType == "application/pdf" && m.Size > maxDocument:
		return wire.Bad("The document is larger than the limit of 50 MB of inline documents.")
	}
	if strings.HasPrefix(b.MimeType, "image/") {
		if v.images++; v.images > maxImages {
			return wire.Bad("Too many images in request: the maximum is %d images.", maxImages)
		}
	}
	return nil
}

func (v *validator) file(at string, f wire.FileData) *wire.APIError {
	u, err := url.Parse(f.FileURI)
	switch {
	case f.FileURI == "":
		return fieldError(at+".file_uri", "file_uri must not be empty.")
	case err != nil || u.Scheme != "https" && u.Scheme != "gs":
		return wire.Bad("Invalid or unsupported file uri: %s", f.FileURI)
	}
	// A file of the API itself, at any host.
	if _, id, ok := strings.Cut(u.Path, "/v1beta/files/"); ok {
		if v.options.File == nil || !v.options.File("files/"+id) {
			return wire.Fail(http.StatusForbidden, "You do not have permission to access the File %s or it may not exist.", id)
		}
	}
	return nil
}

func (v *validator) response(at, role string, f wire.FunctionResponse) *wire.APIError {
	switch {
	case role == "model":
		return wire.Bad("Please ensure that function response turn comes immediately after a function call turn.")
	case f.Name == "":
		return fieldError(at+".name", "Name cannot be empty.")
	case len(f.Response) == 0:
		return fieldError(at+".response", "response must be set.")
	case len(f.Parts) > 0 && wire.BeforeThird(v.request.Model) && !v.options.ToolMedia:
		return wire.Bad("`function_response.parts` is not supported for this model")
	}
	for i, p := range f.Parts {
		at := fmt.Sprintf("%s.parts[%d]", at, i)
		if (p.InlineData == nil) == (p.FileData == nil) {
			return fieldError(at+".data", "required oneof field 'data' must have one initialized field")
		}
		if b := p.InlineData; b != nil && wire.MIMEType(b.MimeType) != "" && !slices.Contains(wire.ToolTypes(), b.MimeType) {
			return wire.Bad("Unsupported MIME type: %s in function_response.parts", b.MimeType)
		}
		if err := v.media(at, p); err != nil {
			return err
		}
	}
	return nil
}

func isBase64(s string) bool {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	_, err := base64.RawStdEncoding.DecodeString(s)
	return err == nil
}

func badBase64(at, value string) *wire.APIError {
	return wire.Violated([]wire.Violation{{Field: at, Description: fmt.Sprintf("Invalid value at '%s' (TYPE_BYTES), Base64 decoding failed for %q", at, value)}})
}

// checkThinking refuses a budget and a level of thinking that a model does not take.
func checkThinking(c *wire.ThinkingConfig, name string) *wire.APIError {
	if c == nil {
		return nil
	}
	second := wire.BeforeThird(name)
	switch b := c.ThinkingBudget; {
	case b != nil && c.ThinkingLevel != "":
		return wire.Bad("You can only set one of thinking budget and thinking level.")
	case c.ThinkingLevel != "" && second:
		return wire.Bad("Thinking level is not supported for this model.")
	case c.ThinkingLevel != "" && !slices.Contains([]string{"MINIMAL", "LOW", "MEDIUM", "HIGH"}, strings.ToUpper(c.ThinkingLevel)):
		return wire.Bad("Invalid value at 'generation_config.thinking_config.thinking_level' (type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), %q", c.ThinkingLevel)
	case b != nil && second && *b == 0 && strings.Contains(name, "pro"):
		return wire.Bad("Budget 0 is invalid. This model only works in thinking mode.")
	case b != nil && second && *b > 32_768:
		return wire.Bad("The thinking budget %d is invalid. Please choose a value between 128 and 32768.", *b)
	}
	return nil
}
