// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A server says in three lines where it is, what it found, and what to do next.
func TestStartedTells(t *testing.T) {
	demo := model.Service{ID: "demo", Dialect: model.Demo}
	good := func(id, name string) model.Service {
		return model.Service{ID: artel.ServiceID(id), Dialect: model.OpenAI, BaseURL: "http://x", Model: name}
	}
	bad := model.Service{ID: "openai", Dialect: model.OpenAI, BaseURL: "http://x"}
	for _, x := range []struct {
		name     string
		services []model.Service
		want     string
	}{
		{"nothing", []model.Service{demo}, "none found, so the built-in demo answers\nartel: next: connect a model at http://h/settings, or run: ./artel services add --help\n"},
		{"models", []model.Service{good("a", "gpt"), good("b", "b"), demo}, "a (gpt), b\nartel: next: point an SDK or agent at http://h/gateway, or run: ./artel chat --help\n"},
		{"one without a model", []model.Service{good("a", "gpt"), bad, demo}, "a (gpt); cannot be called: openai\nartel: next: see why at http://h/settings, or run: ./artel doctor --services\n"},
		{"many", []model.Service{good("a", "a"), good("b", "b"), good("c", "c"), good("d", "d"), good("e", "e"), good("f", "f")}, "a, b, c, d and 2 more\nartel: next: point an SDK or agent at http://h/gateway, or run: ./artel chat --help\n"},
	} {
		var b strings.Builder
		started{url: "http://h", services: x.services}.tell(&b, "./artel")
		if want := "artel: listening on http://h\nartel: models: " + x.want; b.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, b.String(), want)
		}
	}
	var b strings.Builder
	s := started{url: "http://h", setup: "http://h/setup?code=1"}
	s.tell(&b, "artel")
	if !strings.HasPrefix(b.String(), "artel: set up at http://h/setup?code=1\nartel: listening on http://h\n") || s.page() != s.setup {
		t.Errorf("%s; opens %s", b.String(), s.page())
	}
}

// No browser is opened where nobody would see it.
func TestCanOpen(t *testing.T) {
	for _, x := range []struct {
		name, goos string
		terminal   bool
		env        map[string]string
		want       bool
	}{
		{"a Mac", "darwin", true, nil, true},
		{"Windows", "windows", true, nil, true},
		{"a desktop", "linux", true, map[string]string{"DISPLAY": ":0"}, true},
		{"Wayland", "linux", true, map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
		{"no display", "linux", true, nil, false},
		{"no terminal", "darwin", false, nil, false},
		{"over SSH", "linux", true, map[string]string{"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "1"}, false},
		{"continuous integration", "darwin", true, map[string]string{"CI": "true"}, false},
	} {
		if got := canOpen(x.terminal, x.goos, func(k string) string { return x.env[k] }); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
