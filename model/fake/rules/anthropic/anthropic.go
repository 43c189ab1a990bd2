// SPDX-License-Identifier: Apache-2.0

// Package anthropic holds the rules of the Messages API: [Validate] refuses a request
// as Anthropic does.
package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
	wire "github.com/artelhq/artel/model/provider/anthropic"
)

// The API's limits.
const (
	maxRequest    = 32 << 20 // bytes of a body
	maxImageData  = 10 << 20 // characters of an image's base64
	maxSide       = 8000     // pixels
	manyImages    = 20       // more than that, and every image has the limit
	maxSideOfMany = 2000
	maxImages     = 600
	maxPages      = 600
	maxMessages   = 100_000
	maxMarks      = 4 // for the cache
	leastBudget   = 1024
)

// Options are what the rules need to know beside the request.
type Options struct {
	// Count is for the endpoint that counts tokens.
	Count bool
	// Betas are the beta headers of the request, which allow more fields.
	Betas []string
	// Look returns the media info of a payload; nil: only its size is checked.
	Look func(artel.Digest) (artel.MediaInfo, bool)
	// Signed reports whether the service signed a thinking block, by its text and
	// signature; nil: it did.
	Signed func(thinking, signature string) bool
	// Images and Pages are the model's limits; 0: 600, those of newer models.
	Images, Pages int
}

// ValidateJSON is [Validate] for the JSON of a request.
func ValidateJSON(body []byte) error {
	r, err := wire.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{MaxText: len(body) + 1<<20})
	if err != nil {
		return err
	}
	return Validate(r, Options{})
}

// Validate checks r against the rules of the real API. The error is an [*APIError]
// as the API answers it.
func Validate(r *wire.Request, o Options) error {
	if o.Images == 0 {
		o.Images = maxImages
	}
	if o.Pages == 0 {
		o.Pages = maxPages
	}
	v := validator{request: r, options: o}
	top, err := object("", r.Extraction().JSON())
	if err != nil {
		return wire.Bad("", "The request body is not valid JSON: expected an object")
	}
	for _, check := range []func(map[string]json.RawMessage) *wire.APIError{v.size, v.top, v.tools, v.system, v.messages, v.thinking, v.media} {
		if err := check(top); err != nil {
			return err
		}
	}
	return nil
}

type validator struct {
	request *wire.Request
	options Options
	names   []string // of tools
	marks   int      // for the cache
	images  []pictured
	others  int // images by other sources than base64
	pages   int
}

// pictured is an image of the request.
type pictured struct {
	at   string
	info artel.MediaInfo
}

func (v *validator) size(map[string]json.RawMessage) *wire.APIError {
	n := int64(len(v.request.Extraction().JSON()))
	for _, m := range v.request.Extraction().Payloads() {
		n += (m.Size + 2) / 3 * 4
	}
	if n > maxRequest {
		return wire.Refused(http.StatusRequestEntityTooLarge, "Request exceeds the maximum size")
	}
	return nil
}

func (v *validator) top(top map[string]json.RawMessage) *wire.APIError {
	more := []string(nil)
	if len(v.options.Betas) > 0 {
		more = betaFields()
	}
	if err := requestShape(v.options.Count).check("", top, more...); err != nil {
		return err
	}
	if model, err := text("model", top["model"]); err != nil {
		return err
	} else if model == "" {
		return wire.Bad("model", "String should have at least 1 character")
	}
	if err := number("max_tokens", top["max_tokens"], 0, 1e9, true); err != nil {
		return err
	}
	for _, field := range []string{"temperature", "top_p"} {
		if err := number(field, top[field], 0, 1, false); err != nil {
			return err
		}
	}
	if err := number("top_k", top["top_k"], 0, 1e9, true); err != nil {
		return err
	}
	if r := v.request; wire.FixedSampling(r.Model) {
		switch {
		case r.Temperature != nil && *r.Temperature != 1:
			return wire.Bad("", "`temperature` is deprecated for this model.")
		case r.TopP != nil && *r.TopP != 1:
			return wire.Bad("", "`top_p` is deprecated for this model.")
		case r.TopK != nil:
			return wire.Bad("", "`top_k` is deprecated for this model.")
		}
	}
	if raw, there := top["stop_sequences"]; there && string(raw) != "null" {
		stops, err := list("stop_sequences", raw)
		if err != nil {
			return err
		}
		for i, raw := range stops {
			stop, err := text(item("stop_sequences", i), raw)
			if err != nil {
				return err
			}
			if wire.Blank(stop) {
				return wire.Bad("stop_sequences", "each stop sequence must contain non-whitespace")
			}
		}
	}
	if f := v.request.OutputConfig; f != nil && f.Format != nil {
		if f.Format.Type != "json_schema" {
			return wire.Bad("output_config.format.type", "Input should be 'json_schema'")
		}
		if !enforceable(f.Format.Schema) {
			return wire.Bad("output_config.format.schema", "For 'object' type, 'additionalProperties' must be explicitly set to false")
		}
	}
	return v.ephemeral("cache_control", top["cache_control"])
}

func (v *validator) tools(top map[string]json.RawMessage) *wire.APIError {
	raw, there := top["tools"]
	if there && string(raw) != "null" {
		all, err := list("tools", raw)
		if err != nil {
			return err
		}
		for i, raw := range all {
			at := item("tools", i)
			name, err := tool(at, raw)
			if err != nil {
				return err
			}
			if name != "" && slices.Contains(v.names, name) {
				return wire.Bad("tools", "Tool names must be unique.")
			}
			v.names = append(v.names, name)
			fields, _ := object(at, raw) // it has been read before
			if err := v.ephemeral(join(at, "cache_control"), fields["cache_control"]); err != nil {
				return err
			}
		}
	}
	if raw, there := top["tool_choice"]; there && string(raw) != "null" {
		return choice(raw, v.names)
	}
	return nil
}

func (v *validator) system(top map[string]json.RawMessage) *wire.APIError {
	raw, there := top["system"]
	if !there || string(raw) == "null" || raw[0] == '"' {
		return nil
	}
	return v.content("system", "system", raw)
}

// content checks a list of blocks, or a string.
func (v *validator) content(at, where string, raw json.RawMessage) *wire.APIError {
	if len(raw) > 0 && raw[0] == '"' {
		return nil
	}
	all, err := list(at, raw)
	if err != nil {
		return err
	}
	for i, raw := range all {
		if err := v.block(item(at, i), where, raw); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) block(at, where string, raw json.RawMessage) *wire.APIError {
	fields, err := object(at, raw)
	if err != nil {
		return err
	}
	kind, err := tag(at, fields, allowed(where))
	if err != nil {
		return err
	}
	shape := shapeOf(blockShapes[kind])
	if len(shape) == 0 {
		return v.ephemeral(join(at, "cache_control"), fields["cache_control"])
	}
	at = join(at, kind)
	if err := shape.check(at, fields); err != nil {
		return err
	}
	for _, name := range []string{"text", "thinking", "signature", "id", "name", "tool_use_id", "tool_name"} {
		if raw, there := fields[name]; there && slices.Contains(shape, name+"*") {
			if _, err := text(join(at, name), raw); err != nil {
				return err
			}
		}
	}
	if err := v.ephemeral(join(at, "cache_control"), fields["cache_control"]); err != nil {
		return err
	}
	switch kind {
	case "text":
		switch said, _ := text(at, fields["text"]); {
		case said == "":
			return wire.Bad(first(at), "text content blocks must be non-empty")
		case wire.Blank(said):
			return wire.Bad(first(at), "text content blocks must contain non-whitespace text")
		}
	case "image", "document":
		return v.source(join(at, "source"), kind, fields["source"])
	case "search_result":
		return v.content(join(at, "content"), "system", fields["content"])
	case "tool_use":
		id, _ := text(at, fields["id"])
		if !wire.LegalID(id) {
			return wire.Bad(join(at, "id"), "String should match pattern '^[a-zA-Z0-9_-]+$'")
		}
		name, _ := text(at, fields["name"])
		if err := named(join(at, "name"), name, wire.MaxName); err != nil {
			return err
		}
		_, err := object(join(at, "input"), fields["input"])
		return err
	case "tool_result":
		id, _ := text(at, fields["tool_use_id"])
		if !wire.LegalID(id) {
			return wire.Bad(join(at, "tool_use_id"), "String should match pattern '^[a-zA-Z0-9_-]+$'")
		}
		if raw, there := fields["content"]; there && string(raw) != "null" {
			return v.content(join(at, "content"), "tool_result", raw)
		}
	}
	return nil
}

// first returns the first key of a path.
func first(at string) string {
	at, _, _ = strings.Cut(at, ".")
	return at
}

func (v *validator) messages(top map[string]json.RawMessage) *wire.APIError {
	all, err := list("messages", top["messages"])
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return wire.Bad("messages", "at least one message is required")
	case len(all) > maxMessages:
		return wire.Bad("messages", "List should have at most %d items after validation, not %d", maxMessages, len(all))
	}
	for i, raw := range all {
		at := item("messages", i)
		fields, err := object(at, raw)
		if err != nil {
			return err
		}
		more := []string(nil)
		if len(v.options.Betas) > 0 {
			more = []string{"clear_at", "output_config"}
		}
		if err := shapeOf("role* content*").check(at, fields, more...); err != nil {
			return err
		}
		if role := v.request.Messages[i].Role; !slices.Contains([]string{"user", "assistant", "system"}, role) {
			return wire.Bad(join(at, "role"), "Input should be 'user', 'assistant' or 'system'")
		}
		if err := v.content(join(at, "content"), "message", fields["content"]); err != nil {
			return err
		}
	}
	if v.marks > maxMarks {
		return wire.Bad("", "A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarks, v.marks)
	}
	return v.turns()
}

// turns checks the roles, and that every call has its result. Consecutive messages
// of one role are one turn.
func (v *validator) turns() *wire.APIError {
	messages := v.request.Messages
	if messages[0].Role != "user" && messages[0].Role != "system" {
		return wire.Bad("messages", `first message must use the "user" role`)
	}
	var open []string // calls of the turn before, without a result
	used := map[string]bool{}
	for i := 0; i < len(messages); {
		role := messages[i].Role
		var blocks []wire.Block
		var places []string
		begin := i
		for ; i < len(messages) && messages[i].Role == role; i++ {
			at := item("messages", i)
			all := messages[i].Content.All()
			last := i == len(messages)-1
			if len(all) == 0 || messages[i].Content.Text != nil && *messages[i].Content.Text == "" {
				if !last || role != "assistant" {
					return wire.Bad(at, "all messages must have non-empty content except for the optional final assistant message")
				}
			}
			for j, b := range all {
				blocks, places = append(blocks, b), append(places, item(join(at, "content"), j))
			}
		}
		if role == "assistant" {
			calls, err := v.assistant(blocks, places, i-1, used, i == len(messages))
			if err != nil {
				return err
			}
			if i == len(messages) && len(calls) > 0 {
				return unanswered(i-1, calls)
			}
			open = calls
			continue
		}
		if err := v.user(blocks, places, begin, open); err != nil {
			return err
		}
		open = nil
	}
	return nil
}

func (v *validator) assistant(blocks []wire.Block, places []string, at int, used map[string]bool, last bool) (calls []string, err *wire.APIError) {
	served := map[string]bool{}
	for j, b := range blocks {
		switch b.Type {
		case "tool_use":
			if used[b.ID] {
				return nil, wire.Bad(places[j], "`tool_use` ids must be unique")
			}
			used[b.ID] = true
			calls = append(calls, b.ID)
		case "thinking":
			if v.options.Signed != nil && !v.options.Signed(b.Thinking, b.Signature) || b.Signature == "" {
				return nil, wire.Bad(places[j], "Invalid `signature` in `thinking` block")
			}
		case "tool_result":
			return nil, wire.Bad(places[j], "`tool_result` blocks can only be in `user` messages")
		case "server_tool_use", "mcp_tool_use":
			served[b.ID] = true
		case "image", "document":
			return nil, wire.Bad(places[j], "`%s` blocks are not permitted in `assistant` messages", b.Type)
		default:
			if strings.HasSuffix(b.Type, "_tool_result") && !served[b.ToolUseID] {
				return nil, wire.Bad(places[j], "unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must have a corresponding `server_tool_use` block before it.", b.Type, b.ToolUseID, b.Type)
			}
		}
	}
	if n := len(blocks); n > 0 {
		switch end := blocks[n-1]; {
		case end.Type == "thinking" || end.Type == "redacted_thinking":
			return nil, wire.Bad(item("messages", at), "The final block in an assistant message cannot be `%s`.", end.Type)
		case last && end.Type == "text" && strings.TrimRight(end.Text, " \t\r\n") != end.Text:
			return nil, wire.Bad("messages", "final assistant content cannot end with trailing whitespace")
		}
	}
	return calls, nil
}

func (v *validator) user(blocks []wire.Block, places []string, at int, open []string) *wire.APIError {
	left := slices.Clone(open)
	for j, b := range blocks {
		switch b.Type {
		case "tool_result":
			n := slices.Index(left, b.ToolUseID)
			if n < 0 && slices.Contains(open, b.ToolUseID) {
				return wire.Bad(places[j], "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", b.ToolUseID)
			}
			if n < 0 {
				return wire.Bad(places[j], "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", b.ToolUseID)
			}
			left = slices.Delete(left, n, n+1)
		case "tool_use", "thinking", "redacted_thinking", "server_tool_use":
			return wire.Bad(places[j], "`%s` blocks can only be in `assistant` messages", b.Type)
		default:
			// All results precede other blocks.
			if len(left) > 0 {
				return unanswered(at-1, left)
			}
		}
	}
	if len(left) > 0 {
		return unanswered(at-1, left)
	}
	return nil
}

func unanswered(at int, ids []string) *wire.APIError {
	return wire.Bad(item("messages", at), "`tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", strings.Join(ids, ", "))
}

// thought refuses results of calls before which the model has not thought.
func (v *validator) thought() *wire.APIError {
	n := len(v.request.Messages)
	if n < 2 || v.request.Messages[n-2].Role != "assistant" ||
		!slices.ContainsFunc(v.request.Messages[n-1].Content.All(), func(b wire.Block) bool { return b.Type == "tool_result" }) {
		return nil
	}
	blocks := v.request.Messages[n-2].Content.All()
	if len(blocks) > 0 && blocks[0].Type != "thinking" && blocks[0].Type != "redacted_thinking" {
		return wire.Bad(item("messages", n-2)+".content.0.type", "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", blocks[0].Type)
	}
	return nil
}

// thinking checks the thinking settings.
func (v *validator) thinking(top map[string]json.RawMessage) *wire.APIError {
	t := v.request.Thinking
	if t == nil {
		return nil
	}
	if !slices.Contains([]string{"enabled", "disabled", "adaptive", "between_tools"}, t.Type) {
		_, err := tag("thinking", map[string]json.RawMessage{"type": provider.MustMarshal(t.Type)}, []string{"adaptive", "between_tools", "disabled", "enabled"})
		return err
	}
	if t.Type == "disabled" {
		return nil
	}
	switch thinks, adaptive := wire.Thinks(v.request.Model); {
	case !thinks:
		return wire.Bad("", "'%s' does not support thinking.", v.request.Model)
	case t.Type == "adaptive" && !adaptive && strings.Contains(v.request.Model, "claude-"):
		return wire.Bad("", "adaptive thinking is not supported on this model")
	}
	if t.Type == "enabled" {
		if t.BudgetTokens < leastBudget {
			return wire.Bad("thinking.enabled.budget_tokens", "Input should be greater than or equal to %d", leastBudget)
		}
		if limit := v.request.MaxTokens; limit != nil && *limit <= t.BudgetTokens {
			return wire.Bad("", "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
		if v.request.TopK != nil {
			return wire.Bad("", "`top_k` must be unset when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
		if p := v.request.TopP; p != nil && *p < 0.95 {
			return wire.Bad("", "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
		if err := v.thought(); err != nil {
			return err
		}
		if temperature := v.request.Temperature; temperature != nil && *temperature != 1 {
			return wire.Bad("", "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
	}
	if c := v.request.ToolChoice; c != nil && (c.Type == "any" || c.Type == "tool") {
		return wire.Bad("", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}
