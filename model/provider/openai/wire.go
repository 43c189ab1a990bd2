// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"errors"

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
	Seed              *int64          `json:"seed,omitempty"`
	FrequencyPenalty  *float64        `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64        `json:"presence_penalty,omitempty"`
	Stop              Texts           `json:"stop,omitempty"`
	ReasoningEffort   string          `json:"reasoning_effort,omitempty"`
	Verbosity         string          `json:"verbosity,omitempty"`
	User              string          `json:"user,omitempty"`
	SafetyIdentifier  string          `json:"safety_identifier,omitempty"`
	ServiceTier       string          `json:"service_tier,omitempty"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitempty"`

	// Not of OpenAI: the sampling of several servers, and the reasoning of OpenRouter.
	TopK      *int       `json:"top_k,omitempty"`
	Reasoning *Reasoning `json:"reasoning,omitempty"`

	// Deprecated by the API, for tools and tool_choice: an answer has at most one call,
	// without an id.
	Functions    []Function      `json:"functions,omitempty"`
	FunctionCall *FunctionChoice `json:"function_call,omitempty"`

	provider.Decoded
}

// Reasoning is how much a model reasons, in the form of OpenRouter.
//
// Source: "Reasoning tokens" of OpenRouter's documentation.
type Reasoning struct {
	Effort    string `json:"effort,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
	Exclude   bool   `json:"exclude,omitempty"` // from the answer
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

	FunctionCall *CalledByName   `json:"function_call,omitempty"` // of Functions
	Audio        json.RawMessage `json:"audio,omitempty"`         // the id of a spoken answer

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
	return provider.StringOrList(data, &c.Text, &c.Parts, errors.New("content is neither a string nor a list of parts"))
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

// A Tool is a function that the model may call, or a tool that takes free text.
type Tool struct {
	Type     string   `json:"type"` // function, custom
	Function Function `json:"function,omitzero"`
	Custom   *Custom  `json:"custom,omitempty"`
}

// A Custom describes a tool that takes free text, in a form.
type Custom struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Format      *struct {
		Type    string   `json:"type"` // text, grammar
		Grammar *Grammar `json:"grammar,omitempty"`
	} `json:"format,omitempty"`
}

// A Grammar is the form of a text.
type Grammar struct {
	Syntax     string `json:"syntax"` // lark, regex
	Definition string `json:"definition"`
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
	Type     string       `json:"type,omitempty"` // function, custom
	Function CalledByName `json:"function,omitzero"`
	Custom   *CalledText  `json:"custom,omitempty"`

	// Not of OpenAI: the signature of a call, which Google requires back ("Thought
	// signatures" of the Gemini API documentation).
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// CalledByName is the function of a call. Arguments is JSON in a string.
type CalledByName struct {
	Name      string    `json:"name,omitempty"`
	Arguments Arguments `json:"arguments"`
}

// CalledText is the custom tool of a call.
type CalledText struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
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
	Role             string        `json:"role,omitempty"`
	Content          *Content      `json:"content,omitempty"`
	Refusal          *string       `json:"refusal,omitempty"`
	ToolCalls        []ToolCall    `json:"tool_calls,omitempty"`
	FunctionCall     *CalledByName `json:"function_call,omitempty"`
	ReasoningContent string        `json:"reasoning_content,omitempty"`
	Reasoning        string        `json:"reasoning,omitempty"`
	Details          []detail      `json:"reasoning_details,omitempty"`
}

// A ToolChoice is a word (auto, none, required), or an object with a type.
type ToolChoice provider.OpenAIChoice

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
			for _, n := range []*choiceNamed{t.Function, t.Custom} {
				if n != nil {
					c.Allowed = append(c.Allowed, n.Name)
				}
			}
		}
	}
	return nil
}

// A FunctionChoice is a word (auto, none), or the name of a function.
type FunctionChoice struct{ Word, Name string }

// UnmarshalJSON accepts a string or an object.
func (c *FunctionChoice) UnmarshalJSON(data []byte) error {
	*c = FunctionChoice{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Word)
	}
	var o choiceNamed
	err := json.Unmarshal(data, &o)
	c.Name = o.Name
	return err
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
