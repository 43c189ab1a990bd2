// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// labelled returns requests in all dialects with a picture under a label, in a user
// message or in the result of a tool.
func labelled(service, label string, png []byte) map[string][2]string {
	chat := `{"type":"image_url","image_url":{"url":"data:` + label + `;base64,` + encoded(png) + `"}}`
	item := `{"type":"input_image","image_url":"data:` + label + `;base64,` + encoded(png) + `"}`
	block := `{"type":"image","source":{"type":"base64","media_type":"` + label + `","data":"` + encoded(png) + `"},"cache_control":{"type":"ephemeral"}}`
	blob := `{"inlineData":{"mimeType":"` + label + `","data":"` + encoded(png) + `"}}`
	t := turns()
	out := map[string][2]string{
		"chat": {t[0].path, t[0].write(service, `"seen"`, "["+chat+"]")}, "chat, tool": {t[0].path, t[0].write(service, "["+chat+"]", `"look"`)},
		"responses": {t[1].path, t[1].write(service, `"seen"`, "["+item+"]")}, "responses, tool": {t[1].path, t[1].write(service, "["+item+"]", `"look"`)},
		"messages": {t[2].path, t[2].write(service, `"seen"`, "["+block+"]")}, "messages, tool": {t[2].path, t[2].write(service, "["+block+"]", `"look"`)},
	}
	path := "/v1beta/models/" + service + ":generateContent"
	out["gemini"] = [2]string{path, `{"contents":[{"role":"user","parts":[` + blob + `]}]}`}
	out["gemini, tool"] = [2]string{path, `{"contents":[{"role":"user","parts":[{"text":"look"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{}},"thoughtSignature":"c2lnbmF0dXJl"}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"seen"},"parts":[` + blob + `]}}]}]}`}
	return out
}

// TestWrongLabels: a picture under the label of another type is sent under its own, in
// every dialect and place, and everything beside the label stays.
func TestWrongLabels(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	png := picture(8, 1)
	for _, label := range []string{"image/jpeg", "image/png", "image/x-png"} {
		for name, c := range labelled("SERVICE", label, png) {
			dialect, _, _ := strings.Cut(name, ",")
			for _, service := range []string{dialect, "other"} {
				path, body := strings.ReplaceAll(c[0], "SERVICE", service), strings.ReplaceAll(c[1], "SERVICE", service)
				if status, got := b.post(path, body, "anthropic-version", "2023-06-01"); status != 200 {
					t.Fatalf("%s as %s to %s: %d %s", name, label, service, status, got)
				}
				wrong := label != "image/png"
				if service == "other" {
					seen := mediaOf(b.asked[len(b.asked)-1])
					if len(seen) != 1 || seen[0].MediaType != "image/png" {
						t.Errorf("%s as %s, translated: %+v", name, label, seen)
					}
					continue
				}
				if sent := b.last(); strings.Contains(sent, label) == wrong || !strings.Contains(sent, "image/png") || !strings.Contains(sent, encoded(png)) || b.entry().Tries != 1 ||
					strings.Contains(body, "cache_control") != strings.Contains(sent, "cache_control") {
					t.Errorf("%s as %s: sent %s", name, label, sent)
				}
				if has(b.did(), "relabelled") != wrong {
					t.Errorf("%s as %s: did %v", name, label, b.did())
				}
			}
		}
	}
}

// TestNamesOfRelabelled: Vertex names pictures, and the name stays.
func TestNamesOfRelabelled(t *testing.T) {
	b := newBench(t)
	b.upstream = says(`{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`)
	c := labelled("gemini", "image/jpeg", picture(8, 1))["gemini"]
	if status, _ := b.post(c[0], strings.Replace(c[1], `"data":`, `"displayName":"a \"b.png","data":`, 1)); status != 200 || !strings.Contains(b.last(), `"mimeType":"image/png"`) || !strings.Contains(b.last(), `"displayName":"a \"b.png"`) {
		t.Errorf("sent %s", b.last())
	}
}

func mediaOf(r *model.Request) []artel.Media {
	var out []artel.Media
	for _, m := range r.Messages {
		out = append(out, artel.MediaOf(m.Parts)...)
	}
	return out
}

// TestLabelsAreNotLearned: if a service refuses a picture because of its label, other
// requests with the same bytes are sent unchanged.
func TestLabelsAreNotLearned(t *testing.T) {
	b := newBench(t)
	api := fake.Anthropic(fake.Options{Open: true})
	refuse := true
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse && strings.Contains(b.last(), encoded(picture(8, 1))) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image"}}`))
			return
		}
		api.ServeHTTP(w, r)
	})
	c := labelled("messages", "image/png", picture(8, 1))["messages"]
	for range 3 {
		if status, body := b.post(c[0], c[1], "anthropic-version", "2023-06-01"); status != 200 || !has(b.did(), "described") {
			t.Fatalf("%d %s, did %v", status, body, b.did())
		}
	}
	refuse = false
	if status, body := b.post(c[0], c[1], "anthropic-version", "2023-06-01"); status != 200 || b.last() == "" || has(b.did(), "described") {
		t.Errorf("%d %s, did %v", status, body, b.did())
	}
	if marks := b.registry.Learned().Marks("messages"); len(marks) > 0 {
		t.Errorf("learned %+v", marks)
	}
}

// TestDamagedPictures: a picture without its end is described before a service is asked,
// in every dialect; the service is not asked twice, and nothing is learned.
func TestDamagedPictures(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	png := picture(8, 1)
	for name, c := range labelled("SERVICE", "image/png", png[:len(png)-20]) {
		dialect, _, _ := strings.Cut(name, ",")
		for _, service := range []string{dialect, "other"} {
			path, body := strings.ReplaceAll(c[0], "SERVICE", service), strings.ReplaceAll(c[1], "SERVICE", service)
			status, got := b.post(path, body, "anthropic-version", "2023-06-01")
			if e := b.entry(); status != 200 || e.Tries != 1 || !has(b.did(), "described") || e.Changes[0].Reason != artel.ReasonUnreadable {
				t.Fatalf("%s to %s: %d %s, %+v", name, service, status, got, e)
			}
			if service != "other" && (strings.Contains(b.last(), encoded(png)[:40]) || !strings.Contains(b.last(), "[file failed: ")) {
				t.Errorf("%s: sent %s", name, b.last())
			}
		}
	}
}

// TestBytesOfOneClient: bytes that a service could not read are left out of the requests
// of the client that sent them twice, and stay in those of others.
func TestBytesOfOneClient(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{{Name: "one", Secret: "1"}, {Name: "two", Secret: "2"}}}})
	api := fake.OpenAI(fake.Options{Open: true})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(b.last(), encoded(picture(8, 1))) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"Could not process image","type":"invalid_request_error"}}`))
			return
		}
		api.ServeHTTP(w, r)
	})
	c := labelled("chat", "image/png", picture(8, 1))["chat"]
	for _, step := range []struct {
		key   string
		tries int
	}{{"1", 2}, {"1", 2}, {"1", 1}, {"2", 2}, {"1", 1}} {
		if status, body := b.post(c[0], c[1], "Authorization", "Bearer "+step.key); status != 200 || b.entry().Tries != step.tries {
			t.Errorf("%+v: %d %s, %+v", step, status, body, b.entry())
		}
	}
	marks := b.registry.Learned().Marks("chat")
	if len(marks) != 2 || marks[0].MediaType != "image/png" || marks[0].Place != model.InUser || marks[0].Dialect != model.OpenAI || marks[0].Evidence == "" {
		t.Errorf("%+v", marks)
	}
}
