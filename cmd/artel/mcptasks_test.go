// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// A baker is an MCP server that answers calls with tasks, in the way of either protocol. It
// keeps them while its web server is restarted.
type baker struct {
	version string

	mu        sync.Mutex
	calls     int
	polls     int
	cancelled int
	ended     bool
	answer    string
}

func (w *baker) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var in struct {
		ID     json.RawMessage
		Method string
		Params struct {
			TaskID  string          `json:"taskId"`
			Task    json.RawMessage `json:"task"`
			Answers map[string]struct {
				Content map[string]any `json:"content"`
			} `json:"inputResponses"`
		}
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&in) != nil {
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if in.ID == nil {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	newest := w.version == "2026-07-28"
	state := func(more string) string {
		status := "working"
		switch {
		case w.ended && newest && w.answer == "":
			status, more = "input_required", `,"inputRequests":{"who":{"method":"elicitation/create","params":{"mode":"form","message":"For whom?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}`
		case w.ended:
			status = "completed"
			if newest {
				more = `,"result":{"content":[{"type":"text","text":"Baked for ` + w.answer + `."}]}`
			}
		}
		return fmt.Sprintf(`"taskId":"t1","status":%q,"statusMessage":"Baking, %d","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null,"ttlMs":null,"pollInterval":100,"pollIntervalMs":100`, status, w.calls) + more
	}
	result, fault := "", ""
	switch in.Method {
	case "server/discover":
		fault = `{"code":-32601,"message":"no such method"}`
		if newest {
			fault, result = "", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		}
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","serverInfo":{"name":"baker","version":"1"},"capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}`
	case "tools/list":
		result = `{"resultType":"complete","tools":[{"name":"bake","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`
	case "tools/call":
		w.calls++
		result = `{"resultType":"task",` + state("") + `}`
		if !newest {
			result = `{"task":{` + state("") + `}}`
		}
		if !newest && in.Params.Task == nil {
			fault = `{"code":-32601,"message":"wants a task"}`
		}
	case "tasks/get":
		w.polls++
		result = `{"resultType":"complete",` + state("") + `}`
		if newest && r.Header.Get("Mcp-Name") != in.Params.TaskID {
			fault = `{"code":-32602,"message":"the header names another task"}`
		}
	case "tasks/result":
		result = `{"content":[{"type":"text","text":"Baked."}]}`
	case "tasks/update":
		w.answer, _ = in.Params.Answers["who"].Content["name"].(string)
		result = `{"resultType":"complete"}`
	case "tasks/cancel":
		w.cancelled++
		result = `{"resultType":"complete",` + state("") + `}`
	default:
		result = `{}`
	}
	if fault != "" {
		result = fault
	}
	out.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%q:%s}`, in.ID, map[bool]string{true: "error", false: "result"}[fault != ""], result)
}

func (w *baker) get(of func() int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of()
}

// TestTasksSurviveKills: Artel is killed while a server works on a task, and the server is
// restarted. The next process polls the task in the place of another call, asks what the task
// wants to know, and gives the model its result. A cancelled run cancels its task.
func TestTasksSurviveKills(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := &baker{version: version}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			web := &httptest.Server{Listener: listener, Config: &http.Server{Handler: w}}
			web.Start()
			t.Cleanup(func() { web.Close() })
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{
				"artel.yaml": "mcp:\n  - {name: baker, url: \"http://" + address + "/mcp\", agents: [lead_agent]}\n",
				"scenario":   "-- message 1 --\n-- turn 1 --\n@call baker_bake {}\n-- turn 2 --\nDone.\n-- message 2 --\n-- turn 1 --\n@call baker_bake {}\n-- turn 2 --\nDone.\n",
			})
			env := with(bareEnvironment(dir), "ARTEL_CONFIG="+filepath.Join(dir, "artel.yaml"))
			p := serving(t, dir, env, "--scenario", filepath.Join(dir, "scenario"))
			ctx, client := t.Context(), httpapi.NewClient(p.url, nil)
			c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
			if err != nil {
				t.Fatal(err)
			}
			sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Bake."})
			if err != nil {
				t.Fatal(err)
			}
			follow := func(until artel.EventType, run artel.RunID) (all []artel.Event) {
				t.Helper()
				for e, err := range client.Events(ctx, c.ID, 0, giveUp) {
					if err != nil {
						t.Fatal(err)
					}
					if all = append(all, e); e.Type == until && e.Run == run {
						return all
					}
					if e.Type == artel.EventRunFinished && e.Run == run {
						break
					}
				}
				for _, e := range all {
					t.Logf("%s %s", e.Type, e.Data)
				}
				t.Fatalf("there is no %s", until)
				return nil
			}
			follow(artel.EventToolProgress, sent.RunID)
			p.kill()
			web.Close()
			w.mu.Lock()
			before := w.polls
			w.ended = true
			w.mu.Unlock()
			p = serving(t, dir, env, "--scenario", filepath.Join(dir, "scenario"))
			client = httpapi.NewClient(p.url, nil)
			if listener, err = net.Listen("tcp", address); err != nil {
				t.Fatal(err)
			}
			web = &httptest.Server{Listener: listener, Config: &http.Server{Handler: w}}
			web.Start()
			want := "Baked."
			if version == "2026-07-28" {
				want = "Baked for Ann."
				follow(artel.EventElicitationRequested, sent.RunID)
				waiting, err := client.Waiting(ctx, c.ID)
				if err != nil || len(waiting.Elicitations) != 1 {
					t.Fatalf("%+v, %v", waiting, err)
				}
				if _, err := client.Elicit(ctx, sent.RunID, waiting.Elicitations[0].ID, httpapi.NewElicitAnswer{Action: artel.ElicitAccept, Content: map[string]any{"name": "Ann"}}); err != nil {
					t.Fatal(err)
				}
			}
			events := follow(artel.EventRunFinished, sent.RunID)
			log := ""
			for _, e := range events {
				log += string(e.Type) + " " + string(e.Data) + "\n"
			}
			if !strings.Contains(log, want) || !strings.Contains(log, `"state":"done"`) || !strings.Contains(log, "Baking") {
				t.Errorf("the log is %s", log)
			}
			if n := w.get(func() int { return w.calls }); n != 1 {
				t.Errorf("it was called %d times", n)
			}
			if n := w.get(func() int { return w.polls }); n <= before {
				t.Error("the task was not asked for after the restart")
			}
			w.mu.Lock()
			w.ended = false
			w.mu.Unlock()
			if sent, err = client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Again."}); err != nil {
				t.Fatal(err)
			}
			follow(artel.EventToolProgress, sent.RunID)
			if _, err := client.Cancel(ctx, sent.RunID); err != nil {
				t.Fatal(err)
			}
			follow(artel.EventRunFinished, sent.RunID)
			if n := w.get(func() int { return w.cancelled }); n != 1 {
				t.Errorf("%d tasks were cancelled", n)
			}
		})
	}
}
