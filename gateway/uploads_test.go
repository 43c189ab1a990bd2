// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestForwardedByName: media of a forwarded request that were uploaded to the
// service are sent by name.
func TestForwardedByName(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(picture(1100, 1))
	pdf := base64.StdEncoding.EncodeToString([]byte(tinyPDF + "\n%" + strings.Repeat("x", 1<<20)))
	for _, c := range []struct {
		service, path, body string
		want                string // of the part, with the name in the place of NAME
		upstream            http.Handler
	}{
		{
			"chat", "/v1/chat/completions",
			`{"model":"chat","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}},{"type":"text","text":"x"}]}]}`,
			`{"type":"file","file":{"file_id":"NAME"}}`, fake.OpenAI(fake.Options{Open: true}),
		},
		{
			"responses", "/v1/responses",
			`{"model":"responses","input":[{"role":"user","content":[{"type":"input_image","detail":"low","image_url":"data:image/png;base64,` + png + `"}]}]}`,
			`{"type":"input_image","detail":"low","file_id":"NAME"}`, fake.OpenAI(fake.Options{Open: true}),
		},
		{
			"messages", "/v1/messages",
			`{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"},"cache_control":{"type":"ephemeral"}}]}]}`,
			`{"type":"image","source":{"type":"file","file_id":"NAME"},"cache_control":{"type":"ephemeral"}}`, fake.Anthropic(fake.Options{Open: true}),
		},
		{
			"gemini", "/v1beta/models/gemini:generateContent",
			`{"contents":[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"` + png + `"}},{"text":"x"}]}]}`,
			`{"fileData":{"mimeType":"image/png","fileUri":"NAME"}}`, fake.Gemini(fake.Options{Open: true}),
		},
	} {
		t.Run(c.service, func(t *testing.T) {
			b := newBench(t, setup{held: true, services: func(all []model.Service) []model.Service {
				for i := range all {
					all[i].Capabilities.Transport = model.Fact[[]model.Transport]{Value: model.Transports(), Source: model.FromOperator}
				}
				return all
			}})
			b.upstream = c.upstream
			head, tail, _ := strings.Cut(c.want, "NAME")
			named := func() bool {
				_, rest, ok := strings.Cut(b.last(), head)
				name, _, _ := strings.Cut(rest, `"`)
				return ok && name != "" && strings.HasPrefix(rest, name+tail) && len(b.last()) < 10_000
			}
			for round := range 2 {
				if status, body := b.post(c.path, c.body); status != 200 {
					t.Fatalf("%d %s", status, body)
				}
				if !named() {
					t.Errorf("round %d: sent %.400s, want %s", round, b.last(), c.want)
				}
				if !has(b.did(), gateway.DidName) {
					t.Errorf("round %d: did %v", round, b.did())
				}
			}
			large := 0
			for _, body := range b.sent {
				if len(body) >= 1<<20 {
					large++
				}
			}
			if large != 1 {
				t.Errorf("the bytes were sent %d times, want once", large)
			}
			// From another dialect too, and the log says so.
			from, body := "/v1/messages", strings.Replace(`{"model":"M","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}]}]}`, "M", c.service, 1)
			switch c.service {
			case "messages":
				from, body = "/v1/chat/completions", `{"model":"messages","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+png+`"}}]}]}`
			case "chat": // which names PDF alone
				return
			}
			if status, said := b.post(from, body); status != 200 || !has(b.did(), gateway.DidName) {
				t.Errorf("translated: %d %s, did %v", status, said, b.did())
			}
		})
	}
}
