// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Neutral returns r as a request that is neutral of dialect, for a valid r.
// Its media have blob refs, whether or not the sink of [Decode] kept them.
// What is only named, by URL or file id, becomes a text that says so.
//
// Reasoning and calls keep the state that the service signed, as it came; whose
// it is, a request does not say, so their Service is empty, unless an [Answer]
// wrote it. Blocks of tools that ran at the service are reasoning with such
// state alone.
func (r *Request) Neutral() *model.Request {
	out := &model.Request{
		Service: model.Service{Dialect: model.Anthropic, Model: r.Model, Capabilities: model.TextOnly()},
		Choice:  r.ToolChoice.neutral(),
		Sampling: model.Sampling{
			Temperature: r.Temperature, TopP: r.TopP, Stop: r.StopSequences,
		},
	}
	if r.MaxTokens != nil {
		out.MaxOutput = *r.MaxTokens
	}
	if r.OutputConfig != nil && r.OutputConfig.Format != nil {
		out.Format = model.Format{JSON: true, Schema: r.OutputConfig.Format.Schema, Strict: true}
	}
	for _, t := range r.Tools {
		if t.Type == "" || t.Type == "custom" {
			out.Tools = append(out.Tools, model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
		}
	}
	if system := r.parts(r.System.All()); len(system) > 0 {
		out.Messages = append(out.Messages, model.Message{Role: artel.RoleSystem, Parts: system})
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, r.messages(m)...)
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

// messages splits m into its results, each a message of its own, and the rest.
func (r *Request) messages(m Message) []model.Message {
	role := artel.RoleUser
	switch m.Role {
	case "assistant":
		role = artel.RoleAssistant
	case "system":
		role = artel.RoleSystem
	}
	var out []model.Message
	open := false // the last of out takes more
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
	var texts []string
	for _, p := range r.parts(b.Content.All()) {
		switch p := p.(type) {
		case artel.Text:
			texts = append(texts, p.Text)
		case artel.Media:
			res.Parts = append(res.Parts, p)
		}
	}
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
			out = append(out, thought(b))
		case "tool_use":
			out = append(out, artel.ToolCall{ID: artel.CallID(b.ID), Name: b.Name, Arguments: arguments(b.Input), Opaque: b.caller()})
		case "search_result":
			out = append(out, searchResult(b))
		case "container_upload":
			out = append(out, artel.Text{Text: "[file " + artel.Shorten(b.FileID, 100) + "]"})
		case "tool_reference":
			out = append(out, artel.Text{Text: "[tool " + artel.Shorten(b.ToolName, 200) + "]"})
		case "tool_result": // handled where it may stand
		default:
			if ofService(b.Type) {
				out = append(out, artel.Reasoning{Opaque: b.Raw})
			} else {
				out = append(out, artel.Text{Text: string(b.Raw)})
			}
		}
	}
	return out
}

// ofService reports whether a block is the service's own: a tool that runs
// there, or its result.
func ofService(kind string) bool {
	return kind == "server_tool_use" || kind == "mcp_tool_use" || kind == "compaction" ||
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

// titled puts before a text what the document is called, and what it is about.
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
	_ = json.Unmarshal(b.Raw, &from) // what is not there is left out
	var texts []string
	for _, t := range b.Content.All() {
		texts = append(texts, t.Text)
	}
	b.Context = from.Source
	return artel.Text{Text: titled(b, strings.Join(texts, "\n\n"))}
}
