// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

var apiVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/v[0-9]+[a-z0-9]*$`) })

// GeminiBase returns the base URL of a [Gemini] service with the API version at its
// end, by default v1beta.
func GeminiBase(base string) string {
	base = strings.TrimRight(base, "/")
	if apiVersion().MatchString(base) || strings.HasSuffix(base, "/publishers/google") { // of Vertex AI
		return base
	}
	return base + "/v1beta"
}

// geminiModel is Google's description of a model, which does not state its inputs.
//
// Source: "Models" of the Gemini API reference.
type geminiModel struct {
	Name    string   `json:"name"` // "models/gemini-2.5-flash"
	Window  int      `json:"inputTokenLimit"`
	Output  int      `json:"outputTokenLimit"`
	Methods []string `json:"supportedGenerationMethods"`
}

func (m geminiModel) facts() Capabilities {
	c := TextOnly()
	stated(&c.ContextWindow, FromEndpoint, int64(m.Window))
	stated(&c.MaxOutput, FromEndpoint, int64(m.Output))
	return c
}

// completeGemini asks for the model of s, or for the first one with
// generateContent if none is named.
func completeGemini(ctx context.Context, client *http.Client, s Service) (Service, error) {
	ask := func(path string, into any) error {
		return askWith(ctx, client, s, GeminiBase(s.BaseURL)+"/models"+path, nil, into, geminiHeaders(s))
	}
	var m geminiModel
	if s.Model != "" {
		if err := ask("/"+url.PathEscape(strings.TrimPrefix(s.Model, "models/")), &m); err != nil {
			return s, err
		}
	} else {
		var list struct {
			Models []geminiModel `json:"models"`
		}
		if err := ask("", &list); err != nil {
			return s, err
		}
		i := slices.IndexFunc(list.Models, func(m geminiModel) bool { return slices.Contains(m.Methods, "generateContent") })
		if i < 0 {
			return s, artel.Errorf(artel.Unavailable, "model.Complete", string(s.ID), "%s/models %w", GeminiBase(s.BaseURL), errNoModels)
		}
		m = list.Models[i]
		s.Model = strings.TrimPrefix(m.Name, "models/")
	}
	s.Capabilities = combine(s.Capabilities.stated(), m.facts(), s.builtIn())
	return s.narrowed(), nil
}
