// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider/anthropic"
)

const (
	png  = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	call = `{"type":"tool_use","id":"a","name":"f","input":{}}`
	res  = `{"type":"tool_result","tool_use_id":"a","content":"ok"}`
)

// request makes a body of messages, each "role:blocks", and other fields.
func request(more string, messages ...string) string {
	for i, m := range messages {
		role, blocks, _ := strings.Cut(m, ":")
		if !strings.HasPrefix(blocks, `"`) {
			blocks = "[" + blocks + "]"
		}
		messages[i] = `{"role":"` + role + `","content":` + blocks + `}`
	}
	if more != "" {
		more += ","
	}
	return `{` + more + `"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
}

func says(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

func TestValidate(t *testing.T) {
	t.Parallel()
	tools := `"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	thinking := `{"type":"thinking","thinking":"Hm.","signature":"s"}`
	for name, c := range map[string]struct{ body, want string }{
		"plain":              {request("", `user:"hi"`), ""},
		"blocks":             {request("", "user:"+says("hi")+","+png), ""},
		"system list":        {request(`"system":[`+says("Be brief.")+`]`, `user:"hi"`), ""},
		"tools":              {request(tools, `user:"hi"`, "assistant:"+thinking+","+call, "user:"+res+","+says("and?")), ""},
		"prefill":            {request("", `user:"hi"`, `assistant:"I"`), ""},
		"same role twice":    {request("", `user:"hi"`, `user:"there"`), ""},
		"image in result":    {request("", `user:"hi"`, "assistant:"+call, `user:{"type":"tool_result","tool_use_id":"a","content":[`+says("x")+","+png+`,{"type":"tool_reference","tool_name":"g"}]}`), ""},
		"document of text":   {request("", `user:{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"x"},"citations":{"enabled":true}}`), ""},
		"document of blocks": {request("", `user:{"type":"document","source":{"type":"content","content":[`+says("x")+","+png+`]}}`), ""},
		"by URL and file":    {request("", `user:{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"document","source":{"type":"file","file_id":"file_1"}}`), ""},
		"server tools":       {request(`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5},{"type":"browser_toolset_20260801"}]`, `user:"hi"`, `assistant:{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},`+says("ok"), `user:"more"`), ""},
		"system in between":  {request("", `user:"hi"`, `system:"Be brief."`, `assistant:"ok"`, `user:"more"`), ""},

		"no JSON":             {`{`, "The request body is not valid JSON"},
		"no object":           {`[]`, "Input should be a valid"},
		"no model":            {`{"max_tokens":1,"messages":[]}`, "model: Field required"},
		"no messages":         {`{"max_tokens":1,"model":"m"}`, "messages: Field required"},
		"no limit":            {`{"model":"m","messages":[{"role":"user","content":"x"}]}`, "max_tokens: Field required"},
		"none said":           {request(""), "messages: at least one message is required"},
		"unknown field":       {request(`"top":1`, `user:"x"`), "top: Extra inputs are not permitted"},
		"beta field":          {request(`"context_management":{}`, `user:"x"`), "context_management: Extra inputs are not permitted"},
		"unknown in block":    {request("", `user:{"type":"text","text":"x","foo":1}`), "messages.0.content.0.text.foo: Extra inputs are not permitted"},
		"role":                {request("", `tool:"x"`), "messages.0.role: Input should be 'user', 'assistant' or 'system'"},
		"content":             {`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":7}]}`, "messages: Input should be a valid list"},
		"unknown block":       {request("", `user:{"type":"image_url"}`), "messages.0.content.0: Input tag 'image_url' found using 'type' does not match any of the expected tags: 'advisor_tool_result'"},
		"untyped block":       {request("", `user:{"text":"x"}`), "messages.0.content.0: Unable to extract tag using discriminator 'type'"},
		"audio source":        {request("", `user:{"type":"image","source":{"type":"audio"}}`), "messages.0.content.0.image.source: Input tag 'audio' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'"},
		"bmp":                 {request("", "user:"+strings.Replace(png, "png", "bmp", 1)), "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"},
		"docx":                {request("", `user:{"type":"document","source":{"type":"base64","media_type":"application/zip","data":"AAAA"}}`), "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'"},
		"no base64":           {request("", "user:"+strings.Replace(png, "AAAA", "A*AA", 1)), "messages.0.content.0.image.source.base64.data: Invalid base64 data"},
		"no bytes":            {request("", "user:"+strings.Replace(png, "AAAA", "", 1)), "messages.0.content.0.image.source.base64.data: image cannot be empty"},
		"empty text":          {request("", "user:"+says("")), "messages: text content blocks must be non-empty"},
		"blank text":          {request("", "user:"+says(" \n")), "messages: text content blocks must contain non-whitespace text"},
		"empty message":       {request("", `user:""`), "messages.0: all messages must have non-empty content except for the optional final assistant message"},
		"assistant first":     {request("", `assistant:"x"`), `messages: first message must use the "user" role`},
		"space at the end":    {request("", `user:"x"`, `assistant:"I "`), "messages: final assistant content cannot end with trailing whitespace"},
		"no result":           {request("", `user:"x"`, "assistant:"+call, `user:"y"`), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each"},
		"result after text":   {request("", `user:"x"`, "assistant:"+call, "user:"+says("y")+","+res), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each"},
		"no result at end":    {request("", `user:"x"`, "assistant:"+call), "messages.1: `tool_use` ids were found without"},
		"no call":             {request("", "user:"+res), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each"},
		"two results":         {request("", `user:"x"`, "assistant:"+call, "user:"+res+","+res), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"},
		"call twice":          {request("", `user:"x"`, "assistant:"+call, "user:"+res, "assistant:"+call, "user:"+res), "messages.3.content.0: `tool_use` ids must be unique"},
		"call id":             {request("", `user:"x"`, "assistant:"+strings.Replace(call, `"a"`, `"a:1"`, 1)), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		"call input":          {request("", `user:"x"`, "assistant:"+strings.Replace(call, `{}`, `"{}"`, 1)), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		"call name":           {request("", `user:"x"`, "assistant:"+strings.Replace(call, `"f"`, `"a.b"`, 1)), "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"thought at the end":  {request("", `user:"x"`, "assistant:"+says("a")+","+thinking, `user:"y"`), "messages.1: The final block in an assistant message cannot be `thinking`."},
		"unsigned thought":    {request("", `user:"x"`, `assistant:{"type":"thinking","thinking":"Hm."},`+says("a"), `user:"y"`), "messages.1.content.0.thinking.signature: Field required"},
		"empty signature":     {request("", `user:"x"`, `assistant:{"type":"thinking","thinking":"Hm.","signature":""},`+says("a"), `user:"y"`), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"thought of a user":   {request("", "user:"+thinking), "messages.0.content.0: `thinking` blocks can only be in `assistant` messages"},
		"half a server tool":  {request("", `user:"hi"`, `assistant:{"type":"web_search_tool_result","tool_use_id":"s","content":[]},`+says("ok"), `user:"more"`), "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s. Each"},
		"image of assistant":  {request("", `user:"x"`, "assistant:"+png, `user:"y"`), "messages.1.content.0: `image` blocks are not permitted in `assistant` messages"},
		"image in system":     {request(`"system":[`+png+`]`, `user:"x"`), "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'"},
		"five marks":          {request("", "user:"+strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",")), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		"mark":                {request("", `user:{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"2h"}}`), "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
		"tool without schema": {request(`"tools":[{"name":"f"}]`, `user:"x"`), "tools.0.custom.input_schema: Field required"},
		"tool schema":         {request(`"tools":[{"name":"f","input_schema":{"type":"string"}}]`, `user:"x"`), "tools.0.custom.input_schema.type: Input should be 'object'"},
		"tool name":           {request(`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`, `user:"x"`), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"tool twice":          {request(`"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}]`, `user:"x"`), "tools: Tool names must be unique."},
		"tool union":          {request(`"tools":[{"name":"f","input_schema":{"type":"object","anyOf":[]}}]`, `user:"x"`), "tools.0.custom: input_schema does not support oneOf, allOf, or anyOf at the top level"},
		"OpenAI's tools":      {request(`"tools":[{"type":"function","function":{"name":"f"}}]`, `user:"x"`), "tools.0: Input tag 'function' found using 'type' does not match"},
		"choice":              {request(tools+`,"tool_choice":{"type":"tool","name":"g"}`, `user:"x"`), "Tool 'g' not found in provided tools"},
		"choice of none":      {request(`"tool_choice":{"type":"any"}`, `user:"x"`), "tool_choice: tool_choice may only be specified while providing tools."},
		"choice as a word":    {request(tools+`,"tool_choice":"auto"`, `user:"x"`), "tool_choice: Input should be a valid dictionary"},
		"temperature":         {request(`"temperature":1.5`, `user:"x"`), "temperature: Input should be less than or equal to 1"},
		"limit":               {strings.Replace(request("", `user:"x"`), `"max_tokens":9`, `"max_tokens":1.5`, 1), "max_tokens: Input should be a valid integer"},
		"stop":                {request(`"stop_sequences":["\n"]`, `user:"x"`), "stop_sequences: each stop sequence must contain non-whitespace"},
		"budget":              {request(`"thinking":{"type":"enabled","budget_tokens":7}`, `user:"x"`), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		"budget over limit":   {request(`"thinking":{"type":"enabled","budget_tokens":2000}`, `user:"x"`), "`max_tokens` must be greater than `thinking.budget_tokens`"},
		"kind of thinking":    {request(`"thinking":{"type":"hard"}`, `user:"x"`), "thinking: Input tag 'hard' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"},
		"thinking and choice": {request(tools+`,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"}`, `user:"x"`), "Thinking may not be enabled when tool_choice forces tool use."},
		"format":              {request(`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, `user:"x"`), "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"},
	} {
		t.Run(name, func(t *testing.T) {
			err := rules.ValidateJSON([]byte(c.body))
			switch {
			case c.want == "" && err == nil:
			case c.want == "", err == nil, !strings.HasPrefix(err.Error(), c.want):
				t.Errorf("got %v\nwant %s\nof %s", err, c.want, c.body)
			default:
				e, ok := errors.AsType[*anthropic.APIError](err)
				if !ok || e.Status != 400 || e.Type != "invalid_request_error" {
					t.Errorf("got %#v", err)
				}
			}
		})
	}
}

// What the API knows of pictures, and a request alone does not show.
func TestValidateBy(t *testing.T) {
	t.Parallel()
	look := func(info artel.MediaInfo) rules.Options {
		return rules.Options{Look: func(artel.Digest) (artel.MediaInfo, bool) { return info, true }}
	}
	image := func(mediaType string, side int) rules.Options {
		return look(artel.MediaInfo{MediaType: mediaType, Kind: artel.KindImage, Width: 10, Height: side})
	}
	many := func(n int, block string) string {
		return request("", "user:"+strings.TrimSuffix(strings.Repeat(block+",", n), ","))
	}
	pdf := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`
	byURL := `{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`
	for name, c := range map[string]struct {
		body  string
		rules rules.Options
		want  string
	}{
		"8,000 pixels":        {many(20, png), image("image/png", 8000), ""},
		"more":                {many(20, png), image("image/png", 8001), "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"},
		"more than 20":        {many(21, png), image("image/png", 2001), "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"},
		"with URLs":           {request("", "user:"+png+strings.Repeat(","+byURL, 20)), image("image/png", 2001), "messages.0.content.0.image.source.base64.data: At least one"},
		"more than 20, small": {many(21, png), image("image/png", 2000), ""},
		"in tool results":     {request("", `user:"x"`, "assistant:"+call, `user:{"type":"tool_result","tool_use_id":"a","content":[`+strings.Repeat(png+",", 20)+png+`]}`), image("image/png", 2001), "messages.2.content.0.tool_result.content.0.image.source.base64.data: At least one"},
		"too many":            {many(101, png), rules.Options{Images: 100}, "messages: too many images and documents: 101 + 0 > 100"},
		"another type":        {many(1, png), image("image/jpeg", 1), "messages.0.content.0.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image"},
		"no image":            {many(1, png), look(artel.MediaInfo{MediaType: "text/plain", Kind: artel.KindText}), "Could not process image"},
		"pages":               {many(2, pdf), rules.Options{Pages: 100, Look: look(artel.MediaInfo{MediaType: "application/pdf", Pages: 51}).Look}, "A maximum of 100 PDF pages may be provided."},
		"no PDF":              {many(1, pdf), image("image/png", 1), "messages.0.content.0.document.source.base64: The PDF specified was not valid."},
		"betas":               {request(`"context_management":{"edits":[]}`, `user:{"type":"text","text":"x","cache_control":{"type":"ephemeral","scope":"global"}}`), rules.Options{Betas: []string{"context-management-2025-06-27"}}, ""},
		"counted":             {`{"model":"m","messages":[{"role":"user","content":"x"}]}`, rules.Options{Count: true}, ""},
		"counted with limit":  {request("", `user:"x"`), rules.Options{Count: true}, "max_tokens: Extra inputs are not permitted"},
		"forged":              {request("", `user:"x"`, `assistant:{"type":"thinking","thinking":"Hm.","signature":"s"},`+says("a"), `user:"y"`), rules.Options{Signed: func(thinking, signature string) bool { return false }}, "messages.1.content.0: Invalid `signature` in `thinking` block"},
	} {
		t.Run(name, func(t *testing.T) {
			err := rules.Validate(decode(t, c.body), c.rules)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	encoded := strings.Repeat("AAAA", 3<<20) // 12 MiB
	block := strings.Replace(png, "AAAA", encoded, 1)
	err := rules.ValidateJSON([]byte(request("", "user:"+block)))
	if want := "messages.0.content.0.image.source.base64: image exceeds 10 MB maximum: 12582912 bytes > 10485760 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	err = rules.ValidateJSON([]byte(request("", "user:"+block+","+says(strings.Repeat("x", 21<<20)))))
	if e, ok := errors.AsType[*anthropic.APIError](err); !ok || e.Status != http.StatusRequestEntityTooLarge || e.Type != "request_too_large" {
		t.Errorf("got %v", err)
	}
}

// TestClaudeCode holds the shapes of requests that Claude Code sends: every one
// is valid, and nothing of it is lost on the way.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/claude-code.json")
	if err != nil {
		t.Fatal(err)
	}
	r := decode(t, string(body))
	options := rules.Options{Betas: []string{"claude-code-20250219", "interleaved-thinking-2025-05-14", "prompt-caching-scope-2026-01-05"}}
	if err := rules.Validate(r, options); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, r.Extraction().Elided()); err != nil {
		t.Fatal(err)
	}
	back := compact.String()
	for _, kept := range []string{`"scope":"global"`, `"context_management"`, `"tool_reference"`, `"defer_loading":true`, `"eager_input_streaming":true`, `"user_id"`, `"output_config"`} {
		if !strings.Contains(back, kept) {
			t.Errorf("%s is lost", kept)
		}
	}
	n := r.Neutral()
	roles := ""
	for _, m := range n.Messages {
		roles += string(m.Role) + " "
	}
	if roles != "system user assistant tool tool user assistant user " || len(n.Tools) != 3 {
		t.Errorf("%d tools, %s", len(n.Tools), roles)
	}
	result := n.Messages[3].Parts[0].(artel.ToolResult)
	if result.Content != "[tool WebFetch]" || n.Messages[4].Parts[0].(artel.ToolResult).Parts[0].(artel.Media).MediaType != "image/jpeg" {
		t.Errorf("got %+v", n.Messages[3:5])
	}
}
