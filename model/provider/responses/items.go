// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// serviceItems are the items that are taken as they are.
func serviceItems() []string {
	return strings.Fields(`additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction compaction_trigger computer_call configuration_update
		computer_call_output file_search_call image_generation_call local_shell_call local_shell_call_output mcp_approval_request
		mcp_approval_response mcp_call mcp_list_tools program program_output shell_call shell_call_output tool_search_call tool_search_output web_search_call`)
}

// items holds each item to the rules.
func (v *validator) items() *APIError {
	for i := range v.request.Input.Items {
		if err := v.item(fmt.Sprintf("input[%d]", i), &v.request.Input.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) item(at string, i *Item) *APIError {
	if i.Status != "" && i.kind() != "image_generation_call" && !slices.Contains([]string{"in_progress", "completed", "incomplete", "searching", "failed"}, i.Status) {
		return wrongValue(at+".status", i.Status, "in_progress", "completed", "incomplete")
	}
	switch kind := i.kind(); kind {
	case "":
		return missing(at + ".type")
	case "message":
		return v.message(at, i)
	case "reasoning":
		if i.Summary == nil {
			return missing(at + ".summary")
		}
		if i.Encrypted == nil || *i.Encrypted == "" {
			e := Bad("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", i.ID)
			e.Status = http.StatusNotFound
			return e
		}
	case "function_call", "custom_tool_call":
		if err := checkCallID(at, i.CallID); err != nil {
			return err
		}
		if err := checkName(at+".name", i.Name); err != nil {
			return err
		}
		if kind == "function_call" && i.Arguments == nil {
			return missing(at + ".arguments")
		}
		if kind == "function_call" && i.Arguments[0] != '"' {
			return Bad(at+".arguments", "invalid_type", "Invalid type for '%s.arguments': expected a string.", at)
		}
		if kind == "custom_tool_call" && i.Input == nil {
			return missing(at + ".input")
		}
	case "function_call_output", "custom_tool_call_output":
		if err := checkCallID(at, i.CallID); err != nil {
			return err
		}
		if i.Output == nil || i.Output.Text == nil && i.Output.Parts == nil {
			return missing(at + ".output")
		}
		return v.parts(at+".output", i.Output.Parts, "input_text", "input_image", "input_file")
	case "item_reference":
		e := Bad("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", i.ID)
		e.Status = http.StatusNotFound
		return e
	default:
		if !slices.Contains(serviceItems(), kind) {
			return wrongValue(at+".type", kind, append([]string{
				"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "item_reference",
			}, serviceItems()...)...)
		}
	}
	return nil
}

func checkCallID(at, id string) *APIError {
	switch {
	case id == "":
		return missing(at + ".call_id")
	case len(id) > maxCallID:
		return tooLong(at+".call_id", maxCallID, len(id))
	}
	return nil
}

func (v *validator) message(at string, i *Item) *APIError {
	if !slices.Contains([]string{"assistant", "system", "developer", "user"}, i.Role) {
		return wrongValue(at+".role", i.Role, "assistant", "system", "developer", "user")
	}
	if i.Content == nil || i.Content.Text == nil && i.Content.Parts == nil {
		return missing(at + ".content")
	}
	if i.Phase != "" && (i.Role != "assistant" || i.Phase != "commentary" && i.Phase != "final_answer") {
		return wrongValue(at+".phase", i.Phase, "commentary", "final_answer")
	}
	if i.Role == "assistant" {
		return v.parts(at+".content", i.Content.Parts, "output_text", "refusal")
	}
	return v.parts(at+".content", i.Content.Parts, "input_text", "input_image", "input_file")
}

func (v *validator) parts(at string, parts []Part, allowed ...string) *APIError {
	for j, p := range parts {
		at := fmt.Sprintf("%s[%d]", at, j)
		if !slices.Contains(allowed, p.Type) {
			return wrongValue(at+".type", p.Type, allowed...)
		}
		var err *APIError
		switch p.Type {
		case "input_image":
			err = v.image(at, p)
		case "input_file":
			err = v.file(at, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) image(at string, p Part) *APIError {
	if !slices.Contains([]string{"", "auto", "low", "high", "original"}, p.Detail) {
		return wrongValue(at+".detail", p.Detail, "low", "high", "auto", "original")
	}
	if (p.ImageURL == "") == (p.FileID == "") {
		return Bad(at, "missing_required_parameter", "Invalid '%s': expected exactly one of 'image_url' and 'file_id'.", at)
	}
	if v.images++; v.images > maxImages {
		return Bad(at, "too_many_images", "Too many images in request. Max is %d.", maxImages)
	}
	at += ".image_url"
	if p.ImageURL == "" || strings.HasPrefix(p.ImageURL, "https://") || strings.HasPrefix(p.ImageURL, "http://") {
		return nil
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.ImageURL)
	if !ok {
		return Bad(at, "invalid_value", "Invalid '%s'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", at)
	}
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType) {
		return Bad(at, "invalid_value", "Invalid '%s'. Expected a base64-encoded data URL with an image MIME type, but got unsupported MIME type '%s'.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return Bad(at, "invalid_base64", "Invalid base64 image_url.")
	}
	if v.imageBytes += m.Size; v.imageBytes > maxImageBytes {
		return provider.RequestTooLarge(at, "The images of the request are larger than the limit of 512 MB.")
	}
	return nil
}

func (v *validator) file(at string, p Part) *APIError {
	given := 0
	for _, s := range []string{p.FileData, p.FileID, p.FileURL} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return Bad(at, "missing_required_parameter", "Invalid '%s': expected exactly one of 'file_data', 'file_id' and 'file_url'.", at)
	}
	if p.FileData == "" {
		return nil
	}
	if p.Filename == "" {
		return missing(at + ".filename")
	}
	at += ".file_data"
	m, mediaType, ok := v.request.Extraction().DataURL(p.FileData)
	if !ok {
		m, mediaType = v.request.Extraction().Base64(p.FileData), typeOf(p.Filename)
	}
	if major, _, _ := strings.Cut(mediaType, "/"); major != "text" && extensions()[mediaType] == "" {
		return Bad(at, "unsupported_file", "Invalid '%s': the file type '%s' is not supported.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return Bad(at, "invalid_base64", "Invalid '%s': expected valid base64.", at)
	}
	if v.fileBytes += m.Size; v.fileBytes > maxFileBytes {
		return provider.RequestTooLarge(at, "The files of the request are larger than the limit of 50 MB.")
	}
	return nil
}

// pairs holds the items to each other: calls have an output, outputs a call
// before them, and reasoning is followed by what it led to.
func (v *validator) pairs() *APIError {
	answered := map[string]bool{}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		if strings.HasSuffix(item.kind(), "call_output") {
			answered[item.CallID] = true
		}
	}
	called := map[string]bool{}
	done := map[string]bool{}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		at := fmt.Sprintf("input[%d]", i)
		switch item.kind() {
		case "reasoning":
			if !v.leads(i) {
				return Bad("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
			}
		case "function_call", "custom_tool_call":
			if called[item.CallID] {
				return Bad(at+".call_id", "duplicate_call_id", "Duplicate call_id '%s': each call needs an id of its own.", item.CallID)
			}
			called[item.CallID] = true
			if !answered[item.CallID] {
				return Bad("input", "", "No tool output found for function call %s.", item.CallID)
			}
		case "function_call_output", "custom_tool_call_output":
			if !called[item.CallID] {
				return Bad("input", "", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			if done[item.CallID] {
				return Bad(at+".call_id", "duplicate_call_id", "Duplicate output for function call %s.", item.CallID)
			}
			done[item.CallID] = true
		}
	}
	return nil
}

// leads reports whether something of the assistant follows the reasoning at i.
func (v *validator) leads(i int) bool {
	if i+1 >= len(v.request.Input.Items) {
		return false
	}
	next := &v.request.Input.Items[i+1]
	switch kind := next.kind(); {
	case kind == "message":
		return next.Role == "assistant"
	case strings.HasSuffix(kind, "call_output"):
		return false
	}
	return true
}
