// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A hostedAPI is a vendor API that an environment variable with a key enables.
type hostedAPI struct {
	id, name, key   string // key: the environment variable
	baseVar, base   string
	modelVar, model string
	dialect         Dialect
	compatible      *compatibleEndpoint // nil: the dialect is OpenAI's already
}

// A compatibleEndpoint is a vendor's Chat Completions endpoint beside its own API.
type compatibleEndpoint struct {
	path    func(base string) string
	carries []string // documented media types
	says    string   // description for display
	asked   string   // suffix of base URLs that name this endpoint
}

func hostedAPIs() []hostedAPI {
	// Both vendors document pictures in Chat Completions. Files and audio are
	// excluded, because Anthropic's endpoint drops them silently; a description is
	// better.
	pictures := []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
	return []hostedAPI{
		{id: "openai", name: "OpenAI", key: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", base: openAIBase, modelVar: "OPENAI_MODEL", model: "gpt-5-mini", dialect: OpenAI},
		{
			id: "anthropic", name: "Anthropic", key: "ANTHROPIC_API_KEY", baseVar: "ANTHROPIC_BASE_URL", base: anthropicBase,
			modelVar: "ANTHROPIC_MODEL", model: "claude-sonnet-5", dialect: Anthropic,
			// Source: "OpenAI SDK compatibility" of the Claude documentation.
			compatible: &compatibleEndpoint{func(base string) string { return appendPath(base, "/v1") }, pictures, "through Anthropic's OpenAI-compatible endpoint, which takes text and pictures only", ""},
		},
		{
			id: "gemini", name: "Google Gemini", key: "GEMINI_API_KEY", baseVar: "GEMINI_BASE_URL", base: "https://generativelanguage.googleapis.com/v1beta",
			modelVar: "GEMINI_MODEL", model: "gemini-2.5-flash", dialect: Gemini,
			// Source: "OpenAI compatibility" of the Gemini API documentation.
			compatible: &compatibleEndpoint{geminiCompatible, pictures, "through Google's OpenAI-compatible endpoint, of which text and pictures are used", "/openai"},
		},
		{id: "openrouter", name: "OpenRouter", key: "OPENROUTER_API_KEY", baseVar: "OPENROUTER_BASE_URL", base: "https://openrouter.ai/api/v1", modelVar: "OPENROUTER_MODEL", model: "openrouter/auto", dialect: OpenAI},
	}
}

const (
	openAIBase    = "https://api.openai.com/v1"
	anthropicBase = "https://api.anthropic.com"
)

// appendPath appends path to base, unless base ends with it.
func appendPath(base, path string) string {
	return strings.TrimSuffix(base, path) + path
}

// geminiCompatible accepts a base with or without the version of the API.
func geminiCompatible(base string) string {
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		base += "/v1beta"
	}
	return appendPath(base, "/openai")
}

// Discover returns the services enabled by the environment, in order of
// preference: one for each of OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY
// and OPENROUTER_API_KEY. The corresponding _BASE_URL and _MODEL variables change
// it. Discover makes no request. There is one finding for each of the four.
//
// OPENAI_BASE_URL is enough for a server without a key. If a _BASE_URL names
// another server than the vendor's and _MODEL is not set, the service has no
// model yet; [CompleteAll] asks the server for all that it has.
//
// ANTHROPIC_BASE_URL and GEMINI_BASE_URL are the root of the host, or end with
// the version (/v1, /v1beta). If their dialects are not among spoken, or
// GEMINI_BASE_URL ends with /openai, the vendor's Chat Completions endpoint is
// used with its media types. A service of a dialect not in spoken is for routing
// only.
func Discover(getenv func(string) string, spoken ...Dialect) ([]Service, []Finding) {
	var found []Service
	var findings []Finding
	for _, d := range hostedAPIs() {
		f := d.finding(getenv)
		if s, by, ok := d.open(getenv); ok {
			s, f = d.selectEndpoint(s, spoken).limitTo(spoken, f)
			found, f.Services, f.Place = append(found, s), []artel.ServiceID{s.ID}, by
		} else {
			f.Found, f.Problem = FoundNothing, NotSet
		}
		findings = append(findings, f)
	}
	return found, findings
}

func (d hostedAPI) finding(getenv func(string) string) Finding {
	f := Finding{Source: InEnvironment, Place: d.key, Name: d.name}
	for _, name := range []string{d.key, d.baseVar, d.modelVar} {
		f.Variables = append(f.Variables, Variable{name, strings.TrimSpace(getenv(name)) != ""})
	}
	return f
}

// open returns the service of d and the variable that enabled it.
func (d hostedAPI) open(getenv func(string) string) (s Service, by string, ok bool) {
	env := func(name string) string { return strings.TrimSpace(getenv(name)) }
	key, base, name := env(d.key), env(d.baseVar), env(d.modelVar)
	opened, by := key != "", d.key
	if d.dialect == OpenAI && base != "" && !sameHost(base, d.base) {
		opened, by = true, d.baseVar
	}
	if !opened {
		return Service{}, "", false
	}
	if base == "" {
		base = d.base
	}
	base = strings.TrimRight(base, "/")
	if name == "" && sameHost(base, d.base) {
		name = d.model
	}
	s = Service{
		ID: artel.ServiceID(d.id), Name: d.name, Dialect: d.dialect, BaseURL: base, Model: name,
		APIKey: Secret(key), Origin: "environment: " + by,
	}
	if d.dialect == OpenAI && name == "" { // a server of one's own: all that it has
		s.AllModels, s.NamedByHost = true, true
	}
	s.Capabilities = s.builtIn()
	return s, by, true
}

// selectEndpoint returns s at the vendor's compatible endpoint if the vendor's
// dialect is not spoken or the base URL names that endpoint.
func (d hostedAPI) selectEndpoint(s Service, spoken []Dialect) Service {
	if d.compatible == nil || !slices.Contains(spoken, OpenAI) {
		return s
	}
	asked := d.compatible.asked != "" && strings.HasSuffix(s.BaseURL, d.compatible.asked)
	if slices.Contains(spoken, s.Dialect) && !asked {
		return s
	}
	s.Dialect, s.BaseURL = OpenAI, d.compatible.path(s.BaseURL)
	s.Capabilities = s.builtIn()
	s.Carries, s.Origin = d.compatible.carries, s.Origin+" ("+d.compatible.says+")"
	return s.narrowed()
}

// Reach makes services of dialects that are not spoken routing-only and notes it in
// their findings.
func Reach(services []Service, findings []Finding, spoken ...Dialect) {
	for i, s := range services {
		if at := slices.IndexFunc(findings, func(f Finding) bool { return slices.Contains(f.Services, s.ID) }); at >= 0 {
			services[i], findings[at] = s.limitTo(spoken, findings[at])
		}
	}
}

// limitTo clears the address of a service whose dialect is not spoken.
func (s Service) limitTo(spoken []Dialect, f Finding) (Service, Finding) {
	if !slices.Contains(spoken, s.Dialect) && s.BaseURL != "" {
		s.BaseURL = ""
		s.Problem = "the " + string(s.Dialect) + " API is not spoken here"
		s.Origin += " (for routing only: " + s.Problem + ")"
		f.Problem, f.Detail = DialectNotSpoken, string(s.Dialect)
	}
	return s, f
}

func sameHost(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && strings.EqualFold(ua.Host, ub.Host)
}
