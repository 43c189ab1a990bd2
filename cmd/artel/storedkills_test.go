// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestStoredResponsesSurvive kills the server at random moments while a client makes responses, each
// of which continues the last one that it knows, every second one in the background. Whatever the
// client has the id of is found after the next start, comes to its end and has all that came before.
func TestStoredResponsesSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Responder: func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			for _, word := range []string{"I ", "have ", fmt.Sprint(len(r.Messages)), " messages"} {
				select {
				case <-time.After(5 * time.Millisecond):
				case <-ctx.Done():
					return
				}
				if !yield(model.TextDelta(word), nil) {
					return
				}
			}
			yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}}))
	defer upstream.Close()
	env := with(bareEnvironment(dir), "OPENAI_API_KEY=sk-x", "OPENAI_BASE_URL="+upstream.URL+"/v1")
	p := serving(t, dir, env)
	ask := func(method, path, body string) (status int, answer string, err error) {
		req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(bytes.TrimSpace(b)), err
	}
	depth := map[string]int{"": 0} // of each known id: the messages up to its answer
	last := ""
	for kill := range number(t, "ARTEL_STORED_KILLS", 5) {
		killed, before := make(chan struct{}), rand.IntN(8)
		for n := 0; ; n++ {
			if n == before {
				go func() {
					defer close(killed)
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // the fault itself: any moment
					p.kill()
				}()
			}
			request := map[string]any{"model": "openai", "input": fmt.Sprintf("%d.%d", kill, n), "background": n%2 == 1}
			if last != "" {
				request["previous_response_id"] = last
			}
			body, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			status, answer, err := ask("POST", "/v1/responses", string(body))
			if err != nil {
				break
			}
			id := gjson.Get(answer, "id").String()
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", body, status, answer)
			}
			depth[id] = depth[last] + 2
			if n%2 == 0 {
				last = id
			}
		}
		<-killed
		p = serving(t, dir, env)
		for id, messages := range depth {
			if id == "" {
				continue
			}
			want := fmt.Sprintf("I have %d messages", messages-1)
			for {
				status, answer, err := ask("GET", "/v1/responses/"+id, "")
				if err != nil || status != http.StatusOK {
					t.Fatalf("kill %d: %s: %d %s, %v", kill, id, status, answer, err)
				}
				if s := gjson.Get(answer, "status").String(); s == "in_progress" || s == "queued" {
					time.Sleep(5 * time.Millisecond) // until it has ended
					continue
				}
				if got := gjson.Get(answer, "output.0.content.0.text").String(); got != want {
					t.Fatalf("kill %d: %s says %q, want %q: %s", kill, id, got, want, answer)
				}
				break
			}
		}
	}
	t.Logf("%d responses were known and are there", len(depth)-1)
}
