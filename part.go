// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Part is one typed piece of a message: [Text], [Media], [ToolCall],
// [ToolResult] or [Reasoning]. The set is closed. In JSON a part is an object
// whose "type" names it.
type Part interface{ partType() string }

// Text is plain text or Markdown.
type Text struct {
	Text string `json:"text"`
}

// Media is a picture, file or recording. It holds a Ref, never the bytes.
type Media struct {
	Ref       Ref       `json:"ref"`
	MediaType string    `json:"media_type"`
	Kind      MediaKind `json:"kind"`
	Filename  string    `json:"filename,omitempty"`
	Size      int64     `json:"size"` // bytes
	Width     int       `json:"width,omitempty"`
	Height    int       `json:"height,omitempty"`
	Pages     int       `json:"pages,omitempty"`
	Duration  float64   `json:"duration,omitempty"` // seconds
	Detail    string    `json:"detail,omitempty"`   // how closely a model is to look: low, high; empty: it decides
}

// Info returns the description of m's bytes.
func (m Media) Info() MediaInfo {
	return MediaInfo{
		MediaType: m.MediaType, Kind: m.Kind, Size: m.Size,
		Width: m.Width, Height: m.Height, Pages: m.Pages, Duration: m.Duration,
	}
}

// A ToolCall is a model's request to run a tool. Opaque is state of the service
// that made the call; it is sent back to that service unchanged.
type ToolCall struct {
	ID        CallID          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a JSON object
	Opaque    json.RawMessage `json:"opaque,omitempty"`
	Service   ServiceID       `json:"service,omitempty"` // owner of Opaque; empty: there is none
}

// A ToolResult answers the call with the same CallID. Models get Content and
// Parts, which are media. Millis and Metadata are never sent to a model.
type ToolResult struct {
	CallID   CallID         `json:"call_id"`
	Content  string         `json:"content"`
	Parts    Parts          `json:"parts,omitempty"`
	IsError  bool           `json:"is_error,omitempty"`
	Millis   int64          `json:"duration_ms,omitempty"` // duration of the call; 0: less than one, or not known
	Metadata map[string]any `json:"metadata,omitempty"`    // content_type of the result; of a file also url, media_type, size, …
}

// Reasoning is a model's reasoning before its answer. Opaque is state of the
// service that made it; it is sent back to that service unchanged.
type Reasoning struct {
	Text    string          `json:"text,omitempty"`
	Opaque  json.RawMessage `json:"opaque,omitempty"`
	Service ServiceID       `json:"service,omitempty"`
}

func (Text) partType() string       { return "text" }
func (Media) partType() string      { return "media" }
func (ToolCall) partType() string   { return "tool_call" }
func (ToolResult) partType() string { return "tool_result" }
func (Reasoning) partType() string  { return "reasoning" }

// Parts is a list of parts with the JSON form of [Part].
type Parts []Part

// TextOf joins the text parts of ps with blank lines.
func TextOf(ps Parts) string {
	var texts []string
	for _, p := range ps {
		if t, ok := p.(Text); ok && t.Text != "" {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// MediaOf returns the media in ps, including those in tool results, in order.
func MediaOf(ps Parts) []Media {
	var out []Media
	for _, p := range ps {
		switch p := p.(type) {
		case Media:
			out = append(out, p)
		case ToolResult:
			out = append(out, MediaOf(p.Parts)...)
		}
	}
	return out
}

// CallsOf returns the tool calls in ps, in order.
func CallsOf(ps Parts) []ToolCall { return partsOf[ToolCall](ps) }

// ResultsOf returns the tool results in ps, in order.
func ResultsOf(ps Parts) []ToolResult { return partsOf[ToolResult](ps) }

// HasCalls reports whether ps holds a tool call.
func HasCalls(ps Parts) bool {
	return slices.ContainsFunc(ps, func(p Part) bool { _, ok := p.(ToolCall); return ok })
}

func partsOf[P Part](ps Parts) []P {
	var out []P
	for _, p := range ps {
		if p, ok := p.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// MarshalJSON writes each part with its "type"; nil is [].
func (ps Parts) MarshalJSON() ([]byte, error) {
	out := make([]json.RawMessage, 0, len(ps))
	for _, p := range ps {
		b, err := marshalPart(p)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return plainJSON(out)
}

// UnmarshalJSON accepts exactly the known types.
func (ps *Parts) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	out := make(Parts, 0, len(raw))
	for i, r := range raw {
		p, err := unmarshalPart(r)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		out = append(out, p)
	}
	*ps = out
	return nil
}

func marshalPart(p Part) ([]byte, error) {
	if p == nil {
		return nil, textError("a part is nil")
	}
	if c, ok := p.(ToolCall); ok && len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
		p = c
	}
	body, err := plainJSON(p)
	if err != nil {
		return nil, err
	}
	head := `{"type":"` + p.partType() + `"`
	if string(body) == "{}" {
		return []byte(head + "}"), nil
	}
	return append([]byte(head+","), body[1:]...), nil
}

// plainJSON does not escape HTML characters, so that tool arguments keep their
// bytes.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func unmarshalPart(data []byte) (Part, error) {
	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &tag); err != nil {
		return nil, err
	}
	switch tag.Type {
	case "text":
		return decodePart[Text](data)
	case "media":
		return decodePart[Media](data)
	case "tool_call":
		return decodePart[ToolCall](data)
	case "tool_result":
		return decodePart[ToolResult](data)
	case "reasoning":
		return decodePart[Reasoning](data)
	}
	return nil, fmt.Errorf("unknown type %q: want text, media, tool_call, tool_result or reasoning", Shorten(tag.Type, 40))
}

func decodePart[P Part](data []byte) (Part, error) {
	var p P
	err := json.Unmarshal(data, &p)
	return p, err
}
