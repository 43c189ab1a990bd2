// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/artelhq/artel/model/provider"
)

// Version is the version of the API that the client speaks, and VersionHeader the
// header that states it.
const (
	Version       = "2023-06-01"
	VersionHeader = "Anthropic-Version"
)

// A Request is the body of POST /v1/messages, and of /v1/messages/count_tokens.
// Fields that Artel does not use are ignored; [Request.Extraction] has them.
type Request struct {
	Model         string        `json:"model"`
	Messages      []Message     `json:"messages"`
	System        Content       `json:"system,omitzero"`
	MaxTokens     *int          `json:"max_tokens,omitempty"`
	Stream        bool          `json:"stream,omitempty"`
	Tools         []Tool        `json:"tools,omitempty"`
	ToolChoice    *ToolChoice   `json:"tool_choice,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	TopK          *int          `json:"top_k,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Metadata      *Metadata     `json:"metadata,omitempty"`
	ServiceTier   string        `json:"service_tier,omitempty"` // auto, standard_only
	Thinking      *Thinking     `json:"thinking,omitempty"`
	OutputConfig  *OutputConfig `json:"output_config,omitempty"`
	CacheControl  *CacheControl `json:"cache_control,omitempty"`

	provider.Decoded
}

// A Message is one entry of messages.
type Message struct {
	Role    string  `json:"role"` // user, assistant, system
	Content Content `json:"content"`
}

// Content is a string or a list of blocks.
type Content struct {
	Text   *string
	Blocks []Block
}

// IsZero reports whether c is absent.
func (c Content) IsZero() bool { return c.Text == nil && c.Blocks == nil }

// All returns the blocks; a string is one block of text.
func (c Content) All() []Block {
	if c.Text != nil {
		return []Block{{Type: "text", Text: *c.Text}}
	}
	return c.Blocks
}

// MarshalJSON writes c as a string or a list.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Text != nil {
		return provider.Marshal(*c.Text)
	}
	return provider.Marshal(c.Blocks)
}

// UnmarshalJSON accepts a string, a list of objects, or null.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	return provider.StringOrList(data, &c.Text, &c.Blocks, errContent)
}

var errContent = errors.New("content is neither a string nor a list of blocks")

// A Block is one typed part of a message. Its type determines its fields; blocks of
// types that Artel does not use are in Raw.
type Block struct {
	Type string

	Text        string          // text
	Source      *Source         // image, document
	Title       string          // document, search_result
	Context     string          // document
	Thinking    string          // thinking
	Signature   string          // thinking
	Data        string          // redacted_thinking
	ID          string          // tool_use
	Name        string          // tool_use
	Input       json.RawMessage // tool_use
	Caller      json.RawMessage // tool_use: what made the call, if not the model itself
	ToolsetName string          // tool_use, tool_result
	ToolUseID   string          // tool_result, and the results of tools of the service
	Content     Content         // tool_result, search_result, compaction
	IsError     bool            // tool_result
	FileID      string          // container_upload
	ToolName    string          // tool_reference

	CacheControl *CacheControl
	Raw          json.RawMessage // a block of another type, unchanged, with marks in place of payloads
}

// block is the JSON of a Block of any type.
type block struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text,omitempty"`
	Source       json.RawMessage `json:"source,omitempty"` // a string in search results
	Title        *string         `json:"title,omitempty"`
	Context      *string         `json:"context,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"`
	Signature    *string         `json:"signature,omitempty"`
	Data         *string         `json:"data,omitempty"`
	ID           *string         `json:"id,omitempty"`
	Name         *string         `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Caller       json.RawMessage `json:"caller,omitempty"`
	ToolsetName  *string         `json:"toolset_name,omitempty"`
	ToolUseID    *string         `json:"tool_use_id,omitempty"`
	Content      json.RawMessage `json:"content,omitempty"`
	IsError      *bool           `json:"is_error,omitempty"`
	FileID       *string         `json:"file_id,omitempty"`
	ToolName     *string         `json:"tool_name,omitempty"`
	CacheControl *CacheControl   `json:"cache_control,omitempty"`
}

// MarshalJSON writes the fields of b's type, or Raw.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.Raw != nil {
		return b.Raw, nil
	}
	w := block{Type: b.Type, CacheControl: b.CacheControl}
	var err error
	switch b.Type {
	case "text":
		w.Text = &b.Text
	case "image", "document":
		w.Source, err = provider.Marshal(b.Source)
		w.Title, w.Context = optional(b.Title), optional(b.Context)
	case "thinking":
		w.Thinking, w.Signature = &b.Thinking, &b.Signature
	case "redacted_thinking":
		w.Data = &b.Data
	case "tool_use":
		w.ID, w.Name, w.Input = &b.ID, &b.Name, b.Input
		w.Caller, w.ToolsetName = b.Caller, optional(b.ToolsetName)
		if len(w.Input) == 0 {
			w.Input = json.RawMessage("{}")
		}
	case "tool_result":
		w.ToolUseID, w.ToolsetName = &b.ToolUseID, optional(b.ToolsetName)
		if !b.Content.IsZero() {
			w.Content, err = provider.Marshal(b.Content)
		}
		if b.IsError {
			w.IsError = &b.IsError
		}
	default:
		err = fmt.Errorf("blocks of type %q are not written", b.Type)
	}
	if err != nil {
		return nil, err
	}
	return provider.Marshal(w)
}

// UnmarshalJSON reads the fields of the type; other types are kept in Raw. Source:
// A Source is the origin of the bytes of an image or document.
func (b *Block) UnmarshalJSON(data []byte) error {
	var w block
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*b = Block{
		Type: w.Type, Text: deref(w.Text), Title: deref(w.Title), Context: deref(w.Context),
		Thinking: deref(w.Thinking), Signature: deref(w.Signature), Data: deref(w.Data),
		ID: deref(w.ID), Name: deref(w.Name), Input: w.Input, Caller: w.Caller, ToolsetName: deref(w.ToolsetName), ToolUseID: deref(w.ToolUseID),
		IsError: w.IsError != nil && *w.IsError, FileID: deref(w.FileID), ToolName: deref(w.ToolName),
		CacheControl: w.CacheControl,
	}
	switch w.Type {
	case "text", "thinking", "redacted_thinking", "tool_use":
	case "image", "document":
		if len(w.Source) > 0 {
			if err := json.Unmarshal(w.Source, &b.Source); err != nil {
				return err
			}
		}
	case "tool_result", "search_result", "compaction":
		if b.Type != "tool_result" {
			b.Raw = bytes.Clone(data)
		}
		if len(w.Content) > 0 {
			return json.Unmarshal(w.Content, &b.Content)
		}
	default:
		b.Raw = bytes.Clone(data)
	}
	return nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A Source says where the bytes of an image or document are.
type Source struct {
	Type      string  `json:"type"` // base64, url, file; of documents text and content too
	MediaType string  `json:"media_type,omitempty"`
	Data      string  `json:"data,omitempty"` // base64, or the text
	URL       string  `json:"url,omitempty"`
	FileID    string  `json:"file_id,omitempty"`
	Content   Content `json:"content,omitzero"` // text and images
}

// A CacheControl marks the end of a prefix that the service caches.
type CacheControl struct {
	Type string `json:"type"` // ephemeral
	TTL  string `json:"ttl,omitempty"`
}

// A Tool is a function that the model may call, or with a Type other than "custom"
// a tool of the service.
type Tool struct {
	Type         string          `json:"type,omitempty"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"` // a JSON Schema of type object
	Strict       *bool           `json:"strict,omitempty"`
	CacheControl *CacheControl   `json:"cache_control,omitempty"`
	Width        int             `json:"display_width_px,omitempty"` // of the screen of a computer
	Height       int             `json:"display_height_px,omitempty"`
}

// A ToolChoice says which tools the model may or must call.
type ToolChoice struct {
	Type                   string `json:"type"` // auto, any, tool, none
	Name                   string `json:"name,omitempty"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use,omitempty"`
}

// Thinking configures the model's thinking.
type Thinking struct {
	Type         string `json:"type"` // enabled, disabled, adaptive, between_tools
	BudgetTokens int    `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// Metadata names the client's user.
type Metadata struct {
	UserID string `json:"user_id,omitempty"`
}

// OutputConfig is the required form of the answer.
type OutputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *OutputFormat `json:"format,omitempty"`
}

// An OutputFormat is the JSON Schema of the answer.
type OutputFormat struct {
	Type   string          `json:"type"` // json_schema
	Schema json.RawMessage `json:"schema"`
}

// A Response is the answer in one piece, and the beginning of a stream.
type Response struct {
	ID           string       `json:"id"`
	Type         string       `json:"type"` // message
	Role         string       `json:"role"` // assistant
	Model        string       `json:"model"`
	Content      []Block      `json:"content"`
	StopReason   *string      `json:"stop_reason"`
	StopSequence *string      `json:"stop_sequence"`
	Usage        Usage        `json:"usage"`
	StopDetails  *StopDetails `json:"stop_details,omitempty"`
}

// MarshalBody returns the body of the HTTP response, without escaping HTML in the
// arguments of tools.
func (r *Response) MarshalBody() ([]byte, error) { return provider.Marshal(r) }

// StopDetails is the reason of a refused answer.
type StopDetails struct {
	Type        string  `json:"type"` // refusal
	Category    *string `json:"category"`
	Explanation *string `json:"explanation"`
}
