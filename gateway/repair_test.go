// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
)

// webPicture is where a picture is.
const webPicture = "https://pictures.example/a%20b.png?size=1&x=%22"

// A turn is a request with the content of a tool's result in it, and with one of
// a user where there is one, both JSON.
type turn struct {
	service, path string
	header        []string
	write         func(service, result, user string) string
}

func turns() []turn {
	return []turn{
		{"chat", "/v1/chat/completions", nil, func(service, result, user string) string {
			return `{"model":"` + service + `","messages":[{"role":"user","content":` + user + `},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":` + result + `}]}`
		}},
		{"responses", "/v1/responses", nil, func(service, result, user string) string {
			return `{"model":"` + service + `","input":[{"role":"user","content":` + user + `},{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":` + result + `}]}`
		}},
		{"messages", "/v1/messages", []string{"anthropic-version", "2023-06-01"}, func(service, result, user string) string {
			return `{"model":"` + service + `","max_tokens":9,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":` + user + `},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":` + result + `}]}]}`
		}},
	}
}

// partsOf are the parts of a service's dialect that hold a picture: inside, by
// address, and by the id of a file.
func partsOf(service string, png []byte) (inside, address, id string) {
	switch service {
	case "responses":
		return `{"type":"input_image","image_url":"` + dataURL(png) + `"}`, `{"type":"input_image","image_url":` + quoted(webPicture) + `}`, `{"type":"input_image","file_id":"file-abc"}`
	case "messages":
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded(png) + `"}}`,
			`{"type":"image","source":{"type":"url","url":` + quoted(webPicture) + `}}`, `{"type":"image","source":{"type":"file","file_id":"file-abc"}}`
	}
	return `{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}`, `{"type":"image_url","image_url":{"url":` + quoted(webPicture) + `}}`, `{"type":"file","file":{"file_id":"file-abc"}}`
}

// TestOddParts: parts with a source_type, which LangChain sends on as they are,
// become parts of the dialect, in messages and in results of tools, whatever
// stands beside them.
func TestOddParts(t *testing.T) {
	t.Parallel()
	png := picture(8, 4)
	odd := map[string]string{
		"base64": `{"type":"image","source_type":"base64","mime_type":"image/png","data":"` + encoded(png) + `"}`,
		"url":    `{ "type":"image", "source_type":"url", "url":` + quoted(webPicture) + `, "mime_type":"image/png", "metadata":{"a":1} }`,
		"id":     `{"type":"image","source_type":"id","id":"file-abc"}`,

		"base64 of LangChain 1":               `{"type":"image","mime_type":"image/png","base64":"` + encoded(png) + `","id":"lc_1","index":0}`,
		"base64 of LangChain 1 in JavaScript": `{"type":"image","mimeType":"image/png","data":"` + encoded(png) + `","metadata":{}}`,
		"base64 as a file":                    `{"type":"file","mime_type":"image/png","base64":"` + encoded(png) + `"}`,
		"base64 of langchaingo":               `{"type":"binary","binary":{"mime_type":"image/png","data":"` + encoded(png) + `"}}`,
		"url of LangChain 1":                  `{"type":"image","url":` + quoted(webPicture) + `}`,
		"id of LangChain 1":                   `{"type":"image","file_id":"file-abc"}`,
		"id of LangChain 1 in JavaScript":     `{"type":"image","fileId":"file-abc"}`,
	}
	for _, c := range turns() {
		t.Run(c.service, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.upstream = http.HandlerFunc(apis)
			want := map[string]string{}
			want["base64"], want["url"], want["id"] = partsOf(c.service, png)
			text := `{"type":"text","text":"see"}`
			if c.service == "responses" {
				text = `{"type":"input_text","text":"see"}`
			}
			for what, part := range odd {
				kind, _, _ := strings.Cut(what, " ")
				if status, body := b.post(c.path, c.write(c.service, `"seen"`, "["+text+" , "+part+"]"), c.header...); status != 200 || !has(b.did(), "repaired") {
					t.Errorf("%s, in a message: %d %s, did %v", what, status, body, b.did())
				}
				if !strings.Contains(b.last(), "["+text+" , "+want[kind]+"]") {
					t.Errorf("%s, in a message: sent %s", what, b.last())
				}
				status, body := b.post(c.path, c.write(c.service, "["+text+","+part+"]", `"look"`), c.header...)
				if status != 200 || !has(b.did(), "repaired") || b.entry().Changes[0].Call != "call_1" || !strings.Contains(b.last(), want[kind]) {
					t.Errorf("%s, in a result: %d %s, did %+v, sent %s", what, status, body, b.entry().Changes, b.last())
				}
				if c.service == "chat" { // which takes none there
					label := `"content":"see"},{"role":"user","content":[{"type":"text","text":"file, from tool call call_1"},` + want[kind] + `]}`
					if !has(b.did(), "carried") || !strings.Contains(b.last(), label) {
						t.Errorf("%s, in a result: did %v, sent %s", kind, b.did(), b.last())
					}
				}
				first := b.last()
				if b.post(c.path, c.write(c.service, "["+text+","+part+"]", `"look"`), c.header...); b.last() != first {
					t.Errorf("%s: the same request is other bytes", what)
				}
				// For a service of another dialect.
				if kind == "base64" {
					if status, body := b.post(c.path, c.write("other", "["+text+","+part+"]", `"look"`), c.header...); status != 200 {
						t.Fatalf("translated: %d %s", status, body)
					}
					asked := b.asked[len(b.asked)-1].Messages
					if res, ok := asked[len(asked)-1].Parts[0].(artel.ToolResult); !ok || len(artel.MediaOf(res.Parts)) != 1 {
						t.Errorf("translated: %+v", asked[len(asked)-1])
					}
				}
			}
			// What leaves a doubt stays byte for byte, and all does without the switch.
			for what, part := range map[string]string{
				"another member": strings.Replace(odd["base64"], `"type"`, `"role":"x","type"`, 1),
				"no base64":      `{"type":"image","source_type":"base64","mime_type":"image/png","data":"not base64 at all!"}`,
				"other bytes":    strings.Replace(odd["base64"], "image/png", "image/gif", 1),
				"a text":         `{"type":"file","source_type":"text","text":"hello","mime_type":"text/plain"}`,
				"no address":     strings.Replace(odd["url"], "https:", "ftp:", 1),
				"a password":     strings.Replace(odd["url"], "https://", "https://a:b@", 1),
				"no id":          strings.Replace(odd["id"], "file-abc", "", 1),
				"no string":      strings.Replace(odd["id"], `"file-abc"`, `7`, 1),
				"bytes as list":  `{"type":"image","mimeType":"image/png","data":{"0":137}}`,
				"more of binary": strings.Replace(odd["base64 of langchaingo"], `"data"`, `"x":1,"data"`, 1),
				"other binary":   strings.Replace(odd["base64 of langchaingo"], "image/png", "image/gif", 1),
			} {
				if c.refused(t, b, part); strings.Count(b.last(), part) != 2 || has(b.did(), "repaired") {
					t.Errorf("%s: did %v, sent %s", what, b.did(), b.last())
				}
			}
			b = newBench(t, setup{options: backend.Options{Rewriting: backend.Rewriting{Repair: new(false)}}})
			b.upstream = http.HandlerFunc(apis)
			for kind, part := range odd {
				if c.refused(t, b, part); strings.Count(b.last(), part) != 2 || has(b.did(), "repaired") {
					t.Errorf("%s, without the switch: did %v, sent %s", kind, b.did(), b.last())
				}
			}
		})
	}
}

// refused sends a part, which no service takes, in a message and in a result.
func (c turn) refused(t *testing.T, b *bench, part string) {
	t.Helper()
	if status, body := b.post(c.path, c.write(c.service, "["+part+"]", "["+part+"]"), c.header...); status != 400 {
		t.Errorf("%d %s", status, body)
	}
}

// TestAddressesInTexts: a list of parts in a string may name pictures by their
// addresses, in all the forms of the client libraries. They become parts of the
// dialect where the service has a place for them; where it takes no pictures, the
// address is what the model reads.
func TestAddressesInTexts(t *testing.T) {
	t.Parallel()
	png := picture(8, 5)
	forms := map[string]string{
		"the AI SDK's":       `{"type":"image-url","url":URL}`,
		"the AI SDK's files": `{"type":"image-url","url":URL,"providerOptions":{}}`,
		"LangChain's":        `{"type":"image","url":URL}`,
		"LangChain's old":    `{"type":"image","source_type":"url","url":URL,"mime_type":"image/png"}`,
		"Chat Completions'":  `{"type":"image_url","image_url":{"url":URL,"detail":"low"}}`,
		"a bare address":     `{"type":"image_url","image_url":URL}`,
	}
	for _, c := range turns() {
		t.Run(c.service, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.upstream = http.HandlerFunc(apis)
			_, address, _ := partsOf(c.service, png)
			send := func(service, list string) string {
				t.Helper()
				if status, body := b.post(c.path, c.write(service, quoted(list), `"look"`), c.header...); status != 200 {
					t.Fatalf("%s: %d %s", list, status, body)
				}
				return b.last()
			}
			for what, form := range forms {
				list := `[{"type":"text","text":"here it is"},` + strings.Replace(form, "URL", quoted(webPicture), 1) + `]`
				sent := send(c.service, list)
				if !has(b.did(), "repaired") || strings.Count(sent, address) != 1 || !strings.Contains(sent, `"here it is"`) || strings.Contains(sent, `\"type\"`) {
					t.Errorf("%s: did %v, sent %s", what, b.did(), sent)
				}
				if has(b.did(), "carried") != (c.service == "chat") {
					t.Errorf("%s: did %v", what, b.did())
				}
				if send(c.service, list) != sent {
					t.Errorf("%s: the same request is other bytes", what)
				}
			}
			if c.service == "chat" {
				sent := send("text", `[{"type":"text","text":"here it is"},{"type":"image-url","url":`+quoted(webPicture)+`}]`)
				if !has(b.did(), "repaired", "described") || !strings.Contains(sent, `"content":"here it is\n\n`+webPicture+`"`) && !strings.Contains(sent, quoted("here it is\n\n"+webPicture)) || strings.Contains(sent, "image_url") {
					t.Errorf("for a model that sees nothing: did %v, sent %s", b.did(), sent)
				}
				twice := `{"type":"image-url","url":` + quoted(webPicture) + `}`
				if sent := send("chat", "["+twice+","+twice+"]"); strings.Count(sent, address) != 1 || !strings.Contains(sent, "already shown") {
					t.Errorf("twice the same: sent %s", sent)
				}
			}
			// A data URL in the place of an address.
			inside, _, _ := partsOf(c.service, png)
			if sent := send(c.service, `[{"type":"image","url":"`+dataURL(png)+`"}]`); !has(b.did(), "repaired") || !strings.Contains(sent, inside) {
				t.Errorf("a data URL: did %v, sent %s", b.did(), sent)
			}
			for what, list := range map[string]string{
				"no address":       strings.Replace(forms["LangChain's"], "URL", `"pictures/a.png, which is not an address but a path of a file"`, 1),
				"an odd member":    strings.Replace(forms["LangChain's"], "URL", quoted(webPicture)+`,"cost":3`, 1),
				"an inner one":     strings.Replace(forms["Chat Completions'"], "URL", quoted(webPicture)+`,"cost":3`, 1),
				"the id of a file": `{"type":"image","source_type":"id","id":"file-abcdefghijklmnopqrstuvwxyz"}`,
				"one that is not":  strings.Replace(forms["LangChain's"], "URL", quoted(webPicture), 1) + `,{"type":"tool_use","id":"x"}`,
			} {
				if sent := send(c.service, "["+list+"]"); !strings.Contains(sent, quoted("["+list+"]")) || has(b.did(), "repaired") {
					t.Errorf("%s: did %v, sent %s", what, b.did(), sent)
				}
			}
		})
	}
}

// TestAddressesForGemini: results of its functions hold bytes alone, so what the
// address leads to is fetched, and is a text where that leads nowhere.
func TestAddressesForGemini(t *testing.T) {
	t.Parallel()
	png := picture(8, 6)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.png" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(png)
	}))
	defer web.Close()
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	send := func(address string) string {
		t.Helper()
		list := quoted(`[{"type":"text","text":"here it is, the picture"},{"type":"image-url","url":"` + address + `"}]`)
		status, body := b.post("/v1beta/models/gemini:generateContent", `{"contents":[{"role":"user","parts":[{"text":"look"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{}},"thoughtSignature":"c2lnbmF0dXJl"}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":`+list+`}}}]}]}`)
		if status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		return b.last()
	}
	if sent := send(web.URL + "/a.png"); !has(b.did(), "repaired", "fetched") || !strings.Contains(sent, `"response":{"output":"here it is, the picture"},"parts":[{"inlineData":{"mimeType":"image/png","data":"`+encoded(png)+`"}}]`) {
		t.Errorf("did %v, sent %s", b.did(), sent)
	}
	if sent := send(web.URL + "/b.png"); has(b.did(), "fetched") || !strings.Contains(sent, `"response":{"output":"here it is, the picture\n\n`+web.URL+`/b.png"}`) || strings.Contains(sent, `"parts":[{"fileData"`) {
		t.Errorf("did %v, sent %s", b.did(), sent)
	}
}
