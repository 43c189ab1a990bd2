// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	picture "image"
	image "image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// The clock of the backtracking regular expressions ends by itself, a second
// after the last one was at work.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// A bench is a server over a real application in memory.
type bench struct {
	t      *testing.T
	app    *app.App
	url    string // of the API, with Base
	http   *http.Client
	client *httpapi.Client
	log    *apptest.Log
}

const (
	maxUpload = 1 << 20
	secretKey = "sk-nobody-may-see-this"
)

// newApp makes an application whose model plays a scenario; "" is the demo's
// own script. Each change may alter the configuration.
func newApp(t testing.TB, scenario string, changes ...func(*app.Config)) (*app.App, *apptest.Log) {
	t.Helper()
	c, log := apptest.Config(t, nil)
	if scenario != "" {
		script, err := demo.ParseScenario([]byte(scenario))
		if err != nil {
			t.Fatal(err)
		}
		c.Providers[model.Demo] = demo.New(c.Blobs, demo.Options{Scenario: script})
	}
	sees := model.Service{
		ID: "sees", Name: "Sees", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:1", Model: "m", APIKey: secretKey, Origin: "test",
		Capabilities: model.Merge(model.Capabilities{Input: model.Fact[[]artel.Capability]{
			Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromOperator,
		}}),
	}
	service := model.DemoService()
	c.Services = model.NewRegistry([]model.Service{service, sees}, service.ID)
	c.Options.Artifacts.MaxBytes = maxUpload
	for _, change := range changes {
		change(&c)
	}
	return apptest.Open(t, c), log
}

func newBench(t *testing.T, scenario string, changes ...func(*app.Config)) *bench {
	t.Helper()
	a, log := newApp(t, scenario, changes...)
	h := httpapi.New(a, httpapi.Options{Heartbeat: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))})
	server := httptest.NewServer(apptest.As(httpapi.Guard(h)))
	b := &bench{t: t, app: a, url: server.URL + httpapi.Base, http: server.Client(), log: log}
	b.client = httpapi.NewClient(server.URL+"/", b.http)
	t.Cleanup(func() {
		b.http.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// An answered is a response whose body has been read.
type answered struct {
	*http.Response
	body []byte
}

type header map[string]string

// do makes a request. A body that is no reader and no string is sent as JSON.
func (b *bench) do(method, path string, body any, headers ...header) answered {
	b.t.Helper()
	resp, err := b.try(method, path, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

func (b *bench) try(method, path string, body any, headers ...header) (answered, error) {
	var r io.Reader
	switch body := body.(type) {
	case nil:
	case io.Reader:
		r = body
	case string:
		r = strings.NewReader(body)
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return answered{}, err
		}
		r = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(apptest.Context(b.t), method, b.url+path, r)
	if err != nil {
		return answered{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		for k, v := range h {
			if k == "Host" {
				req.Host = v
				continue
			}
			req.Header.Set(k, v)
			if v == "" {
				req.Header.Del(k)
			}
		}
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	out := answered{Response: resp}
	out.body, err = io.ReadAll(resp.Body)
	return out, err
}

// object is a JSON object of a response, whose status it checks.
func (b *bench) object(a answered, status int) map[string]any {
	b.t.Helper()
	if a.StatusCode != status {
		b.t.Fatalf("%s %s: got %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		b.t.Fatalf("%s: %v: %s", a.Request.URL, err, a.body)
	}
	return m
}

// problem checks that a response is a problem with this status and code.
func (b *bench) problem(a answered, status int, code string) map[string]any {
	b.t.Helper()
	m := b.object(a, status)
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		b.t.Errorf("%s: Content-Type %q", a.Request.URL, got)
	}
	if m["code"] != code || m["status"] != float64(status) || m["type"] != "about:blank" || m["title"] == "" || m["detail"] == "" {
		b.t.Errorf("%s %s: got %s, want code %s", a.Request.Method, a.Request.URL, a.body, code)
	}
	return m
}

func (b *bench) conversation() string {
	b.t.Helper()
	return b.object(b.do("POST", "/conversations", `{}`), 201)["id"].(string)
}

func (b *bench) upload(c, name, declared, content string) map[string]any {
	b.t.Helper()
	return b.object(b.do("POST", "/conversations/"+c+"/artifacts", content, header{"X-Filename": name, "Content-Type": declared}), 201)
}

// ended sends a message and waits for the end of its run.
func (b *bench) ended(c string, message any) map[string]any {
	b.t.Helper()
	sent := b.object(b.do("POST", "/conversations/"+c+"/messages", message), 202)
	run := sent["run_id"].(string)
	b.until(c, func(e artel.Event) bool { return e.Type == artel.EventRunFinished && string(e.Run) == run })
	return b.object(b.do("GET", "/runs/"+run, nil), 200)
}

func (b *bench) until(c string, meant func(artel.Event) bool) []artel.Event {
	b.t.Helper()
	ctx, stop := context.WithTimeout(apptest.Context(b.t), 5*time.Minute)
	defer stop()
	var all []artel.Event
	for e, err := range b.client.Events(ctx, artel.ConversationID(c), 0, time.Second) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, e)
		if meant(e) {
			return all
		}
	}
	b.t.Fatalf("the event did not come; log: %s", b.log)
	return nil
}

func finished(e artel.Event) bool { return e.Type == artel.EventRunFinished }

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// has checks the keys of an object: those that have to be there, and those
// that may.
func has(t *testing.T, what string, m map[string]any, must, may string) {
	t.Helper()
	for k := range strings.FieldsSeq(must) {
		if _, ok := m[k]; !ok {
			t.Errorf("%s has no %s: %v", what, k, m)
		}
	}
	for _, k := range keys(m) {
		if !slices.Contains(strings.Fields(must+" "+may), k) {
			t.Errorf("%s has %s: %v", what, k, m[k])
		}
	}
}

// png is a picture of one pixel.
var png = func() string {
	var b bytes.Buffer
	if err := image.Encode(&b, picture.NewGray(picture.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.String()
}()

const writes = `
-- turn 1 --
I write.
@call create_artifact {"id":"note","title":"Note","content":"one two"}
-- turn 2 --
@call update_artifact {"id":"note","edits":[{"old":"one","new":"1"}]}
-- turn 3 --
Done: artifact:note
`

func TestConversations(t *testing.T) {
	b := newBench(t, writes)
	c := b.object(b.do("POST", "/conversations", map[string]string{"title": "Mine", "agent": "lead_agent", "service": "demo"}), 201)
	has(t, "a conversation", c, "id title agent service created_at updated_at", "leaf")
	id := c["id"].(string)
	if got := b.object(b.do("GET", "/conversations/"+id, nil), 200); got["title"] != "Mine" || got["created_at"] != c["created_at"] {
		t.Errorf("got %v, made %v", got, c)
	}
	b.object(b.do("POST", "/conversations", nil), 201)
	for range 3 {
		b.conversation()
	}
	seen := map[string]bool{}
	cursor := ""
	for range 10 {
		page := b.object(b.do("GET", "/conversations?limit=2&cursor="+cursor, nil), 200)
		for _, item := range page["items"].([]any) {
			seen[item.(map[string]any)["id"].(string)] = true
		}
		cursor, _ = page["next_cursor"].(string)
		if cursor == "" {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("paging found %d conversations", len(seen))
	}
	if a := b.do("DELETE", "/conversations/"+id, nil); a.StatusCode != 204 || len(a.body) != 0 {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	b.problem(b.do("GET", "/conversations/"+id, nil), 404, "not_found")
	b.problem(b.do("DELETE", "/conversations/"+id, nil), 404, "not_found")
	b.problem(b.do("POST", "/conversations", `{"agent":"nobody"}`), 422, "invalid")
}

func TestRun(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	a := b.do("POST", "/conversations/"+c+"/messages", `{"text":"Write."}`)
	sent := b.object(a, 202)
	has(t, "the answer", sent, "run_id state message_id events_url", "")
	if sent["events_url"] != httpapi.Base+"/conversations/"+c+"/events" {
		t.Errorf("got %v", sent)
	}
	b.until(c, finished)
	run := b.object(b.do("GET", "/runs/"+sent["run_id"].(string), nil), 200)
	has(t, "a run", run, "id state conversation_id message_id service agent usage started_at finished_at reply_id", "")
	if run["state"] != "done" || run["message_id"] != sent["message_id"] || run["usage"].(map[string]any)["calls"] != 3.0 {
		t.Errorf("got %v", run)
	}
	page := b.object(b.do("GET", "/conversations/"+c+"/messages", nil), 200)
	var roles []string
	for _, item := range page["items"].([]any) {
		m := item.(map[string]any)
		has(t, "a message", m, "id conversation_id role parts created_at run_id", "parent_id agent")
		roles = append(roles, m["role"].(string))
		for _, p := range m["parts"].([]any) {
			part := p.(map[string]any)
			must := map[string]string{"text": "type text", "tool_call": "type id name arguments", "tool_result": "type call_id content"}[part["type"].(string)]
			may := map[string]string{"tool_result": "duration_ms metadata"}[part["type"].(string)]
			has(t, "a part", part, must, may)
			if told, ok := part["metadata"].(map[string]any); ok && told["content_type"] != "markdown" {
				t.Errorf("got metadata %v", told)
			}
			if args, ok := part["arguments"]; ok && args.(map[string]any)["id"] != "note" {
				t.Errorf("got arguments %v", args)
			}
		}
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant tool assistant" {
		t.Errorf("got %s", got)
	}
	b.problem(b.do("POST", "/runs/"+run["id"].(string)+"/cancel", nil), 409, "conflict")
	b.problem(b.do("GET", "/runs/run_x", nil), 404, "not_found")
	b.problem(b.do("POST", "/runs/run_x/cancel", nil), 404, "not_found")
}

func TestMessagesAreRefused(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nHm.\n@hang\n")
	c := b.conversation()
	at := "/conversations/" + c + "/messages"
	b.problem(b.do("POST", at, `{}`), 422, "invalid")
	m := b.problem(b.do("POST", at, `{"attachments":["nothing"]}`), 404, "artifact_not_found")
	if m["error"] != "artifact_not_found" || m["ref"] != "nothing" {
		t.Errorf("got %v", m)
	}
	b.problem(b.do("POST", at, `{"text":"x","parent_id":"msg_00000000000000000000000000"}`), 404, "not_found")
	b.problem(b.do("POST", at, `{"text":"x","if_active":"perhaps"}`), 422, "invalid")
	b.problem(b.do("POST", at, map[string]string{"text": strings.Repeat("x", 1_000_001)}), 413, "too_large")
	b.problem(b.do("POST", at, map[string]string{"text": strings.Repeat("x", 5<<20)}), 413, "too_large")
	sent := b.object(b.do("POST", at, `{"text":"x","if_active":"reject"}`), 202)
	b.problem(b.do("POST", at, `{"text":"y"}`), 409, "run_active")
	b.problem(b.do("DELETE", "/conversations/"+c, nil), 409, "run_active")
	run := b.object(b.do("POST", "/runs/"+sent["run_id"].(string)+"/cancel", nil), 200)
	if run["state"] != "cancelled" || run["error"].(map[string]any)["kind"] != "canceled" {
		t.Errorf("got %v", run)
	}
}

func TestBranchesOverHTTP(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	first := b.ended(c, `{"text":"One."}`)
	second := b.ended(c, `{"text":"Two.","parent_id":""}`)
	for at, want := range map[string]float64{first["reply_id"].(string): 2, second["reply_id"].(string): 4, "": 4} {
		if a := b.object(b.do("GET", "/conversations/"+c+"/artifacts/note?at="+at, nil), 200); a["version"] != want {
			t.Errorf("at %q: got version %v", at, a["version"])
		}
	}
	b.problem(b.do("GET", "/conversations/"+c+"/artifacts/note?at=msg_00000000000000000000000000", nil), 404, "not_found")
	b.problem(b.do("GET", "/conversations/"+c+"/artifacts?at=x", nil), 404, "not_found")
}

func TestServices(t *testing.T) {
	b := newBench(t, writes)
	a := b.do("GET", "/services", nil)
	items := b.object(a, 200)["items"].([]any)
	if len(items) != 2 || strings.Contains(string(a.body), secretKey) || strings.Contains(string(a.body), "127.0.0.1:1") {
		t.Errorf("got %s", a.body)
	}
	for _, item := range items {
		has(t, "a service", item.(map[string]any), "id name dialect model callable input limits placement origin sources read_only", "default demo accepts marks refuses transport tokenizer token_ratio context_window max_output tags")
	}
}

// The deployment's permissions hold for tools that clients call.
func TestToolsThatAreNotAllowed(t *testing.T) {
	b := newBench(t, "", func(c *app.Config) {
		c.Permissions = agent.Permissions{"create_artifact": agent.Deny, "rewrite_artifact": agent.Ask, "*": agent.Ask, "list_artifacts": agent.Auto}
	})
	c := b.conversation()
	at := "/conversations/" + c + "/tools/"
	b.object(b.do("POST", at+"list_artifacts", `{}`), 200)
	for _, confirm := range []string{"", "?confirm=true"} {
		m := b.problem(b.do("POST", at+"create_artifact"+confirm, `{"id":"a","content":"b"}`), 403, "tool_denied")
		if s := fmt.Sprint(m); !strings.Contains(s, `permissions has "create_artifact": deny`) {
			t.Errorf("refused: %s", s)
		}
	}
	for tool, rule := range map[string]string{"rewrite_artifact": "rewrite_artifact", "read_artifact": "*"} {
		m := b.problem(b.do("POST", at+tool, `{"id":"a"}`), 403, "tool_needs_confirmation")
		if s := fmt.Sprint(m); !strings.Contains(s, fmt.Sprintf("permissions has %q: ask", rule)) || !strings.Contains(s, "confirm=true") {
			t.Errorf("refused: %s", s)
		}
		b.object(b.do("POST", at+tool+"?confirm=true", `{"id":"a"}`), 200)
	}
}

func TestTools(t *testing.T) {
	b := newBench(t, writes)
	for _, item := range b.object(b.do("GET", "/tools", nil), 200)["items"].([]any) {
		tool := item.(map[string]any)
		has(t, "a tool", tool, "name description parameters", "")
		if tool["parameters"].(map[string]any)["type"] != "object" {
			t.Errorf("got %v", tool)
		}
	}
	c := b.conversation()
	call := func(name, args string) map[string]any {
		t.Helper()
		m := b.object(b.do("POST", "/conversations/"+c+"/tools/"+name, args), 200)
		has(t, name, m, "ok content metadata", "parts")
		return m
	}
	if m := call("create_artifact", `{"id":"plan","title":"Plan","content":"- [ ] one\n"}`); m["ok"] != true {
		t.Errorf("got %v", m)
	}
	if m := call("update_artifact", `{"id":"plan","edits":[{"old":"two","new":"3"}]}`); m["ok"] != false || m["content"] == "" {
		t.Errorf("a failure to mend: got %v", m)
	}
	if m := call("update_artifact", `{"id":3}`); m["ok"] != false {
		t.Errorf("arguments that do not fit: got %v", m)
	}
	m := call("get_artifact", `{"ref":"nothing"}`)
	content, _ := m["content"].(map[string]any)
	if m["ok"] != false || content["error"] != "artifact_not_found" || content["ref"] != "nothing" || content["message"] == "" {
		t.Errorf("got %v", m)
	}
	b.upload(c, "p.png", "image/png", png)
	if m := call("get_artifact?capabilities=text,vision", `{"ref":"p.png"}`); m["ok"] != true || len(m["parts"].([]any)) == 0 {
		t.Errorf("an image for who sees: got %v", m)
	}
	if m := call("get_artifact", `{"ref":"p.png"}`); m["ok"] != true || strings.Contains(fmt.Sprint(m["parts"]), "media") {
		t.Errorf("an image for a service without vision: got %v", m)
	}
	if m := b.object(b.do("POST", "/conversations/"+c+"/tools/list_artifacts", nil), 200); m["ok"] != true {
		t.Errorf("without a body: got %v", m)
	}
	b.problem(b.do("POST", "/conversations/"+c+"/tools/fly", `{}`), 404, "tool_not_found")
	b.problem(b.do("POST", "/conversations/cnv_x/tools/list_artifacts", `{}`), 404, "not_found")
	b.problem(b.do("POST", "/conversations/"+c+"/tools/list_artifacts", `{`), 400, "malformed")
}

func TestDetect(t *testing.T) {
	b := newBench(t, writes)
	m := b.object(b.do("POST", "/media/detect?filename=a.txt", png, header{"Content-Type": ""}), 200)
	has(t, "what was detected", m, "media_type declared_type kind is_binary charset extension source confidence size", "width height pages duration")
	if m["media_type"] != "image/png" || m["kind"] != "image" || m["is_binary"] != true || m["source"] != "signature" || m["size"] != float64(len(png)) || m["width"] != 1.0 {
		t.Errorf("got %v", m)
	}
	m = b.object(b.do("POST", "/media/detect", "héllo", header{"Content-Type": "text/plain; charset=utf-8"}), 200)
	if m["kind"] != "text" || m["charset"] != "utf-8" || m["declared_type"] != "text/plain" {
		t.Errorf("got %v", m)
	}
	if m = b.object(b.do("POST", "/media/detect", nil), 200); m["size"] != 0.0 {
		t.Errorf("nothing at all: got %v", m)
	}
	m = b.problem(b.do("POST", "/media/detect", bytes.NewReader(make([]byte, maxUpload+1))), 413, "too_large")
	if !strings.Contains(m["detail"].(string), "1.0 MB") {
		t.Errorf("got %v", m)
	}
}

func TestRouteBytes(t *testing.T) {
	b := newBench(t, writes)
	tests := map[string]struct {
		query, body          string
		contentType, routing string
		binary               bool
	}{
		"text":                {"filename=a.txt", "hello", "text", "text", false},
		"image for text":      {"filename=a.png", png, "image", "text", true},
		"image for vision":    {"filename=a.png&capabilities=text,vision", png, "image", "image_url", true},
		"image for a service": {"filename=a.png&service=sees", png, "image", "image_url", true},
		"unknown service":     {"filename=a.png&service=gone", png, "image", "text", true},
		"document for files":  {"filename=a.pdf&capabilities=text,file", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n", "binary", "file", true},
		"nothing":             {"", "", "text", "text", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := b.do("POST", "/route?"+tt.query, tt.body, header{"Content-Type": "application/octet-stream"})
			m := b.object(a, 200)
			if m["contentType"] != tt.contentType || m["routing"] != tt.routing || m["isBinary"] != tt.binary {
				t.Errorf("got %.300s", a.body)
			}
			for _, k := range []string{"content", "metadata", "reason", "step"} {
				if _, ok := m[k]; !ok {
					t.Errorf("there is no %s: %v", k, keys(m))
				}
			}
			if got := a.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("got %s", got)
			}
		})
	}
	b.problem(b.do("POST", "/route", bytes.NewReader(make([]byte, maxUpload+1))), 413, "too_large")
	c := b.conversation()
	b.upload(c, "p.png", "image/png", png)
	m := b.object(b.do("GET", "/conversations/"+c+"/artifacts/p.png/route?capabilities=vision", nil), 200)
	if m["routing"] != "image_url" {
		t.Errorf("got %v", m)
	}
	if m = b.object(b.do("GET", "/conversations/"+c+"/artifacts/p.png/route", nil), 200); m["routing"] != "text" {
		t.Errorf("got %v", m)
	}
	b.problem(b.do("GET", "/conversations/"+c+"/artifacts/nothing/route", nil), 404, "artifact_not_found")
}

func TestEdit(t *testing.T) {
	b := newBench(t, writes)
	m := b.object(b.do("POST", "/edit", `{"content":"a b","edits":[{"old":"a","new":"é"},{"old":"b","new":"c"}]}`), 200)
	has(t, "an edit", m, "ok content edits", "")
	edits := m["edits"].([]any)
	second := edits[1].(map[string]any)
	has(t, "a hit", second, "layer similarity matched start end count", "places")
	if m["content"] != "é c" || second["layer"] != "exact" || second["start"] != 2.0 || second["end"] != 3.0 || second["count"] != 1.0 {
		t.Errorf("got %v", m)
	}
	m = b.object(b.do("POST", "/edit", `{"content":"a a","edits":[{"old":"a","new":"b"}]}`), 200)
	has(t, "a refusal", m, "ok error", "")
	refusal := m["error"].(map[string]any)
	has(t, "why", refusal, "edit kind message places", "")
	if m["ok"] != false || refusal["kind"] != "ambiguous" || len(refusal["places"].([]any)) != 2 {
		t.Errorf("got %v", m)
	}
	m = b.object(b.do("POST", "/edit", `{"content":"","edits":[{"old":"zebra","new":"b"}]}`), 200)
	if m["error"].(map[string]any)["kind"] != "not_found" {
		t.Errorf("got %v", m)
	}
	m = b.object(b.do("POST", "/edit", `{"content":"x","edits":[{"old":"x","new":""}]}`), 200)
	if content, ok := m["content"]; !ok || content != "" {
		t.Errorf("an empty content: got %v", m)
	}
	for _, tt := range []struct{ rest, layer, content, refused string }{
		{`"content":"“a”\r\nb","edits":[{"old":"\"a\"\nb","new":"c\nd"}]`, "normalized", "c\r\nd", ""},
		{`"content":"“a”\r\nb","edits":[{"old":"\"a\"\nb","new":"c\nd"}],"mode":"exact"`, "", "", "not_found"},
		{`"content":"\tif a {\n","edits":[{"old":"  if a {\n","new":"  if b {\n"}],"indent":true`, "normalized", "\tif b {\n", ""},
		{`"content":"<the quick brown fox>","edits":[{"old":"the quikc brown fox","new":"it"}]`, "approximate", "<it>", ""},
		{`"content":"<the quick brown fox>","edits":[{"old":"the quikc brown fox","new":"it"}],"mode":"normalized"`, "", "", "not_found"},
		{`"content":"<the quick brown fox>","edits":[{"old":"the quikc brown fox","new":"it"}],"limits":{"max_ratio":0,"min_distance":1}`, "", "", "not_found"},
		{`"content":"<the quick brown fox>","edits":[{"old":"the quikc brown fox","new":"it"}],"limits":{"min_length":20}`, "", "", "not_found"},
		{`"content":"<quick>","edits":[{"old":"quikk","new":"it"}],"limits":{"min_length":0}`, "approximate", "<it>", ""},
		{`"content":"the quick brown fox\nthe quicker brown bear","edits":[{"old":"the quikc brown fox","new":"it"}]`, "approximate", "it\nthe quicker brown bear", ""},
		{`"content":"the quick brown fox\nthe quicker brown bear","edits":[{"old":"the quikc brown fox","new":"it"}],"limits":{"margin":9}`, "", "", "ambiguous"},
	} {
		m := b.object(b.do("POST", "/edit", "{"+tt.rest+"}"), 200)
		if tt.refused != "" {
			if m["ok"] != false || m["error"].(map[string]any)["kind"] != tt.refused {
				t.Errorf("%s: got %v", tt.rest, m)
			}
			continue
		}
		if m["ok"] != true || m["content"] != tt.content || m["edits"].([]any)[0].(map[string]any)["layer"] != tt.layer {
			t.Errorf("%s: got %v", tt.rest, m)
		}
	}
	for _, limits := range []string{`{"max_ratio":2}`, `{"margin":-1}`, `{"min_length":-1}`, `{"min_distance":-1}`, `{"ratio":1}`} {
		b.problem(b.do("POST", "/edit", `{"content":"x","edits":[{"old":"x","new":"y"}],"limits":`+limits+`}`), 422, "invalid")
	}
	b.problem(b.do("POST", "/edit", `{"content":"x","edits":[]}`), 422, "invalid")
	b.problem(b.do("POST", "/edit", `{"content":"x"}`), 422, "invalid")
	long := map[string]any{"content": strings.Repeat("x", 9<<19) + "y", "edits": []map[string]string{{"old": "xy", "new": "z"}}}
	if m = b.object(b.do("POST", "/edit", long), 200); m["ok"] != true {
		t.Errorf("a long text: got %v", m["error"])
	}
}

// TestHealthIsCheap checks that a server answers the health check before the
// operations and their schemas are made, by what it allocates.
func TestHealthIsCheap(t *testing.T) {
	a, _ := newApp(t, "")
	allocations := testing.AllocsPerRun(3, func() {
		w := httptest.NewRecorder()
		httpapi.New(a, httpapi.Options{}).ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		if w.Code != 200 {
			t.Errorf("got %d", w.Code)
		}
	})
	if allocations > 1000 { // the operations take more than 50,000
		t.Errorf("a new handler and its health check made %.0f allocations", allocations)
	}
}

func TestHealth(t *testing.T) {
	b := newBench(t, writes)
	b.url = strings.TrimSuffix(b.url, httpapi.Base)
	if m := b.object(b.do("GET", "/healthz", nil), 200); m["status"] != "ok" {
		t.Errorf("got %v", m)
	}
}
