// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/artelhq/artel/httpapi"
)

// endpoints are all of the API; a route that is added is added here too.
const endpoints = `
DELETE /agents/{id}/processors
DELETE /agents/{name}
DELETE /books/{book}
DELETE /books/{book}/agents/{name}
DELETE /conversations/{cid}
DELETE /conversations/{cid}/artifacts/{id}
DELETE /gateway/keys/{id}
DELETE /http-tools/{id}
DELETE /mcp-accounts/{server}
DELETE /mcp-servers/{id}
DELETE /pipeline/order
DELETE /schedules/{id}
DELETE /services/{id}
DELETE /services/{id}/marks
DELETE /services/{id}/marks/{mark}
DELETE /services/{id}/processors
DELETE /sessions
DELETE /sessions/{id}
DELETE /skills/{skill}
DELETE /tokens/{id}
DELETE /users/{id}
DELETE /webhooks/{id}
GET    /agents
GET    /agents/{id}/processors
GET    /agents/{name}
GET    /agents/{name}/markdown
GET    /agents/{name}/picture
GET    /audit
GET    /audit/export
GET    /books
GET    /books/{book}
GET    /conversations
GET    /conversations/{cid}
GET    /conversations/{cid}/artifacts
GET    /conversations/{cid}/artifacts/{id}
GET    /conversations/{cid}/artifacts/{id}/diff
GET    /conversations/{cid}/artifacts/{id}/export
GET    /conversations/{cid}/artifacts/{id}/raw
GET    /conversations/{cid}/artifacts/{id}/route
GET    /conversations/{cid}/artifacts/{id}/text
GET    /conversations/{cid}/artifacts/{id}/versions
GET    /conversations/{cid}/artifacts/{id}/versions/{n}
GET    /conversations/{cid}/branch
GET    /conversations/{cid}/events
GET    /conversations/{cid}/export
GET    /conversations/{cid}/messages
GET    /conversations/{cid}/messages/{mid}/apps/{call}
GET    /conversations/{cid}/messages/{mid}/apps/{call}/page
GET    /conversations/{cid}/summaries
GET    /conversations/{cid}/summaries/{mid}/messages
GET    /conversations/{cid}/usage
GET    /conversations/{cid}/waiting
GET    /files/tool_results/{name}
GET    /files/{ref}
GET    /findings
GET    /gateway/keys
GET    /gateway/log
GET    /gc
GET    /http-tools
GET    /http-tools/{id}
GET    /mcp-accounts
GET    /mcp-accounts/{server}
GET    /mcp-servers
GET    /mcp-servers/{id}
GET    /me
GET    /me/profile
GET    /pipeline
GET    /pipeline/order
GET    /pipeline/plugin-schema
GET    /runs/{rid}
GET    /runs/{rid}/contexts
GET    /runs/{rid}/contexts/{n}
GET    /runs/{rid}/contexts/{n}/diff
GET    /runs/{rid}/contexts/{n}/messages
GET    /runs/{rid}/contexts/{n}/request
GET    /runs/{rid}/contexts/{n}/why
GET    /schedules
GET    /schedules/{id}/starts
GET    /services
GET    /services/{id}
GET    /services/{id}/processors
GET    /sessions
GET    /settings
GET    /skills
GET    /skills/{skill}
GET    /skills/{skill}/export
GET    /skills/{skill}/file
GET    /tokens
GET    /tokens/vocabularies
GET    /tool-servers
GET    /tool-servers/{server}/prompts
GET    /tool-servers/{server}/resources
GET    /tool-servers/{server}/templates
GET    /tools
GET    /tools/servers
GET    /usage
GET    /users
GET    /webhooks
GET    /webhooks/{id}/deliveries
PATCH  /conversations/{cid}
PATCH  /conversations/{cid}/artifacts/{id}
PATCH  /conversations/{cid}/messages/{mid}
PATCH  /gateway/keys/{id}
PATCH  /me
PATCH  /schedules/{id}
PATCH  /skills/{skill}
PATCH  /users/{id}
PATCH  /webhooks/{id}
POST   /agents
POST   /agents/check
POST   /agents/import
POST   /books/try
POST   /conversations
POST   /conversations/import
POST   /conversations/{cid}/artifacts
POST   /conversations/{cid}/artifacts/{id}/restore
POST   /conversations/{cid}/compact
POST   /conversations/{cid}/compact/redo
POST   /conversations/{cid}/compact/undo
POST   /conversations/{cid}/messages
POST   /conversations/{cid}/messages/{mid}/apps/{call}/resources
POST   /conversations/{cid}/messages/{mid}/apps/{call}/tools/{name}
POST   /conversations/{cid}/messages/{mid}/edit
POST   /conversations/{cid}/messages/{mid}/retry
POST   /conversations/{cid}/preview
POST   /conversations/{cid}/resources
POST   /conversations/{cid}/restore
POST   /conversations/{cid}/tool_results
POST   /conversations/{cid}/tools/{name}
POST   /edit
POST   /files/{ref}/sign
POST   /gateway/keys
POST   /gateway/log
POST   /gc
POST   /http-tools
POST   /http-tools/check
POST   /import
POST   /invite
POST   /login
POST   /logout
POST   /macros/expand
POST   /mcp-accounts/{server}/connect
POST   /mcp-servers
POST   /mcp-servers/check
POST   /me/password
POST   /media/detect
POST   /pipeline/build
POST   /regex/apply
POST   /regex/import
POST   /route
POST   /runs/{rid}/cancel
POST   /runs/{rid}/elicitations/{eid}
POST   /runs/{rid}/inject
POST   /runs/{rid}/permissions/{pid}
POST   /runs/{rid}/replay
POST   /schedules
POST   /schedules/{id}/run
POST   /services
POST   /services/check
POST   /services/reload
POST   /services/{id}/probe
POST   /settings/compare
POST   /setup
POST   /skills/import
POST   /tokens
POST   /tokens/count
POST   /tool-servers/{server}/prompt
POST   /tool-servers/{server}/read
POST   /users
POST   /users/{id}/invite
POST   /webhooks
POST   /webhooks/{id}/deliveries/{number}/again
POST   /webhooks/{id}/secret
POST   /webhooks/{id}/test
PUT    /agents/{id}/processors
PUT    /agents/{name}
PUT    /books/{book}
PUT    /books/{book}/agents/{name}
PUT    /conversations/{cid}/artifacts/{id}
PUT    /http-tools/{id}
PUT    /mcp-servers/{id}
PUT    /me/profile
PUT    /pipeline/order
PUT    /services/{id}
PUT    /services/{id}/processors
PUT    /settings
`

func (b *bench) openAPI() map[string]any {
	b.t.Helper()
	return b.object(b.do("GET", "/openapi.json", nil), 200)
}

func TestOpenAPI(t *testing.T) {
	b := newBench(t, writes)
	doc := b.openAPI()
	if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1") {
		t.Errorf("got version %q", v)
	}
	var got, want []string
	for line := range strings.Lines(strings.TrimSpace(endpoints)) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	ids := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			method = strings.ToUpper(method)
			op := o.(map[string]any)
			got = append(got, method+" "+strings.TrimPrefix(path, httpapi.Base))
			id, _ := op["operationId"].(string)
			if id == "" || ids[id] || op["summary"] == "" {
				t.Errorf("%s %s: operation %q", method, path, id)
			}
			ids[id] = true
			responses := op["responses"].(map[string]any)
			if responses["default"] == nil || len(responses) < 2 {
				t.Errorf("%s %s: got responses %v", method, path, keys(responses))
			}
			// What the document has, the server answers: never "no such path".
			a := b.do(method, fill(strings.TrimPrefix(path, httpapi.Base)), "", header{"Content-Type": ""})
			if a.StatusCode == http.StatusMethodNotAllowed || strings.Contains(string(a.body), "nothing at this path") {
				t.Errorf("%s %s is not served: %s", method, path, a.body)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func fill(path string) string {
	path = strings.Replace(path, "{n}", "1", 1)
	return regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "x")
}

// TestAnswersFitTheirSchemas validates what the server says against what the
// document promises.
func TestAnswersFitTheirSchemas(t *testing.T) {
	b := newBench(t, writes)
	doc := b.openAPI()
	c := b.conversation()
	b.upload(c, "a.txt", "text/plain", "hello")
	b.upload(c, "b.png", "image/png", png)
	run := b.ended(c, `{"text":"Go.","attachments":["a.txt","b.png"]}`)
	at := "/conversations/" + c
	exported := string(b.do("GET", at+"/export", nil).body)
	for _, tt := range []struct {
		method, path, template string
		body                   any
		status                 string
	}{
		{"POST", "/conversations", "/conversations", `{"title":"x"}`, "201"},
		{"POST", "/conversations/import", "/conversations/import", exported, "201"},
		{"POST", "/conversations/import", "/conversations/import", "rubbish", "default"},
		{"GET", at + "/artifacts/b.png/export?format=md", "/conversations/{cid}/artifacts/{id}/export", nil, "default"},
		{"GET", "/conversations", "/conversations", nil, "200"},
		{"GET", "/conversations?search=go", "/conversations", nil, "200"},
		{"GET", at, "/conversations/{cid}", nil, "200"},
		{"PATCH", at, "/conversations/{cid}", `{"title":"New"}`, "200"},
		{"POST", at + "/restore", "/conversations/{cid}/restore", nil, "default"},
		{"GET", at + "/messages", "/conversations/{cid}/messages", nil, "200"},
		{"GET", at + "/artifacts", "/conversations/{cid}/artifacts", nil, "200"},
		{"GET", at + "/artifacts/note", "/conversations/{cid}/artifacts/{id}", nil, "200"},
		{"GET", at + "/artifacts/b.png", "/conversations/{cid}/artifacts/{id}", nil, "200"},
		{"GET", at + "/artifacts/note/versions", "/conversations/{cid}/artifacts/{id}/versions", nil, "200"},
		{"GET", at + "/artifacts/note/versions/2", "/conversations/{cid}/artifacts/{id}/versions/{n}", nil, "200"},
		{"GET", at + "/artifacts/note/versions?edits=true", "/conversations/{cid}/artifacts/{id}/versions", nil, "200"},
		{"GET", at + "/artifacts/note/text", "/conversations/{cid}/artifacts/{id}/text", nil, "200"},
		{"GET", at + "/artifacts/note/text?version=2", "/conversations/{cid}/artifacts/{id}/text", nil, "200"},
		{"GET", at + "/artifacts/b.png/text", "/conversations/{cid}/artifacts/{id}/text", nil, "default"},
		{"GET", at + "/artifacts/note/diff", "/conversations/{cid}/artifacts/{id}/diff", nil, "200"},
		{"PATCH", at + "/artifacts/note", "/conversations/{cid}/artifacts/{id}", `{"title":"New"}`, "200"},
		{"POST", at + "/artifacts/note/restore", "/conversations/{cid}/artifacts/{id}/restore", `{"version":2}`, "200"},
		{"PUT", at + "/artifacts/note", "/conversations/{cid}/artifacts/{id}", `{"content":"x"}`, "default"},
		{"GET", at + "/events?format=json", "/conversations/{cid}/events", nil, "200"},
		{"GET", "/runs/" + run["id"].(string), "/runs/{rid}", nil, "200"},
		{"GET", "/services", "/services", nil, "200"},
		{"GET", "/findings", "/findings", nil, "200"},
		{"GET", "/pipeline/plugin-schema", "/pipeline/plugin-schema", nil, "200"},
		{"GET", "/tools", "/tools", nil, "200"},
		{"GET", "/tools/servers", "/tools/servers", nil, "200"},
		{"POST", at + "/tools/read_artifact", "/conversations/{cid}/tools/{name}", `{"id":"note"}`, "200"},
		{"POST", at + "/tools/get_artifact", "/conversations/{cid}/tools/{name}", `{"ref":"nothing"}`, "200"},
		{"POST", "/media/detect", "/media/detect", png, "200"},
		{"POST", "/regex/apply", "/regex/apply", `{"text":"a","rules":[{"find":"a","replace":"b"},{"find":"("}]}`, "200"},
		{"POST", "/macros/expand", "/macros/expand", `{"text":"{{user}} {{nope}} {{setvar::a::1}}"}`, "200"},
		{"POST", "/regex/import", "/regex/import", `{"findRegex":"a","placement":[1,5],"minDepth":1}`, "200"},
		{"POST", "/tokens/count", "/tokens/count", `{"text":"a"}`, "200"},
		{"GET", "/tokens/vocabularies", "/tokens/vocabularies", nil, "200"},
		{"POST", "/route", "/route", png, "200"},
		{"POST", "/edit", "/edit", `{"content":"a","edits":[{"old":"a","new":"b"}]}`, "200"},
		{"POST", "/edit", "/edit", `{"content":"a","edits":[{"old":"zzz","new":"b"}]}`, "200"},
		{"GET", at + "/artifacts/nothing", "/conversations/{cid}/artifacts/{id}", nil, "default"},
		{"POST", "/edit", "/edit", `{"content":1}`, "default"},
	} {
		schema := responseSchema(t, doc, tt.method, tt.template, tt.status)
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s %s: %v", tt.method, tt.template, err)
		}
		a := b.do(tt.method, tt.path, tt.body)
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatalf("%s: %v", tt.path, err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%.400s", tt.method, tt.path, err, a.body)
		}
	}
}

// responseSchema takes the schema of an answer out of the document, with its
// components beside it.
func responseSchema(t *testing.T, doc map[string]any, method, path, status string) *jsonschema.Schema {
	t.Helper()
	op := doc["paths"].(map[string]any)[httpapi.Base+path].(map[string]any)[strings.ToLower(method)].(map[string]any)
	response, _ := op["responses"].(map[string]any)[status].(map[string]any)
	content, _ := response["content"].(map[string]any)
	kind := "application/json"
	if status == "default" {
		kind = "application/problem+json"
	}
	media, ok := content[kind].(map[string]any)
	if !ok {
		t.Fatalf("%s %s has no answer %s: %v", method, path, status, keys(content))
	}
	whole := map[string]any{"$defs": doc["components"].(map[string]any)["schemas"], "allOf": []any{media["schema"]}}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/"))
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return &s
}
