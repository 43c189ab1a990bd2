// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images and documents in messages is decoded
// meanwhile; see [provider.Extract].
//
// The error is an [*APIError] if the request is wrong, otherwise that of r or of
// the sink. Decode does not check the rules of the API.
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	extraction, err := provider.Extract(ctx, r, Payloads, o)
	switch {
	case artel.CodeOf(err) == provider.CodeTextTooLarge:
		return nil, Refused(http.StatusRequestEntityTooLarge, "Request exceeds the maximum size")
	case artel.CodeOf(err) == provider.CodeTooDeep:
		return nil, Bad("", "The request body is not valid JSON: %v", err)
	case err != nil:
		return nil, err
	}
	req := &Request{}
	if err := json.Unmarshal(extraction.JSON(), req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, Bad(e.Field, "Input should be a valid %s", wanted(e.Type.Kind().String()))
		}
		if errors.Is(err, errContent) {
			return nil, Bad("messages", "Input should be a valid list")
		}
		return nil, Bad("", "The request body is not valid JSON: %v", err)
	}
	req.Decoded = provider.NewDecoded(extraction)
	return req, nil
}

// wanted returns the API's name of a kind of Go value.
func wanted(kind string) string {
	switch kind {
	case "int", "int64":
		return "integer"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	case "slice":
		return "list"
	case "struct", "map":
		return "dictionary"
	}
	return "string"
}

// Payloads is the [provider.Rule] of the dialect: the data of base64 sources of all
// blocks in messages. Arguments of tools have no payloads.
func Payloads(path []string) provider.Encoding {
	n := len(path)
	if n < 6 || path[0] != "messages" || path[n-1] != "data" || path[n-2] != "source" {
		return provider.NoEncoding
	}
	for _, key := range path[1 : n-2] {
		if key != "" && key != "content" && key != "source" {
			return provider.NoEncoding
		}
	}
	return provider.TypedBase64
}

// payload returns the bytes of a base64 source.
func (r *Request) payload(s *Source) provider.Payload { return r.Extraction().Base64(s.Data) }

// Neutral returns r in the form that is neutral of dialect. Its media have blob
// refs, whether or not the sink of [Decode] stored them. References by URL or file
// id become texts.
//
// Reasoning and calls keep the state that the service signed. A request does not
// name that service, so their Service is empty unless an [Answer] wrote it. Blocks
// of tools that ran at the service become reasoning with state only, and are in
// Dropped. Tools that the client runs become functions of the same name, those that
// the API defines too.
func (r *Request) Neutral() *model.Request {
	text := gjson.ParseBytes(r.Extraction().JSON())
	out := &model.Request{
		Service: model.Service{Dialect: model.Anthropic, Model: r.Model, Capabilities: model.TextOnly()},
		Sampling: model.Sampling{
			Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, Stop: r.StopSequences,
		},
		Reasoning: r.reasoning(),
		Dropped:   append(provider.Unread(text, "", readFields(), nil), r.unreadInBlocks(text)...),
	}
	if r.Metadata != nil {
		out.Extras.User = r.Metadata.UserID
	}
	switch r.ServiceTier {
	case "standard_only":
		out.Extras.Tier = "default"
	default:
		out.Extras.Tier = r.ServiceTier
	}
	if r.MaxTokens != nil {
		out.MaxOutput = *r.MaxTokens
	}
	if r.OutputConfig != nil && r.OutputConfig.Format != nil {
		out.Format = model.Format{JSON: true, Schema: r.OutputConfig.Format.Schema, Strict: true}
	}
	r.tools(out)
	if system := r.parts(r.System.All()); len(system) > 0 {
		out.Messages = append(out.Messages, model.Message{Role: artel.RoleSystem, Parts: system})
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, r.messages(m)...)
		for _, b := range m.Content.Blocks {
			if d := (model.Drop{Field: "messages." + artel.Shorten(b.Type, 100), Reason: model.NotTranslated}); ofService(b.Type) && !slices.Contains(out.Dropped, d) {
				out.Dropped = append(out.Dropped, d)
			}
		}
	}
	return out
}

var readFields = sync.OnceValue(func() map[string]bool { return provider.Fields(reflect.TypeFor[Request]()) })

// reasoning returns how much the model is to think, and whether the client reads it.
func (r *Request) reasoning() (out model.Reasoning) {
	if r.OutputConfig != nil {
		out.Effort = model.Effort(r.OutputConfig.Effort)
	}
	if r.Thinking == nil {
		return out
	}
	switch r.Thinking.Type {
	case "disabled":
		return model.Reasoning{Effort: model.EffortNone}
	case "enabled":
		out.Budget = r.Thinking.BudgetTokens
	}
	if out.Show = r.Thinking.Display != "omitted"; out.Show {
		out.Summary = "auto"
	}
	return out
}

func (c *ToolChoice) neutral() (out model.ToolChoice) {
	if c == nil {
		return out
	}
	out.OneByOne = c.DisableParallelToolUse
	switch c.Type {
	case "any":
		out.Mode = model.ChooseAny
	case "none":
		out.Mode = model.ChooseNone
	case "tool":
		out.Mode, out.Name = model.ChooseNamed, c.Name
	}
	return out
}

// messages splits m into its results, each a message, and the other blocks.
func (r *Request) messages(m Message) []model.Message {
	role := artel.RoleUser
	switch m.Role {
	case "assistant":
		role = artel.RoleAssistant
	case "system":
		role = artel.RoleSystem
	}
	var out []model.Message
	open := false // the last message of out can be extended
	for _, b := range m.Content.All() {
		if b.Type == "tool_result" {
			out = append(out, model.Message{Role: artel.RoleTool, Parts: artel.Parts{r.result(b)}})
			open = false
			continue
		}
		parts := r.parts([]Block{b})
		if len(parts) == 0 {
			continue
		}
		if !open {
			out = append(out, model.Message{Role: role})
			open = true
		}
		last := &out[len(out)-1]
		last.Parts = append(last.Parts, parts...)
	}
	return out
}

func (r *Request) result(b Block) artel.ToolResult {
	res := artel.ToolResult{CallID: artel.CallID(b.ToolUseID), IsError: b.IsError}
	texts, media := provider.SplitParts(r.parts(b.Content.All()))
	res.Parts = media
	res.Content = strings.Join(texts, "\n\n")
	return res
}

func (r *Request) parts(blocks []Block) artel.Parts {
	var out artel.Parts
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, artel.Text{Text: b.Text})
		case "image":
			out = append(out, r.source(b, artel.KindImage, "image")...)
		case "document":
			out = append(out, r.source(b, artel.KindDocument, "document")...)
		case "thinking", "redacted_thinking":
			out = append(out, reasoningOf(b))
		case "tool_use":
			out = append(out, artel.ToolCall{ID: artel.CallID(b.ID), Name: b.Name, Arguments: arguments(b.Input), Opaque: b.caller()})
		case "search_result":
			out = append(out, searchResult(b))
		case "container_upload":
			out = append(out, artel.Text{Text: "[file " + artel.Shorten(b.FileID, 100) + "]"})
		case "tool_reference":
			out = append(out, artel.Text{Text: "[tool " + artel.Shorten(b.ToolName, 200) + "]"})
		case "tool_result": // handled by messages
		case "compaction":
			for _, s := range b.Content.All() {
				out = append(out, artel.Text{Text: "Summary of the conversation so far:\n\n" + s.Text})
			}
		default:
			if ofService(b.Type) {
				out = append(out, artel.Reasoning{Opaque: b.Raw})
			}
		}
	}
	return out
}

// ofService reports whether a block belongs to a tool that runs at the service.
func ofService(kind string) bool {
	return slices.Contains([]string{"server_tool_use", "mcp_tool_use", "mcp_tool_listing", "fallback"}, kind) ||
		kind != "tool_result" && strings.HasSuffix(kind, "_tool_result")
}

func (r *Request) source(b Block, kind artel.MediaKind, what string) artel.Parts {
	s := b.Source
	if s == nil {
		return nil
	}
	named := func(of string) artel.Parts { return artel.Parts{artel.Text{Text: "[" + what + " " + of + "]"}} }
	switch s.Type {
	case "base64":
		m := r.payload(s)
		return artel.Parts{artel.Media{
			Ref: artel.BlobRef(m.Digest), MediaType: s.MediaType, Kind: kind, Filename: b.Title, Size: m.Size,
		}}
	case "url":
		return named("at " + artel.Shorten(s.URL, 500))
	case "file":
		return named(artel.Shorten(s.FileID, 100))
	case "text":
		return artel.Parts{artel.Text{Text: titled(b, s.Data)}}
	case "content":
		return r.parts(s.Content.All())
	}
	return nil
}

// titled prefixes a text with the title and the context of its document.
func titled(b Block, text string) string {
	var lines []string
	for _, s := range []string{b.Title, b.Context} {
		if s != "" {
			lines = append(lines, s)
		}
	}
	if len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n") + "\n\n" + text
}

func searchResult(b Block) artel.Text {
	var from struct {
		Source string `json:"source"`
	}
	_ = json.Unmarshal(b.Raw, &from) // without a source the field stays empty
	var texts []string
	for _, t := range b.Content.All() {
		texts = append(texts, t.Text)
	}
	b.Context = from.Source
	return artel.Text{Text: titled(b, strings.Join(texts, "\n\n"))}
}
