// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/artelhq/artel/model"
)

// A fault is what a service does to the requests of a session before its model
// answers.
type fault struct {
	status int
	wait   string // Retry-After, in seconds
	says   string
}

// faultOf is the fault of the nth request of a session, from 1; none: status 0.
func (s *session) faultOf(n int64) fault {
	switch {
	case s.word == "work" && s.disturbed && n == 2:
		return fault{http.StatusTooManyRequests, "1", "Not so fast."}
	case s.word == "work" && s.disturbed && n == 5:
		return fault{http.StatusInternalServerError, "", "Something broke."}
	case s.word == "again" && n <= attempts:
		return fault{http.StatusServiceUnavailable, "", "No room for " + s.mark + "."}
	case s.word == "refuse":
		return fault{http.StatusBadRequest, "", "No prompts like " + s.mark + " here."}
	case s.word == "deny":
		return fault{http.StatusUnauthorized, "", "No key for " + s.mark + " here."}
	}
	return fault{}
}

// attempts is how often the gateway asks a service that fails.
const attempts = 3

// faulty puts the faults of sessions before a service.
func (s *script) faulty(d model.Dialect, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if found := prompt.FindAllSubmatch(body, -1); found != nil {
			if v, ok := s.sessions.Load(string(found[len(found)-1][2])); ok {
				v := v.(*session)
				if f := v.faultOf(v.asked.Add(1)); f.status != 0 {
					f.write(w, d)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// write answers in the form of an API.
func (f fault) write(w http.ResponseWriter, d model.Dialect) {
	body := map[string]any{"error": map[string]any{"message": f.says, "type": "error", "param": nil, "code": nil}}
	switch d {
	case model.Anthropic:
		kind := map[int]string{429: "rate_limit_error", 400: "invalid_request_error", 401: "authentication_error"}[f.status]
		if kind == "" {
			kind = "api_error"
		}
		body = map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": f.says}}
	case model.Gemini:
		kind := map[int]string{429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 500: "INTERNAL", 503: "UNAVAILABLE"}[f.status]
		body = map[string]any{"error": map[string]any{"code": f.status, "message": f.says, "status": kind}}
	}
	if f.wait != "" {
		w.Header().Set("Retry-After", f.wait)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

// broken breaks the connection in the middle of the first answer.
func (s *session) broken() iter.Seq2[model.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.step++; s.step > 1 {
		s.ended = true
		return s.say(model.TextDelta("All is done."))
	}
	return func(yield func(model.Delta, error) bool) {
		if yield(model.TextDelta("It begins, and then it "), nil) {
			panic(http.ErrAbortHandler) // net/http breaks the connection
		}
	}
}

// late is the answer after the faults.
func (s *session) late() iter.Seq2[model.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.say(model.TextDelta("All is done."))
}

// fails lets the program meet an error of its service: told is the word of the
// table if it ends with the text want, which has MARK for the mark of the session.
func (t *trial) fails(word, told, want string) {
	s, r := t.session(word)
	if r == nil {
		return
	}
	err := r.wait()
	out, readErr := os.ReadFile(r.output)
	if readErr != nil {
		t.Error(readErr)
	}
	said := strings.Join(strings.Fields(string(out)), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended && err == nil:
		t.out[word] = "✓"
	case strings.Contains(said, strings.ReplaceAll(want, "MARK", s.mark)):
		t.out[word] = told
	default:
		t.bad(word, "the task ended %v (%v) after %d requests, and the error is not shown\n%s", s.ended, err, s.asked.Load(), out)
	}
}

// tokens looks for what was billed among what the program has written in its home.
func (t *trial) tokens(s *session, r *process) {
	var kept strings.Builder
	err := filepath.WalkDir(filepath.Dir(r.output), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.Type().IsRegular():
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		kept.Write(data)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	t.out["tokens"] = "✓"
	records := strings.Join(strings.Fields(kept.String()), "")
	for n, usage := range s.billed {
		if want := t.program.keeps(usage); !strings.Contains(records, want) {
			t.bad("tokens", "%d of %d: %s is nowhere in its home", n+1, len(s.billed), want)
		}
	}
}
