// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel/model/fake/rules"
	"github.com/artelhq/artel/model/provider"
	wire "github.com/artelhq/artel/model/provider/responses"
)

// items checks each item.
func (v *validator) items() *wire.APIError {
	for i := range v.request.Input.Items {
		if err := v.item(fmt.Sprintf("input[%d]", i), &v.request.Input.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) item(at string, i *wire.Item) *wire.APIError {
	if i.Status != "" && i.Kind() != "image_generation_call" && !slices.Contains([]string{"in_progress", "completed", "incomplete", "searching", "failed"}, i.Status) {
		return wrongValue(at+".status", i.Status, "in_progress", "completed", "incomplete")
	}
	switch kind := i.Kind(); kind {
	case "":
		return rules.Missing(at + ".type")
	case "message":
		return v.message(at, i)
	case "reasoning":
		if i.Summary == nil {
			return rules.Missing(at + ".summary")
		}
		if i.Encrypted == nil || *i.Encrypted == "" {
			e := wire.Bad("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", i.ID)
			e.Status = http.StatusNotFound
			return e
		}
	case "function_call", "custom_tool_call":
		if err := checkCallID(at, i.CallID); err != nil {
			return err
		}
		if err := rules.CheckName(at+".name", i.Name); err != nil {
			return err
		}
		if kind == "function_call" && i.Arguments == nil {
			return rules.Missing(at + ".arguments")
		}
		if kind == "function_call" && i.Arguments[0] != '"' {
			return wire.Bad(at+".arguments", "invalid_type", "Invalid type for '%s.arguments': expected a string.", at)
		}
		if kind == "custom_tool_call" && i.Input == nil {
			return rules.Missing(at + ".input")
		}
	case "function_call_output", "custom_tool_call_output":
		if err := checkCallID(at, i.CallID); err != nil {
			return err
		}
		if i.Output == nil || i.Output.Text == nil && i.Output.Parts == nil {
			return rules.Missing(at + ".output")
		}
		return v.parts(at+".output", i.Output.Parts, "input_text", "input_image", "input_file")
	case "item_reference":
		e := wire.Bad("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", i.ID)
		e.Status = http.StatusNotFound
		return e
	default:
		if !slices.Contains(wire.ServiceItems(), kind) {
			return wrongValue(at+".type", kind, append([]string{
				"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "item_reference",
			}, wire.ServiceItems()...)...)
		}
	}
	return nil
}

func checkCallID(at, id string) *wire.APIError {
	switch {
	case id == "":
		return rules.Missing(at + ".call_id")
	case len(id) > wire.MaxCallID:
		return rules.TooLong(at+".call_id", wire.MaxCallID, len(id))
	}
	return nil
}

func (v *validator) message(at string, i *wire.Item) *wire.APIError {
	if !slices.Contains([]string{"assistant", "system", "developer", "user"}, i.Role) {
		return wrongValue(at+".role", i.Role, "assistant", "system", "developer", "user")
	}
	if i.Content == nil || i.Content.Text == nil && i.Content.Parts == nil {
		return rules.Missing(at + ".content")
	}
	if i.Phase != "" && (i.Role != "assistant" || i.Phase != "commentary" && i.Phase != "final_answer") {
		return wrongValue(at+".phase", i.Phase, "commentary", "final_answer")
	}
	if i.Role == "assistant" {
		return v.parts(at+".content", i.Content.Parts, "output_text", "refusal")
	}
	return v.parts(at+".content", i.Content.Parts, "input_text", "input_image", "input_file")
}

func (v *validator) parts(at string, parts []wire.Part, allowed ...string) *wire.APIError {
	for j, p := range parts {
		at := fmt.Sprintf("%s[%d]", at, j)
		if !slices.Contains(allowed, p.Type) {
			return wrongValue(at+".type", p.Type, allowed...)
		}
		var err *wire.APIError
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

func (v *validator) image(at string, p wire.Part) *wire.APIError {
	if !slices.Contains([]string{"", "auto", "low", "high", "original"}, p.Detail) {
		return wrongValue(at+".detail", p.Detail, "low", "high", "auto", "original")
	}
	if (p.ImageURL == "") == (p.FileID == "") {
		return wire.Bad(at, "missing_required_parameter", "Invalid '%s': expected exactly one of 'image_url' and 'file_id'.", at)
	}
	if v.images++; v.images > rules.MaxImages {
		return wire.Bad(at, "too_many_images", "Too many images in request. Max is %d.", rules.MaxImages)
	}
	at += ".image_url"
	if p.ImageURL == "" || rules.IsAddress(p.ImageURL) {
		return nil
	}
	m, mediaType, ok := v.request.Extraction().DataURL(p.ImageURL)
	if !ok {
		return wire.Bad(at, "invalid_value", "Invalid '%s'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", at)
	}
	if !slices.Contains(rules.ImageTypes(), mediaType) {
		return wire.Bad(at, "invalid_value", "Invalid '%s'. Expected a base64-encoded data URL with an image MIME type, but got unsupported MIME type '%s'.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return wire.Bad(at, "invalid_base64", "Invalid base64 image_url.")
	}
	if v.imageBytes += m.Size; v.imageBytes > rules.MaxImageBytes {
		return provider.RequestTooLarge(at, "The images of the request are larger than the limit of 512 MB.")
	}
	return nil
}

func (v *validator) file(at string, p wire.Part) *wire.APIError {
	given := 0
	for _, s := range []string{p.FileData, p.FileID, p.FileURL} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return wire.Bad(at, "missing_required_parameter", "Invalid '%s': expected exactly one of 'file_data', 'file_id' and 'file_url'.", at)
	}
	if p.FileData == "" {
		return nil
	}
	if p.Filename == "" {
		return rules.Missing(at + ".filename")
	}
	at += ".file_data"
	m, mediaType, ok := v.request.Extraction().DataURL(p.FileData)
	if !ok {
		m, mediaType = v.request.Extraction().Base64(p.FileData), wire.TypeByName(p.Filename)
	}
	if major, _, _ := strings.Cut(mediaType, "/"); major != "text" && wire.Extensions()[mediaType] == "" {
		return wire.Bad(at, "unsupported_file", "Invalid '%s': the file type '%s' is not supported.", at, mediaType)
	}
	if m.Bad || m.Size == 0 {
		return wire.Bad(at, "invalid_base64", "Invalid '%s': expected valid base64.", at)
	}
	if v.fileBytes += m.Size; v.fileBytes > rules.MaxFileBytes {
		return provider.RequestTooLarge(at, "The files of the request are larger than the limit of 50 MB.")
	}
	return nil
}

// pairs checks the relations of items: calls have an output, outputs a call before
// them, and an item follows each reasoning.
func (v *validator) pairs() *wire.APIError {
	answered := map[string]bool{}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		if strings.HasSuffix(item.Kind(), "call_output") {
			answered[item.CallID] = true
		}
	}
	called := map[string]bool{}
	done := map[string]bool{}
	for i := range v.request.Input.Items {
		item := &v.request.Input.Items[i]
		at := fmt.Sprintf("input[%d]", i)
		switch item.Kind() {
		case "reasoning":
			if !v.leads(i) {
				return wire.Bad("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
			}
		case "function_call", "custom_tool_call":
			if called[item.CallID] {
				return wire.Bad(at+".call_id", "duplicate_call_id", "Duplicate call_id '%s': each call needs an id of its own.", item.CallID)
			}
			called[item.CallID] = true
			if !answered[item.CallID] {
				return wire.Bad("input", "", "No tool output found for function call %s.", item.CallID)
			}
		case "function_call_output", "custom_tool_call_output":
			if !called[item.CallID] {
				return wire.Bad("input", "", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			if done[item.CallID] {
				return wire.Bad(at+".call_id", "duplicate_call_id", "Duplicate output for function call %s.", item.CallID)
			}
			done[item.CallID] = true
		}
	}
	return nil
}

// leads reports whether an item of the assistant follows the reasoning at i.
func (v *validator) leads(i int) bool {
	if i+1 >= len(v.request.Input.Items) {
		return false
	}
	next := &v.request.Input.Items[i+1]
	switch kind := next.Kind(); {
	case kind == "message":
		return next.Role == "assistant"
	case strings.HasSuffix(kind, "call_output"):
		return false
	}
	return true
}
