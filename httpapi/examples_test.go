// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

var update = flag.Bool("update", false, "write the examples of the API anew")

// shownCalls are the requests of the examples, in the order in which they are made:
// operation, method, path, header or body. {name} stands for what an earlier answer
// had, as the last word says: name=field.
const shownCalls = `
create-conversation  | POST /conversations | {"title":"Notes"} | cid=id
list-conversations   | GET /conversations?limit=2
read-conversation    | GET /conversations/{cid}
upload-artifacts     | POST /conversations/{cid}/artifacts | X-Filename: notes.md | # Notes
list-artifacts       | GET /conversations/{cid}/artifacts
save-artifact        | PUT /conversations/{cid}/artifacts/notes.md | If-Match: "1" | {"content":"# Notes\n\nBuy bread."}
read-artifact        | GET /conversations/{cid}/artifacts/notes.md
read-text            | GET /conversations/{cid}/artifacts/notes.md/text
list-versions        | GET /conversations/{cid}/artifacts/notes.md/versions
diff-artifact        | GET /conversations/{cid}/artifacts/notes.md/diff
rename-artifact      | PATCH /conversations/{cid}/artifacts/notes.md | {"title":"My notes"}
restore-version      | POST /conversations/{cid}/artifacts/notes.md/restore | {"version":1}
sign-file            | POST /files/artifact:{cid}%2Fnotes.md/sign | {"expires_in":600}
call-tool            | POST /conversations/{cid}/tools/read_artifact | {"id":"notes.md"}
take-tool-result     | POST /conversations/{cid}/tool_results | {"tool":"camera","content":{"image":"{png}"}}
create-agent         | POST /agents | {"name":"pilot","description":"Brings ships in.","prompt":"You are a pilot.","tools":["read_artifact"]}
read-agent           | GET /agents/pilot
check-agent          | POST /agents/check | {"name":"x y","prompt":""}
delete-agent         | DELETE /agents/pilot
save-book            | PUT /books/Harbour | {"name":"Harbour","entries":[{"id":"1","keys":["pier"],"content":"The pier is old."}]}
try-book             | POST /books/try | {"name":"Harbour","messages":[{"text":"Where is the pier?"}]}
list-skills          | GET /skills
send-message         | POST /conversations/{cid}/messages | {"text":"Go.","attachments":["notes.md"]} | rid=run_id
read-run             | GET /runs/{rid}
list-messages        | GET /conversations/{cid}/messages?limit=1
replay-run           | POST /runs/{rid}/replay | {"service":"demo","from":3}
follow-events        | GET /conversations/{cid}/events?format=json&limit=2
list-waiting         | GET /conversations/{cid}/waiting
compact-conversation | POST /conversations/{cid}/compact | {"focus":"what was decided"} | sid=run_id
list-summaries       | GET /conversations/{cid}/summaries
undo-compaction      | POST /conversations/{cid}/compact/undo | {}
redo-compaction      | POST /conversations/{cid}/compact/redo | {}
list-services        | GET /services
add-http-tool        | POST /http-tools | {"name":"weather","description":"Tells the weather of a city.","url":"https://api.example/v1/{city}","headers":{"Authorization":"Bearer 0123456789abcdef"},"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}
check-http-tool      | POST /http-tools/check | {"name":"weather","url":"https://api.example/v1/weather","description":"Tells the weather."}
read-http-tool       | GET /http-tools/weather
change-http-tool     | PUT /http-tools/weather | {"url":"https://api.example/v1/weather","description":"Tells the weather.","disabled":true}
list-http-tools      | GET /http-tools
delete-http-tool     | DELETE /http-tools/weather
add-mcp-server       | POST /mcp-servers | {"name":"tracker","url":"https://tracker.example/mcp","agents":["lead_agent"],"disabled":true}
list-mcp-servers     | GET /mcp-servers
read-mcp-server      | GET /mcp-servers/tracker
change-mcp-server    | PUT /mcp-servers/tracker | {"url":"https://tracker.example/mcp","tools":["search"],"disabled":true}
list-mcp-accounts    | GET /mcp-accounts
check-mcp-server     | POST /mcp-servers/check | {"url":"http://169.254.169.254/mcp"}
delete-mcp-server    | DELETE /mcp-servers/tracker
read-me              | GET /me
save-profile         | PUT /me/profile | {"name":"Ann","language":"en"}
edit-text            | POST /edit | {"content":"one two","edits":[{"old":"two","new":"three"}]}
count-tokens         | POST /tokens/count | {"text":"How many tokens is this?"}
apply-rules          | POST /regex/apply | {"text":"a cat","rules":[{"find":"c(at)","replace":"b$1"}]}
expand-macros        | POST /macros/expand | {"text":"Hello {{user}}."}
detect-media         | POST /media/detect | Content-Type: application/octet-stream | %PDF-1.7
change-conversation  | PATCH /conversations/{cid} | {"title":"Shopping"}
delete-conversation  | DELETE /conversations/{cid}
restore-conversation | POST /conversations/{cid}/restore
set-up               | POST /setup | {"name":"Ann","email":"ann@example.org","password":"correct horse battery"}
invite-user          | POST /users | {"name":"Bob","email":"bob@example.org","role":"member"}
make-token           | POST /tokens | {"name":"ci","scopes":["read","write"]} | tid=id
list-tokens          | GET /tokens
revoke-token         | DELETE /tokens/{tid}
`

// neutral replaces what differs each time that the examples are made.
type neutral struct{ ids map[string]string }

var volatile = regexp.MustCompile(`\b(cnv|msg|run|usr)_[0-9a-z]{26}\b|\b(usr|tok|ses)_?[A-Z2-7]{26}\b|\bartel_[A-Z2-7]{26}\b|code=[A-Z2-7]{26}|sig=[\w.-]+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d)|127\.0\.0\.1:\d+`)

func (n neutral) text(s string) string {
	return volatile.ReplaceAllStringFunc(s, func(old string) string {
		switch {
		case strings.HasPrefix(old, "sig="):
			return "sig=…"
		case strings.HasPrefix(old, "code="), strings.HasPrefix(old, "artel_"):
			head, _, _ := strings.Cut(strings.ReplaceAll(old, "=", "_"), "_")
			return old[:len(head)+1] + "…"
		case strings.HasPrefix(old, "127"):
			return "127.0.0.1:7420"
		case strings.Contains(old, "T") && strings.Contains(old, ":"):
			return "2026-03-04T05:06:07Z"
		}
		if n.ids[old] == "" {
			head := old[:3]
			if strings.Contains(old, "_") {
				head += "_"
			}
			n.ids[old] = fmt.Sprintf("%s%026d", head, len(n.ids)+1)
		}
		return n.ids[old]
	})
}

// value makes JSON neutral and short.
func (n neutral) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) { // ids are numbered in this order
			v[k] = n.value(k, v[k])
		}
	case []any:
		v = slices.Clone(v[:min(len(v), 2)])
		for i := range v {
			v[i] = n.value(key, v[i])
		}
		return v
	case string:
		if v = n.text(v); strings.Contains(key, "cursor") {
			return "…"
		}
		return artel.Shorten(v, 240)
	case float64:
		if strings.HasSuffix(key, "_ms") || key == "ms" || key == "millis" || key == "tokens" || strings.HasSuffix(key, "_tokens") {
			return 12.0
		}
	}
	return v
}

func (n neutral) raw(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		v = n.text(artel.Shorten(string(b), 400))
	} else {
		v = n.value("", v)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(out.Bytes())
}

// TestExamples makes the requests that the reference shows, and compares them and
// their answers with examples.json, which -update writes.
func TestExamples(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	doc := b.openAPI()
	ids := map[string]bool{}
	for _, item := range doc["paths"].(map[string]any) {
		for _, o := range item.(map[string]any) {
			ids[o.(map[string]any)["operationId"].(string)] = true
		}
	}
	known := map[string]string{"png": "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png))}
	filled := func(s string) string {
		for name, value := range known {
			s = strings.ReplaceAll(s, "{"+name+"}", value)
		}
		return s
	}
	n := neutral{map[string]string{}}
	var all []httpapi.Example
	for line := range strings.Lines(strings.TrimSpace(shownCalls)) {
		var words []string
		for w := range strings.SplitSeq(line, " | ") {
			words = append(words, strings.TrimSpace(w))
		}
		method, path, _ := strings.Cut(words[1], " ")
		path = filled(path)
		e := httpapi.Example{ID: words[0], Method: method, Path: n.text(httpapi.Base + path)}
		if !ids[e.ID] {
			t.Errorf("there is no operation %s", e.ID)
		}
		var send any
		var take string
		for _, w := range words[2:] {
			name, value, isHeader := strings.Cut(w, ": ")
			switch {
			case isHeader && regexp.MustCompile(`^[A-Z][A-Za-z-]+$`).MatchString(name):
				e.Header = map[string]string{name: value}
			case send != nil || regexp.MustCompile(`^[a-z]+=[a-z_]+$`).MatchString(w):
				take = w
			default:
				send = filled(w)
			}
		}
		var headers []header
		if e.Header != nil {
			headers = append(headers, header(e.Header))
		}
		if send != nil {
			e.Request = n.raw([]byte(send.(string)))
			if e.Header["Content-Type"] == "" && json.Valid([]byte(send.(string))) {
				e.Header = mergeHeader(e.Header, "Content-Type", "application/json")
			} else if e.Header["Content-Type"] == "" {
				e.Header = mergeHeader(e.Header, "Content-Type", "text/markdown")
				headers = append(headers, header{"Content-Type": "text/markdown"})
			}
		}
		a := b.do(method, path, send, headers...)
		if a.StatusCode >= 300 {
			t.Fatalf("%s: %s %s", line, a.Status, a.body)
		}
		e.Status, e.Response = a.StatusCode, n.raw(a.body)
		all = append(all, e)
		if name, field, ok := strings.Cut(take, "="); ok {
			var v map[string]any
			if err := json.Unmarshal(a.body, &v); err != nil {
				t.Fatal(err)
			}
			known[name], _ = v[field].(string)
		}
		if ended := known[map[string]string{"send-message": "rid", "compact-conversation": "sid"}[e.ID]]; ended != "" {
			b.until(known["cid"], func(ev artel.Event) bool { return ev.Type == artel.EventRunFinished && string(ev.Run) == ended })
		}
	}
	slices.SortFunc(all, func(a, b httpapi.Example) int { return cmp.Compare(a.ID, b.ID) })
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("examples.json", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile("examples.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, out.Bytes()) {
		had, has := strings.Split(string(kept), "\n"), strings.Split(out.String(), "\n")
		for i := range min(len(had), len(has)) {
			if had[i] != has[i] {
				t.Errorf("line %d of examples.json is\n%s\nand the server answers\n%s", i+1, had[i], has[i])
				break
			}
		}
		t.Error("write the examples anew with: go test ./httpapi -run TestExamples -update; then read the difference")
	}
}

func mergeHeader(h map[string]string, name, value string) map[string]string {
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	return h
}

// The document has the examples, and the commands name the paths that were asked.
func TestExamplesInDocument(t *testing.T) {
	b := newBench(t, writes)
	op := b.openAPI()["paths"].(map[string]any)[httpapi.Base+"/conversations"].(map[string]any)["post"].(map[string]any)
	sample, _ := op["x-codeSamples"].([]any)
	if len(sample) != 1 || !strings.Contains(fmt.Sprint(sample[0]), `curl -X POST "$ARTEL_URL/api/v1/conversations"`) {
		t.Errorf("got %v", sample)
	}
	body := op["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
	if got := fmt.Sprint(body["example"]); got != "map[title:Notes]" {
		t.Errorf("got %s", got)
	}
}
