// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// router is a server with a service for each set of capabilities: T takes text,
// V sees, F takes files, VF both; nothing is known of "bare".
type router struct {
	*bench
	c        string
	store    store.Store
	services *model.Registry
}

func taking(id string, words ...artel.Capability) model.Service {
	s := model.Service{ID: artel.ServiceID(id), Name: id, Dialect: model.OpenAI, Capabilities: model.TextOnly()}
	s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: append([]artel.Capability{artel.CanText}, words...), Source: model.FromOperator}
	return s
}

func newRouter(t *testing.T, changes ...func(*app.Config)) *router {
	r := &router{}
	r.bench = newBench(t, writes, append(changes, func(c *app.Config) {
		r.store, r.services = c.Store, c.Services
		c.Services.Replace([]model.Service{
			taking("T"), taking("V", artel.CanVision), taking("F", artel.CanFile), taking("VF", artel.CanVision, artel.CanFile),
			{ID: "bare", Dialect: model.OpenAI, Capabilities: model.TextOnly()},
		}, nil, "")
	})...)
	r.c = r.conversation()
	return r
}

// put uploads a file and returns its id.
func (r *router) put(name, declared, content string) string {
	r.t.Helper()
	h := header{"Content-Type": declared}
	if name != "" {
		h["X-Filename"] = name
	}
	return r.object(r.do("POST", "/conversations/"+r.c+"/artifacts", content, h), 201)["id"].(string)
}

// route is what a service gets of an artifact.
func (r *router) route(id, service string) map[string]any {
	r.t.Helper()
	return r.object(r.do("GET", "/conversations/"+r.c+"/artifacts/"+id+"/route?service="+service, nil), 200)
}

func binaryType(m map[string]any) any { return m["metadata"].(map[string]any)["binaryType"] }

// payload decodes the data of a result once.
func payload(t *testing.T, m map[string]any) (mediaType, data string) {
	t.Helper()
	var encoded string
	if u, ok := m["imageUrl"].(map[string]any); ok {
		url := u["image_url"].(map[string]any)["url"].(string)
		head, rest, _ := strings.Cut(url, ";base64,")
		mediaType, encoded = strings.TrimPrefix(head, "data:"), rest
	} else if f, ok := m["file"].(map[string]any); ok {
		inner := f["file"].(map[string]any)
		mediaType, encoded = inner["mimeType"].(string), inner["data"].(string)
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return mediaType, string(b)
}

const noise = "\x00\x9f\x01\xfe\x83\x80 not of any kind \xc3\x28\x00\x00\xff"

// TestAcceptance goes through the table of what routing has to do.
func TestAcceptance(t *testing.T) {
	r := newRouter(t)
	red, photo, pdf := sample(t, "red.png"), sample(t, "photo.jpg"), sample(t, "report.pdf")
	english, chinese := "Plain words.\n", sample(t, "zh_utf8.txt")
	text, image := r.put("en.txt", "text/plain", english), r.put("red.png", "image/png", red)
	document := r.put("report.pdf", "application/pdf", pdf)
	row := func(name string, check func(t *testing.T)) { t.Run(name, check) }
	want := func(t *testing.T, m map[string]any, contentType, routing string) {
		t.Helper()
		if m["contentType"] != contentType || m["routing"] != routing {
			t.Errorf("got %v %v (%v), want %s %s", m["contentType"], m["routing"], m["reason"], contentType, routing)
		}
	}

	row("R1.1 text or binary", func(t *testing.T) {
		want(t, r.route(text, "T"), "text", "text")
		want(t, r.route(image, "T"), "image", "text")
		if r.route(text, "T")["isBinary"] != false || r.route(image, "T")["isBinary"] != true {
			t.Error("isBinary is wrong")
		}
	})
	row("R1.2 kinds", func(t *testing.T) {
		for name, kind := range map[string]string{"red.png": "image", "tone.mp3": "audio", "clip.mp4": "video", "report.pdf": "document", "archive.zip": "other"} {
			if got := binaryType(r.route(r.put("kind-"+name, "", sample(t, name)), "T")); got != kind {
				t.Errorf("%s: got %v, want %s", name, got, kind)
			}
		}
	})
	row("R1.3 D7 the format of an image", func(t *testing.T) {
		for _, c := range [][2]string{{"a.jpg", "application/octet-stream"}, {"jpg_named.png", "image/png"}, {"b.jpg", "image/jpeg; charset=utf-8"}, {"", `"image/jpeg"`}} {
			if got, _ := payload(t, r.route(r.put(c[0], c[1], photo), "V")); got != "image/jpeg" {
				t.Errorf("%v: got %s", c, got)
			}
		}
	})
	row("R1.4 metadata first", func(t *testing.T) {
		if got := binaryType(r.route(r.put("random.bin", "audio/mpeg", noise), "T")); got != "audio" {
			t.Errorf("declared as sound: got %v", got)
		}
		if got := binaryType(r.route(r.put("random2.bin", "", noise), "T")); got != "other" {
			t.Errorf("declared as nothing: got %v", got)
		}
	})
	row("R1.5 D6 the bytes without metadata", func(t *testing.T) { want(t, r.route(r.put("", "", red), "V"), "image", "image_url") })
	row("R2.1 R8.4 the services of now", func(t *testing.T) {
		want(t, r.route(image, "V"), "image", "image_url")
		want(t, r.route(image, "T"), "image", "text")
		before := r.services.All()
		defer r.services.Replace(before, nil, "")
		r.services.Replace([]model.Service{taking("V"), taking("T", artel.CanVision)}, nil, "")
		want(t, r.route(image, "V"), "image", "text")
		want(t, r.route(image, "T"), "image", "image_url")
		r.services.Replace(nil, nil, "") // as where nothing could be found out
		want(t, r.route(image, "V"), "image", "text")
	})
	row("R2.2 vision for images", func(t *testing.T) { want(t, r.route(image, "F"), "image", "text") })
	row("R2.3 file for other binaries", func(t *testing.T) {
		want(t, r.route(document, "V"), "binary", "text")
		want(t, r.route(document, "F"), "binary", "file")
	})
	row("R2.4 unknown is text only", func(t *testing.T) {
		want(t, r.route(image, "nope"), "image", "text")
		want(t, r.route(document, "bare"), "binary", "text")
	})
	row("R3.1 R3.2 R3.3 R7.3 D11 the URL of an image", func(t *testing.T) {
		m := r.route(image, "V")
		want(t, m, "image", "image_url")
		u := m["imageUrl"].(map[string]any)
		if diff := cmp.Diff([]string{"image_url", "type"}, slices.Sorted(maps.Keys(u))); diff != "" || u["type"] != "image_url" || len(u["image_url"].(map[string]any)) != 1 {
			t.Errorf("got %v", u)
		}
		url := u["image_url"].(map[string]any)["url"].(string)
		if !regexp.MustCompile(`^data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+=*$`).MatchString(url) {
			t.Errorf("got %.80s", url)
		}
		if _, data := payload(t, m); sha256.Sum256([]byte(data)) != sha256.Sum256([]byte(red)) {
			t.Error("the bytes are not those of the upload")
		}
		if strings.Contains(m["content"].(string), url[len(url)-24:]) {
			t.Error("content holds the payload too")
		}
	})
	row("R3.4 R7.5 an image without vision", func(t *testing.T) {
		m := r.route(image, "T")
		want(t, m, "image", "text")
		if m["imageUrl"] != nil || m["file"] != nil {
			t.Errorf("got %v", keys(m))
		}
	})
	row("R4.1 R7.4 D1 a file, encoded once", func(t *testing.T) {
		m := r.route(document, "F")
		want(t, m, "binary", "file")
		mediaType, data := payload(t, m)
		f := m["file"].(map[string]any)
		if mediaType != "application/pdf" || data != pdf || f["type"] != "file" || f["file"].(map[string]any)["filename"] != "report.pdf" {
			t.Errorf("got %s, %d bytes, %v", mediaType, len(data), keys(f))
		}
	})
	row("R4.2 R4.3 R4.4 D8 D14 a description", func(t *testing.T) {
		m := r.route(document, "T")
		want(t, m, "binary", "text")
		content := m["content"].(string)
		for _, s := range []string{"report.pdf", "PDF", "size: 931 B", "This model cannot read this kind of file."} {
			if !strings.Contains(content, s) {
				t.Errorf("%q lacks %q", content, s)
			}
		}
		if m["file"] != nil || m["reason"] != "capability_missing" || m["need"] != "file" || m["step"] != "described" || m["status"] != nil {
			t.Errorf("got %v", m)
		}
	})
	row("R5.1 R5.2 R5.3 D2 D3 text as it is", func(t *testing.T) {
		for i, content := range []string{
			chinese, "123", "null", "[1]", "false", `{"a":1,"a":12345678901234567890}`, base64.StdEncoding.EncodeToString([]byte(red)),
			"\ufeffwith a mark\r\nand returns\r\n", "😀 Кириллица العربية\n",
		} {
			m := r.route(r.put(fmt.Sprintf("text%d.txt", i), "text/plain", content), "T")
			want(t, m, "text", "text")
			if got := m["content"]; got != content {
				t.Errorf("%.40q came back as %.40q", content, got)
			}
		}
		legacy := r.route(r.put("gb.txt", "text/plain; charset=gb18030", sample(t, "zh_gb18030.txt")), "T")["content"].(string)
		if legacy == "" || strings.Contains(legacy, "\ufffd") {
			t.Errorf("got %.40q", legacy)
		}
	})
	row("R6.1 R6.2 R6.3 D4 D13 nothing binary in a text", func(t *testing.T) {
		lengths := map[string]int{}
		for name, content := range map[string]string{
			"shot.txt": red, "a.png": photo, "b.pdf": pdf, "small.jpg": "\xff\xd8\xff\xe0" + strings.Repeat(noise, 3_000), "large.jpg": "\xff\xd8\xff\xe0" + strings.Repeat(noise, 30_000),
		} {
			declared := ""
			if name == "shot.txt" {
				declared = "text/plain"
			}
			m := r.route(r.put(name, declared, content), "T")
			said := m["content"].(string)
			lengths[name] = len([]rune(said))
			if strings.ContainsFunc(said, func(c rune) bool { return c < 32 && c != '\n' }) || lengths[name] > 1000 {
				t.Errorf("%s: got %q", name, said)
			}
			for at := 0; at+24 <= min(len(content), 600); at++ {
				window := base64.StdEncoding.EncodeToString([]byte(content[at : at+18]))
				if strings.Contains(said, window) || strings.Contains(said, content[at:at+24]) {
					t.Fatalf("%s: the content is in %q", name, said)
				}
			}
			must := []string{"content", "contentType", "isBinary", "metadata", "need", "reason", "routing", "step", "suggestedServices"}
			if diff := cmp.Diff(must, slices.Sorted(maps.Keys(m))); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if d := lengths["large.jpg"] - lengths["small.jpg"]; d < -40 || d > 40 {
			t.Errorf("a description grows with the file: %v", lengths)
		}
	})
	row("R6.4 who could take it", func(t *testing.T) {
		if diff := cmp.Diff([]any{"V", "VF"}, r.route(image, "T")["suggestedServices"]); diff != "" {
			t.Error(diff)
		}
		before := r.services.All()
		defer r.services.Replace(before, nil, "")
		r.services.Replace([]model.Service{taking("T")}, nil, "")
		if diff := cmp.Diff([]any{}, r.route(image, "T")["suggestedServices"]); diff != "" {
			t.Error(diff)
		}
	})
	row("R7.1 R7.2 D15 INV-3 INV-4 the same whole answer everywhere", func(t *testing.T) {
		for _, id := range []string{text, image, document} {
			for _, service := range []string{"T", "V", "F", "VF", "bare", "nope"} {
				m := r.route(id, service)
				for _, k := range []string{"contentType", "routing", "content", "metadata", "isBinary", "step", "reason", "need", "suggestedServices"} {
					if _, ok := m[k]; !ok {
						t.Errorf("%s for %s lacks %s", id, service, k)
					}
				}
				if diff := cmp.Diff(m, r.route(id, service)); diff != "" {
					t.Errorf("the second time: %s", diff)
				}
				tool := r.object(r.do("POST", "/conversations/"+r.c+"/tools/get_artifact?service="+service, map[string]any{"ref": id}), 200)
				inner, whole := tool["content"].(map[string]any)
				switch {
				case m["routing"] == "text" && tool["content"] != m["content"]:
					t.Errorf("the tool says %v, the route %v", tool["content"], m["content"])
				case m["routing"] != "text" && (!whole || inner["routing"] != m["routing"] || inner["contentType"] != m["contentType"] || inner["imageUrl"] != nil || inner["file"] != nil || tool["parts"] == nil):
					t.Errorf("the tool says %v of %s for %s", tool, id, service)
				}
			}
		}
	})
	row("R8.1 D10 what is not there", func(t *testing.T) {
		for _, id := range []string{"unknown", "..%2f..%2fsecret", "..%5csecret", "%2e%2e%2fsecret", "a%00b"} {
			m := r.object(r.do("GET", "/conversations/"+r.c+"/artifacts/"+id+"/route?service=T", nil), 404)
			if said, _ := m["detail"].(string); m["code"] != "artifact_not_found" || m["error"] != "artifact_not_found" || said == "" {
				t.Errorf("%s: got %v", id, m)
			}
		}
		for _, ref := range []string{"unknown", "artifact:../../secret", "../../etc/passwd", "artifact:unknown@3"} {
			m := r.object(r.do("POST", "/conversations/"+r.c+"/tools/get_artifact", map[string]any{"ref": ref}), 200)
			want := map[string]any{"error": "artifact_not_found", "ref": ref, "message": "the artifact does not exist or was deleted"}
			if diff := cmp.Diff(want, m["content"]); diff != "" || m["ok"] != false {
				t.Errorf("%s: %s", ref, diff)
			}
		}
	})
	row("R8.2 R8.3 D9 damaged metadata", func(t *testing.T) {
		digest := func(content string) artel.Digest { return artel.NewDigest(sha256.Sum256([]byte(content))) }
		r.put("noise.bin", "", noise)
		for name, content := range map[string]string{"damaged-red": red, "damaged-noise": noise} {
			err := r.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
				v := artel.Version{Number: 1, Update: artel.UpdateCreate, InBlob: true, Digest: digest(content), MediaInfo: artel.MediaInfo{MediaType: "?", Kind: "?"}}
				if _, err := tx.Journal.Append(artel.ConversationID(r.c), artel.ArtifactID(name), v, nil); err != nil {
					return err
				}
				return tx.Journal.Fold(artel.ConversationID(r.c), artel.ArtifactID(name), v, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		m := r.route("damaged-red", "V")
		want(t, m, "image", "image_url")
		if mediaType, data := payload(t, m); mediaType != "image/png" || data != red {
			t.Errorf("got %s, %d bytes", mediaType, len(data))
		}
		m = r.route("damaged-noise", "T")
		want(t, m, "binary", "text")
		if binaryType(m) != "other" {
			t.Errorf("got %v", m)
		}
	})
	row("D5 bytes that are no picture", func(t *testing.T) {
		for name, content := range map[string]string{"lie1.png": "just text", "lie2.png": pdf, "lie3.png": ""} {
			if m := r.route(r.put(name, "image/png", content), "V"); m["imageUrl"] != nil {
				t.Errorf("%s: got %v", name, m["routing"])
			}
		}
	})
	row("D12 SVG is text", func(t *testing.T) {
		svg := sample(t, "doc.svg")
		if m := r.route(r.put("doc.svg", "image/svg+xml", svg), "V"); m["routing"] != "text" || m["content"] != svg {
			t.Errorf("got %v", m["routing"])
		}
	})
}

// TestFormsOverHTTP asks for forms, and gets a picture as the service takes it.
func TestFormsOverHTTP(t *testing.T) {
	r := newRouter(t)
	picky := taking("picky", artel.CanVision)
	picky.Capabilities.Accepts = model.Fact[[]string]{Value: []string{"image/png"}, Source: model.FromOperator}
	picky.Capabilities.MaxSide = model.Fact[int]{Value: 8, Source: model.FromOperator}
	r.services.Replace([]model.Service{picky}, nil, "")
	pdf, bitmap := r.put("report.pdf", "", sample(t, "report.pdf")), r.put("pic.bmp", "", sample(t, "pic.bmp"))
	for name, ask := range map[string]func(query string) map[string]any{
		"kept": func(query string) map[string]any {
			id := pdf
			if strings.Contains(query, "picky") {
				id = bitmap
			}
			return r.object(r.do("GET", "/conversations/"+r.c+"/artifacts/"+id+"/route?"+query, nil), 200)
		},
		"posted": func(query string) map[string]any {
			file := "report.pdf"
			if strings.Contains(query, "picky") {
				file = "pic.bmp"
			}
			return r.object(r.do("POST", "/route?filename="+file+"&"+query, sample(t, file), header{"Content-Type": ""}), 200)
		},
	} {
		m := ask("forms=extracted,transcribed")
		if m["step"] != "extracted" || m["routing"] != "text" || m["isBinary"] != true || m["need"] != "file" || strings.HasPrefix(m["content"].(string), "[") {
			t.Errorf("%s: extracted: got %v", name, m)
		}
		if m = ask("service=nobody"); m["step"] != "described" || strings.Contains(m["content"].(string), "read_artifact(id='report.pdf')") != (name == "kept") {
			t.Errorf("%s: not asked for: got %v", name, m)
		}
		m = ask("service=picky")
		mediaType, data := payload(t, m)
		sent, _ := m["sent"].(map[string]any)
		if m["step"] != "converted" || m["reason"] != "not_accepted" || mediaType != "image/png" || sent["width"].(float64) > 8 || sent["size"] != float64(len(data)) || m["metadata"].(map[string]any)["mimeType"] != "image/bmp" {
			t.Errorf("%s: converted: got %v", name, m)
		}
	}
	r.problem(r.do("POST", "/route?forms=native", "x"), 422, "invalid")
	tool := r.object(r.do("POST", "/conversations/"+r.c+"/tools/get_artifact", map[string]any{"ref": pdf, "forms": []string{"extracted"}}), 200)
	if m := tool["metadata"].(map[string]any); tool["ok"] != true || m["step"] != "extracted" {
		t.Errorf("got %v", tool)
	}
	if tool = r.object(r.do("POST", "/conversations/"+r.c+"/tools/get_artifact", map[string]any{"ref": pdf, "forms": []string{"x"}}), 200); tool["ok"] != false {
		t.Errorf("an unknown form: got %v", tool)
	}
}

// TestInline names a large payload by its URL, unless the bytes are asked for.
func TestInline(t *testing.T) {
	const size = 33 << 20
	b := newBench(t, writes, func(c *app.Config) { c.Options.Artifacts.MaxBytes = size })
	c := b.conversation()
	large := "\xff\xd8\xff\xe0" + strings.Repeat("\x00", size-4)
	b.upload(c, "large.jpg", "image/jpeg", large)
	path := "/conversations/" + c + "/artifacts/large.jpg/route?capabilities=vision"
	url := b.object(b.do("GET", path, nil), 200)["imageUrl"].(map[string]any)["image_url"].(map[string]any)["url"].(string)
	if !strings.HasPrefix(url, "/api/v1/files/") {
		t.Errorf("got %.80s", url)
	}
	if _, data := payload(t, b.object(b.do("GET", path+"&inline=true", nil), 200)); data != large {
		t.Errorf("got %d bytes", len(data))
	}
}
