// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// asked returns the status and the body of a GET with headers.
func asked(ctx context.Context, t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestMetrics: a run and a request of the gateway are in the metrics of a server,
// which a proxy does not get.
func TestMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir))
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if status, body := asked(ctx, t, p.url+"/readyz"); status != http.StatusOK || !strings.Contains(body, "ready") {
		t.Errorf("status %d: %s", status, body)
	}
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Write a plan."})
	if err != nil {
		t.Fatal(err)
	}
	if state := waitForEnd(ctx, t, client, c.ID, sent.RunID); state != artel.RunDone {
		t.Fatalf("the run is %s", state)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", strings.NewReader(`{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	_ = resp.Body.Close()
	status, body := asked(ctx, t, p.url+"/metrics")
	for _, line := range []string{
		`artel_runs_total{state="done"} 1`,
		`artel_gateway_request_seconds_count{inbound="openai",outbound="demo",outcome="2xx"} 1`,
		`artel_tokens_total{kind="output",service="demo",source="run"} `,
		`artel_model_call_seconds_count{dialect="demo",outcome="ok"} `,
		`artel_http_requests_total{face="gateway",status="200"} 1`,
		`artel_store_update_seconds_count{outcome="ok"} `,
		"artel_runs_active 0", "artel_runs_queued 0", "artel_blob_bytes ", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("status %d, no line %s", status, line)
		}
	}
	if status, body := asked(ctx, t, p.url+"/metrics", "X-Forwarded-For", "192.0.2.1"); status != http.StatusForbidden || strings.Contains(body, "artel_runs") {
		t.Errorf("a proxy got %d: %.200s", status, body)
	}
}
