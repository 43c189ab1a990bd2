// SPDX-License-Identifier: Apache-2.0

// Command pluginserver is a plugin of the context pipeline behind HTTP: a draft
// is posted to it, and it answers. It masks e-mail addresses in what users have
// written, so that the model does not see them.
//
//	go run ./examples/pluginserver -addr 127.0.0.1:7430
//
// and in artel.yaml:
//
//	pipeline:
//	  plugins:
//	    - id: mask
//	      url: http://127.0.0.1:7430/
//	      headers: {Authorization: "Bearer ${MASK_TOKEN}"}
//	      on_failure: fail
//
// It uses nothing of Artel, as a plugin can be written in any language.
package main

import (
	"crypto/subtle"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"regexp"
	"time"
)

type part map[string]any

type message struct {
	ID    string `json:"id"`
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts,omitempty"`
}

type draft struct {
	Version  int       `json:"version"`
	Messages []message `json:"messages"`
}

type note struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

type answer struct {
	Version  int       `json:"version"`
	Messages []message `json:"messages"`
	Logs     []note    `json:"logs,omitempty"`
}

func main() {
	addr := flag.String("addr", "127.0.0.1:7430", "address to listen on")
	flag.Parse()
	server := &http.Server{Addr: *addr, Handler: handler(os.Getenv("MASK_TOKEN")), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// handler answers those who know the token; "": everybody.
func handler(token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if token != "" && subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+token)) != 1 {
			http.Error(w, "the token is another one", http.StatusUnauthorized)
			return
		}
		var d draft
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&d); err != nil || d.Version != 1 {
			http.Error(w, "want a draft of version 1", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(masked(d)) // who asked is gone
	})
}

var address = regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]+`)

func masked(d draft) answer {
	a := answer{Version: 1}
	found := false
	for _, m := range d.Messages {
		out := message{ID: m.ID} // as it was
		if m.Role == "user" {
			for i, p := range m.Parts {
				text, ok := p["text"].(string)
				if p["type"] == "text" && ok && address.MatchString(text) {
					m.Parts[i]["text"] = address.ReplaceAllString(text, "(address)")
					out.Parts, found = m.Parts, true
				}
			}
		}
		a.Messages = append(a.Messages, out)
	}
	if found {
		a.Logs = []note{{"info", "addresses were masked"}}
	}
	return a
}
