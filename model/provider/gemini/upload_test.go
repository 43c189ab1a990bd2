// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
)

// A tripper answers requests without a network.
type tripper func(*http.Request) *http.Response

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r), nil }

// TestUploadGoesNowhereElse answers the beginning of uploads with addresses of
// others, and with broken ones.
func TestUploadGoesNowhereElse(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	info, err := blobs.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20)), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := model.Service{ID: "s", Dialect: model.Gemini, BaseURL: "https://g.test", Model: "m", APIKey: "key-0123456789"}
	s.Capabilities.Transport = model.Fact[[]model.Transport]{Value: model.Transports(), Source: model.FromOperator}
	m := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "application/pdf", Size: info.Size}
	for _, to := range []string{"https://evil.test/u", "http://g.test/u", "/u", "", "https://g.test:1/u", ":", "https://g.test/u?id=1"} {
		var asked []string
		client := &http.Client{Transport: tripper(func(r *http.Request) *http.Response {
			asked = append(asked, r.URL.String())
			if strings.Contains(r.URL.Host, "evil") || r.URL.Path == "/u" && r.Header.Get("X-Goog-Api-Key") != "" {
				t.Errorf("asked %s with %v", r.URL, r.Header)
			}
			body := `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`
			if r.URL.Path == "/u" {
				body = `{"file":{"name":"files/a","uri":"https://g.test/v1beta/files/a","state":"ACTIVE"}}`
			}
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"X-Goog-Upload-Url": {to}, "Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}
		})}
		p := gemini.New(gemini.Options{Client: client, Blobs: blobs, Uploads: provider.NewUploads(provider.UploadsOptions{})})
		r := &model.Request{Service: s, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}
		for _, err := range p.Generate(t.Context(), r) {
			if err != nil {
				t.Errorf("%q: %v", to, err)
			}
		}
		want := 2 // the beginning, and the call
		if strings.HasSuffix(to, "id=1") {
			want = 3
		}
		if len(asked) != want || asked[0] != "https://g.test/upload/v1beta/files" {
			t.Errorf("%q: asked %q", to, asked)
		}
	}
}
