// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
)

// A mediaServer serves the bytes of an account at addresses, unless it is shut.
func mediaServer(t *testing.T, of func() blob.Store) (address func(artel.Media) string, client *http.Client, shut *atomic.Bool) {
	shut = &atomic.Bool{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := artel.ParseDigest("sha256-" + strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || shut.Load() {
			http.NotFound(w, r)
			return
		}
		b, err := of().Open(r.Context(), d)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer b.Close()
		http.ServeContent(w, r, "", time.Time{}, b)
	}))
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		s.Close()
	})
	return func(m artel.Media) string { return s.URL + "/" + m.Ref.Digest.Hex() + "?sig=1.a_-b" }, s.Client(), shut
}

// TestAddresses walks every dialect through media that its service fetches.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for dialect, a := range accounts(t) {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			address, client, shut := mediaServer(t, func() blob.Store { return a.blobs })
			var with fake.Options
			switch dialect {
			case model.Anthropic:
				a.fake = fake.Anthropic(with)
			case model.Gemini:
				a.fake = fake.Gemini(with)
			default:
				a.fake = fake.OpenAI(with)
			}
			a.fake.Fetch(client)
			yes := model.Fact[bool]{Value: true, Source: model.FromOperator}
			a.service.Capabilities.Transport.Value = []model.Transport{model.ByBytes, model.ByURL}
			if dialect != model.OpenAI {
				a.service.Capabilities.ToolImage, a.service.Capabilities.ToolFile = yes, yes
			}
			p := a.make(provider.NewUploads(provider.UploadsOptions{Address: address}))
			png := a.document(t, "image/png", 64<<10, 'a')
			want := func(what string, err error, status int, fetched, inside int) fake.Request {
				t.Helper()
				all := a.fake.Requests()
				last := all[len(all)-1]
				if status == 200 && err != nil || last.Status != status || len(last.Fetched) != fetched || len(last.Media) != inside {
					t.Fatalf("%s: %v, %d, %d fetched, %d inside: %s", what, err, last.Status, len(last.Fetched), len(last.Media), last.Body)
				}
				return last
			}
			first := want("a picture", a.ask(t, p, says(png)), 200, 1, 0)
			if first.Fetched[0].Digest != png.Ref.Digest {
				t.Errorf("fetched %v", first.Fetched)
			}
			if again := want("again", a.ask(t, p, says(png)), 200, 1, 0); !bytes.Equal(again.Body, first.Body) {
				t.Errorf("the same request is other bytes:\n%s\n%s", first.Body, again.Body)
			}
			want("a small one", a.ask(t, p, says(a.document(t, "image/png", 64<<10-1, 'b'))), 200, 0, 1)
			info, err := a.blobs.Put(t.Context(), strings.NewReader("%PDF-1.4\n"+strings.Repeat("x", 64<<10)), 0)
			if err != nil {
				t.Fatal(err)
			}
			pdf := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "application/pdf", Kind: artel.KindDocument, Filename: "a.pdf", Size: info.Size}
			if dialect == model.OpenAI { // which takes pictures alone by address
				want("a document", a.ask(t, p, says(pdf)), 200, 0, 1)
			} else {
				want("a document", a.ask(t, p, says(pdf)), 200, 1, 0)
			}
			if dialect == model.Gemini {
				a.service.Model = "gemini-2.0-flash"
				want("an older model", a.ask(t, p, says(png)), 200, 0, 1)
				a.service.Model = "gemini-3-fake"
			}
			// What cannot be fetched goes inside, once for the call and for a while.
			shut.Store(true)
			before := len(a.fake.Requests())
			want("nothing there", a.ask(t, p, says(png)), 200, 0, 1)
			if n := len(a.fake.Requests()) - before; n != 2 {
				t.Errorf("healed in %d calls, want 2", n)
			}
			shut.Store(false)
			want("for a while", a.ask(t, p, says(png)), 200, 0, 1)
			if n := len(a.fake.Requests()) - before; n != 3 {
				t.Errorf("%d calls, want 3", n)
			}
			a.service.Capabilities.Transport.Source = model.FromDialect
			p = a.make(provider.NewUploads(provider.UploadsOptions{Address: address}))
			want("where nobody stated it", a.ask(t, p, says(png)), 200, 0, 1)
		})
	}
}

// TestRemembered: a server that knows media by their ids gets their bytes once,
// and again where it has forgotten them.
func TestRemembered(t *testing.T) {
	t.Parallel()
	a := accounts(t)[model.OpenAI]
	a.fake = fake.OpenAI(fake.Options{Behavior: fake.Behavior{Compatible: true}})
	a.service.Server = model.VLLMServer
	p := a.make(a.held())
	png := a.document(t, "image/png", 1000, 'a')
	var told []map[artel.Digest]model.Name
	ask := func(what string, calls, inside int) {
		t.Helper()
		told = nil
		before := len(a.fake.Requests())
		r := &model.Request{
			Service: a.service, Messages: []model.Message{says(png)},
			OnNames: func(held map[artel.Digest]model.Name) { told = append(told, held) },
		}
		for _, err := range p.Generate(context.WithoutCancel(t.Context()), r) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		all := a.fake.Requests()
		if last := all[len(all)-1]; len(all)-before != calls || len(last.Media) != inside || !bytes.Contains(last.Body, []byte(`"uuid":"`+string(png.Ref.Digest)+`"`)) {
			t.Errorf("%s: %d calls, want %d; %d inside: %s", what, len(all)-before, calls, len(last.Media), last.Body)
		}
	}
	ask("first", 1, 1)
	if len(told) != 1 || len(told[0]) != 0 {
		t.Errorf("first: told %v, want that nothing is left out", told)
	}
	ask("then", 1, 0)
	if len(told) != 1 || told[0][png.Ref.Digest].By != model.ByMediaID {
		t.Errorf("then: told %v", told)
	}
	a.fake.Forget()
	ask("after a restart", 2, 1)
	if len(told) != 2 || len(told[1]) != 0 {
		t.Errorf("after a restart: told %v, want at last that nothing is left out", told)
	}
	ask("and then", 1, 0)
}
