// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider/openai"
)

// addresses returns the URLs of media in a request of any dialect.
func addresses(body []byte) []string {
	return slices.DeleteFunc(valuesOf(body, "url", "image_url", "file_url", "fileUri", "file_uri"), func(s string) bool {
		return !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://")
	})
}

// Fetch makes the server fetch the pictures and documents that requests name by
// URL, with client; it refuses requests whose media it cannot fetch. nil: nothing
// is fetched, as at first.
func (s *Server) Fetch(client *http.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

// fetch fetches the media of a request: PDF and pictures of the types that every
// API takes, with the right Content-Type.
func (s *Server) fetch(ctx context.Context, rec *Request) *problem {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client == nil {
		return nil
	}
	for _, address := range addresses(rec.Body) {
		if strings.Contains(address, "/v1beta/files/") {
			continue // a file of Gemini itself
		}
		m, err := get(ctx, client, address)
		if err != nil {
			message := s.dialect.unfetched
			if strings.Contains(message, "%s") {
				message = fmt.Sprintf(message, address)
			}
			return s.dialect.problem(failure{status: http.StatusBadRequest}, message)
		}
		rec.Fetched = append(rec.Fetched, m)
	}
	return nil
}

func get(ctx context.Context, client *http.Client, address string) (m Media, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return m, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	body := &bytes.Buffer{}
	if m, err = takeFile(io.TeeReader(resp.Body, body)); err != nil {
		return m, err
	}
	is := http.DetectContentType(body.Bytes())
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != is || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}, is) {
		return m, artel.Errorf(artel.Invalid, "fake", "", "got %s and %q, which is %q", resp.Status, resp.Header.Get("Content-Type"), is)
	}
	return m, nil
}

// unknownMediaID records the ids of media with bytes, as vLLM does, and returns the
// index of the first media without bytes and with an unknown id; -1: none.
func (s *Server) unknownMediaID(r *openai.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Content.Parts {
			if p.Type != "image_url" {
				continue
			}
			switch {
			case p.UUID == "":
			case p.ImageURL != nil:
				if s.knownIDs == nil {
					s.knownIDs = map[string]bool{}
				}
				s.knownIDs[p.UUID] = true
			case !s.knownIDs[p.UUID]:
				return n
			}
			n++
		}
	}
	return -1
}

// Forget removes the recorded media ids.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knownIDs = nil
}
