// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/httpapi"
)

func TestAgents(t *testing.T) {
	b := newBench(t, writes)
	list := b.object(b.do("GET", "/agents", ""), 200)["items"].([]any)
	at := slices.IndexFunc(list, func(a any) bool { return a.(map[string]any)["name"] == "lead_agent" })
	if at < 0 {
		t.Fatalf("got %v", list)
	}
	if a := list[at].(map[string]any); a["source"] != "shipped" || a["read_only"] != true || a["runs_on"] == "" {
		t.Errorf("got %v", a)
	}
	const pilot = `{"name":"pilot","description":"Brings ships in.","prompt":"You are a pilot.","tools":["read_artifact"],"subagents":["research_agent"],"limits":{"turns":3,"cost":0.5},"permissions":{"*":"ask"},"context":{"max_tokens":9000},"preset_messages":[{"id":"a","text":"Hush."}]}`
	a := b.do("POST", "/agents", pilot)
	made := b.object(a, 201)
	tag := a.Header.Get("ETag")
	if made["source"] != "stored" || made["read_only"] != false || made["updated_at"] == nil || tag == "" {
		t.Fatalf("got %v, tag %s", made, tag)
	}
	b.problem(b.do("POST", "/agents", pilot), 409, "agent_exists")
	if got := b.object(b.do("GET", "/agents/pilot", ""), 200); got["prompt"] != "You are a pilot." || got["limits"].(map[string]any)["turns"] != 3.0 {
		t.Errorf("got %v", got)
	}
	b.problem(b.do("GET", "/agents/nobody", ""), 404, "not_found")

	// It answers like any other, also after a change.
	c := b.object(b.do("POST", "/conversations", `{"agent":"pilot"}`), 201)
	if c["agent"] != "pilot" {
		t.Errorf("a conversation with it: %v", c)
	}
	changed := strings.Replace(pilot, "a pilot", "an old pilot", 1)
	saved := b.do("PUT", "/agents/pilot", changed, header{"If-Match": tag})
	if got := b.object(saved, 200); got["prompt"] != "You are an old pilot." || saved.Header.Get("ETag") == tag {
		t.Errorf("got %v", got)
	}
	b.problem(b.do("PUT", "/agents/pilot", pilot, header{"If-Match": tag}), 412, "stale")
	b.problem(b.do("PUT", "/agents/other", pilot), 422, "invalid")
	b.problem(b.do("PUT", "/agents/other", strings.Replace(pilot, `"pilot"`, `"other"`, 1)), 404, "not_found")

	// What comes with Artel is read-only, and says so.
	lead := `{"name":"lead_agent","prompt":"p"}`
	for _, p := range []map[string]any{
		b.problem(b.do("PUT", "/agents/lead_agent", lead), 403, "agent_read_only"),
		b.problem(b.do("DELETE", "/agents/lead_agent", ""), 403, "agent_read_only"),
	} {
		if said := fmt.Sprint(p["detail"]); !strings.Contains(said, "comes with Artel") || !strings.Contains(said, "make an agent with another name") {
			t.Errorf("got %s", said)
		}
	}
	b.problem(b.do("POST", "/agents", lead), 409, "agent_exists")

	// All mistakes are reported at once, each by its field.
	bad := `{"name":"x y","prompt":"","service":"gpt","tools":["raed"],"subagents":["nobody"],"permissions":{"read_artifact":"maybe"},"limits":{"turns":-1}}`
	want := map[string]string{
		"/name": "one word", "/service": "there are: ", "/tools": "there is no tool raed", "/subagents": "lead_agent", "/permissions/read_artifact": "auto, ask or deny",
		"/limits/turns": "at most 1000000", "/prompt": "say who the agent is",
	}
	told := map[string]string{}
	for _, e := range b.problem(b.do("POST", "/agents", bad), 422, "invalid")["errors"].([]any) {
		m := e.(map[string]any)
		told[m["pointer"].(string)] = m["detail"].(string)
	}
	var check httpapi.AgentCheck
	raw := b.do("POST", "/agents/check", bad)
	if err := json.Unmarshal(raw.body, &check); err != nil || check.OK || len(check.Errors) != len(want) {
		t.Errorf("check: %s", raw.body)
	}
	for field, says := range want {
		if !strings.Contains(told[field], says) {
			t.Errorf("%s: got %q, want %q", field, told[field], says)
		}
	}
	if said := string(b.do("POST", "/agents/check?language=zh-CN", bad).body); !strings.Contains(said, "没有名为 raed 的工具") {
		t.Errorf("in Chinese: %s", said)
	}
	if got := b.object(b.do("POST", "/agents/check", pilot), 200); got["ok"] != true {
		t.Errorf("check of a good one: %v", got)
	}
	b.problem(b.do("POST", "/agents", `{"name":"a","prompt":"p","colour":"red"}`), 422, "invalid")

	// As a file, and back.
	file := b.do("GET", "/agents/pilot/markdown", "")
	if file.StatusCode != 200 || !strings.HasPrefix(string(file.body), "---\nname: \"pilot\"\n") || !strings.Contains(file.Header.Get("Content-Disposition"), "pilot.md") {
		t.Fatalf("%s %v", file.body, file.Header)
	}
	md := header{"Content-Type": "text/markdown"}
	b.problem(b.do("POST", "/agents/import", string(file.body), md), 409, "agent_exists")
	if got := b.object(b.do("POST", "/agents/import?replace=true", string(file.body), md), 200); got["prompt"] != "You are an old pilot." {
		t.Errorf("imported: %v", got)
	}
	if got := b.object(b.do("POST", "/agents/import?name=bare", "---\n---\nAnswer.", md), 200); got["name"] != "bare" {
		t.Errorf("imported without a name: %v", got)
	}
	told = map[string]string{}
	for _, e := range b.problem(b.do("POST", "/agents/import?name=bad", "---\ntools: [raed]\nlimits: {turns: -1}\n---\n", md), 422, "invalid")["errors"].([]any) {
		told[e.(map[string]any)["pointer"].(string)] = ""
	}
	if len(told) != 3 {
		t.Errorf("all mistakes of a file are reported at once: %v", told)
	}
	if p := b.problem(b.do("POST", "/agents/import", "Answer.", md), 422, "invalid"); !strings.Contains(fmt.Sprint(p["detail"]), "front matter") {
		t.Errorf("got %s", p["detail"])
	}

	// Settings that are replaced leave agents alone; what was set about one goes with it.
	b.object(b.do("PUT", "/agents/pilot/processors", `{"items":[{"id":"merge-roles","enabled":false}]}`), 200)
	b.object(b.do("PUT", "/settings", `{"artel_settings":1}`), 200)
	b.object(b.do("GET", "/agents/pilot", ""), 200)
	if a := b.do("DELETE", "/agents/pilot", ""); a.StatusCode != 204 {
		t.Fatalf("%s", a.body)
	}
	b.problem(b.do("DELETE", "/agents/pilot", ""), 404, "not_found")
	id := c["id"].(string)
	if p := b.problem(b.do("POST", "/conversations/"+id+"/messages", `{"text":"Hello"}`), 422, "invalid"); !strings.Contains(fmt.Sprint(p["detail"]), "there is no such agent") {
		t.Errorf("got %s", p["detail"])
	}
	b.object(b.do("GET", "/conversations/"+id+"/messages", ""), 200)
}

// TestAgentsBelongToTheirOwner: what one has made, another does not have.
func TestAgentsBelongToTheirOwner(t *testing.T) {
	b := newBench(t, writes)
	d := agent.Definition{Name: "mine", Prompt: "p"}
	if _, err := b.app.Agents.Create(artel.WithOwner(apptest.Context(t), "ann"), d); err != nil {
		t.Fatal(err)
	}
	if _, err := b.app.Agents.Find(artel.WithOwner(apptest.Context(t), "bob"), "mine"); artel.KindOf(err) != artel.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := b.app.Agents.Create(artel.WithOwner(apptest.Context(t), "bob"), d); err != nil {
		t.Errorf("the name is taken by another agent: %v", err)
	}
}

// TestAgentFields: the JSON of an agent holds all of it, both ways.
func TestAgentFields(t *testing.T) {
	const whole = `{"name":"a","description":"d","service":"s","fallbacks":["f"],"tools":["t"],"subagents":["x"],"skills":["*"],"permissions":{"*":"ask"},` +
		`"limits":{"turns":1,"tool_calls":2,"seconds":3,"tokens":4,"cost":0.5,"depth":6,"answer":7},` +
		`"preset_messages":[{"id":"p","text":"t","place":{"depth":"1"}}],"context":{"max_tokens":1,"reply_reserve":0,"keep_chars":3},` +
		`"clock":{"virtual":"1805-10-21T11:00:00Z","real":"2026-01-01T00:00:00Z","scale":2},"processors":[{"id":"merge-roles","enabled":false}],` +
		`"compaction":{"threshold":50,"off":true},"sampling":{"temperature":0.5,"top_p":0.9,"stop":["x"],"reasoning":"low"},` +
		`"character":{"name":"A","description":"d","personality":"p","scenario":"s","examples":"e","version":"1"},"greetings":["g"],"prompt":"p"}`
	var d agent.Definition
	if err := json.Unmarshal([]byte(whole), &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Value{reflect.ValueOf(d), reflect.ValueOf(d.Limits), reflect.ValueOf(d.Context), reflect.ValueOf(d.Clock), reflect.ValueOf(d.Compaction), reflect.ValueOf(d.Sampling), reflect.ValueOf(d.Character)} {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("json") != "-" && v.Field(i).IsZero() {
				t.Errorf("the test says nothing about %s of %s", f.Name, v.Type())
			}
		}
	}
	if diff := cmp.Diff(d, httpapi.AgentFieldsOf(d).Definition()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	got, err := json.Marshal(httpapi.AgentFieldsOf(d))
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAgentClient: programs in Go do the same by the client.
func TestAgentClient(t *testing.T) {
	b := newBench(t, writes)
	ctx, pilot := apptest.Context(t), httpapi.AgentFields{Name: "pilot", Description: "Brings ships in.", Prompt: "You are a pilot."}
	if got, err := b.client.CreateAgent(ctx, pilot); err != nil || got.Name != "pilot" || got.ReadOnly {
		t.Fatalf("got %+v, %v", got, err)
	}
	pilot.Limits.Turns = 3
	if got, err := b.client.SaveAgent(ctx, pilot); err != nil || got.Limits.Turns != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := b.client.Agent(ctx, "pilot"); err != nil || got.Limits.Turns != 3 || got.Source != settings.AgentStored {
		t.Errorf("got %+v, %v", got, err)
	}
	pilot.Tools = []string{"raed"}
	if got, err := b.client.CheckAgent(ctx, pilot); err != nil || got.OK || len(got.Errors) != 1 || got.Errors[0].Pointer != "/tools" {
		t.Errorf("got %+v, %v", got, err)
	}
	d, err := b.client.ExportAgent(ctx, "pilot")
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(d)
	if err = errors.Join(err, d.Close()); err != nil || !strings.Contains(string(file), "You are a pilot.") {
		t.Fatalf("got %s, %v", file, err)
	}
	if err := b.client.DeleteAgent(ctx, "pilot"); err != nil {
		t.Error(err)
	}
	if got, err := b.client.ImportAgent(ctx, "x", file, false); err != nil || got.Name != "pilot" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := b.client.ImportAgent(ctx, "x", file, true); err != nil {
		t.Error(err)
	}
	if all, err := b.client.Agents(ctx); err != nil || len(all.Items) != 4 {
		t.Errorf("got %+v, %v", all, err)
	}
}
