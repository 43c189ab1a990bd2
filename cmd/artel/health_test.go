// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	status := http.StatusOK
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the disk is full")
	}))
	ask := func() error {
		root := newRoot()
		root.SetArgs([]string{"health", "--server", at.URL})
		root.SetOut(io.Discard)
		return root.ExecuteContext(t.Context())
	}
	if err := ask(); err != nil {
		t.Errorf("ready: %v", err)
	}
	status = http.StatusServiceUnavailable
	if err := ask(); err == nil || exitCode(err) != exitRefused || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("not ready: %v", err)
	}
	at.Close()
	if err := ask(); err == nil || exitCode(err) != exitUnreachable {
		t.Errorf("no server: %v", err)
	}
}
