// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
)

// TestExtraFields: a service gets the header and the body fields that its
// configuration adds, and the listed fields of the client's header, forwarded and
// translated. A secret among them never reaches a client.
func TestExtraFields(t *testing.T) {
	everywhere := map[string]model.Secret{"X-Everywhere": "everywhere-secret", "X-Title": "of the gateway"}
	b := newBench(t, setup{options: backend.Options{Headers: everywhere}, services: func(s []model.Service) []model.Service {
		for i := range s {
			s[i].Extra = model.ExtraFields{
				Header:    map[string]model.Secret{"X-Title": "Artel", "Cf-Access-Client-Secret": "hidden-secret"},
				Body:      json.RawMessage(`{"service_tier":"flex","metadata":{"team":"a"}}`),
				Forwarded: []string{"Traceparent", "X-Session-*", "Authorization"},
			}
			if s[i].ID == "gemini" {
				s[i].Extra.Body = json.RawMessage(`{"generationConfig":{"seed":7}}`)
			}
		}
		return s
	}})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"cannot take hidden-secret and everywhere-secret","type":"invalid_request_error"}}`))
	})
	for _, service := range []string{"chat", "messages", "responses", "gemini"} {
		for _, client := range []string{"chat", "messages", "responses", "gemini"} {
			path, body := request(client, service, false)
			_, got := b.post(path, body, "Traceparent", "00-1", "X-Session-Id", "s1", "X-Other", "no", "Authorization", "Bearer mine")
			if strings.Contains(got, "hidden-secret") || strings.Contains(got, "everywhere-secret") {
				t.Errorf("%s to %s: the client reads a secret: %s", client, service, got)
			}
			h := b.headers[len(b.headers)-1]
			if h.Get("X-Title") != "Artel" || h.Get("X-Everywhere") != "everywhere-secret" || h.Get("Cf-Access-Client-Secret") != "hidden-secret" || h.Get("Traceparent") != "00-1" || h.Get("X-Session-Id") != "s1" || h.Get("X-Other") != "" || h.Get("Authorization") == "Bearer mine" {
				t.Errorf("%s to %s: header %v", client, service, h)
			}
			sent := b.last()
			if service == "gemini" {
				if gjson.Get(sent, "generationConfig.seed").Int() != 7 {
					t.Errorf("%s to %s: %s", client, service, sent)
				}
			} else if gjson.Get(sent, "service_tier").String() != "flex" || gjson.Get(sent, "metadata.team").String() != "a" || strings.Count(sent, `"metadata"`) != 1 {
				t.Errorf("%s to %s: %s", client, service, sent)
			}
		}
	}
	b.post("/v1/messages/count_tokens", `{"model":"messages","messages":[{"role":"user","content":"hi"}]}`, "Traceparent", "00-2", "X-Other", "no")
	if h := b.headers[len(b.headers)-1]; h.Get("Traceparent") != "00-2" || h.Get("X-Other") != "" {
		t.Errorf("counting: header %v", h)
	}
}
