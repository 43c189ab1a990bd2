// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
)

// below adds prefix to the paths to which an answer leads.
type below struct {
	http.ResponseWriter
	prefix string
	begun  bool
}

// redirects are the fields of a header that hold a path of this server.
func redirects() []string { return []string{"Location", "HX-Redirect"} }

// WriteHeader implements [http.ResponseWriter].
func (b *below) WriteHeader(status int) {
	if !b.begun && status >= http.StatusOK {
		b.begun = true
		for _, name := range redirects() {
			if v := b.Header().Get(name); strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "//") {
				b.Header().Set(name, b.prefix+v)
			}
		}
	}
	b.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (b *below) Write(p []byte) (int, error) {
	if !b.begun {
		b.WriteHeader(http.StatusOK)
	}
	return b.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (b *below) Flush() { _ = b.FlushError() }

// FlushError is for [http.ResponseController].
func (b *below) FlushError() error {
	if !b.begun {
		b.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (b *below) Unwrap() http.ResponseWriter { return b.ResponseWriter }
