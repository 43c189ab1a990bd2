// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// ReplaceStored replaces the services that administrators configured at run time, with
// their findings (source [Stored]). In the order of preference they stand between those
// of the configuration file and those that were discovered. The id of another service
// takes precedence over theirs.
func ReplaceStored(r *Registry, services []Service, findings []Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored, r.storedFindings = make([]Service, len(services)), make([]Finding, len(findings))
	for i, s := range services {
		r.stored[i] = s.clone()
	}
	for i, f := range findings {
		r.storedFindings[i] = f.clone()
	}
	r.rebuild()
}

// preferred returns all services in order of preference, with the findings in
// theirs.
func (r *Registry) preferred() (services []Service, findings []Finding) {
	configured := map[artel.ServiceID]bool{}
	at := slices.IndexFunc(r.findings, func(f Finding) bool { return f.Source != InConfiguration })
	if at < 0 {
		at = len(r.findings)
	}
	for _, f := range r.findings[:at] {
		for _, id := range f.Services {
			configured[id] = true
		}
	}
	first := slices.IndexFunc(r.services, func(s Service) bool { return !configured[s.ID] })
	if first < 0 {
		first = len(r.services)
	}
	taken := map[artel.ServiceID]bool{DemoID: true}
	for _, s := range r.services {
		taken[s.ID] = true
	}
	stored := slices.DeleteFunc(slices.Clone(r.stored), func(s Service) bool { return taken[s.ID] })
	services = slices.Concat(r.services[:first], stored, r.services[first:])
	owned := make([]Finding, len(r.storedFindings))
	for i, f := range r.storedFindings {
		if owned[i] = f; len(f.Services) > 0 && !slices.ContainsFunc(f.Services, func(id artel.ServiceID) bool { return !taken[id] }) {
			owned[i].Problem, owned[i].Detail, owned[i].Services = IDTaken, string(f.Services[0]), nil
		}
	}
	return services, slices.Concat(r.findings[:at], owned, r.findings[at:])
}

// ListModels asks the endpoint of s for the ids of its chat models, in its order. base
// is the base URL that answered, which differs from that of s if the version was
// missing there. Failed queries are explained by [TroubleOf].
func ListModels(ctx context.Context, client *http.Client, s Service) (models []string, base string, err error) {
	list, err := s.listAny(ctx, client)
	for _, m := range list {
		if m.ID != "" && !otherPurpose().MatchString(m.ID) && !slices.Contains(models, m.ID) {
			models = append(models, m.ID)
		}
	}
	return models, s.BaseURL, err
}

// listAny is listModels for every dialect with a list.
func (s *Service) listAny(ctx context.Context, client *http.Client) ([]listedModel, error) {
	switch s.Dialect {
	case Anthropic:
		var list struct {
			Data []listedModel `json:"data"`
		}
		err := askWith(ctx, client, *s, strings.TrimSuffix(s.BaseURL, "/v1")+"/v1/models?limit=1000", nil, &list, anthropicHeaders(*s))
		return list.Data, err
	case Gemini:
		var list struct {
			Models []geminiModel `json:"models"`
		}
		err := askWith(ctx, client, *s, GeminiBase(s.BaseURL)+"/models?pageSize=1000", nil, &list, geminiHeaders(*s))
		var out []listedModel
		for _, m := range list.Models {
			if slices.Contains(m.Methods, "generateContent") {
				out = append(out, listedModel{ID: strings.TrimPrefix(m.Name, "models/")})
			}
		}
		return out, err
	case OpenAI, OpenAIResponses:
		return s.listModels(ctx, client)
	}
	return nil, nil
}

func anthropicHeaders(s Service) map[string]string {
	return map[string]string{"X-Api-Key": s.APIKey.Reveal(), "Anthropic-Version": "2023-06-01"}
}

func geminiHeaders(s Service) map[string]string {
	return map[string]string{"X-Goog-Api-Key": s.APIKey.Reveal()}
}

// A Vendor is a company whose API a key enables.
type Vendor struct {
	ID      string // of its service
	Name    string
	Dialect Dialect
	BaseURL string
	Model   string // the default
}

// Vendors returns the vendors whose keys [Discover] looks for.
func Vendors() []Vendor {
	var out []Vendor
	for _, d := range hostedAPIs() {
		out = append(out, Vendor{d.id, d.name, d.dialect, d.base, d.model})
	}
	return out
}

// LikelyBases returns the base URLs at which the API of s probably is if it is not at its
// own: without the path of an operation, with the version, and with another scheme for
// addresses of this machine.
func LikelyBases(s Service) []string {
	base := strings.TrimRight(s.BaseURL, "/")
	for _, tail := range []string{"/chat/completions", "/completions", "/responses", "/messages", "/models", "/embeddings"} {
		base = strings.TrimSuffix(base, tail)
	}
	root := base
	if i := strings.Index(base, "://"); i >= 0 {
		if slash := strings.IndexByte(base[i+3:], '/'); slash >= 0 {
			root = base[:i+3+slash]
		}
	}
	all := []string{base, base + "/v1", root + "/v1", root + "/api/v1", root + "/openai/v1"}
	switch s.Dialect {
	case Anthropic:
		all = []string{base, root, root + "/anthropic"}
	case Gemini:
		all = []string{base, root + "/v1beta"}
	}
	var out []string
	for _, b := range all {
		if b != s.BaseURL && !slices.Contains(out, b) && !strings.HasSuffix(b, "/v1/v1") {
			out = append(out, b)
		}
	}
	return out
}

// FirstModel returns the model among models that is tried first: that of s, the default
// of its vendor, or the first one.
func FirstModel(s Service, models []string) string {
	if s.Model != "" {
		return s.Model
	}
	for _, v := range Vendors() {
		if sameHost(v.BaseURL, s.BaseURL) && slices.Contains(models, v.Model) {
			return v.Model
		}
	}
	if len(s.Models) > 0 {
		return s.Models[0]
	}
	if len(models) > 0 {
		return models[0]
	}
	return ""
}

// SameOrigin reports whether two base URLs have the same scheme, host and port, so that
// what is secret for one may be sent to the other.
func SameOrigin(a, b string) bool {
	oa, ob := originOf(a), originOf(b)
	return oa != "" && oa == ob
}
