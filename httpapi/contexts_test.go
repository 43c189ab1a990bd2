// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/run/record"
)

func TestContextsOverHTTP(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "dot.txt", "text/plain", "one dot")
	b.upload(c, "never.txt", "text/plain", "nobody sends it")
	shown := b.object(b.do("POST", "/conversations/"+c+"/preview", map[string]any{"text": "see", "attachments": []string{"dot.txt"}}), 200)
	if shown["exact"] != true || len(shown["blocks"].([]any)) != 2 || shown["record"].(map[string]any)["processors"] == nil {
		t.Fatalf("the preview: %v", shown)
	}
	run := b.ended(c, map[string]any{
		"text": "see", "attachments": []string{"dot.txt"}, "seed": shown["seed"], "clock": map[string]any{"now": shown["clock"]},
	})["id"].(string)
	ctx := apptest.Context(t)
	list, err := b.client.Contexts(ctx, artel.RunID(run))
	if err != nil || len(list.Items) == 0 {
		t.Fatal(list, err)
	}
	one := list.Items[0]
	if one.RequestHash != shown["request_sha256"] || one.Number != 1 || one.Usage == nil {
		t.Errorf("another request than the preview's: %+v", one)
	}
	key := one.ContextKey
	if full, err := b.client.Context(ctx, key); err != nil || len(full.Record.Processors) < 5 || full.Tokens.Total == 0 {
		t.Errorf("%+v %v", full, err)
	}
	blocks, err := b.client.ContextMessages(ctx, key)
	if err != nil || len(blocks.Items) != one.Messages || blocks.Items[0].Processor != "injection-assembler" {
		t.Errorf("%+v %v", blocks, err)
	}
	raw, err := b.client.ContextRequest(ctx, key)
	if err != nil || !json.Valid(raw.Body) || !strings.Contains(string(raw.Body), "one dot") {
		t.Errorf("%+v %v", raw, err)
	}
	for about, want := range map[string]struct {
		code inspect.WhyCode
		seen bool
	}{
		"dot.txt": {inspect.WhyFile, true}, "never.txt": {inspect.WhyUnattached, false}, "gone.txt": {inspect.WhyNotHere, false}, "artel:role-prompt": {inspect.WhySent, true},
	} {
		w, err := b.client.Why(ctx, key, about)
		if err != nil || len(w.Findings) == 0 || w.Findings[0].Code != want.code || w.Seen != want.seen || strings.Contains(w.Findings[0].Text, "why.") {
			t.Errorf("why %s: %+v %v", about, w, err)
		}
	}
	b.ended(c, map[string]any{"text": "and now"})
	second := b.object(b.do("GET", "/runs/"+run, nil), 200)
	messages := b.object(b.do("GET", "/conversations/"+c+"/messages?limit=500", nil), 200)["items"].([]any)
	last := messages[len(messages)-1].(map[string]any)["run_id"].(string)
	d, err := b.client.ContextDiff(ctx, record.ContextKey{Run: artel.RunID(last), Number: 1}, key)
	if err != nil || d.First == nil || d.Prefix.Ratio <= 0 || second["id"] != run {
		t.Errorf("%+v %v", d, err)
	}
	b.problem(b.do("GET", "/runs/"+run+"/contexts/99", nil), 404, "not_found")
	b.problem(b.do("GET", "/runs/"+run+"/contexts/1/diff?with=x", nil), 422, "invalid")
	b.problem(b.do("GET", "/runs/"+run+"/contexts/1/diff", nil), 404, "not_found")
	b.problem(b.do("POST", "/conversations/"+c+"/messages", map[string]any{"text": "x", "clock": map[string]any{"now": "2001-01-01T00:00:00Z"}}), 422, "invalid")
}

func TestLevelsOverHTTP(t *testing.T) {
	b := newBench(t, "")
	etag := func(a answered) header { return header{"If-Match": a.Header.Get("ETag")} }
	entry := `{"items":[{"id":"merge-system","enabled":false},{"id":"injection-assembler","config":{"preview":7}}]}`
	before := b.do("GET", "/services/demo/processors", nil)
	if v := b.object(before, 200); v["set"] != false || len(v["items"].([]any)) != 0 {
		t.Errorf("without settings: %v", v)
	}
	saved := b.do("PUT", "/services/demo/processors", entry, etag(before))
	if v := b.object(saved, 200); v["set"] != true || len(v["items"].([]any)) != 2 {
		t.Errorf("saved: %v", v)
	}
	b.problem(b.do("PUT", "/services/demo/processors", entry, etag(before)), 412, "stale")
	b.object(b.do("PUT", "/agents/lead_agent/processors", `{"items":[{"id":"merge-system"}]}`), 200)

	state := func() map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, p := range b.object(b.do("GET", "/pipeline?agent=lead_agent&service=demo", nil), 200)["items"].([]any) {
			out[p.(map[string]any)["id"].(string)] = p.(map[string]any)
		}
		return out
	}
	list := state()
	if p := list["merge-system"]; p["winner"] != "agent" || p["enabled"] != true || p["levels"].(map[string]any)["model"] == nil || p["movable"] != true {
		t.Errorf("both levels: %v", p)
	}
	if p := list["injection-assembler"]; p["winner"] != "model" || p["config"].(map[string]any)["preview"] != float64(7) || len(p["fields"].([]any)) == 0 || p["always"] != true {
		t.Errorf("one level: %v", p)
	}
	for body, want := range map[string]string{
		`{"items":[{"id":"injection-assembler","enabled":false}]}`:             "cannot be disabled",
		`{"items":[{"id":"injection-assembler","config":{"preview":-1}}]}`:     "config.preview",
		`{"items":[{"id":"injection-assembler","config":{"colour":1}}]}`:       "unknown field",
		`{"items":[{"id":"merge-system"},{"id":"merge-system"}]}`:              "named twice",
		`{"items":[{"id":"merge-system","config":{"separator":["no text"]}}]}`: "want a string",
	} {
		if a := b.do("PUT", "/services/demo/processors", body, etag(saved)); a.StatusCode != 422 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	b.problem(b.do("GET", "/services/none/processors", nil), 404, "not_found")
	b.problem(b.do("PUT", "/agents/none/processors", entry), 404, "not_found")

	b.object(b.do("PUT", "/pipeline/order", `{"items":["merge-roles","merge-system"]}`), 200)
	b.problem(b.do("PUT", "/pipeline/order", `{"items":["session-loader"]}`), 422, "invalid")
	ids := []string{}
	for _, p := range b.object(b.do("GET", "/pipeline", nil), 200)["items"].([]any) {
		ids = append(ids, p.(map[string]any)["id"].(string))
	}
	if got := strings.Join(ids, " "); !strings.Contains(got, "token-limiter merge-roles merge-system") {
		t.Errorf("the order: %s", got)
	}
	file := b.object(b.do("GET", "/settings", nil), 200)

	if v := b.object(b.do("DELETE", "/services/demo/processors", nil, etag(saved)), 200); v["set"] != false {
		t.Errorf("reset: %v", v)
	}
	b.object(b.do("DELETE", "/agents/lead_agent/processors", nil), 200)
	b.object(b.do("DELETE", "/pipeline/order", nil), 200)
	if p := state()["injection-assembler"]; p["winner"] != "default" || p["config"] != nil {
		t.Errorf("after the reset: %v", p)
	}

	// What was exported comes back whole.
	stale := b.do("GET", "/settings", nil)
	b.object(b.do("PUT", "/settings", file, etag(stale)), 200)
	b.problem(b.do("PUT", "/settings", file, etag(stale)), 412, "stale")
	if p := state()["injection-assembler"]; p["winner"] != "model" {
		t.Errorf("after the import: %v", p)
	}
	b.problem(b.do("PUT", "/settings", `{"artel_settings":2}`), 422, "invalid")
	b.problem(b.do("PUT", "/settings", `{"artel_settings":1,"services":{"demo":[{"id":"merge-roles","config":{"x":1}}]}}`), 422, "invalid")
	empty, tag, err := b.client.SaveSettings(apptest.Context(t), json.RawMessage(`{"artel_settings":1}`), "")
	if err != nil || tag == "" || strings.Contains(string(empty), "services") {
		t.Errorf("an empty file: %s %v", empty, err)
	}
}

// A comparison lists what an import would change, and changes nothing; the tag that comes
// with it is that of the import.
func TestSettingsAreCompared(t *testing.T) {
	b := newBench(t, "")
	b.object(b.do("PUT", "/me/profile", `{"name":"Ada","persona":"counts"}`), 200)
	file := `{"artel_settings":1,"profile":{"name":"Eve"},"agents":{"nobody":[{"id":"merge-roles","enabled":false}]}}`
	r, err := b.client.CompareSettings(apptest.Context(t), json.RawMessage(file))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, c := range r.Changes {
		told = append(told, fmt.Sprint(c.Change, " ", c.Area, " ", c.Name, " ", c.Processor, " ", string(c.Was), " ", string(c.Is), " ", c.Unknown))
	}
	want := []string{
		`changed profile name  "Ada" "Eve" false`, `removed profile persona  "counts"  false`,
		`added agent nobody merge-roles  {"enabled":false} true`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v := b.object(b.do("GET", "/me/profile", nil), 200); v["name"] != "Ada" {
		t.Errorf("it was changed: %v", v)
	}
	if _, _, err := b.client.SaveSettings(apptest.Context(t), json.RawMessage(file), r.ETag); err != nil {
		t.Error(err)
	}
	if _, _, err := b.client.SaveSettings(apptest.Context(t), json.RawMessage(file), r.ETag); err == nil {
		t.Error("the tag of what was replaced is taken again")
	}
	b.problem(b.do("POST", "/settings/compare", `{"artel_settings":9}`), 422, "invalid")
}

func TestProfileOverHTTP(t *testing.T) {
	b := newBench(t, "")
	first := b.do("GET", "/me/profile", nil)
	if v := b.object(first, 200); len(v) != 0 {
		t.Errorf("nothing was said: %v", v)
	}
	profile := `{"name":"Ada","persona":"counts","language":"zh","rules":{"rules":[]}}`
	saved := b.do("PUT", "/me/profile", profile, header{"If-Match": first.Header.Get("ETag")})
	if v := b.object(saved, 200); v["name"] != "Ada" || v["rules"] == nil {
		t.Errorf("saved: %v", v)
	}
	b.problem(b.do("PUT", "/me/profile", profile, header{"If-Match": first.Header.Get("ETag")}), 412, "stale")
	b.problem(b.do("PUT", "/me/profile", `{"language":"no language"}`), 422, "invalid")
	b.problem(b.do("PUT", "/me/profile", `{"name":"`+strings.Repeat("a", 201)+`"}`), 413, "too_large")
	c := b.conversation()
	blocks, err := b.client.Preview(apptest.Context(t), artel.ConversationID(c), httpapi.NewMessage{Text: "see"})
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := json.Marshal(blocks.Messages); !strings.Contains(string(raw), "时间") {
		t.Errorf("the language of the profile is not that of the texts for models: %s", raw)
	}
}
