// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/plugin"
	"github.com/artelhq/artel/pipeline/token"
)

func TestMask(t *testing.T) {
	server := httptest.NewServer(handler("secret"))
	defer server.Close()
	client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
	defer client.CloseIdleConnections()
	ask := func(authorization string) (pipeline.Result, error) {
		p, err := plugin.Endpoint{URL: server.URL, Header: http.Header{"Authorization": {authorization}}, Client: client}.
			Processor("mask", plugin.Options{Required: true, Timeout: plugin.MaxTimeout})
		if err != nil {
			t.Fatal(err)
		}
		registry, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), p)...)
		if err != nil {
			t.Fatal(err)
		}
		return registry.Build(t.Context(), pipeline.Input{
			Service: model.Service{ID: "any", Capabilities: model.TextOnly()},
			History: []artel.Message{{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "Write to ann@example.org, please."}}}},
		})
	}
	built, err := ask("Bearer secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := artel.TextOf(built.Messages[0].Parts); got != "Write to (address), please." {
		t.Errorf("got %q", got)
	}
	// Where masking is not possible, nothing is sent.
	if _, err := ask("Bearer wrong"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
}
