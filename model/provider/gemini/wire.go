// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// A Request is the body of :generateContent and :streamGenerateContent. Fields that
// Artel does not use are ignored.
type Request struct {
	Model  string `json:"-"` // of the address, without "models/"; see [Target]
	Stream bool   `json:"-"` // of the address

	Contents          []Content        `json:"contents"`
	SystemInstruction *Content         `json:"systemInstruction,omitempty"`
	Tools             []Tool           `json:"tools,omitempty"`
	ToolConfig        *ToolConfig      `json:"toolConfig,omitempty"`
	GenerationConfig  GenerationConfig `json:"generationConfig,omitzero"`

	extraction *provider.Extraction // nil: not decoded from JSON
	unknown    []Violation          // fields that the API does not know
}

// A Content is one turn of a conversation, or a step of one.
type Content struct {
	Role  string `json:"role,omitempty"` // user, model; some clients write function for user
	Parts []Part `json:"parts"`
}

// A Part is one typed part of a content: exactly one of the pointers, the raw
// fields and Text is set.
type Part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"` // Text is a summary of the model's thoughts
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
	InlineData       *Blob             `json:"inlineData,omitempty"`
	FileData         *FileData         `json:"fileData,omitempty"`
	FunctionCall     *FunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *FunctionResponse `json:"functionResponse,omitempty"`

	ExecutableCode      json.RawMessage `json:"executableCode,omitempty"`
	CodeExecutionResult json.RawMessage `json:"codeExecutionResult,omitempty"`
	ToolCall            json.RawMessage `json:"toolCall,omitempty"`
	ToolResponse        json.RawMessage `json:"toolResponse,omitempty"`
}

// A Blob is bytes as base64.
type Blob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

// FileData is a file of the API, or a public address.
type FileData struct {
	MimeType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// A FunctionCall is a model's call of a function. Args is an object.
type FunctionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A FunctionResponse is the result of a function. Response is an object: with
// "output", with "error", or the result itself.
type FunctionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []Part          `json:"parts,omitempty"` // media alone
}

// A Tool is a list of functions, or a tool of the API.
type Tool struct {
	FunctionDeclarations []FunctionDeclaration `json:"functionDeclarations,omitempty"`
}

// A FunctionDeclaration describes a function; its parameters are in the API's
// subset of OpenAPI or in JSON Schema.
type FunctionDeclaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	Parameters           json.RawMessage `json:"parameters,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// A ToolConfig configures the calls of functions.
type ToolConfig struct {
	FunctionCallingConfig *FunctionCallingConfig `json:"functionCallingConfig,omitempty"`
}

// A FunctionCallingConfig says which functions the model may or must call.
type FunctionCallingConfig struct {
	Mode                 string   `json:"mode,omitempty"` // AUTO, ANY, NONE, VALIDATED
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// A GenerationConfig has the settings of an answer.
type GenerationConfig struct {
	StopSequences      []string        `json:"stopSequences,omitempty"`
	MaxOutputTokens    *int            `json:"maxOutputTokens,omitempty"`
	CandidateCount     *int            `json:"candidateCount,omitempty"`
	Temperature        *float64        `json:"temperature,omitempty"`
	TopP               *float64        `json:"topP,omitempty"`
	ResponseMimeType   string          `json:"responseMimeType,omitempty"`
	ResponseSchema     json.RawMessage `json:"responseSchema,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	ThinkingConfig     *ThinkingConfig `json:"thinkingConfig,omitempty"`
}

// A ThinkingConfig configures thinking, and whether thoughts are returned.
type ThinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
}

// A Response is an answer, or one chunk of a stream.
type Response struct {
	Candidates     []Candidate     `json:"candidates,omitempty"`
	PromptFeedback *PromptFeedback `json:"promptFeedback,omitempty"`
	UsageMetadata  *Usage          `json:"usageMetadata,omitempty"`
	ModelVersion   string          `json:"modelVersion,omitempty"`
	ResponseID     string          `json:"responseId,omitempty"`
	Error          json.RawMessage `json:"error,omitempty"` // in the middle of a stream
}

// A Candidate is one answer.
type Candidate struct {
	Content       *Content `json:"content,omitempty"`
	FinishReason  string   `json:"finishReason,omitempty"`
	FinishMessage string   `json:"finishMessage,omitempty"`
	Index         int      `json:"index"`
}

// PromptFeedback is the reason of a missing answer.
type PromptFeedback struct {
	BlockReason        string `json:"blockReason,omitempty"`
	BlockReasonMessage string `json:"blockReasonMessage,omitempty"`
}

// Usage counts tokens. CandidatesTokenCount excludes thoughts.
type Usage struct {
	PromptTokenCount        int64 `json:"promptTokenCount"`
	CandidatesTokenCount    int64 `json:"candidatesTokenCount,omitempty"`
	TotalTokenCount         int64 `json:"totalTokenCount"`
	CachedContentTokenCount int64 `json:"cachedContentTokenCount,omitempty"`
	ThoughtsTokenCount      int64 `json:"thoughtsTokenCount,omitempty"`
	ToolUsePromptTokenCount int64 `json:"toolUsePromptTokenCount,omitempty"`
}

// An APIError is a refusal in the API's own form. Its Error is the message.
type APIError struct {
	Code    int    `json:"code"` // the HTTP status
	Message string `json:"message"`
	Status  string `json:"status"` // the word for it: INVALID_ARGUMENT, …
	Details []any  `json:"details,omitempty"`
}

// Error returns the message.
func (e *APIError) Error() string { return e.Message }

// MarshalBody returns the body of the HTTP response.
func (e *APIError) MarshalBody() []byte {
	b, err := json.Marshal(map[string]*APIError{"error": e})
	if err != nil { // Details has no JSON
		return []byte(`{"error":{"message":"` + http.StatusText(e.Code) + `"}}`)
	}
	return b
}

// Fail makes an error of an HTTP status, with the API's name for it.
func Fail(status int, format string, args ...any) *APIError {
	return &APIError{Code: status, Message: fmt.Sprintf(format, args...), Status: statusWord(status)}
}

// Bad makes an error of status 400.
func Bad(format string, args ...any) *APIError { return Fail(http.StatusBadRequest, format, args...) }

// RetryIn adds the time to wait, in seconds, and returns e.
func (e *APIError) RetryIn(seconds int) *APIError {
	e.Details = append(e.Details, map[string]any{
		"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", seconds),
	})
	return e
}

// statusWord returns the code of google.rpc.Code for an HTTP status.
func statusWord(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable, 529:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

// Target parses the path of a request, such as
// "/v1beta/models/gemini-2.5-flash:streamGenerateContent", into the model and the
// method after the colon. ok is false for other paths.
func Target(path string) (model, method string, ok bool) {
	at := strings.LastIndexByte(path, ':')
	if at < 0 {
		return "", "", false
	}
	path, method = path[:at], path[at+1:]
	if _, rest, found := strings.Cut(path, "/models/"); found {
		return rest, method, rest != "" && method != ""
	}
	i := strings.LastIndex(path, "/tunedModels/")
	if i < 0 {
		return "", "", false
	}
	return path[i+1:], method, method != ""
}
