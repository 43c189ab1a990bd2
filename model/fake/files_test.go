// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// An account is a service that holds files, and a program that calls it.
type account struct {
	server   *httptest.Server
	fake     *fake.Server
	blobs    blob.Store
	service  model.Service
	make     func(held *provider.Uploads) model.Provider
	takes    string // a media type
	files    string // where the API has them
	noUpload bool   // the service has no such endpoint

	mu    sync.Mutex
	saved []byte
	now   time.Time
}

func accounts(t *testing.T) map[model.Dialect]*account {
	out := map[model.Dialect]*account{}
	for _, d := range []model.Dialect{model.OpenAI, model.OpenAIResponses, model.Anthropic, model.Gemini} {
		a := &account{blobs: blob.NewMemory(), now: time.Now(), files: "/v1/files/", takes: "application/pdf"}
		base := ""
		switch d {
		case model.OpenAI:
			base = "/v1"
			a.fake = fake.OpenAI(fake.Options{})
			a.make = func(h *provider.Uploads) model.Provider {
				return openai.New(openai.Options{Client: a.server.Client(), Blobs: a.blobs, Uploads: h})
			}
		case model.OpenAIResponses:
			base = "/v1"
			a.fake = fake.OpenAI(fake.Options{})
			a.make = func(h *provider.Uploads) model.Provider {
				return responses.New(responses.Options{Client: a.server.Client(), Blobs: a.blobs, Uploads: h})
			}
		case model.Anthropic:
			a.takes = "image/png" // it looks into documents
			a.fake = fake.Anthropic(fake.Options{})
			a.make = func(h *provider.Uploads) model.Provider {
				return anthropic.New(anthropic.Options{Client: a.server.Client(), Blobs: a.blobs, Uploads: h})
			}
		case model.Gemini:
			a.files = "/v1beta/files/"
			a.fake = fake.Gemini(fake.Options{})
			a.make = func(h *provider.Uploads) model.Provider {
				return gemini.New(gemini.Options{Client: a.server.Client(), Blobs: a.blobs, Uploads: h})
			}
		}
		a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a.noUpload && strings.Contains(r.URL.Path, "files") {
				http.NotFound(w, r)
				return
			}
			a.fake.ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			a.server.Client().CloseIdleConnections()
			a.server.Close()
		})
		a.service = model.Service{ID: "s", Dialect: d, BaseURL: a.server.URL + base, Model: "gemini-3-fake", APIKey: "key-of-the-account", Capabilities: model.TextOnly()}
		a.service.Capabilities.Transport = model.Fact[[]model.Transport]{Value: model.Transports(), Source: model.FromOperator}
		out[d] = a
	}
	return out
}

// held returns a record that begins with what was saved.
func (a *account) held() *provider.Uploads {
	a.mu.Lock()
	defer a.mu.Unlock()
	return provider.NewUploads(provider.UploadsOptions{
		Data: a.saved,
		Save: func(b []byte) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.saved = b
			return nil
		},
		Now: func() time.Time {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.now
		},
	})
}

// document stores a file of size bytes.
func (a *account) document(t *testing.T, mediaType string, size int, mark byte) artel.Media {
	t.Helper()
	var head bytes.Buffer
	if mediaType == "image/png" {
		if err := png.Encode(&head, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
			t.Fatal(err)
		}
	}
	data := append(head.Bytes(), bytes.Repeat([]byte{mark}, size-head.Len())...)
	info, err := a.blobs.Put(t.Context(), bytes.NewReader(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: artel.KindDocument, Filename: "secret plans.pdf", Size: info.Size}
}

func (a *account) ask(t *testing.T, p model.Provider, messages ...model.Message) error {
	t.Helper()
	var out error
	for _, err := range p.Generate(t.Context(), &model.Request{Service: a.service, Messages: messages}) {
		out = errors.Join(out, err)
	}
	return out
}

func says(m artel.Media) model.Message {
	return model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "read this"}, m}}
}

// counts counts what the server has got: files, calls that named one, calls that
// held bytes, and refusals.
type counts struct{ uploads, named, inside, refused int }

func (a *account) counts() (n counts) {
	for _, r := range a.fake.Requests() {
		switch {
		case r.Status >= 400:
			n.refused++
		case len(r.Media) == 1 && (strings.HasSuffix(r.Path, "/files") || strings.Contains(r.Path, "/sessions/")):
			n.uploads++
		case r.Body == nil: // the beginning of an upload
		case len(r.Media) > 0:
			n.inside++
		case bytes.Contains(r.Body, []byte(`"file_id":"`)), bytes.Contains(r.Body, []byte(`"fileUri":"`)):
			n.named++
		}
	}
	return n
}

func (a *account) want(t *testing.T, what string, want counts) {
	t.Helper()
	if got := a.counts(); got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// forget removes all files from the service.
func (a *account) forget(t *testing.T) {
	t.Helper()
	var rows []struct{ Name string }
	if err := json.Unmarshal(a.saved, &rows); err != nil || len(rows) == 0 {
		t.Fatal("nothing is saved", err)
	}
	for _, r := range rows {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, a.server.URL+a.files+path.Base(r.Name), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		resp, err := a.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s cannot be deleted: %s", r.Name, resp.Status)
		}
	}
}

// TestHeldFiles walks every dialect through the life of a file at its service.
func TestHeldFiles(t *testing.T) {
	t.Parallel()
	for dialect, a := range accounts(t) {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			m := a.document(t, a.takes, 1<<20, 'a')
			p := a.make(a.held())
			check := func(what string, err error, want counts) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				a.want(t, what, want)
			}
			check("a small file", a.ask(t, p, says(a.document(t, a.takes, 1<<20-1, 'b'))), counts{inside: 1})
			var all sync.WaitGroup
			for range 8 { // at once
				all.Go(func() {
					if err := a.ask(t, p, says(m)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			check("eight at once", nil, counts{uploads: 1, named: 8, inside: 1})
			if s := string(a.saved); strings.Contains(s, "key-of-the-account") || strings.Contains(s, "plans") {
				t.Errorf("what is saved tells too much: %s", s)
			}
			p = a.make(a.held())
			check("after a start", a.ask(t, p, says(m)), counts{uploads: 1, named: 9, inside: 1})
			a.forget(t)
			check("after the service forgot it", a.ask(t, p, says(m)), counts{uploads: 2, named: 10, inside: 1, refused: 1})
			a.mu.Lock()
			a.now = a.now.Add(provider.UploadLifetime - 30*time.Minute)
			a.mu.Unlock()
			check("before its end", a.ask(t, p, says(m)), counts{uploads: 3, named: 11, inside: 1, refused: 1})
			a.service.APIKey = "another-account"
			check("for another account", a.ask(t, p, says(m)), counts{uploads: 4, named: 12, inside: 1, refused: 1})
			a.service.Capabilities.Transport.Source = model.FromDialect
			check("where nobody stated it", a.ask(t, p, says(m)), counts{uploads: 4, named: 12, inside: 2, refused: 1})
		})
	}
}

// TestHeldNowhere asks services that have no endpoint for files.
func TestHeldNowhere(t *testing.T) {
	t.Parallel()
	for dialect, a := range accounts(t) {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			a.noUpload = true
			m := a.document(t, a.takes, 1<<20, 'a')
			held := a.held()
			if err := a.ask(t, a.make(held), says(m)); err != nil {
				t.Fatal(err)
			}
			a.noUpload = false
			if err := a.ask(t, a.make(held), says(m)); err != nil {
				t.Fatal(err)
			}
			a.want(t, "while the account rests", counts{inside: 2})
			a.now = a.now.Add(11 * time.Minute)
			if err := a.ask(t, a.make(held), says(m)); err != nil {
				t.Fatal(err)
			}
			a.want(t, "after that", counts{uploads: 1, named: 1, inside: 2})
		})
	}
}

// TestHeldInResults sends a file as the result of a tool, and a film.
func TestHeldInResults(t *testing.T) {
	t.Parallel()
	for dialect, a := range accounts(t) {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			yes := model.Fact[bool]{Value: true, Source: model.FromOperator}
			a.service.Capabilities.ToolImage, a.service.Capabilities.ToolFile = yes, yes
			m := a.document(t, a.takes, 1<<20, 'a')
			switch dialect {
			case model.Gemini:
				a.service.Model = "unsigned-1" // signs no calls
			case model.OpenAI: // whose tool messages hold text
				a.service.Capabilities.ToolImage, a.service.Capabilities.ToolFile = model.Fact[bool]{}, model.Fact[bool]{}
			}
			err := a.ask(
				t, a.make(a.held()),
				model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "get it"}}},
				model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "c1", Name: "get", Arguments: json.RawMessage(`{}`)}}},
				model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c1", Content: "here", Parts: artel.Parts{m}}}},
			)
			want := counts{uploads: 1, named: 1}
			if dialect == model.Gemini { // whose responses hold bytes alone
				want = counts{inside: 1}
			}
			if err != nil {
				t.Fatal(err)
			}
			a.want(t, "a result", want)
		})
	}
	film := accounts(t)[model.Gemini]
	m := film.document(t, "video/mp4", 2<<20, 'f')
	if err := film.ask(t, film.make(film.held()), says(m)); err != nil {
		t.Fatal(err)
	}
	film.want(t, "a film", counts{uploads: 1, named: 1})
}

// TestFilesRefuse holds the stand-ins to the rules of the real APIs.
func TestFilesRefuse(t *testing.T) {
	t.Parallel()
	all := accounts(t)
	send := func(a *account, address string, header http.Header, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.server.URL+address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		req.Header.Set("Authorization", "Bearer k")
		resp, err := a.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(said)
	}
	field := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	file := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n--b--\r\n"
	form := http.Header{"Content-Type": {"multipart/form-data; boundary=b"}, "Anthropic-Version": {"2023-06-01"}}
	for _, c := range []struct {
		dialect model.Dialect
		body    string
		status  int
		says    string
	}{
		{model.OpenAI, field("purpose", "user_data") + file, 200, `"status":"processed"`},
		{model.OpenAI, file, 400, "purpose"},
		{model.OpenAI, field("purpose", "user_data") + field("expires_after[anchor]", "created_at") + field("expires_after[seconds]", "60") + file, 400, "3600"},
		{model.OpenAI, field("what", "is this") + file, 400, "Unknown parameter"},
		{model.OpenAI, field("purpose", "user_data") + "--b--\r\n", 400, "Field required"},
		{model.Anthropic, file, 200, `"mime_type":"application/pdf"`},
		{model.Anthropic, field("expires_in_seconds", "8000000") + file, 400, "7776000"},
	} {
		if status, said := send(all[c.dialect], "/v1/files", form.Clone(), c.body); status != c.status || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d %s, want %d and %q", c.dialect, status, said, c.status, c.says)
		}
	}
	if status, _ := send(all[model.Gemini], "/upload/v1beta/files", http.Header{}, "{}"); status != 400 {
		t.Errorf("an upload to Gemini that is not resumable: %d", status)
	}
	if status, _ := send(all[model.Gemini], "/upload/v1beta/sessions/none", http.Header{}, "{}"); status != 404 {
		t.Errorf("an upload to Gemini that was not begun: %d", status)
	}
}

// TestDropFiles deletes files at services, as they want it said.
func TestDropFiles(t *testing.T) {
	t.Parallel()
	for dialect, a := range accounts(t) {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			p := a.make(a.held())
			if err := a.ask(t, p, says(a.document(t, a.takes, 1<<20, 'a'))); err != nil {
				t.Fatal(err)
			}
			var rows []struct{ Name string }
			if err := json.Unmarshal(a.saved, &rows); err != nil || len(rows) != 1 {
				t.Fatal(string(a.saved), err)
			}
			drop := p.(provider.FileDeleter).DeleteFile
			if err := drop(t.Context(), &a.service, rows[0].Name); err != nil {
				t.Fatal(err)
			}
			err := drop(t.Context(), &a.service, rows[0].Name)
			if c, ok := errors.AsType[*model.CallError](err); err != nil && !(ok && c.Status == http.StatusNotFound) {
				t.Errorf("deleted twice: %v, want nothing or the service's 404", err)
			}
			if err := a.ask(t, p, says(a.document(t, a.takes, 1<<20, 'a'))); err != nil {
				t.Fatal(err)
			}
			a.want(t, "after it is gone there", counts{uploads: 2, named: 2, refused: a.counts().refused})
		})
	}
}
