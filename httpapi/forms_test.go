// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/store"
)

// hold compares what an object has with the one form that it may have: each
// value of fields is a type's name, "?" behind it says that it may be missing.
func hold(name string, m map[string]any, fields map[string]string) (faults []string) {
	for k, v := range m {
		want, ok := fields[k]
		if got := fmt.Sprintf("%T", v); !ok || got != strings.TrimSuffix(want, "?") {
			faults = append(faults, fmt.Sprintf("%s.%s is %s, want %q", name, k, got, want))
		}
	}
	for k, want := range fields {
		if _, ok := m[k]; !ok && !strings.HasSuffix(want, "?") {
			faults = append(faults, name+" lacks "+k)
		}
	}
	return faults
}

// holdResult compares a result with the form of a ContentRouteResult and of
// what Artel says beside it, and returns its payload.
func holdResult(m map[string]any) (payload map[string]any, faults []string) {
	fields := map[string]string{
		"contentType": "string", "routing": "string", "content": "string", "metadata": "map[string]interface {}",
		"isBinary": "bool", "step": "string", "reason": "string", "need": "string", "suggestedServices": "[]interface {}",
	}
	if m["need"] == nil {
		fields["need"] = "<nil>"
	}
	switch m["routing"] {
	case "image_url":
		fields["imageUrl"] = "map[string]interface {}"
	case "file":
		fields["file"] = "map[string]interface {}"
	}
	faults = hold("result", m, fields)
	metadata, _ := m["metadata"].(map[string]any)
	form := map[string]string{"id": "string", "type": "string", "filename": "string", "mimeType": "string", "size": "float64", "createdAt": "string"}
	if m["contentType"] != "text" {
		form["binaryType"] = "string"
	}
	faults = append(faults, hold("metadata", metadata, form)...)
	if u, ok := m["imageUrl"].(map[string]any); ok {
		payload, _ = u["image_url"].(map[string]any)
		faults = append(append(faults, hold("imageUrl", u, map[string]string{"type": "string", "image_url": "map[string]interface {}"})...), hold("image_url", payload, map[string]string{"url": "string"})...)
	}
	if f, ok := m["file"].(map[string]any); ok {
		payload, _ = f["file"].(map[string]any)
		faults = append(append(faults, hold("file", f, map[string]string{"type": "string", "file": "map[string]interface {}"})...), hold("file.file", payload, map[string]string{"filename": "string", "mimeType": "string", "data": "string"})...)
	}
	one := func(key string, of ...string) {
		if s, _ := m[key].(string); !slices.Contains(of, s) {
			faults = append(faults, fmt.Sprintf("%s is %q", key, s))
		}
	}
	one("contentType", "text", "image", "binary")
	one("routing", "text", "image_url", "file")
	return payload, faults
}

// leaks reports whether a text has 24 bytes of data, or as many letters of its
// base64, from anywhere near its beginning or end.
func leaks(text string, data []byte) bool {
	for _, part := range [][]byte{data[:min(len(data), 600)], data[max(0, len(data)-600):]} {
		for at := 0; at+24 <= len(part); at++ {
			if strings.Contains(text, string(part[at:at+24])) || strings.Contains(text, base64.StdEncoding.EncodeToString(part[at:at+18])) {
				return true
			}
		}
	}
	return false
}

// TestEveryFileForEveryService routes all files of the corpus for every set of
// capabilities (R6.1, R6.2, R6.3, R7.1, INV-1, INV-2, INV-4), and again in
// another order, after a restart, for the same answers (INV-3).
func TestEveryFileForEveryService(t *testing.T) {
	t.Parallel()
	var rows store.Store
	var blobs blob.Store
	r := newRouter(t, func(c *app.Config) { rows, blobs = c.Store, c.Blobs })
	all := corpus(t)
	services := []string{"T", "V", "F", "VF", "bare", "nope"}
	type asked struct{ id, service string }
	var order []asked
	said := map[asked][]byte{}
	path := func(a asked) string {
		return "/conversations/" + r.c + "/artifacts/" + url.PathEscape(a.id) + "/route?service=" + a.service
	}
	for i, f := range all.Files {
		if i%100 == 0 {
			r.c = r.conversation() // a conversation holds only so many unsent files
		}
		data := bytesOf(t, all, f.File)
		id := r.object(r.do("POST", "/conversations/"+r.c+"/artifacts", bytes.NewReader(data), header{"X-Filename": url.PathEscape(f.File), "Content-Type": "application/octet-stream"}), 201)["id"].(string)
		text, image := f.Kind == artel.KindText, media.KindOf(f.TypeNamed()) == artel.KindImage
		for _, service := range services {
			a := asked{path(asked{id, service}), service}
			answer := r.do("GET", a.id, nil)
			order, said[a] = append(order, a), answer.body
			m := r.object(answer, 200)
			payload, faults := holdResult(m)
			content, _ := m["content"].(string)
			sees, takes := service == "V" || service == "VF", service == "F" || service == "VF"
			switch {
			case text && (m["routing"] != "text" || m["contentType"] != "text" || m["isBinary"] != false):
				faults = append(faults, "text is not routed as text")
			case text && f.Text != "" && content != string(bytesOf(t, all, f.Text)), text && f.Text == "" && f.Charset == "utf-8" && f.File != "cut_utf8.txt" && content != string(data):
				faults = append(faults, "the text is another")
			case text:
			case (m["routing"] != "text") != (image && sees || !image && takes) && m["reason"] != "undetected":
				faults = append(faults, fmt.Sprintf("%s goes as %v", f.Kind, m["routing"]))
			case m["contentType"] == "text" || m["isBinary"] != true:
				faults = append(faults, "it is called text")
			case m["routing"] == "text" && (len([]rune(content)) > 1000 || strings.ContainsFunc(content, func(c rune) bool { return c < 32 && c != '\n' })):
				faults = append(faults, "the description is long, or has bytes in it")
			case leaks(strings.ReplaceAll(content, f.TypeNamed(), ""), data): // the type may stand in the file
				faults = append(faults, "the content holds the bytes")
			case payload != nil:
				encoded, _ := payload["data"].(string)
				if address, ok := payload["url"].(string); ok {
					_, encoded, _ = strings.Cut(address, ";base64,")
				}
				if b, err := base64.StdEncoding.DecodeString(encoded); err != nil || !bytes.Equal(b, data) {
					faults = append(faults, "the payload is not the file")
				}
			}
			if len(faults) > 0 {
				t.Errorf("%s for %s: %s", f.File, service, strings.Join(faults, "; "))
			}
		}
	}

	again := newRouter(t, func(c *app.Config) { c.Store, c.Blobs = rows, blobs })
	slices.Reverse(order)
	for i, a := range order {
		if (i+i/len(services))%len(services) != 0 {
			continue // each file is asked about once more, for another service than the file before
		}
		if diff := cmp.Diff(string(said[a]), string(again.do("GET", a.id, nil).body)); diff != "" {
			t.Errorf("%s says something else after a restart: %s", a.id, artel.Shorten(diff, 1000))
		}
	}
}

// TestWordsOverHTTP asks for the words of pictures and recordings, which
// configured services make, once for each content.
func TestWordsOverHTTP(t *testing.T) {
	t.Parallel()
	server := fake.OpenAI(fake.Options{Open: true})
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	b := newBench(t, writes, func(c *app.Config) {
		eye := taking("eye", artel.CanVision)
		ear := taking("ear")
		for _, s := range []*model.Service{&eye, &ear} {
			s.BaseURL, s.Model, s.APIKey = upstream.URL+"/v1", "m", secretKey
		}
		c.Services.Replace([]model.Service{taking("T"), eye, ear}, nil, "")
		c.Providers[model.OpenAI] = openai.New(openai.Options{Client: upstream.Client(), Blobs: c.Blobs})
		c.Options.Context.Caption = rendition.Caption{Service: "eye"}
		c.Options.Context.Transcription = rendition.Transcription{Service: "ear", Model: "hears"}
	})
	c := b.conversation()
	for _, name := range []string{"red.png", "tone.mp3", "clip.mp4"} {
		b.upload(c, name, "", sample(t, name))
		ask := func(query string) map[string]any {
			return b.object(b.do("GET", "/conversations/"+c+"/artifacts/"+name+"/route?service=T"+query, nil), 200)
		}
		if m := ask(""); m["step"] != "described" || len(server.Requests()) != 0 && name == "red.png" {
			t.Errorf("%s, not asked for: %v", name, m)
		}
		before := len(server.Requests())
		m := ask("&forms=transcribed")
		words, _ := m["content"].(string)
		if m["step"] != "transcribed" || m["routing"] != "text" || m["isBinary"] != true || words == "" || strings.HasPrefix(words, "[cannot read]") {
			t.Errorf("%s: %v", name, m)
		}
		if diff := cmp.Diff(m, ask("&forms=transcribed")); diff != "" {
			t.Errorf("%s, the second time: %s", name, diff)
		}
		tool := b.object(b.do("POST", "/conversations/"+c+"/tools/get_artifact?service=T", map[string]any{"ref": name, "forms": []string{"transcribed"}}), 200)
		if tool["ok"] != true || tool["content"] != words || tool["parts"] != nil {
			t.Errorf("%s: the tool says %v, the route %q", name, tool, words)
		}
		requests := server.Requests()[before:]
		if len(requests) != 1 || len(requests[0].Media) != 1 || requests[0].Media[0].Size != int64(len(sample(t, name))) {
			t.Errorf("%s: asked %+v", name, requests)
		}
	}
}

// TestPagesOverHTTP shows the pages of PDFs as agents get them: of a scan the first ones, and
// of any the chosen ones, from an artifact and from bytes.
func TestPagesOverHTTP(t *testing.T) {
	t.Parallel()
	engine := pdf.New(pdf.Options{})
	t.Cleanup(func() { _ = engine.Close() })
	b := newBench(t, writes, func(c *app.Config) {
		c.Options.Artifacts.PDF = engine
		c.Services.Replace([]model.Service{taking("T"), taking("V", artel.CanVision), taking("VF", artel.CanVision, artel.CanFile)}, nil, "")
	})
	c := b.conversation()
	scan, report := mediatest.Scan(3), sample(t, "report.pdf")
	b.upload(c, "scan.pdf", "", string(scan))
	b.upload(c, "report.pdf", "", report)
	for _, tt := range []struct {
		file        string
		data        []byte
		query, step string
		pages, left float64
	}{
		{"scan.pdf", scan, "service=V", "converted", 3, 0},
		{"scan.pdf", scan, "service=V&forms=extracted", "converted", 3, 0},
		{"scan.pdf", scan, "service=VF", "native", 0, 0},
		{"scan.pdf", scan, "service=T&forms=extracted", "extracted", 0, 0},
		{"report.pdf", []byte(report), "service=V", "described", 0, 0},
		{"report.pdf", []byte(report), "service=V&forms=extracted", "extracted", 0, 0},
		{"report.pdf", []byte(report), "service=V&pages=2", "converted", 1, 0},
		{"report.pdf", []byte(report), "service=VF&pages=1-9", "converted", 2, 0},
	} {
		stored := b.object(b.do("GET", "/conversations/"+c+"/artifacts/"+tt.file+"/route?"+tt.query, nil), 200)
		posted := b.object(b.do("POST", "/route?filename="+tt.file+"&"+tt.query, bytes.NewReader(tt.data), header{"Content-Type": "application/pdf"}), 200)
		for name, m := range map[string]map[string]any{"stored": stored, "posted": posted} {
			sent, _ := m["sent"].(map[string]any)
			further, _ := m["furtherPages"].([]any)
			left, _ := sent["pagesLeft"].(float64)
			if m["step"] != tt.step || tt.pages > 0 && (sent["pages"] != tt.pages || len(further) != int(tt.pages)-1 || left != tt.left || m["imageUrl"] == nil || m["routing"] != "image_url") {
				t.Errorf("%s?%s, %s: %v %v, %d further pages", tt.file, tt.query, name, m["step"], sent, len(further))
			}
		}
		if diff := cmp.Diff(stored["furtherPages"], posted["furtherPages"]); diff != "" {
			t.Errorf("%s?%s: the pages of the artifact are others than those of the bytes", tt.file, tt.query)
		}
	}
	for query, status := range map[string]int{"service=V&pages=3": 404, "service=V&pages=all": 422, "service=V&pages=1-21": 413, "service=T&pages=1": 415} {
		for name, a := range map[string]answered{
			"stored": b.do("GET", "/conversations/"+c+"/artifacts/report.pdf/route?"+query, nil),
			"posted": b.do("POST", "/route?filename=report.pdf&"+query, strings.NewReader(report), header{"Content-Type": "application/pdf"}),
		} {
			if a.StatusCode != status {
				t.Errorf("%s, %s: %d %s", query, name, a.StatusCode, a.body)
			}
		}
	}
}
