// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Check returns an [*APIError] if the request has no input, needs what only the service
// stores, or has an item or a part that [Request.Neutral] cannot convert; nil: everything has a
// neutral form, or is among its Dropped.
func (r *Request) Check() error {
	if id := r.PreviousResponse; id != "" {
		return Bad("previous_response_id", "previous_response_not_found",
			"Previous response with id '%s' not found. Send the whole conversation in 'input'. %s", artel.Shorten(id, 100), storeFalse)
	}
	for _, f := range []struct {
		name, way string
		set       bool
	}{
		{"conversation", "Send the whole conversation in 'input' instead.", given(r.Conversation)},
		{"prompt", "Send its text in 'instructions' or 'input' instead.", given(r.Prompt)},
		{"background", "Send the request without it and wait for the answer, or stream it.", r.Background},
	} {
		if f.set {
			return Bad(f.name, "unsupported_parameter", "Unsupported parameter: '%s' is not supported with this model: only services that speak Responses themselves have it. %s", f.name, f.way)
		}
	}
	for n := range r.Input.Items {
		i, at := &r.Input.Items[n], fmt.Sprintf("input[%d]", n)
		switch kind := i.Kind(); {
		case kind == "item_reference":
			return Bad(at, "", "Item with id '%s' not found. Send the items themselves in 'input'. %s", artel.Shorten(i.ID, 100), storeFalse)
		case kind == "compaction" || kind == "compaction_trigger":
			return Bad(at, "unsupported_value", "Invalid value: '%s'. Only services that speak Responses themselves read such an item; send the whole conversation in 'input'.", kind)
		case !slices.Contains(ownItems(), kind) && !slices.Contains(ServiceItems(), kind):
			return provider.InvalidValue(at+".type", kind, append(ownItems(), ServiceItems()...))
		case kind == "message" && !slices.Contains([]string{"assistant", "system", "developer", "user"}, i.Role):
			return provider.InvalidValue(at+".role", i.Role, []string{"assistant", "system", "developer", "user"})
		}
		if i.Content != nil {
			if err := checkParts(at+".content", i.Content.Parts); err != nil {
				return err
			}
		}
		if i.Output != nil && strings.HasSuffix(i.Kind(), "_call_output") && i.Kind() != "shell_call_output" {
			if err := checkParts(at+".output", i.Output.Parts); err != nil {
				return err
			}
		}
	}
	if r.Input.Text == nil && len(r.Input.Items) == 0 {
		return Bad("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	return nil
}

// ownItems are the types of items that every service understands.
func ownItems() []string {
	return strings.Fields("message reasoning function_call function_call_output custom_tool_call custom_tool_call_output")
}

func given(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// storeFalse is how clients avoid that they refer to what a service is to store.
const storeFalse = "Client libraries do so with 'store' set to false."

func checkParts(at string, parts []Part) error {
	for n, p := range parts {
		kinds := strings.Fields("input_text input_image input_file input_audio output_text refusal summary_text reasoning_text computer_screenshot text")
		at := fmt.Sprintf("%s[%d]", at, n)
		switch {
		case !slices.Contains(kinds, p.Type):
			return provider.InvalidValue(at+".type", p.Type, kinds)
		case p.Type == "input_image" && p.ImageURL == "" && p.FileID == "",
			p.Type == "input_file" && p.FileData == "" && p.FileID == "" && p.FileURL == "",
			p.Type == "input_audio" && p.InputAudio == nil:
			return Bad(at, "missing_required_parameter", "Missing required parameter: the content of '%s'.", at)
		}
	}
	return nil
}

var readOfItems = sync.OnceValues(func() (item, part map[string]bool) {
	item, part = provider.Fields(reflect.TypeFor[Item]()), provider.Fields(reflect.TypeFor[Part]())
	for _, name := range []string{"execution", "caller", "async", "created_by"} {
		item[name] = true // they say how a call came about
	}
	for _, name := range []string{"annotations", "logprobs", "prompt_cache_breakpoint"} {
		part[name] = true
	}
	return item, part
})

// unreadInItems returns the fields of messages, calls and parts that have no neutral
// form.
func (r *Request) unreadInItems(text gjson.Result) []model.Drop {
	item, part := readOfItems()
	list := text.Get("input")
	service := func(i gjson.Result) bool { return slices.Contains(ServiceItems(), i.Get("type").Str) }
	return append(provider.UnreadIn([]gjson.Result{list}, "input.", item, service),
		provider.UnreadIn(append(list.Get("#.content").Array(), list.Get("#.output").Array()...), "input.content.", part,
			func(p gjson.Result) bool { return !strings.Contains(p.Get("type").Str, "_") })...)
}
