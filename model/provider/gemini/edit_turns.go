// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

var _ provider.TurnEditor = editor{}

// signatureNames are the names under which parts hold signatures, quoted.
var signatureNames = []string{`"thoughtSignature"`, `"thought_signature"`}

// JoinResults implements [provider.TurnEditor]: the API wants the results of
// parallel calls in one content, and some libraries send a content for each.
func (d editor) JoinResults(text string) (joined string, moved []artel.CallID) {
	var edits []provider.Edit
	l := d.Scan(text)
	for i := 0; i < len(l.Elements); i++ {
		if !l.Elements[i].Calls {
			continue
		}
		first := i + 1
		end := first
		for end < len(l.Elements) && onlyResults(text, l.Elements[end]) {
			end++
		}
		if end-first < 2 {
			continue
		}
		var parts []string
		for _, e := range l.Elements[first+1 : end] {
			list := e.Content.Of(text)
			parts = append(parts, strings.TrimSpace(list[1:len(list)-1]))
		}
		for _, r := range l.Results {
			if r.Element > first && r.Element < end {
				moved = append(moved, r.Call)
			}
		}
		at, last := l.Elements[first], l.Elements[end-1]
		edits = append(edits, provider.Edit{Span: provider.Span{From: at.Content.To - 1, To: at.Content.To - 1}, With: "," + strings.Join(parts, ",")}, provider.Edit{Span: provider.Span{From: at.To, To: last.To}, With: ""})
		i = end - 1
	}
	return provider.ApplyEdits(text, edits), moved
}

// onlyResults reports whether a content holds results and nothing else.
func onlyResults(text string, e provider.Element) bool {
	if !e.Result {
		return false
	}
	only := true
	gjson.Parse(e.Content.Of(text)).ForEach(func(_, p gjson.Result) bool {
		only = eitherField(p, "functionResponse", "function_response").IsObject()
		return only
	})
	return only
}

// CallStates implements [provider.TurnEditor].
func (editor) CallStates(data []byte) (calls []artel.ToolCall) {
	gjson.GetBytes(data, "candidates.0.content.parts").ForEach(func(_, p gjson.Result) bool {
		call, signature := p.Get("functionCall"), eitherField(p, "thoughtSignature", "thought_signature")
		if !call.IsObject() || signature.String() == "" {
			return true
		}
		state := json.RawMessage(`{"thoughtSignature":` + provider.QuoteJSON(signature.String()) + `}`)
		for _, id := range idsOf(call) {
			c := callOf(call, id)
			c.Opaque = state
			calls = append(calls, c)
		}
		return true
	})
	return calls
}

// idsOf returns the id of a call, if it has one, and one made of its content.
func idsOf(call gjson.Result) (ids []artel.CallID) {
	if id := call.Get("id").String(); id != "" {
		ids = append(ids, artel.CallID(id))
	}
	args := []byte("{}")
	if a := call.Get("args"); a.Exists() {
		args, _ = json.Marshal(a.Value()) // of JSON, with the keys sorted
	}
	return append(ids, artel.CallID(provider.HashID("content_", artel.CallID(call.Get("name").String()+" "+string(args)))))
}

// callOf returns a call under an id.
func callOf(call gjson.Result, id artel.CallID) artel.ToolCall {
	c := artel.ToolCall{ID: id, Name: call.Get("name").String(), Arguments: json.RawMessage(call.Get("args").Raw)}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	return c
}

// SignCalls implements [provider.TurnEditor]: the API refuses a call of the
// current turn without its signature, and some libraries lose it.
func (editor) SignCalls(text string, find func(artel.ToolCall) json.RawMessage) (with string, signed []artel.CallID) {
	if provider.ContainsNone([]byte(text), `"functionCall"`, `"function_call"`) {
		return text, nil
	}
	var edits []provider.Edit
	provider.EachElement(gjson.Get(text, "contents"), func(_, c gjson.Result) bool {
		if c.Get("role").String() != "model" {
			return true
		}
		provider.EachElement(c.Get("parts"), func(_, p gjson.Result) bool {
			call := eitherField(p, "functionCall", "function_call")
			if !call.IsObject() || eitherField(p, "thoughtSignature", "thought_signature").String() != "" {
				return true
			}
			for _, id := range idsOf(call) {
				if state := gjson.ParseBytes(find(callOf(call, id))).Get("thoughtSignature"); state.String() != "" {
					end := provider.SpanOf(p).To - 1
					edits = append(edits, provider.Edit{Span: provider.Span{From: end, To: end}, With: `,"thoughtSignature":` + provider.QuoteJSON(state.String())})
					signed = append(signed, id)
					break
				}
			}
			return true
		})
		return true
	})
	return provider.ApplyEdits(text, edits), signed
}
