// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"errors"
	"strings"
	"testing"

	rules "github.com/artelhq/artel/model/fake/rules/gemini"
	"github.com/artelhq/artel/model/provider/gemini"
)

// TestValidate has a request for every rule, and what the API says of it.
func TestValidate(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","parts":[{"text":"hi"}]}`
	call := func(more string) string {
		return `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}` + more + `}]}`
	}
	answer := func(parts string) string {
		return `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}` + parts + `}}]}`
	}
	contents := func(cs ...string) string { return `"contents":[` + strings.Join(cs, ",") + `]` }
	tool := func(f string) string { return contents(user) + `,"tools":[{"functionDeclarations":[` + f + `]}]` }
	schema := func(s string) string { return tool(`{"name":"f","parameters":` + s + `}`) }
	config := func(c string) string { return contents(user) + `,"generationConfig":{` + c + `}` }
	png := func(data string) string {
		return contents(`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}`)
	}
	signed := `,"thoughtSignature":"c2ln"`
	for name, c := range map[string]struct {
		model, body, want string // want: ""; it is legal
	}{
		"the least":                  {"", contents(user), ""},
		"one for a list":             {"", `"contents":{"parts":{"text":"hi"}}`, ""},
		"snakes":                     {"", contents(user) + `,"generation_config":{"max_output_tokens":"5","stop_sequences":["x"]},"system_instruction":{"parts":{"text":"x"}}`, ""},
		"nothing":                    {"", ``, "* GenerateContentRequest.contents: contents is not specified\n"},
		"no contents":                {"", contents(), "* GenerateContentRequest.contents: contents is not specified\n"},
		"another API's field":        {"", contents(user) + `,"max_tokens":5`, `Invalid JSON payload received. Unknown name "max_tokens": Cannot find field.`},
		"another field, inside":      {"", contents(`{"role":"user","parts":[{"text":"hi","type":"text"}]}`), `Invalid JSON payload received. Unknown name "type" at 'contents[0].parts[0]': Cannot find field.`},
		"a name of a file":           {"", contents(`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGk=","displayName":"x"}}]}`), `Unknown name "displayName" at 'contents[0].parts[0].inline_data'`},
		"a wrong type":               {"", `"contents":[{"role":5,"parts":[{"text":"hi"}]}]`, `Invalid value at 'contents[0].role' (TYPE_STRING), 5`},
		"two wrong types":            {"", contents(user) + `,"generationConfig":{"topP":"x","maxOutputTokens":1.5}`, "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 1.5\nInvalid value at 'generation_config.top_p' (TYPE_FLOAT), \"x\""},
		"arguments that are a text":  {"", contents(user, `{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]}`), `Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), "{}"`},
		"a role":                     {"", `"contents":[{"role":"assistant","parts":[{"text":"hi"}]}]`, "Please use a valid role: user, model."},
		"no parts":                   {"", contents(`{"role":"user","parts":[]}`), "contents[0].parts: contents.parts must not be empty."},
		"an empty part":              {"", contents(`{"role":"user","parts":[{}]}`), "contents[0].parts[0].data: required oneof field 'data' must have one initialized field"},
		"two in one part":            {"", contents(`{"role":"user","parts":[{"text":"x","inlineData":{"mimeType":"image/png","data":"aGk="}}]}`), "oneof field 'data' is already set"},
		"instructions with pictures": {"", contents(user) + `,"systemInstruction":{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}`, "System instructions take text alone"},
		"empty instructions":         {"", contents(user) + `,"systemInstruction":{"parts":[]}`, "must not be empty"},

		"a picture":               {"", png("aGk="), ""},
		"a picture of another":    {"", png("_-8"), ""},
		"no base64":               {"", png("h€llo"), "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed"},
		"no bytes":                {"", png(""), "data must not be empty"},
		"a GIF":                   {"", contents(`{"parts":[{"inlineData":{"mimeType":"image/gif","data":"aGk="}}]}`), "Unsupported MIME type: image/gif"},
		"no type":                 {"", contents(`{"parts":[{"inlineData":{"data":"aGk="}}]}`), "mime_type must not be empty"},
		"a public file":           {"", contents(`{"parts":[{"fileData":{"fileUri":"https://example.com/x.pdf","mimeType":"application/pdf"}}]}`), ""},
		"a file that is not ours": {"", contents(`{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}]}`), "You do not have permission to access the File abc or it may not exist."},
		"a file nowhere":          {"", contents(`{"parts":[{"fileData":{"fileUri":"abc"}}]}`), "Invalid or unsupported file uri: abc"},
		"a file without address":  {"", contents(`{"parts":[{"fileData":{}}]}`), "file_uri must not be empty"},

		"a call and its answer":       {"", contents(user, call(""), answer("")), ""},
		"a call first":                {"", contents(call(""), answer("")), "Please ensure that function call turn comes immediately after a user turn or after a function response turn."},
		"a call after the model":      {"", contents(user, `{"role":"model","parts":[{"text":"x"}]}`, call(""), answer("")), "Please ensure that function call turn comes"},
		"a call of the user's":        {"", contents(`{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`), "Please ensure that function call turn comes"},
		"an unanswered call":          {"", contents(user, call("")), "Please ensure that the number of function response parts is equal to the number of function call parts"},
		"a call, then text":           {"", contents(user, call(""), user), "Please ensure that the number of function response parts"},
		"an answer to nothing":        {"", contents(user, answer("")), "Please ensure that function response turn comes immediately after a function call turn."},
		"an answer of the model's":    {"", contents(user, `{"role":"model","parts":[{"functionResponse":{"name":"f","response":{}}}]}`), "Please ensure that function response turn comes"},
		"a call without a name":       {"", contents(user, `{"role":"model","parts":[{"functionCall":{}}]}`), "function_call.name: Name cannot be empty."},
		"an answer without a name":    {"", contents(user, call(""), `{"parts":[{"functionResponse":{"response":{}}}]}`), "function_response.name: Name cannot be empty."},
		"an answer without an answer": {"", contents(user, call(""), `{"parts":[{"functionResponse":{"name":"f"}}]}`), "function_response.response: response must be set."},
		"an answer with another id":   {"", contents(user, `{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}}]}`, `{"parts":[{"functionResponse":{"id":"b","name":"f","response":{}}}]}`), `no function call with that id`},
		"text beside one answer":      {"", contents(user, call(""), `{"parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"x"}]}`), ""},
		"text beside two answers":     {"", contents(user, `{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]}`, `{"parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}},{"text":"x"}]}`), "Please ensure that the number of function response parts"},

		"a picture in an answer":            {"gemini-3-pro", contents(user, call(signed), answer(`,"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]`)), ""},
		"a picture in an older answer":      {"gemini-2.5-pro", contents(user, call(""), answer(`,"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]`)), "`function_response.parts` is not supported for this model"},
		"a recording in an answer":          {"gemini-3-pro", contents(user, call(signed), answer(`,"parts":[{"inlineData":{"mimeType":"audio/wav","data":"aGk="}}]`)), "Unsupported MIME type: audio/wav in function_response.parts"},
		"nothing in an answer":              {"gemini-3-pro", contents(user, call(signed), answer(`,"parts":[{}]`)), "required oneof field"},
		"text in an answer":                 {"gemini-3-pro", contents(user, call(signed), answer(`,"parts":[{"text":"x"}]`)), `Unknown name "text" at 'contents[2].parts[0].function_response.parts[0]'`},
		"an unsigned call":                  {"gemini-3-pro", contents(user, call(""), answer("")), "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 2."},
		"an unsigned call of before":        {"gemini-3-pro", contents(user, call(""), answer(""), user), ""},
		"an unsigned second call":           {"gemini-3-pro", contents(user, call(signed), answer(""), call(""), answer("")), "position 4."},
		"an unsigned call beside":           {"gemini-3-pro", contents(user, `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f"}}]}`, `{"parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}}]}`), ""},
		"a signature that is none":          {"gemini-3-pro", contents(user, call(`,"thoughtSignature":"§"`), answer("")), "(TYPE_BYTES), Base64 decoding failed"},
		"the documented value":              {"gemini-3-pro", contents(user, call(`,"thoughtSignature":"skip_thought_signature_validator"`), answer("")), ""},
		"an unsigned call of a drawing one": {"gemini-3-pro-image", contents(user, call(""), answer("")), ""},
		"an unsigned call of the newest":    {"gemini-flash-latest", contents(user, call(""), answer("")), "missing a thought_signature"},
		"an unsigned call of whichever":     {"fake-1", contents(user, call(""), answer("")), ""},
		"an unsigned call of a later one":   {"models/gemini-10-pro", contents(user, call(""), answer("")), "missing a thought_signature"},

		"a tool":                    {"", schema(`{"type":"OBJECT","properties":{"a":{"type":"string"}}}`), ""},
		"a tool without parameters": {"", tool(`{"name":"f"}`), ""},
		"a tool of JSON Schema":     {"", tool(`{"name":"f","parametersJsonSchema":{"type":"object","additionalProperties":false}}`), ""},
		"a tool's name":             {"", tool(`{"name":"1f"}`), "Invalid function name. Must start with a letter or an underscore."},
		"a tool twice":              {"", tool(`{"name":"f"},{"name":"f"}`), "Duplicate function declaration found: f"},
		"a tool with both":          {"", tool(`{"name":"f","parameters":{"type":"OBJECT"},"parametersJsonSchema":{}}`), "only one of parameters and parameters_json_schema"},
		"a keyword of JSON Schema":  {"", schema(`{"type":"object","properties":{"a":{"type":"string","const":"x"}},"additionalProperties":false}`), "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field."},
		"a list of types":           {"", schema(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`), "parameters.properties[0].value.type' (TYPE_STRING)"},
		"no type of a parameter":    {"", schema(`{"type":"object","properties":{"a":{}}}`), "parameters.properties[0].value.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"\""},
		"no object":                 {"", schema(`{"type":"string"}`), "parameters.type: should be OBJECT"},
		"no properties":             {"", schema(`{"type":"object"}`), "parameters.properties: should be non-empty for OBJECT type"},
		"no items":                  {"", schema(`{"type":"object","properties":{"a":{"type":"array"}}}`), "parameters.properties[0].value.items: missing field."},
		"a format":                  {"", schema(`{"type":"object","properties":{"a":{"type":"string","format":"email"}}}`), "format: only 'enum' and 'date-time' are supported for STRING type"},
		"an enum of numbers":        {"", schema(`{"type":"object","properties":{"a":{"type":"integer","enum":["1"]}}}`), "enum: only allowed for STRING type"},
		"an empty choice":           {"", schema(`{"type":"object","properties":{"a":{"type":"string","enum":[""]}}}`), "enum[0]: cannot be empty"},
		"required and gone":         {"", schema(`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`), "parameters.required[0]: property is not defined"},
		"more than options":         {"", schema(`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"type":"string"}]}}}`), "specified other fields alongside any_of"},
		"bad options":               {"", schema(`{"type":"object","properties":{"a":{"anyOf":[{"type":"x"}]}}}`), "value.any_of[0].type'"},
		"bad items":                 {"", schema(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"}}}}`), "value.items.items: missing field."},
		"properties of a text":      {"", schema(`{"type":"object","properties":{"a":{"type":"string","properties":{"x":{"type":"string"}}}}}`), "properties: only allowed for OBJECT type"},

		"calling":               {"", tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`, ""},
		"calling without tools": {"", contents(user) + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, "Function calling config is set without function_declarations."},
		"calling as nobody can": {"", tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"required"}}`, "FunctionCallingConfig.Mode), \"required\""},
		"calling others":        {"", tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`, "g is not in function_declarations"},
		"calling some, perhaps": {"", tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}`, "should only be set when mode is ANY"},

		"hot":                    {"", config(`"temperature":2.5`), "temperature must be in the range [0.0, 2.0]."},
		"top":                    {"", config(`"topP":-1`), "top_p must be in the range"},
		"no output":              {"", config(`"maxOutputTokens":0`), "max_output_tokens must be positive"},
		"candidates":             {"", config(`"candidateCount":2`), "Multiple candidates is not enabled"},
		"stops":                  {"", config(`"stopSequences":["1","2","3","4","5","6"]`), "at most 5"},
		"an empty stop":          {"", config(`"stopSequences":[""]`), "stop_sequences[0]: cannot be empty"},
		"a form":                 {"", config(`"responseMimeType":"text/html"`), "allowed mimetypes are"},
		"a schema without JSON":  {"", config(`"responseSchema":{"type":"STRING"}`), "is only supported with response_mime_type"},
		"two schemas":            {"", config(`"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"responseJsonSchema":{}`), "only one of response_schema"},
		"a bad schema":           {"", config(`"responseMimeType":"application/json","responseSchema":{"type":"ARRAY"}`), "generation_config.response_schema.items: missing field."},
		"JSON with tools":        {"gemini-2.5-pro", tool(`{"name":"f"}`) + `,"generationConfig":{"responseMimeType":"application/json"}`, "Function calling with a response mime type: 'application/json' is unsupported"},
		"JSON with tools, later": {"gemini-3-pro", tool(`{"name":"f"}`) + `,"generationConfig":{"responseMimeType":"application/json"}`, ""},
		"thoughts of one":        {"gemini-2.5-pro", config(`"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1}`), ""},
		"thoughts of no one":     {"gemini-2.0-flash", config(`"thinkingConfig":{"includeThoughts":true}`), "Thinking is not enabled for models/gemini-2.0-flash"},
	} {
		err := rules.ValidateJSON(c.model, []byte("{"+c.body+"}"))
		switch e, ok := errors.AsType[*gemini.APIError](err); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!ok || !strings.Contains(e.Message, c.want) || e.Code/100 != 4 || e.Status == ""):
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}
