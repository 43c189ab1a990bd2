// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"strings"

	"github.com/artelhq/artel/model"
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

	provider.Decoded
	unknown []Violation  // fields that the API does not know
	unread  []model.Drop // fields that have no neutral form
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

	// Those of the API, of which only the presence is read.
	GoogleSearch          json.RawMessage `json:"googleSearch,omitempty"`
	GoogleSearchRetrieval json.RawMessage `json:"googleSearchRetrieval,omitempty"`
	CodeExecution         json.RawMessage `json:"codeExecution,omitempty"`
	URLContext            json.RawMessage `json:"urlContext,omitempty"`
	ComputerUse           json.RawMessage `json:"computerUse,omitempty"`
	FileSearch            json.RawMessage `json:"fileSearch,omitempty"`
	GoogleMaps            json.RawMessage `json:"googleMaps,omitempty"`
	MCPServers            json.RawMessage `json:"mcpServers,omitempty"`
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
	TopK               *float64        `json:"topK,omitempty"` // an integer
	Seed               *int64          `json:"seed,omitempty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty,omitempty"`
	PresencePenalty    *float64        `json:"presencePenalty,omitempty"`
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
