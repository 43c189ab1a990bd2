// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// A Request is the body of POST /responses. Fields that Artel does not use are
// ignored; [Request.Extraction] has them.
type Request struct {
	Model             string          `json:"model"`
	Instructions      *string         `json:"instructions,omitempty"`
	Input             Input           `json:"input"`
	Tools             []Tool          `json:"tools,omitempty"`
	ToolChoice        *ToolChoice     `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	Text              *TextConfig     `json:"text,omitempty"`
	MaxOutputTokens   *int            `json:"max_output_tokens,omitempty"`
	Temperature       *float64        `json:"temperature,omitempty"`
	TopP              *float64        `json:"top_p,omitempty"`
	Reasoning         *Reasoning      `json:"reasoning,omitempty"`
	User              string          `json:"user,omitempty"`
	SafetyIdentifier  string          `json:"safety_identifier,omitempty"`
	ServiceTier       string          `json:"service_tier,omitempty"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitempty"`
	Include           []string        `json:"include,omitempty"`
	Store             *bool           `json:"store,omitempty"`
	Stream            bool            `json:"stream,omitempty"`
	Background        bool            `json:"background,omitempty"`
	PreviousResponse  string          `json:"previous_response_id,omitempty"`
	Conversation      json.RawMessage `json:"conversation,omitempty"`
	Prompt            json.RawMessage `json:"prompt,omitempty"`

	provider.Decoded
}

// An Input is a list of items, or a string: one user message.
type Input struct {
	Text  *string
	Items []Item
}

// UnmarshalJSON accepts a string, a list of objects, or null.
func (in *Input) UnmarshalJSON(data []byte) error {
	*in = Input{}
	return provider.StringOrList(data, &in.Text, &in.Items, errors.New("input is neither a string nor a list of items"))
}

// An Item is one entry of a conversation. Its type determines its fields; items of
// types that Artel does not use are in Raw only.
type Item struct {
	Type   string `json:"type,omitempty"` // "": message
	ID     string `json:"id,omitempty"`
	Status string `json:"status,omitempty"` // in_progress, completed, incomplete

	Role    string   `json:"role,omitempty"`    // of message
	Content *Content `json:"content,omitempty"` // of message and reasoning
	Phase   string   `json:"phase,omitempty"`   // of message: commentary, final_answer

	Summary   []Part  `json:"summary,omitempty"` // of reasoning
	Encrypted *string `json:"encrypted_content,omitempty"`

	CallID    string          `json:"call_id,omitempty"` // of calls and their outputs
	Name      string          `json:"name,omitempty"`
	Namespace string          `json:"namespace,omitempty"` // of the tool Name
	Arguments json.RawMessage `json:"arguments,omitempty"` // mostly JSON in a string
	Input     *string         `json:"input,omitempty"`     // of custom_tool_call
	Action    json.RawMessage `json:"action,omitempty"`    // of calls of built-in tools
	Actions   json.RawMessage `json:"actions,omitempty"`   // of computer_call, instead of Action
	Operation json.RawMessage `json:"operation,omitempty"` // of apply_patch_call
	Output    *Output         `json:"output,omitempty"`    // of outputs
	Result    string          `json:"result,omitempty"`    // of image_generation_call: base64
	Tools     []Tool          `json:"tools,omitempty"`     // of additional_tools and tool_search_output

	Raw json.RawMessage `json:"-"` // unchanged, with marks in place of payloads
}

// UnmarshalJSON reads the fields and keeps the item in Raw.
func (i *Item) UnmarshalJSON(data []byte) error {
	type plain Item
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	i.Raw = bytes.Clone(data)
	return nil
}

// Kind returns the type of the item, "message" if that is left out.
func (i *Item) Kind() string {
	if i.Type == "" && i.Role != "" {
		return "message"
	}
	return i.Type
}

// arguments returns the text of Arguments.
func (i *Item) arguments() string {
	var s string
	if json.Unmarshal(i.Arguments, &s) == nil {
		return s
	}
	return string(i.Arguments)
}

// Content is a string or a list of parts.
type Content struct {
	Text  *string
	Parts []Part
}

// UnmarshalJSON accepts a string, a list of objects, or null.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	return provider.StringOrList(data, &c.Text, &c.Parts, errors.New("content is neither a string nor a list of parts"))
}

// MarshalJSON writes c as a string or a list.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Text != nil {
		return json.Marshal(*c.Text)
	}
	return json.Marshal(c.Parts)
}

// String returns the text of all parts.
func (c *Content) String() string {
	if c == nil {
		return ""
	}
	if c.Text != nil {
		return *c.Text
	}
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text + p.Refusal)
	}
	return b.String()
}

// An Output is a string, a list of parts, or the one part of a computer's screen.
type Output struct {
	Content

	One bool // written as an object, not as a list
}

// UnmarshalJSON accepts a string, a list of objects, an object, or null.
func (o *Output) UnmarshalJSON(data []byte) error {
	*o = Output{}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
		o.One, o.Parts = true, make([]Part, 1)
		return json.Unmarshal(data, &o.Parts[0])
	}
	return provider.StringOrList(data, &o.Text, &o.Parts, errors.New("output is neither a string nor a list of parts"))
}

// A Part is one typed part of content.
type Part struct {
	// input_text, input_image, input_file, output_text, refusal, summary_text,
	// reasoning_text, computer_screenshot
	Type       string      `json:"type"`
	Text       string      `json:"text,omitempty"`
	Refusal    string      `json:"refusal,omitempty"`
	ImageURL   string      `json:"image_url,omitempty"` // http or data URL
	Detail     string      `json:"detail,omitempty"`
	FileID     string      `json:"file_id,omitempty"`
	FileURL    string      `json:"file_url,omitempty"`
	FileData   string      `json:"file_data,omitempty"` // data URL, or base64
	Filename   string      `json:"filename,omitempty"`
	InputAudio *InputAudio `json:"input_audio,omitempty"` // in the SDK's types, but refused by the API
}

// InputAudio is a recording as base64.
type InputAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"` // wav, mp3
}

// A Tool is a tool of the client, a namespace of such tools, or a tool of the
// service, of which only the type is read. Source: "Function calling" and "Tool
// search" of the OpenAI documentation.
type Tool struct {
	Type        string          `json:"type"` // function, custom, namespace, tool_search, web_search, …
	Name        string          `json:"name,omitempty"`
	Namespace   string          `json:"namespace,omitempty"` // in a choice of tools
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`    // a JSON Schema of type object
	Strict      *bool           `json:"strict,omitempty"`        // absent: the API makes the schema strict
	Format      *CustomFormat   `json:"format,omitempty"`        // of custom
	Tools       []Tool          `json:"tools,omitempty"`         // of namespace
	Execution   string          `json:"execution,omitempty"`     // of tool_search: who searches, server or client
	Environment *Environment    `json:"environment,omitempty"`   // of shell
	Width       int             `json:"display_width,omitempty"` // of the screen of computer_use_preview
	Height      int             `json:"display_height,omitempty"`
}

// A CustomFormat is what the input of a custom tool looks like.
type CustomFormat struct {
	Type       string `json:"type"` // text, grammar
	Syntax     string `json:"syntax,omitempty"`
	Definition string `json:"definition,omitempty"`
}

// An Environment is where the commands of a shell run.
type Environment struct {
	Type string `json:"type"` // local, container_auto, container_reference
}

// UnmarshalJSON accepts an object, or a word, which is the system of a computer.
func (e *Environment) UnmarshalJSON(data []byte) error {
	*e = Environment{}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.Type)
	}
	type plain Environment
	return json.Unmarshal(data, (*plain)(e))
}

// A ToolChoice is a word (auto, none, required), or an object with a type.
type ToolChoice struct {
	provider.OpenAIChoice

	Namespace string // of Name
	Tools     []Tool // of allowed_tools
}

// UnmarshalJSON accepts a string or an object.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	*c = ToolChoice{}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Word)
	}
	var o struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Mode      string `json:"mode"`
		Tools     []Tool `json:"tools"`
	}
	err := json.Unmarshal(data, &o)
	c.Type, c.Name, c.Mode, c.Namespace, c.Tools = o.Type, o.Name, o.Mode, o.Namespace, o.Tools
	return err
}

// TextConfig is the required form of the text of an answer.
type TextConfig struct {
	Format    *Format `json:"format,omitempty"`
	Verbosity string  `json:"verbosity,omitempty"` // low, medium, high
}

// Reasoning is how much the model reasons, and how detailed a summary of it is.
type Reasoning struct {
	Effort          string `json:"effort,omitempty"`
	Summary         string `json:"summary,omitempty"`          // auto, concise, detailed
	GenerateSummary string `json:"generate_summary,omitempty"` // the older name
}

// A Format is the form of an answer.
type Format struct {
	Type        string          `json:"type"` // text, json_object, json_schema
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// A Response is the answer of the API as a client reads it.
type Response struct {
	ID         string          `json:"id"`
	Object     string          `json:"object"`
	Status     string          `json:"status"` // completed, incomplete, failed, in_progress, queued, cancelled
	Output     []Item          `json:"output"`
	Usage      *Usage          `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"` // max_output_tokens, content_filter
	} `json:"incomplete_details"`
}

// ServiceItems are the types of items that only the service understands; they are
// passed back unchanged.
func ServiceItems() []string {
	return strings.Fields(`additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction compaction_trigger computer_call configuration_update
		computer_call_output file_search_call image_generation_call local_shell_call local_shell_call_output mcp_approval_request
		mcp_approval_response mcp_call mcp_list_tools program program_output shell_call shell_call_output tool_search_call tool_search_output web_search_call`)
}
