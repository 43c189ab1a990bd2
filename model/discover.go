// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A door is a hosted API that a key in the environment opens.
type door struct {
	id, name, key   string // key: the environment variable
	baseVar, base   string
	modelVar, model string
	dialect         Dialect
}

func doors() []door {
	return []door{
		{"openai", "OpenAI", "OPENAI_API_KEY", "OPENAI_BASE_URL", openAIBase, "OPENAI_MODEL", "gpt-5-mini", OpenAI},
		{"anthropic", "Anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_MODEL", "claude-sonnet-5", Anthropic},
		{"gemini", "Google Gemini", "GEMINI_API_KEY", "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_MODEL", "gemini-2.5-flash", Gemini},
		{"openrouter", "OpenRouter", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", "OPENROUTER_MODEL", "openrouter/auto", OpenAI},
	}
}

const openAIBase = "https://api.openai.com/v1"

// Discover returns the services that the environment opens, in order of
// preference: each of OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and
// OPENROUTER_API_KEY opens one, and the variables with _BASE_URL and _MODEL in
// the place of _API_KEY change it. It asks nobody.
//
// OPENAI_BASE_URL alone is enough for a server that wants no key. Where it
// names another server than OpenAI's and OPENAI_MODEL is not set, the service
// has no model yet; [Complete] asks the server.
//
// A service whose dialect is not among spoken is listed for routing only.
func Discover(getenv func(string) string, spoken ...Dialect) []Service {
	var found []Service
	for _, d := range doors() {
		if s, ok := d.open(getenv); ok {
			found = append(found, s.limitTo(spoken))
		}
	}
	return found
}

func (d door) open(getenv func(string) string) (Service, bool) {
	env := func(name string) string { return strings.TrimSpace(getenv(name)) }
	key, base, name := env(d.key), env(d.baseVar), env(d.modelVar)
	opened, origin := key != "", "environment: "+d.key
	if d.dialect == OpenAI && base != "" && !sameHost(base, d.base) {
		opened, origin = true, "environment: "+d.baseVar
	}
	if !opened {
		return Service{}, false
	}
	if base == "" {
		base = d.base
	}
	base = strings.TrimRight(base, "/")
	if name == "" && sameHost(base, d.base) {
		name = d.model
	}
	return Service{
		ID: artel.ServiceID(d.id), Name: d.name, Dialect: d.dialect, BaseURL: base, Model: name,
		APIKey: Secret(key), Capabilities: Catalog(name), Origin: origin,
	}, true
}

// limitTo clears the address of a service whose dialect nobody speaks.
func (s Service) limitTo(spoken []Dialect) Service {
	if !slices.Contains(spoken, s.Dialect) {
		s.BaseURL = ""
		s.Origin += " (for routing only: the " + string(s.Dialect) + " API is not spoken here)"
	}
	return s
}

func sameHost(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && strings.EqualFold(ua.Host, ub.Host)
}
