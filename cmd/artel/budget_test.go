// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// newPaid returns a model service of Chat Completions that answers with as many tokens
// as it may, at most 300, and bills 100 for each request.
func newPaid(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		var in struct {
			MaxTokens     int `json:"max_tokens"`
			MaxCompletion int `json:"max_completion_tokens"`
			Stream        bool
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		out := 300
		if n := max(in.MaxTokens, in.MaxCompletion); n > 0 {
			out = min(out, n)
		}
		usage := fmt.Sprintf(`"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d}`, out, 100+out)
		if !in.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"paid","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],`+usage+`}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"x","object":"chat.completion.chunk","model":"paid","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}`+"\n\n")
		_, _ = io.WriteString(w, `data: {"id":"x","object":"chat.completion.chunk","model":"paid","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
		_, _ = io.WriteString(w, `data: {"id":"x","object":"chat.completion.chunk","model":"paid","choices":[],`+usage+`}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// paidServices are two services there, one of them without a price.
func paidServices(s *httptest.Server) []any {
	return []any{
		map[string]any{"id": "paid", "baseURL": s.URL + "/v1", "model": "paid", "price": map[string]any{"input": 4, "output": 4}},
		map[string]any{"id": "unpriced", "baseURL": s.URL + "/v1", "model": "unpriced"},
	}
}

// spent is what all calls have cost.
func (g *guarded) spent(by store.UsageField) (c store.UsageCounts) {
	g.t.Helper()
	today := g.server.app.Usage.Today()
	rows, err := g.server.app.Usage.List(access.With(g.t.Context(), access.Operator()), today.AddDate(0, 0, -1), today, by)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, r := range rows {
		c = c.Plus(r.Counts)
	}
	return c
}

// callModel asks the gateway with a key and reads the whole answer.
func (g *guarded) callModel(path, body, key string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(g.t.Context(), "POST", g.http.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := g.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// TestBudgetOfOneCent: a key with a budget of one cent stops at one cent, whatever its
// clients speak, with many requests at once, and says so in the words of each dialect.
func TestBudgetOfOneCent(t *testing.T) {
	upstream := newPaid(t)
	g := newGuarded(t, access.Options{}, func(c *config) { c.Services = paidServices(upstream) })
	requests := []struct{ path, body, refused string }{
		{"/v1/chat/completions", `{"model":"paid","messages":[{"role":"user","content":"hi"}]}`, `"code":"budget_exceeded"`},
		{"/v1/chat/completions", `{"model":"paid","stream":true,"messages":[{"role":"user","content":"hi"}]}`, `"code":"budget_exceeded"`},
		{"/v1/responses", `{"model":"paid","input":"hi"}`, `"code":"budget_exceeded"`},
		{"/v1/messages", `{"model":"paid","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, `budget`},
		{"/v1beta/models/paid:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, `"status":"RESOURCE_EXHAUSTED"`},
	}
	for n, r := range requests {
		var made struct{ ID, Key string }
		g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"cent`+strconv.Itoa(n)+`","services":["paid"],"budget":{"usd":0.01,"period":"day"}}`)
		before := g.spent(store.ByKey)
		answered := 0
		for refused := false; !refused; {
			resp, text, err := g.callModel(r.path, r.body, made.Key)
			if err != nil {
				t.Fatal(err)
			}
			switch resp.StatusCode {
			case http.StatusOK:
				answered++
			case http.StatusTooManyRequests:
				refused = true
				if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 || after > 24*60*60 || !strings.Contains(strings.ReplaceAll(text, " ", ""), r.refused) {
					t.Errorf("%s: Retry-After %q, %s", r.path, resp.Header.Get("Retry-After"), text)
				}
			default:
				t.Fatalf("%s: %s %s", r.path, resp.Status, text)
			}
		}
		cost := g.spent(store.ByKey).Cost - before.Cost
		if cost > 10_000_000 || cost < 9_400_000 || answered < 6 {
			t.Errorf("%s: %d calls cost %d billionths of a dollar, want one cent", r.path, answered, cost)
		}
	}
	if resp, text := g.ask("GET", "/keys", ""); strings.Contains(text, "nearly used up") || strings.Count(text, "used up until") != len(requests) {
		t.Errorf("the page does not say until when the budgets are used up: %s %s", resp.Status, text)
	}
	var made struct{ ID, Key string }
	g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"many","budget":{"usd":0.01,"period":"month"}}`)
	before := g.spent(store.ByKey)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for refused := 0; refused < 3; {
				resp, _, err := g.callModel("/v1/chat/completions", requests[0].body, made.Key)
				if err != nil {
					t.Error(err)
					return
				}
				if resp.StatusCode == http.StatusTooManyRequests {
					refused++
				}
			}
		})
	}
	wg.Wait()
	if cost := g.spent(store.ByKey).Cost - before.Cost; cost > 10_000_000 || cost < 5_000_000 {
		t.Errorf("many at once cost %d billionths of a dollar", cost)
	}
	if resp, text := g.ask("POST", "/v1/chat/completions", strings.ReplaceAll(requests[0].body, "paid", "unpriced"), "Authorization", "Bearer "+made.Key); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "unpriced") || !strings.Contains(text, "price: {input") {
		t.Errorf("a service without a price: %s %s", resp.Status, text)
	}
	if resp, text := g.ask("POST", "/api/v1/gateway/keys", `{"name":"x","services":["unpriced"],"budget":{"usd":1,"period":"day"}}`); resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "unpriced") {
		t.Errorf("a budget for a service without a price: %s %s", resp.Status, text)
	}
}

// TestUsageOfRuns: the calls of runs count for their user and agent, with the same
// numbers as the run has.
func TestUsageOfRuns(t *testing.T) {
	upstream := newPaid(t)
	g := newGuarded(t, access.Options{}, func(c *config) {
		c.Services, c.DefaultService = paidServices(upstream), "paid"
	})
	var c struct{ ID artel.ConversationID }
	g.must(&c, "POST", "/api/v1/conversations", `{}`)
	var sent struct {
		RunID artel.RunID `json:"run_id"`
	}
	g.must(&sent, "POST", "/api/v1/conversations/"+string(c.ID)+"/messages", `{"text":"hi"}`)
	var run artel.Run
	for run.State != artel.RunDone {
		if g.must(&run, "GET", "/api/v1/runs/"+string(sent.RunID), ""); run.State == artel.RunFailed {
			t.Fatalf("%+v", run)
		}
	}
	got := g.spent(store.ByAgent)
	if got.Calls != 1 || got.Input != run.Usage.InputTokens || got.Output != run.Usage.OutputTokens || got.Cost != (got.Input+got.Output)*4000 {
		t.Errorf("got %+v; the run has %+v", got, run.Usage)
	}
}

// TestUsageList: users see their own usage, administrators that of all, as JSON and as
// CSV, whatever it is listed by.
func TestUsageList(t *testing.T) {
	upstream := newPaid(t)
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.Services = paidServices(upstream) })
	admin := g.setUp()
	amy, bob := g.user(admin, "amy@example.org", "member"), g.user(admin, "bob@example.org", "member")
	for _, cookie := range []string{amy, bob} {
		var made struct{ ID, Key string }
		g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"=laptop"}`, "Cookie", cookie, "Origin", g.http.URL)
		for _, name := range []string{"paid", "unpriced"} {
			if resp, text, err := g.callModel("/v1/chat/completions", `{"model":"`+name+`","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`, made.Key); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(resp, text, err)
			}
		}
	}
	type list struct {
		Items []struct {
			Calls  int
			Name   string
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
			Cost   artel.Cost
		}
		Total struct{ Calls int }
	}
	for by, rows := range map[string]int{"day": 1, "user": 1, "key": 1, "service": 2, "model": 2, "agent": 1} {
		var mine, all list
		g.must(&mine, "GET", "/api/v1/usage?by="+by, "", "Cookie", amy)
		if g.must(&all, "GET", "/api/v1/usage?by="+by, "", "Cookie", admin); len(mine.Items) != rows || mine.Total.Calls != 2 || all.Total.Calls != 4 {
			t.Errorf("by %s: %+v, of all %+v", by, mine, all)
		}
		if by == "key" && (mine.Items[0].Name != "=laptop" || mine.Items[0].Input != 200 || mine.Items[0].Output != 100 || mine.Items[0].Cost != artel.Cost{USD: 0.0006, Calls: 1}) {
			t.Errorf("by key: %+v", mine)
		}
	}
	for _, c := range []struct{ path, accept string }{{"?by=key&format=csv", ""}, {"?by=key", "text/csv"}} {
		resp, text := g.ask("GET", "/api/v1/usage"+c.path, "", "Cookie", amy, "Accept", c.accept)
		if lines := strings.Split(text, "\n"); resp.Header.Get("Content-Type") != "text/csv; charset=utf-8" || len(lines) != 3 || !strings.Contains(lines[1], ",'=laptop,2,200,0,100,0,0.0006,1") {
			t.Errorf("%s: %q", c.path, text)
		}
	}
	for _, q := range []string{"by=cost", "from=tomorrow", "from=2026-03-04&to=2026-03-03", "from=1990-01-01"} {
		if resp, text := g.ask("GET", "/api/v1/usage?"+q, "", "Cookie", amy); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s %s", q, resp.Status, text)
		}
	}
}
