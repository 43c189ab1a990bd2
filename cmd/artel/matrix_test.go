// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/gateway"
)

// matrixFile is where the table is kept.
const matrixFile = "../../docs/security-matrix.md"

const matrixHead = `# Security matrix

What each route answers to each kind of client. ` + "`TestMatrix`" + ` asks every operation of the OpenAPI document, every route of the page and every path of the
gateway and of operators, and fails if an answer differs or a route is missing; it writes this file with
` + "`go test ./cmd/artel -run TestMatrix -update`" + `.

Ids in paths belong to *member*. *none* has no login. *other* is another member. The tokens *read*, *write*, *gateway*, *expired* and *revoked* belong to member,
*admin token* to admin. *site* is a browser with the session of member whose request has neither ` + "`Origin`" + ` nor ` + "`Sec-Fetch-Site`" + `.

| word | the request |
|---|---|
| ok | succeeded, or leads to another page |
| 401 | needs a login |
| 403 | is not allowed |
| 404 | names something that does not exist, or that belongs to another user |
| 4xx | was admitted, and refused because of its content or of the state of things |
`

// A visitor is a client of the matrix.
type visitor struct {
	name   string
	cookie string // of a session; may be empty
	token  string // may be empty
	site   bool   // sends neither Origin nor Sec-Fetch-Site
	owns   bool   // the ids in paths
	email  string // of a session, to log in again
}

// A matrixBench is the server of the matrix, called without a network.
type matrixBench struct {
	*guarded
	visitors []*visitor
	asked    int
	shared   map[string]string // values of variables, by name, for requests that change nothing
	bodies   map[endpoint]apiBody
}

// An apiBody describes the body of an operation of the API.
type apiBody struct {
	mediaType string
	schema    map[string]any
	all       map[string]any // schemas by name
}

// pageRoutes are the routes that the source of the page registers.
func pageRoutes(t *testing.T) []endpoint {
	t.Helper()
	var all []endpoint
	files, err := filepath.Glob("../../webui/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) != 2 {
				return true
			}
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Handle" && s.Sel.Name != "HandleFunc" {
				return true
			}
			l, ok := c.Args[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s registers a route whose pattern is no literal", name)
				return true
			}
			pattern, _ := strconv.Unquote(l.Value)
			if method, path, ok := strings.Cut(pattern, " "); ok {
				all = append(all, endpoint{method, strings.TrimSuffix(path, "{$}")})
			}
			return true
		})
	}
	return all
}

// sourcePaths are the paths of the gateway that its source names.
func sourcePaths(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"../../gateway/*.go", "../../model/provider/*/edit.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, path := range regexp.MustCompile(`"(/v1(?:beta)?/[a-z_/]*[a-z])"`).FindAllStringSubmatch(string(src), -1) {
				all = append(all, path[1])
			}
		}
	}
	return all
}

// operatorRoutes are for the machine of the server, its operators and their programs.
func operatorRoutes() []endpoint {
	return []endpoint{{"GET", "/healthz"}, {"GET", "/readyz"}, {"GET", "/metrics"}, {"GET", "/api/v1/openapi.json"}}
}

func newMatrixBench(t *testing.T) *matrixBench {
	m := &matrixBench{guarded: newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { wrap(t, c) }), shared: map[string]string{}, bodies: map[endpoint]apiBody{}}
	admin := m.setUp()
	member, other, viewer := m.user(admin, "member@example.org", "member"), m.user(admin, "other@example.org", "member"), m.user(admin, "viewer@example.org", "viewer")
	scoped := func(cookie, scopes string) string { _, secret := m.token(cookie, scopes); return secret }
	expiredID, expired := m.token(member, `["read","write","gateway"]`)
	m.expire(expiredID)
	revokedID, revoked := m.token(member, `["read","write","gateway"]`)
	m.must(nil, "DELETE", "/api/v1/tokens/"+revokedID, "", "Cookie", member, "Origin", m.http.URL)
	m.visitors = []*visitor{
		{name: "none"},
		{name: "viewer", cookie: viewer, email: "viewer@example.org"},
		{name: "member", cookie: member, email: "member@example.org", owns: true},
		{name: "other", cookie: other, email: "other@example.org"},
		{name: "admin", cookie: admin, email: "ann@example.org"},
		{name: "read", token: scoped(member, `["read"]`), owns: true},
		{name: "write", token: scoped(member, `["read","write"]`), owns: true},
		{name: "gateway", token: scoped(member, `["gateway"]`), owns: true},
		{name: "admin token", token: scoped(admin, `["admin"]`)},
		{name: "expired", token: expired, owns: true},
		{name: "revoked", token: revoked, owns: true},
		{name: "site", cookie: member, email: "member@example.org", site: true, owns: true},
	}
	return m
}

// visit sends a request of v in this process. A stream of
// events ends with its first bytes.
func (m *matrixBench) visit(v *visitor, method, path, mediaType string, body []byte) *httptest.ResponseRecorder {
	m.t.Helper()
	m.asked++
	ctx, stop := context.WithCancel(audit.WithAddress(m.t.Context(), fmt.Sprintf("192.0.2.%d:%d", m.asked%250, m.asked))) // failed logins count by address
	defer stop()
	r := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	r.Host = "127.0.0.1"
	if mediaType != "" {
		r.Header.Set("Content-Type", mediaType)
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	if method == "PUT" && strings.Contains(path, "/artifacts/") {
		r.Header.Set("If-Match", "*")
	}
	if !v.site {
		r.Header.Set("Origin", "http://127.0.0.1")
	}
	if !gateway.Serves(r) && !strings.HasPrefix(path, "/api/") {
		r.Header.Set("HX-Request", "true") // so that the page refuses with a status, and does not lead to the login
	}
	w := &streamRecorder{ResponseRecorder: httptest.NewRecorder(), stop: stop}
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		m.server.handler.ServeHTTP(w, r)
	}()
	return w.ResponseRecorder
}

// A streamRecorder ends the request when a stream of events begins.
type streamRecorder struct {
	*httptest.ResponseRecorder
	stop context.CancelFunc
}

func (w *streamRecorder) WriteHeader(status int) {
	w.ResponseRecorder.WriteHeader(status)
	w.end()
}

func (w *streamRecorder) Write(b []byte) (int, error) {
	defer w.end()
	return w.ResponseRecorder.Write(b)
}

func (w *streamRecorder) end() {
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		w.stop()
	}
}

// EnableFullDuplex, SetReadDeadline and SetWriteDeadline are for [http.ResponseController].
func (w *streamRecorder) EnableFullDuplex() error { return nil }

func outcomeOf(status int) string {
	switch {
	case status < 400:
		return "ok"
	case status == 401, status == 403, status == 404:
		return strconv.Itoa(status)
	case status < 500:
		return "4xx"
	}
	return "5xx"
}

// TestMatrix asks every route as every visitor and compares with docs/security-matrix.md.
// What holds for all routes is checked apart from the table.
func TestMatrix(t *testing.T) {
	m := newMatrixBench(t)
	api := m.apiRoutes()
	sections := []struct {
		title  string
		routes []endpoint
	}{{"API", api}, {"Page", pageRoutes(t)}, {"Gateway", gatewayRoutes()}, {"Operators", operatorRoutes()}}
	if len(api) < 100 || len(sections[1].routes) < 50 {
		t.Fatalf("%d routes of the API and %d of the page were found", len(api), len(sections[1].routes))
	}
	paths := sourcePaths(t)
	for _, path := range paths {
		if !slices.ContainsFunc(gatewayRoutes(), func(r endpoint) bool { return r.path == path }) {
			t.Errorf("the gateway has the path %s, which gatewayRoutes in access_test.go does not list", path)
		}
	}
	if len(paths) < 10 {
		t.Fatalf("only %q were found in the source of the gateway", paths)
	}
	var out strings.Builder
	out.WriteString(matrixHead)
	for _, s := range sections {
		fmt.Fprintf(&out, "\n## %s\n\n| route |", s.title)
		for _, v := range m.visitors {
			out.WriteString(" " + v.name + " |")
		}
		out.WriteString("\n|---|" + strings.Repeat("---|", len(m.visitors)) + "\n")
		slices.SortFunc(s.routes, func(a, b endpoint) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method)) })
		for _, r := range s.routes {
			fmt.Fprintf(&out, "| `%s %s` |", r.method, r.path)
			for _, v := range m.visitors {
				fmt.Fprintf(&out, " %s |", m.cell(r, v, s.title == "Gateway"))
			}
			out.WriteString("\n")
		}
	}
	out.WriteString(m.mcpSection())
	if *update {
		if err := os.WriteFile(matrixFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	const how = "If that is meant, write it anew with: go test ./cmd/artel -run TestMatrix -update; then read the difference."
	lines := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	had, has := lines(string(kept)), lines(out.String())
	for _, l := range has {
		if !slices.Contains(had, l) {
			t.Errorf("docs/security-matrix.md does not have the line\n%s\n%s", l, how)
		}
	}
	for _, l := range had {
		if !slices.Contains(has, l) {
			t.Errorf("docs/security-matrix.md has the line\n%s\nwhich is not true. %s", l, how)
		}
	}
}

// public are the routes that need no login: by which one becomes known, and what is
// in every copy of the program.
var public = []endpoint{
	{"GET", "/login"},
	{"GET", "/auth/oidc/start"}, // 404 without a provider
	{"GET", "/auth/oidc/callback"},
	{"GET", "/auth/mcp/client.json"}, // what authorization servers read
	{"POST", "/login"},
	{"GET", "/setup"},
	{"POST", "/setup"},
	{"GET", "/invite"},
	{"POST", "/invite"},
	{"GET", "/static/"},
	{"POST", "/api/v1/login"},
	{"POST", "/api/v1/setup"},
	{"POST", "/api/v1/invite"},
	{"GET", "/healthz"},
	{"GET", "/readyz"},
	{"GET", "/metrics"}, // which refuses by itself
}

// logouts end the session of who asks, which every role may.
var logouts = []endpoint{{"POST", "/logout"}, {"POST", "/api/v1/logout"}}

// ofAccount reports whether a route is about the account of who asks, which every role may
// change with a login.
func ofAccount(r endpoint) bool {
	return slices.Contains([]string{
		"/api/v1/me", "/api/v1/me/password", "/api/v1/sessions", "/api/v1/sessions/{id}", "/api/v1/tokens", "/api/v1/tokens/{id}",
	}, r.path) || strings.HasPrefix(r.path, "/account")
}

// cell asks a route as v, and checks what holds for all routes.
func (m *matrixBench) cell(r endpoint, v *visitor, ofGateway bool) string {
	m.t.Helper()
	path, foreign := m.path(r, v)
	mediaType, body := m.body(r)
	answer := m.visit(v, r.method, path, mediaType, body)
	status, text := answer.Code, answer.Body.String()
	got := outcomeOf(status)
	if got == "ok" && r.method != "GET" {
		m.clean(r)
	}
	wrong := func(format string, args ...any) {
		m.t.Errorf("%s %s as %s: %d, but %s\n%.300s", r.method, path, v.name, status, fmt.Sprintf(format, args...), text)
	}
	changes := r.method != "GET" && !slices.Contains(logouts, r) && !slices.Contains(public, r)
	switch isPublic := slices.Contains(public, r); {
	case ofGateway && status == http.StatusUnauthorized && (strings.Contains(text, "problem") || !strings.Contains(text, `"error"`)):
		wrong("a client of the gateway wants the error of its dialect")
	case !ofGateway && status == http.StatusUnauthorized && answer.Header().Get("WWW-Authenticate") == "" && !slices.Contains(public, r):
		wrong("the answer has no WWW-Authenticate")
	case got == "5xx":
		wrong("no request may fail")
	case isPublic:
	case (v.name == "none" || v.name == "expired" || v.name == "revoked") && status != http.StatusUnauthorized:
		wrong("it needs a login")
	case ofGateway && slices.Contains([]string{"read", "write", "admin token"}, v.name) && status != http.StatusForbidden:
		wrong("the gateway needs the scope gateway")
	case ofGateway:
	case v.name == "gateway" && status != http.StatusForbidden && !slices.Contains(logouts, r):
		wrong("the scope gateway is for the gateway only")
	case changes && (v.name == "viewer" && !ofAccount(r) || v.name == "read") && status != http.StatusForbidden:
		wrong("it changes something")
	case changes && v.site && status != http.StatusForbidden:
		wrong("it changes something with a cookie and without Origin")
	case foreign && got == "ok" && ((!strings.HasPrefix(r.path, "/api/v1/gateway/keys/") && !strings.HasPrefix(r.path, "/keys/")) || !strings.HasPrefix(v.name, "admin")): // whom all keys obey
		wrong("the ids belong to another user")
	}
	return got
}

// expire sets the end of a token into the past.
func (m *matrixBench) expire(id string) {
	m.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(m.data, databaseFile))
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	done, err := db.ExecContext(m.t.Context(), `UPDATE tokens SET expires_at = created_at WHERE id = ?`, id)
	if err != nil {
		m.t.Fatal(err)
	}
	if n, err := done.RowsAffected(); n != 1 || err != nil {
		m.t.Fatalf("%d tokens expired, %v", n, err)
	}
}

// apiRoutes are the operations of the OpenAPI document; it notes their bodies.
func (m *matrixBench) apiRoutes() (all []endpoint) {
	m.t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
		Components struct{ Schemas map[string]any }
	}
	m.must(&doc, "GET", "/api/v1/openapi.json", "", "Cookie", m.visitors[4].cookie)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			r := endpoint{strings.ToUpper(method), path}
			all = append(all, r)
			b := apiBody{all: doc.Components.Schemas}
			for _, mediaType := range slices.Sorted(maps.Keys(op.RequestBody.Content)) { // application/json before octets and forms
				if b.mediaType == "" {
					b.mediaType, b.schema = mediaType, op.RequestBody.Content[mediaType].Schema
				}
			}
			m.bodies[r] = b
		}
	}
	return all
}

// sample returns a small value that fits a schema, without optional fields.
func (b apiBody) sample(s map[string]any) any {
	if ref, ok := s["$ref"].(string); ok {
		s, _ = b.all[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	if values, ok := s["enum"].([]any); ok {
		return values[0]
	}
	kind := s["type"]
	if all, ok := kind.([]any); ok {
		kind = all[0]
	}
	switch kind {
	case "object":
		v := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			p, _ := properties[name.(string)].(map[string]any)
			v[name.(string)] = b.sample(p)
		}
		return v
	case "array":
		items, _ := s["items"].(map[string]any)
		v := []any{}
		if n, _ := s["minItems"].(float64); n > 0 {
			v = append(v, b.sample(items))
		}
		return v
	case "integer", "number":
		n, _ := s["minimum"].(float64)
		return max(1, n)
	case "boolean":
		return false
	}
	n, _ := s["minLength"].(float64)
	return strings.Repeat("x", max(1, int(n)))
}

// matrixBodies are the bodies of operations for which a sample of the schema does not
// do; {} is the value of a variable.
var matrixBodies = map[endpoint]string{
	{"POST", "/api/v1/login"}:                               `{"email":"member@example.org","password":"` + testPassword + `"}`,
	{"POST", "/api/v1/users"}:                               `{"name":"x","email":"{new}@example.org","role":"viewer"}`,
	{"POST", "/api/v1/tokens"}:                              `{"name":"x","scopes":["read"]}`,
	{"POST", "/api/v1/gateway/keys"}:                        `{"name":"x"}`,
	{"PATCH", "/api/v1/gateway/keys/{id}"}:                  `{"concurrent":2}`,
	{"POST", "/api/v1/webhooks"}:                            `{"name":"x","url":"https://192.0.2.1/"}`,
	{"POST", "/api/v1/schedules"}:                           `{"name":"x","cron":"0 0 29 2 *","text":"x"}`,
	{"PATCH", "/api/v1/schedules/{id}"}:                     `{"name":"y"}`,
	{"POST", "/schedules"}:                                  `name=x&cron=0 0 29 2 *&zone=UTC&text=x`,
	{"POST", "/schedules/{id}"}:                             `do=pause`,
	{"PATCH", "/api/v1/webhooks/{id}"}:                      `{"name":"y"}`,
	{"POST", "/webhooks"}:                                   `name=x&url=https://192.0.2.1/&event=run_finished`,
	{"POST", "/webhooks/{id}"}:                              `do=disable`,
	{"POST", "/api/v1/agents"}:                              `{"name":"{new}","prompt":"You are a pilot."}`,
	{"PUT", "/api/v1/agents/{name}"}:                        `{"name":"{agent}","prompt":"You are an old pilot."}`,
	{"PUT", "/api/v1/books/{book}"}:                         `{"name":"{book}","entries":[]}`,
	{"POST", "/api/v1/books/try"}:                           `{"name":"{book}","messages":[{"text":"x"}]}`,
	{"PATCH", "/api/v1/conversations/{cid}"}:                `{"title":"x"}`,
	{"POST", "/api/v1/conversations/{cid}/messages"}:        `{"text":"x"}`,
	{"POST", "/api/v1/conversations/{cid}/preview"}:         `{"text":"x"}`,
	{"PATCH", "/api/v1/conversations/{cid}/artifacts/{id}"}: `{"title":"x"}`,
	{"PUT", "/api/v1/conversations/{cid}/artifacts/{id}"}:   `{"content":"x"}`,
	{"POST", "/api/v1/conversations/{cid}/tools/{name}"}:    `{}`,
	{"POST", "/api/v1/conversations/{cid}/tool_results"}:    `{"tool":"x","content":"x"}`,
	{"POST", "/api/v1/pipeline/build"}:                      `{"messages":[{"role":"user","content":"x"}]}`,
	{"POST", "/api/v1/regex/apply"}:                         `{"text":"a","rules":[{"find":"a","replace":"b"}]}`,
	{"POST", "/api/v1/regex/import"}:                        `{"findRegex":"a","placement":[1]}`,
	{"POST", "/api/v1/edit"}:                                `{"content":"a","edits":[{"old":"a","new":"b"}]}`,
	{"POST", "/c"}:                                          `text=x`,
	{"POST", "/c/{cid}"}:                                    `text=x`,
	{"POST", "/c/{cid}/title"}:                              `title=x`,
	{"POST", "/c/{cid}/m/{mid}/edit"}:                       `text=x`,
	{"POST", "/c/{cid}/a/{id}/title"}:                       `title=x&base=1`,
	{"POST", "/c/{cid}/a/{id}/delete"}:                      `base=1`,
	{"POST", "/c/{cid}/waiting"}:                            `run={rid}`,
	{"POST", "/login"}:                                      `email=member@example.org&password=` + testPassword,
	{"POST", "/me"}:                                         `name=x&revision=0`,
	{"POST", "/agents/new"}:                                 `name={new}&prompt=x`,
	{"POST", "/agents/a/{name}/edit"}:                       `name={agent}&prompt=x`,
	{"POST", "/books/b/{name}"}:                             `do=add&name=x&keys=x&content=x&revision=1`,
	{"POST", "/v1/chat/completions"}:                        `{"model":"demo","messages":[{"role":"user","content":"x"}]}`,
	{"POST", "/v1/messages"}:                                `{"model":"demo","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
	{"POST", "/v1/messages/count_tokens"}:                   `{"model":"demo","messages":[{"role":"user","content":"x"}]}`,
	{"POST", "/v1/responses"}:                               `{"model":"demo","input":"x"}`,
	{"POST", "/v1beta/models/demo:generateContent"}:         `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`,
	{"POST", "/v1beta/models/demo:countTokens"}:             `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`,
}

// body returns what a request of a route has as its body.
func (m *matrixBench) body(r endpoint) (mediaType string, body []byte) {
	m.t.Helper()
	if r.method == "GET" || r.method == "DELETE" {
		return "", nil
	}
	b, ofAPI := m.bodies[r]
	mediaType = cmp.Or(b.mediaType, "application/json")
	if !ofAPI && !isGatewayRoute(r) {
		mediaType = "application/x-www-form-urlencoded"
	}
	if text, ok := matrixBodies[r]; ok {
		for _, name := range []string{"new", "agent", "book", "rid"} {
			if strings.Contains(text, "{"+name+"}") {
				text = strings.ReplaceAll(text, "{"+name+"}", m.value(name))
			}
		}
		return mediaType, []byte(text)
	}
	switch {
	case mediaType != "application/json":
		return mediaType, []byte("x=x")
	case b.schema == nil:
		return "", nil
	}
	v, err := json.Marshal(b.sample(b.schema))
	if err != nil {
		m.t.Fatal(err)
	}
	return mediaType, v
}

// value makes a thing of member and returns its id or name. The same thing is used
// until a request has changed something.
func (m *matrixBench) value(name string) string {
	m.t.Helper()
	if v, ok := m.shared[name]; ok && name != "new" {
		return v
	}
	m.asked++
	fresh := fmt.Sprint("thing", m.asked)
	as := []string{"Cookie", m.visitors[2].cookie, "Origin", m.http.URL}
	var made struct {
		ID    string
		RunID string `json:"run_id"`
		MID   string `json:"message_id"`
	}
	v := fresh
	switch name {
	case "cid":
		m.must(&made, "POST", "/api/v1/conversations", `{}`, as...)
		v = made.ID
	case "artifact":
		m.must(&made, "POST", "/api/v1/conversations/"+m.value("cid")+"/artifacts", `# x`, append(as, "X-Filename", fresh+".md", "Content-Type", "text/markdown")...)
		v = made.ID
	case "rid", "mid":
		m.must(&made, "POST", "/api/v1/conversations/"+m.value("cid")+"/messages", `{"text":"x"}`, as...)
		for ended := false; !ended; {
			var run struct{ State string }
			m.must(&run, "GET", "/api/v1/runs/"+made.RunID, "", as...)
			ended = !slices.Contains([]string{"queued", "running"}, run.State)
		}
		m.shared["rid"], m.shared["mid"] = made.RunID, made.MID
		v = m.shared[name]
	case "agent":
		m.must(nil, "POST", "/api/v1/agents", `{"name":"`+fresh+`","prompt":"You are a pilot."}`, as...)
	case "book":
		m.must(nil, "PUT", "/api/v1/books/"+fresh, `{"name":"`+fresh+`","entries":[]}`, as...)
	case "skill":
		v = strings.ToLower(strings.Trim(fresh, "_-"))
		m.must(nil, "POST", "/api/v1/skills/import", skillZIPOf(m.t, v), as...)
	case "session":
		sessionOf(m.t, m.must(nil, "POST", "/api/v1/login", `{"email":"member@example.org","password":"`+testPassword+`"}`))
		var all struct{ Items []struct{ ID string } }
		m.must(&all, "GET", "/api/v1/sessions", "", as...)
		v = all.Items[0].ID // the newest
	case "key":
		m.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"`+fresh+`"}`, as...)
		v = made.ID
	case "schedule":
		m.must(&made, "POST", "/api/v1/schedules", `{"name":"`+fresh+`","cron":"0 0 29 2 *","text":"x"}`, as...)
		v = made.ID
	case "webhook":
		m.must(&made, "POST", "/api/v1/webhooks", `{"name":"`+fresh+`","url":"https://192.0.2.1/"}`, as...)
		v = made.ID
	case "token":
		v, _ = m.token(m.visitors[2].cookie, `["read"]`)
	case "user":
		m.must(&made, "POST", "/api/v1/users", `{"name":"x","email":"`+fresh+`@example.org"}`, "Cookie", m.visitors[4].cookie, "Origin", m.http.URL)
		v = made.ID
	case "service":
		m.must(nil, "POST", "/api/v1/services", `{"id":"`+fresh+`","disabled":true}`, "Cookie", m.visitors[4].cookie, "Origin", m.http.URL)
	case "mcp-server":
		m.must(nil, "POST", "/api/v1/mcp-servers", `{"name":"`+fresh+`","url":"http://127.0.0.1:1/","disabled":true}`, "Cookie", m.visitors[4].cookie, "Origin", m.http.URL)
	case "http-tool":
		m.must(nil, "POST", "/api/v1/http-tools", `{"name":"`+fresh+`","description":"x","url":"http://127.0.0.1:1/","disabled":true}`, "Cookie", m.visitors[4].cookie, "Origin", m.http.URL)
	case "new":
	default:
		m.t.Fatalf("there is no value of the variable %s; add one to value in matrix_test.go", name)
	}
	m.shared[name] = v
	return v
}

// variable returns what the variable of a route stands for; foreign says that it is
// the id of a thing of member.
func (m *matrixBench) variable(r endpoint, name string) (value string, foreign bool) {
	below := func(prefix string) bool { return strings.HasPrefix(r.path, prefix) }
	switch name {
	case "cid", "mid", "rid":
		return m.value(name), true
	case "pid":
		return "prm_x", false
	case "eid":
		return "eli_x", false
	case "n", "number":
		return "1", false
	case "mark":
		return "x", false
	case "ref":
		return url.PathEscape("artifact:" + m.value("cid") + "/" + m.value("artifact")), true
	case "book":
		return m.value("book"), false
	case "skill":
		return m.value("skill"), false
	case "kind": // of tools
		return "mcp", false
	case "server": // with accounts, resources and prompts
		return "none", false
	}
	switch { // id and name stand for several things
	case below("/api/v1/conversations/{cid}/tools/"):
		return "list_artifacts", false
	case below("/api/v1/conversations/{cid}/"), below("/c/{cid}/a/"):
		return m.value("artifact"), true
	case below("/api/v1/files/tool_results/"):
		return strings.Repeat("0", 64) + ".txt", false
	case below("/sample/"):
		return "x", false
	case r.path == "/api/v1/services/{id}", below("/services/"):
		return m.value("service"), false
	case below("/accounts/"):
		return "none", false
	case below("/api/v1/mcp-servers/"), below("/tools/{kind}/"):
		return m.value("mcp-server"), false
	case below("/api/v1/http-tools/"):
		return m.value("http-tool"), false
	case below("/api/v1/services/"), below("/models/"):
		return "demo", false
	case below("/api/v1/sessions/"):
		return m.value("session"), true
	case below("/api/v1/gateway/keys/"), below("/keys/"):
		return m.value("key"), true
	case below("/api/v1/schedules/"), below("/schedules/"):
		return m.value("schedule"), true
	case below("/api/v1/webhooks/"), below("/webhooks/"):
		return m.value("webhook"), true
	case below("/api/v1/tokens/"):
		return m.value("token"), true
	case below("/api/v1/users/"), below("/people/"):
		return m.value("user"), false
	case below("/api/v1/agents/"), below("/agents/a/"):
		return m.value("agent"), false
	case below("/skills/s/"):
		return m.value("skill"), false
	case below("/books/b/"), below("/api/v1/books/"):
		return m.value("book"), false
	}
	m.t.Fatalf("nothing is known of the variable %s in %s; add it to variable in matrix_test.go", name, r.path)
	return "", false
}

// skillZIPOf is a skill in a ZIP.
func skillZIPOf(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	err := skill.WriteZIP(&b, name, []skill.File{inMemory(skill.FileName, "---\nname: "+name+"\ndescription: x\n---\nx")})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func inMemory(path, text string) skill.File {
	return skill.File{Path: path, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

var pathVariable = regexp.MustCompile(`\{[a-z_]+\}`)

// path fills the variables of a route. foreign says that ids in it belong to someone
// other than v.
func (m *matrixBench) path(r endpoint, v *visitor) (path string, foreign bool) {
	m.t.Helper()
	path = pathVariable.ReplaceAllStringFunc(r.path, func(s string) string {
		value, isForeign := m.variable(r, strings.Trim(s, "{}"))
		foreign = foreign || isForeign && !v.owns
		return value
	})
	return path + matrixQueries[r], foreign
}

// matrixQueries are the queries without which a route refuses.
var matrixQueries = map[endpoint]string{
	{"GET", "/static/"}: "style.css",
	{"GET", "/api/v1/conversations/{cid}/artifacts/{id}/export"}: "?format=md",
	{"GET", "/api/v1/runs/{rid}/contexts/{n}/why"}:               "?about=x",
}

// clean forgets the things that a request may have changed, and logs in again where it
// has ended sessions.
func (m *matrixBench) clean(r endpoint) {
	m.t.Helper()
	clear(m.shared)
	if !strings.Contains(r.path, "/log") && !strings.Contains(r.path, "session") {
		return
	}
	for _, v := range m.visitors {
		if v.email == "" {
			continue
		}
		if m.visit(v, "GET", "/api/v1/me", "", nil).Code != http.StatusOK {
			v.cookie = sessionOf(m.t, m.must(nil, "POST", "/api/v1/login", `{"email":"`+v.email+`","password":"`+testPassword+`"}`))
		}
	}
}
