// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// The API's limits on names and ids.
const (
	MaxName = 128
	maxID   = 64
)

// ContinueMessage is a user message at the end of a conversation that ends with the
// assistant, because newer models do not continue an assistant message.
const ContinueMessage = "(Go on.)"

// defaultOutput is the output limit if neither the request nor the model states
// one; every model can write as much.
const defaultOutput = 4096

// mostOutput caps max_tokens when only the model's own limit is known: max_tokens
// counts against the context window.
const mostOutput = 32_000

// Encode writes r as the body of a streamed call. No blob is read. The error is an
// [*artel.Error] of kind Unsupported for media that the dialect has no block for,
// or Invalid for media without a digest or type.
//
// Cache marks follow the instructions and the end of the last two user turns,
// before a reminder that the next request does not repeat, unless r.Cache is off.
func Encode(r *model.Request, blobs blob.Store) (*provider.Body, error) {
	return encode(r, blobs, nil, false)
}

// encode is Encode for a call that continues the paused answer said, or without
// reasoning if bare.
func encode(r *model.Request, blobs blob.Store, said paused, bare bool) (*provider.Body, error) {
	r = toolNames().Fitted(r)
	e := encoder{Encoder: provider.NewEncoder("anthropic.Encode", r, blobs), toolsets: map[artel.CallID]string{}, cache: r.Cache}
	form := provider.MessageRules{
		Results: provider.WithUser, Alternate: true, UserFirst: true, SystemFirst: true, UniqueIDs: true, Own: r.Service.ID,
		ToolTypes: append(slices.Clone(ImageTypes()), "application/pdf"),
	}
	schema, asked := e.format(r)
	placed := form.Conform(legalParts(asked, r.Service.ID, bare), r.Service.Capabilities)
	system, messages := split(placed)
	if n := len(messages); messages[n-1].Role == artel.RoleAssistant {
		messages = append(messages, model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: ContinueMessage}}})
	}
	e.Body.WriteString(`{"model":`)
	e.JSON(r.Service.Model)
	think := e.thinkingOf(r, messages, bare)
	e.Field("max_tokens", think.limit)
	if len(system) > 0 {
		e.Body.WriteString(`,"system":[`)
		e.blocks(system, true)
		e.Body.WriteString("]")
	}
	e.tools(r, messages)
	e.settings(r, think, schema)
	e.Body.WriteString(`,"messages":[`)
	marked := lastUsers(messages)
	provider.EachOf(&e.Encoder, messages, func(i int, m model.Message) { e.message(m, slices.Contains(marked, i)) })
	if len(said) > 0 {
		e.Body.WriteString(`,{"role":"assistant","content":`)
		e.JSON(said)
		e.Body.WriteString("}")
	}
	e.Body.WriteString(`],"stream":true}`)
	return e.Body, e.Err
}

// legalParts returns messages without what the API refuses: blank texts, reasoning
// that this service did not sign, unpaired calls and results of its own tools, and
// reasoning at the end of an assistant message; with bare, all reasoning.
func legalParts(messages []model.Message, own artel.ServiceID, bare bool) []model.Message {
	out := make([]model.Message, len(messages))
	for i, m := range messages {
		m.Parts = pairedServerTools(slices.DeleteFunc(slices.Clone(m.Parts), func(p artel.Part) bool {
			switch p := p.(type) {
			case artel.Text:
				return Blank(p.Text)
			case artel.Reasoning:
				_, ok := readState(p.Opaque)
				return !ok || p.Service != own || bare
			}
			return false
		}))
		for n := len(m.Parts) - 1; n >= 0; n-- {
			if _, ok := m.Parts[n].(artel.Media); ok {
				continue // it moves to a user message
			}
			if r, ok := m.Parts[n].(artel.Reasoning); !ok || !thinks(r) {
				break
			}
			m.Parts = slices.Delete(m.Parts, n, n+1)
		}
		out[i] = m
	}
	return out
}

// Blank reports whether s has no text: the API refuses such blocks.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

func thinks(r artel.Reasoning) bool {
	s, _ := readState(r.Opaque)
	return s.Type == "thinking" || s.Type == "redacted_thinking"
}

// pairedServerTools returns parts without calls of the service's own tools that
// have no result, as in an answer that broke off, and without results that have no
// call.
func pairedServerTools(parts artel.Parts) artel.Parts {
	open := map[string]int{} // calls by id
	var halves []int
	for i, p := range parts {
		r, ok := p.(artel.Reasoning)
		if !ok {
			continue
		}
		switch s, _ := readState(r.Opaque); {
		case strings.HasSuffix(s.Type, "_tool_use"):
			if before, twice := open[s.ID]; twice {
				halves = append(halves, before)
			}
			open[s.ID] = i
		case strings.HasSuffix(s.Type, "_tool_result"):
			if _, called := open[s.ToolUseID]; !called {
				halves = append(halves, i)
			}
			delete(open, s.ToolUseID)
		}
	}
	halves = slices.AppendSeq(halves, maps.Values(open))
	out := parts[:0]
	for i, p := range parts {
		if !slices.Contains(halves, i) {
			out = append(out, p)
		}
	}
	return out
}

// split separates the leading system messages.
func split(messages []model.Message) (system artel.Parts, rest []model.Message) {
	for len(messages) > 0 && messages[0].Role == artel.RoleSystem {
		system = append(system, messages[0].Parts...)
		messages = messages[1:]
	}
	return system, messages
}

func outputLimit(r *model.Request) int {
	switch most := r.Service.Capabilities.MaxOutput.Value; {
	case r.MaxOutput > 0 && most > 0:
		return min(r.MaxOutput, most)
	case r.MaxOutput > 0:
		return r.MaxOutput
	case most > 0:
		return min(most, mostOutput)
	}
	return defaultOutput
}

// lastUsers returns the indices of the last two user messages.
func lastUsers(messages []model.Message) (at []int) {
	for i := len(messages) - 1; i >= 0 && len(at) < 2; i-- {
		if messages[i].Role == artel.RoleUser {
			at = append(at, i)
		}
	}
	return at
}

type encoder struct {
	provider.Encoder

	toolsets map[artel.CallID]string // of calls that belong to one
	grammar  grammar                 // of the schemas that the API enforces
	cache    model.CacheTime
}

// close ends a block, with a cache mark if mark is set.
func (e *encoder) close(mark bool) {
	switch {
	case !mark || e.cache == model.CacheOff:
	case e.cache == model.CacheHour:
		e.Body.WriteString(`,"cache_control":{"type":"ephemeral","ttl":"1h"}`)
	default:
		e.Body.WriteString(`,"cache_control":{"type":"ephemeral"}`)
	}
	e.Body.WriteString("}")
}

func (e *encoder) message(m model.Message, mark bool) {
	e.Body.WriteString(`{"role":"` + string(m.Role) + `","content":[`)
	e.blocks(m.Parts, mark)
	e.Body.WriteString("]}")
}

// blocks writes parts; with mark, one of them gets a cache mark.
func (e *encoder) blocks(parts artel.Parts, mark bool) {
	marked := -1
	if mark {
		marked = markable(parts)
	}
	for i, p := range parts {
		if i > 0 {
			e.Body.WriteString(",")
		}
		switch p := p.(type) {
		case artel.Text:
			e.Body.WriteString(`{"type":"text","text":`)
			e.JSON(p.Text)
			e.close(i == marked)
		case artel.Media:
			e.media(p)
			e.close(i == marked)
		case artel.ToolResult:
			e.result(p)
			e.close(i == marked)
		case artel.ToolCall:
			b := Block{Type: "tool_use", ID: callID(p.ID), Name: p.Name, Input: arguments(p.Arguments)}
			b.setCaller(p.Opaque)
			e.toolsets[p.ID] = b.ToolsetName
			e.JSON(b)
		case artel.Reasoning:
			e.reasoning(p)
		}
	}
}

// markable returns the index of the last part that the next request repeats.
func markable(parts artel.Parts) int {
	for i, p := range slices.Backward(parts) {
		if t, ok := p.(artel.Text); !ok || !strings.HasPrefix(t.Text, "<system-reminder>") {
			return i
		}
	}
	return -1
}

// reasoning writes a block of the service's own reasoning unchanged.
func (e *encoder) reasoning(r artel.Reasoning) {
	if s, _ := readState(r.Opaque); s.Type == "thinking" {
		e.JSON(Block{Type: "thinking", Thinking: r.Text, Signature: *s.Signature})
		return
	}
	e.JSON(r.Opaque)
}

// result writes the block of a result without its closing brace.
func (e *encoder) result(r artel.ToolResult) {
	e.Body.WriteString(`{"type":"tool_result","tool_use_id":`)
	e.JSON(callID(r.CallID))
	if set := e.toolsets[r.CallID]; set != "" {
		e.Field("toolset_name", set)
	}
	switch {
	case len(r.Parts) > 0:
		parts := slices.DeleteFunc(append(artel.Parts{artel.Text{Text: r.Content}}, r.Parts...), func(p artel.Part) bool {
			t, ok := p.(artel.Text)
			return ok && Blank(t.Text)
		})
		e.Body.WriteString(`,"content":[`)
		e.blocks(parts, false)
		e.Body.WriteString("]")
	case r.Content != "":
		e.Field("content", r.Content)
	}
	if r.IsError {
		e.Body.WriteString(`,"is_error":true`)
	}
}

// ImageTypes are the formats of images that the API takes.
func ImageTypes() []string { return []string{"image/jpeg", "image/png", "image/gif", "image/webp"} }

// media writes an image or a document without its closing brace.
func (e *encoder) media(m artel.Media) {
	mediaType, name, ok := e.Media(m)
	if !ok {
		return
	}
	block := "image"
	switch {
	case mediaType == "image/jpg":
		mediaType = "image/jpeg"
	case mediaType == "application/pdf":
		block = "document"
	case !slices.Contains(ImageTypes(), mediaType):
		e.Fail(artel.Unsupported, "%s is %s: Messages takes JPEG, PNG, GIF and WebP images and PDF only", name, mediaType)
		return
	}
	e.Body.WriteString(`{"type":"` + block + `"`)
	if block == "document" && !Blank(m.Filename) {
		e.Field("title", artel.Shorten(m.Filename, 200))
	}
	switch name := e.Names[m.Ref.Digest]; name.By {
	case model.ByFileID:
		e.Body.WriteString(`,"source":{"type":"file","file_id":"` + name.Text + `"}`)
		return
	case model.ByURL:
		e.Body.WriteString(`,"source":{"type":"url","url":"` + name.Text + `"}`)
		return
	}
	e.Blob(`,"source":{"type":"base64","media_type":"`+mediaType+`","data":"`, m, `"}`)
}

// tools writes the tools. If there are calls in the history but no tools, it
// declares their names and forbids calls, because servers refuse calls of unknown
// tools.
func (e *encoder) tools(r *model.Request, messages []model.Message) {
	var tools []Tool
	for _, t := range r.Tools {
		tool := Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
		if len(tool.InputSchema) == 0 {
			tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if t.Strict {
			if schema, ok := enforceable(tool.InputSchema); ok && promises(r.Service.Model) && e.grammar.admitTool(schema) {
				tool.InputSchema, tool.Strict = schema, &t.Strict
			} else {
				e.Drop("tools.strict", model.NotEnforced)
			}
		}
		tools = append(tools, tool)
	}
	choice := wireChoice(r.Choice)
	if len(tools) == 0 {
		for _, name := range called(messages) {
			tools = append(tools, Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
		choice = &ToolChoice{Type: "none"}
	}
	if len(tools) == 0 {
		return
	}
	e.Field("tools", tools)
	if choice != nil {
		e.Field("tool_choice", choice)
	}
}

// called returns the names of the called tools in the order of their first call.
func called(messages []model.Message) (names []string) {
	for _, m := range messages {
		for _, c := range artel.CallsOf(m.Parts) {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func wireChoice(c model.ToolChoice) *ToolChoice {
	out := &ToolChoice{DisableParallelToolUse: c.OneByOne}
	switch c.Mode {
	case model.ChooseNone:
		return &ToolChoice{Type: "none"}
	case model.ChooseAny:
		out.Type = "any"
	case model.ChooseNamed:
		out.Type, out.Name = "tool", c.Name
	default:
		if !c.OneByOne {
			return nil
		}
		out.Type = "auto"
	}
	return out
}

// settings writes the sampling, the reasoning, the extras and the format.
func (e *encoder) settings(r *model.Request, think thinking, schema json.RawMessage) {
	e.sampling(r, think)
	s := r.Sampling
	stop := slices.DeleteFunc(slices.Clone(s.Stop), Blank)
	if len(stop) < len(s.Stop) {
		e.Drop("stop", model.DialectLacks) // the API refuses white space alone
	}
	if len(stop) > 0 {
		e.Field("stop_sequences", stop)
	}
	config := OutputConfig{Effort: string(think.effort)}
	if len(schema) > 0 {
		config.Format = &OutputFormat{Type: "json_schema", Schema: schema}
	}
	if config != (OutputConfig{}) {
		e.Field("output_config", config)
	}
	if think.settings != nil {
		e.Field("thinking", think.settings)
	}
	x := r.Extras
	if x.User != "" && x.SafetyID != "" && x.User != x.SafetyID {
		e.Drop("safety_identifier", model.TooMany)
	}
	if user := cmp.Or(x.User, x.SafetyID); user != "" {
		e.Field("metadata", Metadata{UserID: artel.Shorten(user, maxUserID)})
	}
	if tier := wireTier(x.Tier); tier != "" {
		e.Field("service_tier", tier)
	} else if x.Tier != "" {
		e.Drop("service_tier", model.DialectLacks)
	}
}

// maxUserID is the length of the user's id that the API takes.
const maxUserID = 256

// sampling writes the sampling, limited to the dialect's range. Newer models refuse
// top_p beside a temperature, so only one is written. With thinking, the API refuses
// other temperatures than 1, a top_p below 0.95, and top_k.
func (e *encoder) sampling(r *model.Request, think thinking) {
	s := r.Sampling
	drop := func(set bool, field string, reason model.DropReason) bool {
		if set {
			e.Drop(field, reason)
		}
		return set
	}
	if FixedSampling(r.Service.Model) {
		drop(s.Temperature != nil && *s.Temperature != 1, "temperature", model.ModelLacks)
		drop(s.TopP != nil && *s.TopP != 1, "top_p", model.ModelLacks)
		drop(s.TopK != nil, "top_k", model.ModelLacks)
		return
	}
	thinks := think.settings != nil
	temperature := s.Temperature != nil && !drop(thinks && *s.Temperature != 1, "temperature", model.InConflict)
	if temperature {
		e.Field("temperature", min(max(*s.Temperature, 0), 1))
		drop(*s.Temperature > 1, "temperature", model.OutOfRange)
	}
	if s.TopP != nil && !drop(temperature && *s.TopP != 1 || thinks && *s.TopP < 0.95, "top_p", model.InConflict) && !temperature {
		e.Field("top_p", min(max(*s.TopP, 0), 1))
	}
	if s.TopK != nil && !drop(thinks, "top_k", model.InConflict) {
		e.Field("top_k", *s.TopK)
	}
}

// plain reports whether a character is allowed in ids and names.
func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// LegalID reports whether s is an id of a call as the API takes it.
func LegalID(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) })
}

// callID returns id if the API takes it, or a hash of it. The result is always the
// same, so that calls and results still match.
func callID(id artel.CallID) string {
	if len(id) <= maxID && LegalID(string(id)) {
		return string(id)
	}
	return provider.HashID("toolu_", id)
}

// arguments returns the arguments of a call as a JSON object; arguments that are
// none are wrapped in one.
func arguments(raw json.RawMessage) json.RawMessage {
	return provider.ArgumentsObject(raw, provider.Marshal)
}
