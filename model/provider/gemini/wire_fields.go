// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel/model/provider"
)

// messages lists the messages of the API, one per line: the JSON names and types of
// its fields. Types are s (string), B (bytes), b (bool), i (integer), f (number), O
// (object), * (anything), or the name of a message; [] before a type is a list of
// it, {} a map. Fields whose content Artel does not read are *.
const messages = `
GenerateContentRequest model:s contents:[]Content systemInstruction:Content tools:[]Tool toolConfig:ToolConfig safetySettings:* generationConfig:GenerationConfig cachedContent:s serviceTier:s store:b labels:*
CountTokensRequest model:s contents:[]Content generateContentRequest:GenerateContentRequest
Content role:s parts:[]Part
Part text:s thought:b thoughtSignature:B inlineData:Blob fileData:FileData functionCall:FunctionCall functionResponse:FunctionResponse executableCode:* codeExecutionResult:* toolCall:* toolResponse:* videoMetadata:* mediaResolution:* mediaProcessing:s audioTranscription:* speechMetadata:* partMetadata:O
Blob mimeType:s data:B
FileData mimeType:s fileUri:s
FunctionCall id:s name:s args:O
FunctionResponse id:s name:s response:O parts:[]FunctionResponsePart willContinue:b scheduling:s
FunctionResponsePart inlineData:FunctionResponseBlob fileData:FunctionResponseFileData mediaProcessing:s
FunctionResponseBlob mimeType:s data:B
FunctionResponseFileData mimeType:s fileUri:s
Tool functionDeclarations:[]FunctionDeclaration googleSearch:* googleSearchRetrieval:* codeExecution:* urlContext:* computerUse:* fileSearch:* googleMaps:* mcpServers:*
FunctionDeclaration name:s description:s parameters:Schema parametersJsonSchema:* response:Schema responseJsonSchema:* behavior:s
Schema type:s format:s title:s description:s nullable:b enum:[]s items:Schema maxItems:i minItems:i properties:{}Schema required:[]s minProperties:i maxProperties:i minimum:f maximum:f minLength:i maxLength:i pattern:s example:* anyOf:[]Schema propertyOrdering:[]s default:*
ToolConfig functionCallingConfig:FunctionCallingConfig retrievalConfig:* includeServerSideToolInvocations:b
FunctionCallingConfig mode:s allowedFunctionNames:[]s
GenerationConfig stopSequences:[]s responseMimeType:s responseSchema:Schema responseJsonSchema:* responseFormat:* responseModalities:[]s candidateCount:i maxOutputTokens:i temperature:f topP:f topK:f seed:i presencePenalty:f frequencyPenalty:f responseLogprobs:b logprobs:i enableEnhancedCivicAnswers:b speechConfig:* thinkingConfig:ThinkingConfig imageConfig:* mediaResolution:s translationConfig:* audioTranscriptionConfig:*
ThinkingConfig includeThoughts:b thinkingBudget:i thinkingLevel:s
`

// A field is a field of a message, under both of its names.
type field struct {
	name string // in JSON
	kind string
	list bool
	dict bool
}

// table returns the fields of each message by each of their names.
var table = sync.OnceValue(func() map[string]map[string]field {
	out := map[string]map[string]field{}
	for line := range strings.Lines(strings.TrimSpace(messages)) {
		words := strings.Fields(line)
		fields := map[string]field{}
		for _, w := range words[1:] {
			name, kind, _ := strings.Cut(w, ":")
			f := field{name: name}
			f.kind, f.list = strings.CutPrefix(kind, "[]")
			f.kind, f.dict = strings.CutPrefix(f.kind, "{}")
			fields[name], fields[snake(name)] = f, f
		}
		out[words[0]] = fields
	}
	return out
})

// snake returns the name of a field in the API's definition.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// A normalizer brings the JSON of a request into one form: JSON names, lists in
// place of single values, numbers in place of strings, and no null.
type normalizer struct {
	unknown []Violation
	wrong   []Violation
}

// message reads an object of a kind at a path.
func (r *normalizer) message(raw json.RawMessage, kind, path string) json.RawMessage {
	var in map[string]json.RawMessage
	if json.Unmarshal(raw, &in) != nil {
		return r.bad(raw, path, "type.googleapis.com/google.ai.generativelanguage.v1beta."+kind)
	}
	fields := table()[kind]
	out := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		f, ok := fields[name]
		if !ok {
			at := ""
			if path != "" {
				at = " at '" + path + "'"
			}
			r.unknown = append(r.unknown, Violation{Field: path, name: name, Description: fmt.Sprintf("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", name, at)})
			continue
		}
		if v := in[name]; string(v) != "null" {
			out[f.name] = r.field(v, f, strings.TrimPrefix(path+"."+snake(f.name), "."))
		}
	}
	return object(out)
}

func (r *normalizer) field(raw json.RawMessage, f field, path string) json.RawMessage {
	switch {
	case f.list:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			items = []json.RawMessage{raw} // the API takes a single value as a list
		}
		for i, item := range items {
			items[i] = r.value(item, f.kind, fmt.Sprintf("%s[%d]", path, i))
		}
		return join('[', items, ']')
	case f.dict:
		var in map[string]json.RawMessage
		if json.Unmarshal(raw, &in) != nil {
			return r.bad(raw, path, "Map")
		}
		out := make([]json.RawMessage, 0, len(in))
		for i, m := range Members(raw) {
			out = append(out, slices.Concat(quote(m.Key), []byte{':'}, r.value(m.Value, f.kind, fmt.Sprintf("%s[%d].value", path, i))))
		}
		return join('{', out, '}')
	}
	return r.value(raw, f.kind, path)
}

func (r *normalizer) value(raw json.RawMessage, kind, path string) json.RawMessage {
	ok, name := true, ""
	first := byte(0)
	if len(raw) > 0 {
		first = raw[0]
	}
	switch kind {
	case "s":
		ok, name = first == '"', "TYPE_STRING"
	case "B":
		ok, name = first == '"', "TYPE_BYTES"
	case "b":
		ok, name = first == 't' || first == 'f', "TYPE_BOOL"
	case "i", "f":
		name = map[string]string{"i": "TYPE_INT32", "f": "TYPE_FLOAT"}[kind]
		text := string(raw)
		if first == '"' {
			_ = json.Unmarshal(raw, &text) // it is valid JSON
		}
		n, err := strconv.ParseFloat(text, 64)
		ok = err == nil && json.Valid([]byte(text)) && (kind == "f" || n == float64(int64(n)))
		if ok && kind == "i" {
			text = strconv.FormatInt(int64(n), 10)
		}
		if ok {
			return json.RawMessage(text)
		}
	case "O":
		ok, name = first == '{', "type.googleapis.com/google.protobuf.Struct"
	case "*":
	default:
		return r.message(raw, kind, path)
	}
	if !ok {
		return r.bad(raw, path, name)
	}
	return raw
}

// bad records a value of the wrong type.
func (r *normalizer) bad(raw json.RawMessage, path, kind string) json.RawMessage {
	text := string(raw)
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	r.wrong = append(r.wrong, Violation{Field: path, Description: fmt.Sprintf("Invalid value at '%s' (%s), %s", path, kind, text)})
	return json.RawMessage("null")
}

// A Member is a member of a JSON object.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Members returns the members of a JSON object in order, and of a repeated key the
// last one; nil for other JSON.
func Members(raw json.RawMessage) []Member {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out := []Member{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil
		}
		m := Member{Key: key}
		if d.Decode(&m.Value) != nil {
			return nil
		}
		if i := slices.IndexFunc(out, func(o Member) bool { return o.Key == key }); i >= 0 {
			out[i] = m
			continue
		}
		out = append(out, m)
	}
	return out
}

// object writes an object with sorted keys.
func object(fields map[string]json.RawMessage) json.RawMessage {
	out := make([]json.RawMessage, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, slices.Concat(quote(name), []byte{':'}, fields[name]))
	}
	return join('{', out, '}')
}

func join(open byte, items []json.RawMessage, end byte) json.RawMessage {
	out := []byte{open}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, end)
}

// quote returns s as a JSON string without escaping HTML.
func quote(s string) json.RawMessage { return provider.MustMarshal(s) }
