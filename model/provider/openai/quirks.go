// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// What servers of the dialect do in their own ways is said by [model.Quirks];
// this is how it is written.

// places returns where media may stand, for servers whose tool messages are
// strings too.
func places(q model.Quirks, c model.Capabilities) model.Capabilities {
	for _, f := range []*model.Fact[bool]{&c.ToolImage, &c.ToolFile} {
		if !q.ToolLists && f.Source != model.FromOperator {
			*f = model.Fact[bool]{}
		}
	}
	return c
}

// callID fits an id to what the server takes, always in the same way.
func (e *encoder) callID(id artel.CallID) string {
	n := e.quirks.CallIDs
	plain := !strings.ContainsFunc(string(id), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if n == 0 || plain && len(id) == n {
		return provider.CallID(id, MaxCallID)
	}
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:n]
}

// formOf returns how media of a type are written: "image", "video", "file", or
// the API's word for a format of sound; "" for what the server has no place
// for.
func (e *encoder) formOf(mediaType string) string {
	major, _, _ := strings.Cut(mediaType, "/")
	takes := slices.Contains(e.quirks.Takes, mediaType)
	switch {
	case major == "image":
		return "image"
	case mediaType == "application/pdf":
		return "file"
	case major == "video" && takes:
		return "video"
	case audioFormat(mediaType) != "":
		return audioFormat(mediaType)
	case mediaType == "audio/mp4" && takes:
		return "m4a"
	case major == "audio" && takes:
		return strings.TrimPrefix(mediaType, "audio/")
	}
	return ""
}

// audioFormat returns the API's word for a media type of sound, or "".
func audioFormat(mediaType string) string {
	switch mediaType {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "wav"
	case "audio/mpeg", "audio/mp3", "audio/mpeg3", "audio/x-mpeg-3":
		return "mp3"
	}
	return ""
}

// A thought is what the client keeps as the opaque state of reasoning: in
// which field the server told it, and the details that it gave.
type thought struct {
	Field   string          `json:"field,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
}

// reasoning writes what goes back of an assistant message's reasoning.
func (e *encoder) reasoning(parts artel.Parts, calls bool) {
	field, text := "", ""
	var details []json.RawMessage
	for _, p := range parts {
		r, ok := p.(artel.Reasoning)
		var state thought
		if !ok || json.Unmarshal(r.Opaque, &state) != nil {
			continue
		}
		if state.Field != "" {
			field, text = state.Field, text+r.Text
		}
		var list []json.RawMessage
		if json.Unmarshal(state.Details, &list) == nil {
			details = append(details, list...)
		}
	}
	switch e.quirks.Reasoning {
	case model.ReplayDetails:
		if len(details) > 0 {
			e.Field("reasoning_details", details)
		}
	case model.ReplayAlways:
		if calls {
			e.Field("reasoning_content", text)
		}
	case model.ReplayCalls:
		if calls && (field == "reasoning" || field == "reasoning_content") {
			e.Field(field, text)
		}
	}
}

// A detail is one piece of a list of reasoning details, as OpenRouter gives
// them: text, a summary, or encrypted data.
type detail map[string]json.RawMessage

// joins reports whether d goes on where before ended: pieces of one entry have
// its type and its index.
func (d detail) joins(before detail) bool {
	return string(d["type"]) == string(before["type"]) && string(d["index"]) == string(before["index"])
}

// join appends the texts of d to those of before, and takes over what else it
// says.
func (d detail) join(before detail) {
	for name, value := range d {
		var more, text string
		grows := slices.Contains([]string{"text", "summary", "data"}, name) && json.Unmarshal(value, &more) == nil
		if grows && json.Unmarshal(before[name], &text) == nil {
			if joined, err := json.Marshal(text + more); err == nil {
				value = joined
			}
		}
		if string(value) != "null" || before[name] == nil {
			before[name] = value
		}
	}
}

// think tells the reasoning in a piece of an answer.
func (r *reader) think(d *Delta) error {
	for _, one := range d.Details {
		if n := len(r.details); n > 0 && one.joins(r.details[n-1]) {
			one.join(r.details[n-1])
		} else if one != nil {
			r.details = append(r.details, one)
		}
		for _, value := range one {
			r.size += len(value)
		}
	}
	if r.size > maxArguments {
		return r.failures.Wrong("the details of the reasoning are larger than 16 MiB")
	}
	text, field := d.ReasoningContent, "reasoning_content"
	if text == "" {
		text, field = d.Reasoning, "reasoning" // the same under another name; some servers send both
	}
	if d.Content != nil {
		for _, p := range d.Content.Parts {
			for _, thinking := range p.Thinking {
				text, field = text+thinking.Text, ""
			}
		}
	}
	if text == "" {
		return nil
	}
	r.said, r.thinking, r.field = true, true, field
	if !r.yield(model.ReasoningDelta(text), nil) {
		return provider.ErrStopped
	}
	return nil
}

// reasoned tells that a block of reasoning is over, with the state of it that
// the server wants back.
func (r *reader) reasoned() bool {
	var state thought
	switch r.failures.Service.Quirks().Reasoning {
	case model.ReplayDetails:
		if len(r.details) > 0 {
			if list, err := json.Marshal(r.details); err == nil {
				state.Details = list
			}
		}
	case model.ReplayCalls, model.ReplayAlways:
		if r.thinking {
			state.Field = r.field
		}
	}
	r.thinking, r.details = false, nil
	if state.Field == "" && state.Details == nil {
		return true
	}
	opaque, err := json.Marshal(state)
	if err != nil { // of what was JSON
		return true
	}
	return r.yield(model.ReasoningDone{Opaque: opaque}, nil)
}
