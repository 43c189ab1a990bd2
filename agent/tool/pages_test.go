// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/rendition"
)

// TestGetPages gets pages of a document as pictures, each after its number.
func TestGetPages(t *testing.T) {
	b := newBench(t)
	engine := pdf.New(pdf.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	data, err := os.ReadFile("../../testdata/files/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	b.upload("report.pdf", data)
	b.upload("notes.txt", []byte("a note"))
	args := func(id, pages string) map[string]any { return map[string]any{"ref": id, "pages": pages} }

	b.refused("get_artifact", args("report.pdf", "1"), "PDFs only") // nothing draws pages
	b.env.Renditions = rendition.New(rendition.Config{Store: b.store, Blobs: b.blobs, PDF: engine})
	b.refused("get_artifact", args("report.pdf", "1"), "sees no pictures", "read_artifact")
	b.env.Target.Capabilities = model.Catalog("gpt-4o")

	for pages, want := range map[string][]string{
		"2":     {"report.pdf, page 2"},
		"1-2":   {"report.pdf, page 1", "report.pdf, page 2"},
		" 2–19": {"report.pdf, page 2"},
	} {
		r := b.ok("get_artifact", args("report.pdf", pages))
		var labels []string
		pictures := 0
		for _, p := range r.Parts {
			switch p := p.(type) {
			case artel.Text:
				labels = append(labels, p.Text)
			case artel.Media:
				if pictures++; p.Kind != artel.KindImage || p.Width == 0 {
					t.Errorf("%s: %+v", pages, p)
				}
			}
		}
		if strings.Join(labels, "; ") != strings.Join(want, "; ") || pictures != len(want) {
			t.Errorf("%s: %q with %d pictures", pages, labels, pictures)
		}
	}
	b.refused("get_artifact", args("report.pdf", "7"), "no page 7", "has 2")
	b.refused("get_artifact", args("report.pdf", "first"), "21-24")
	b.refused("get_artifact", args("report.pdf", "9223372036854775807"), "is no page")
	b.refused("get_artifact", args("report.pdf", "5-2"), "21-24")
	b.refused("get_artifact", args("report.pdf", "1-21"), "at most 20", "1-20")
	b.refused("get_artifact", args("notes.txt", "1"), "PDFs only")

	b.env.Target.Capabilities, b.env.Target.Forms.Pages = model.Catalog("gpt-4o"), true
	b.env.Target.Capabilities.Input.Value = []artel.Capability{artel.CanText, artel.CanVision}
	b.upload("scan.pdf", mediatest.Scan(25))
	r := b.ok("get_artifact", map[string]any{"ref": "scan.pdf"})
	if len(r.Parts) != 2*rendition.MaxPages || !strings.Contains(r.Content, "pages 1 to 20 of 25 as pictures") {
		t.Errorf("got %s with %d parts", r.Content, len(r.Parts))
	}
}

// TestScansAreRecognised reads the text of a scan with a vision service, once, and says whose
// reading it is; without one, and if it fails, the doubtful text is left.
func TestScansAreRecognised(t *testing.T) {
	b := newBench(t)
	engine := pdf.New(pdf.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	server := fake.OpenAI(fake.Options{Open: true})
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	eye := model.Service{ID: "eye", Dialect: model.OpenAI, BaseURL: upstream.URL + "/v1", Model: "m", APIKey: "k"}
	eye.Capabilities.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromOperator}
	var mu sync.Mutex
	var calls []rendition.Call
	b.env.Renditions = rendition.New(rendition.Config{
		Store: b.store, Blobs: b.blobs, PDF: engine, Services: model.NewRegistry([]model.Service{eye}, ""),
		Caller:  model.NewCaller(map[model.Dialect]model.Provider{model.OpenAI: openai.New(openai.Options{Client: upstream.Client(), Blobs: b.blobs})}, model.CallerOptions{}),
		Options: rendition.Options{Caption: rendition.Caption{Service: "eye"}},
	}).Reporting(func(c rendition.Call) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
	})
	t.Cleanup(upstream.Client().CloseIdleConnections)
	b.upload("scan.pdf", mediatest.Scan(1))
	b.upload("report.pdf", sample(t, "report.pdf"))
	read := func(id string) tool.Result { return b.ok("read_artifact", m{"id": id}) }

	if got := read("scan.pdf").Content; !strings.Contains(got, "this text is doubtful") || strings.Contains(got, "recognised") {
		t.Errorf("without a service: %s", got)
	}
	b.env.Target.Forms.Captioner = "eye"
	if err := server.Behave(fake.Behavior{Mode: fake.BadRequest, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if got := read("scan.pdf").Content; !strings.Contains(got, "this text is doubtful") || !strings.Contains(got, ` note="`) {
		t.Errorf("a service that refuses: %s", got)
	}
	b.upload("other.pdf", append(mediatest.Scan(1), '\n'))
	if got := b.ok("grep_artifacts", m{"pattern": "<!-- page 1 -->"}).Content; len(calls) != 0 || strings.Contains(got, "other.pdf:1:") {
		t.Errorf("a search asks nobody: %d calls, %s", len(calls), got)
	}
	for range 2 {
		r := read("other.pdf")
		if !strings.Contains(r.Content, ` derived="text/markdown, recognised on its pages by eye" pages="1"`) || !strings.Contains(r.Content, "<!-- page 1 -->") || strings.Contains(r.Content, "doubtful") {
			t.Errorf("got %s", r.Content)
		}
		if d, _ := r.Metadata["derived"].(m); d["service"] != artel.ServiceID("eye") || d["recognised"] != true {
			t.Errorf("got %v", r.Metadata)
		}
	}
	if len(calls) != 1 {
		t.Errorf("asked %d times", len(calls))
	}
	b.upload("long.pdf", mediatest.Scan(23))
	if got := read("long.pdf").Content; !strings.Contains(got, ` cut="true" note="pages 21 to 23 are missing; get_artifact(ref='artifact:`+string(b.env.Conversation)+`/long.pdf@1', pages='21-23') reads on"`) || !strings.Contains(got, "pages 21 to 23 were not read") {
		t.Errorf("got %s", got)
	}
	if got := b.ok("get_artifact", m{"ref": "artifact:long.pdf@1", "pages": "22-40"}); !strings.Contains(got.Content, "<!-- page 22 -->") || !strings.Contains(got.Content, "<!-- page 23 -->") || strings.Contains(got.Content, "not read") {
		t.Errorf("got %s", got.Content)
	}
	b.refused("get_artifact", m{"ref": "long.pdf", "pages": "24"}, "no page 24", "has 23")
	b.refused("get_artifact", m{"ref": "report.pdf", "pages": "1"}, "sees no pictures")
	asked := len(calls)
	for _, args := range []m{{"pattern": "<!-- page 1 -->"}, {"pattern": "<!-- page 1 -->", "id": "other.pdf"}} {
		if got := b.ok("grep_artifacts", args).Content; !strings.Contains(got, "other.pdf:1:") || !strings.Contains(got, "other.pdf (application/pdf)") {
			t.Errorf("what was recognised is searched: %s", got)
		}
	}
	if got := read("report.pdf").Content; len(calls) != asked || strings.Contains(got, "recognised") {
		t.Errorf("a PDF with text needs no service: %s", got)
	}
}
