// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Check returns an [*APIError] in the API's words if there is no message, or one
// has a role or a part that [Request.Neutral] cannot convert; nil: everything has a
// neutral form.
func (r *Request) Check() error {
	if len(r.Messages) == 0 {
		return Bad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, m := range r.Messages {
		if roles := strings.Fields("system assistant user function tool developer"); !slices.Contains(roles, m.Role) {
			return provider.InvalidValue(fmt.Sprintf("messages[%d].role", i), m.Role, roles)
		}
		for j, p := range m.Content.Parts {
			if err := p.check(fmt.Sprintf("messages[%d].content[%d]", i, j)); err != nil {
				return err
			}
		}
		for j, c := range m.ToolCalls {
			if kinds := []string{"function", "custom"}; c.Type != "" && !slices.Contains(kinds, c.Type) {
				return provider.InvalidValue(fmt.Sprintf("messages[%d].tool_calls[%d].type", i, j), c.Type, kinds)
			}
		}
	}
	return nil
}

func (p *Part) check(at string) error {
	given, field := true, ""
	switch p.Type {
	case "text", "refusal", "thinking":
	case "image_url":
		given, field = p.ImageURL != nil, "image_url"
	case "input_audio":
		given, field = p.InputAudio != nil, "input_audio"
	case "file":
		given, field = p.File != nil, "file"
	case "video_url":
		given, field = p.VideoURL != nil, "video_url"
	default:
		return provider.InvalidValue(at+".type", p.Type, strings.Fields("text image_url input_audio file refusal video_url"))
	}
	if !given {
		at += "." + field
		return Bad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
	}
	return nil
}

var readOfMessages = sync.OnceValues(func() (message, part map[string]bool) {
	message, part = provider.Fields(reflect.TypeFor[Message]()), provider.Fields(reflect.TypeFor[Part]())
	delete(message, "name")                                                     // but of results
	for _, name := range []string{"cache_control", "prompt_cache_breakpoint"} { // they change no answer
		message[name], part[name] = true, true
	}
	message["annotations"] = true // the sources of an answer, which the text names
	return message, part
})

// unreadInMessages returns the fields of messages and parts that have no neutral form.
func (r *Request) unreadInMessages(text gjson.Result) []model.Drop {
	message, part := readOfMessages()
	list := text.Get("messages")
	named := func(m gjson.Result) bool { return m.Get("role").Str == "function" || m.Get("role").Str == "tool" }
	return append(provider.UnreadIn([]gjson.Result{list}, "messages.", message, named),
		provider.UnreadIn(list.Get("#.content").Array(), "messages.content.", part, nil)...)
}
