// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/artelhq/artel/model/provider"
)

// A Request is the body of POST /chat/completions. Fields that Artel does not use
// are ignored.
type Request struct {
	Model               string         `json:"model"`
	Messages            []Message      `json:"messages"`
	Tools               []Tool         `json:"tools,omitempty"`
	MaxTokens           *int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int           `json:"max_completion_tokens,omitempty"`
	Stream              bool           `json:"stream,omitempty"`
	StreamOptions       *StreamOptions `json:"stream_options,omitempty"`

	ToolChoice        *ToolChoice     `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	ResponseFormat    *ResponseFormat `json:"response_format,omitempty"`
	Temperature       *float64        `json:"temperature,omitempty"`
	TopP              *float64        `json:"top_p,omitempty"`
	Stop              Texts           `json:"stop,omitempty"`

	extraction *provider.Extraction // nil: not decoded from JSON
}

// StreamOptions are the options of a streamed answer.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// A Message is one entry of messages, or the answer of a response.
type Message struct {
	Role       string     `json:"role"`
	Content    Content    `json:"content"`
	Name       string     `json:"name,omitempty"`
	Refusal    *string    `json:"refusal,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// Not of OpenAI: the reasoning, as several servers send it.
	ReasoningContent string   `json:"reasoning_content,omitempty"`
	Reasoning        string   `json:"reasoning,omitempty"`
	Details          []detail `json:"reasoning_details,omitempty"`
}

// Content is a string, a list of parts, or null.
type Content struct {
	Text  *string
	Parts []Part
}

// MarshalJSON writes c as a string or a list.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Text != nil {
		return json.Marshal(*c.Text)
	}
	return json.Marshal(c.Parts)
}

// UnmarshalJSON accepts a string, a list of objects, or null.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	switch data = bytes.TrimSpace(data); {
	case len(data) > 0 && data[0] == '"':
		return json.Unmarshal(data, &c.Text)
	case len(data) > 0 && data[0] == '[':
		c.Parts = []Part{}
		return json.Unmarshal(data, &c.Parts)
	case string(data) == "null":
		return nil
	}
	return fmt.Errorf("content is neither a string nor a list of parts")
}

// String returns the text of all parts.
func (c Content) String() string {
	if c.Text != nil {
		return *c.Text
	}
	var b bytes.Buffer
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// A Part is one typed part of a message's content.
type Part struct {
	Type       string      `json:"type"` // text, image_url, input_audio, file, refusal
	Text       string      `json:"text,omitempty"`
	Refusal    string      `json:"refusal,omitempty"`
	ImageURL   *ImageURL   `json:"image_url,omitempty"`
	InputAudio *InputAudio `json:"input_audio,omitempty"`
	File       *File       `json:"file,omitempty"`

	// Not of OpenAI: video of several servers, media ids of vLLM, and the reasoning
	// of Mistral's models in parts of type thinking.
	VideoURL *ImageURL `json:"video_url,omitempty"`
	UUID     string    `json:"uuid,omitempty"` // of media that vLLM remembers
	Thinking []Part    `json:"thinking,omitempty"`
}

// An ImageURL is an image by http or data URL.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"` // auto, low, high

	Bare bool `json:"-"` // written as a string, not as an object
}

// UnmarshalJSON accepts an object, or a plain URL, which some servers write.
func (u *ImageURL) UnmarshalJSON(data []byte) error {
	*u = ImageURL{}
	if len(data) > 0 && data[0] == '"' {
		u.Bare = true
		return json.Unmarshal(data, &u.URL)
	}
	type plain ImageURL
	return json.Unmarshal(data, (*plain)(u))
}

// An InputAudio is a recording as base64.
type InputAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"` // wav, mp3
}

// A File is a PDF by data URL and name, or an uploaded file by id.
type File struct {
	FileData string `json:"file_data,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileID   string `json:"file_id,omitempty"`
}

// A Tool is a function that the model may call.
type Tool struct {
	Type     string   `json:"type"` // function
	Function Function `json:"function"`
}

// A Function describes a tool. Parameters is a JSON Schema of type object.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// A ToolCall is a call, or in a stream a fragment of the call with Index.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"` // function
	Function CalledByName `json:"function"`

	// Not of OpenAI: the signature of a call, which Google requires back ("Thought
	// signatures" of the Gemini API documentation).
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// CalledByName is the function of a call. Arguments is JSON in a string.
type CalledByName struct {
	Name      string    `json:"name,omitempty"`
	Arguments Arguments `json:"arguments"`
}

// Arguments is JSON in a string. Servers that write the JSON itself are accepted.
type Arguments string

// UnmarshalJSON accepts a string, or other JSON unchanged.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(a))
	}
	*a = ""
	if string(data) != "null" {
		*a = Arguments(data)
	}
	return nil
}

// A Response is the answer in one piece, or with Object "chat.completion.chunk" one
// chunk of a stream.
type Response struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []Choice        `json:"choices"`
	Usage   *Usage          `json:"usage,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"` // of servers that report errors here
}

// A Choice is one answer: whole in Message, or a fragment in Delta.
type Choice struct {
	Index        int      `json:"index"`
	Message      *Message `json:"message,omitempty"`
	Delta        *Delta   `json:"delta,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

// A Delta is a fragment of a message.
type Delta struct {
	Role             string     `json:"role,omitempty"`
	Content          *Content   `json:"content,omitempty"`
	Refusal          *string    `json:"refusal,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Reasoning        string     `json:"reasoning,omitempty"`
	Details          []detail   `json:"reasoning_details,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens            int64              `json:"prompt_tokens"`
	CompletionTokens        int64              `json:"completion_tokens"`
	TotalTokens             int64              `json:"total_tokens"`
	PromptTokensDetails     *PromptDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *CompletionDetails `json:"completion_tokens_details,omitempty"`

	// Not of OpenAI: the cached tokens of DeepSeek.
	PromptCacheHitTokens int64 `json:"prompt_cache_hit_tokens,omitempty"`
}

// PromptDetails counts the tokens of the prompt that were read from and written to
// the cache.
type PromptDetails struct {
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
}

// CompletionDetails counts the tokens of the reasoning.
type CompletionDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// An APIError is a refusal in the API's own form. Its Error is the message.
type APIError = provider.OpenAIError

// Bad makes the API's "invalid_request_error" of status 400. An empty param or
// code is null.
func Bad(param, code, format string, args ...any) *APIError {
	return provider.BadRequest(param, code, format, args...)
}

// A ToolChoice is a word (auto, none, required), or an object with a type.
type ToolChoice struct {
	Word    string // "": an object
	Type    string // function, custom, allowed_tools
	Name    string // of function and custom
	Mode    string // of allowed_tools: auto, required
	Allowed []string
}

// choiceObject is the JSON of a tool choice that is no word.
type choiceObject struct {
	Type     string       `json:"type"`
	Function *choiceNamed `json:"function,omitempty"`
	Custom   *choiceNamed `json:"custom,omitempty"`
	Allowed  *struct {
		Mode  string         `json:"mode"`
		Tools []choiceObject `json:"tools"`
	} `json:"allowed_tools,omitempty"`
}

type choiceNamed struct {
	Name string `json:"name"`
}

// MarshalJSON writes a word, or the choice of a function.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Word != "" {
		return json.Marshal(c.Word)
	}
	return json.Marshal(choiceObject{Type: "function", Function: &choiceNamed{c.Name}})
}

// UnmarshalJSON accepts a string or an object.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	*c = ToolChoice{}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Word)
	}
	var o choiceObject
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	c.Type = o.Type
	for _, n := range []*choiceNamed{o.Function, o.Custom} {
		if n != nil {
			c.Name = n.Name
		}
	}
	if o.Allowed != nil {
		c.Mode = o.Allowed.Mode
		for _, t := range o.Allowed.Tools {
			if t.Function != nil {
				c.Allowed = append(c.Allowed, t.Function.Name)
			}
		}
	}
	return nil
}

// A ResponseFormat is the required form of an answer.
type ResponseFormat struct {
	Type   string      `json:"type"` // text, json_object, json_schema
	Schema *JSONSchema `json:"json_schema,omitempty"`
}

// A JSONSchema is the schema of a ResponseFormat.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Texts is a string, a list of strings, or null.
type Texts []string

// UnmarshalJSON accepts a string, a list of strings, or null.
func (t *Texts) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		*t = nil
		if one != nil {
			*t = Texts{*one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}
