// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

// An EndpointConfig is an entry of tools in artel.yaml: an HTTP API for agents.
type EndpointConfig struct {
	Name         string            `yaml:"name" json:"name"`                   // 1 to 64 letters, digits, "_" or "-"
	Description  string            `yaml:"description" json:"description"`     // for the model: purpose and use
	Parameters   map[string]any    `yaml:"parameters" json:"parameters"`       // JSON Schema of the arguments, of type object; default: none
	Method       string            `yaml:"method" json:"method"`               // default: GET, or POST with a body
	URL          string            `yaml:"url" json:"url"`                     // "{name}" in path and query stands for an argument
	Headers      map[string]string `yaml:"headers" json:"headers"`             // "${NAME}" is expanded from the environment; never shown
	Body         any               `yaml:"body" json:"body"`                   // JSON with "{name}" in strings; default: the arguments that are not in url
	Idempotent   *bool             `yaml:"idempotent" json:"idempotent"`       // may be repeated and run in parallel; default: true for GET and HEAD
	Timeout      string            `yaml:"timeout" json:"timeout"`             // as 20s; default 30s, at most 10m
	MaxAnswer    int64             `yaml:"max_answer" json:"max_answer"`       // bytes; default 8 MB
	AllowPrivate bool              `yaml:"allow_private" json:"allow_private"` // the host may be on this machine or in a private network
	Agents       []artel.AgentName `yaml:"agents" json:"agents"`               // agents that get the tool without naming it in their own files
}

// maxEndpointTime is the longest timeout of a call.
const maxEndpointTime = 10 * time.Minute

// Client returns a client for the endpoint. Its headers may hold secrets, so it follows
// no redirects.
func (c EndpointConfig) Client() *http.Client {
	return fetch.NewClient(fetch.Options{AllowPrivate: c.AllowPrivate, MaxRedirects: -1})
}

// Tool returns the tool that c describes. Variables in Headers are expanded already;
// secrets are the values that no result may show. The error says which key is wrong.
func (c EndpointConfig) Tool(secrets Secrets, client *http.Client) (Tool, error) {
	out := Tool{Name: c.Name, Doc: strings.TrimSpace(c.Description)}
	if out.Doc == "" {
		return out, errors.New("description is missing: the model needs to know what the tool does and when to use it")
	}
	schema := c.Parameters
	if schema == nil {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	var err error
	if out.Schema, err = json.Marshal(schema); err != nil {
		return out, fmt.Errorf("parameters cannot be written as JSON: %w", err)
	}
	p := Endpoint{Method: strings.ToUpper(c.Method), URL: c.URL, Body: c.Body, Header: http.Header{}, Secrets: secrets, Client: client}
	p.Limits.Answer = c.MaxAnswer
	if c.MaxAnswer < 0 {
		return out, fmt.Errorf("max_answer is %d: want a number of bytes, or none for the default", c.MaxAnswer)
	}
	if c.Timeout != "" {
		if p.Limits.Time, err = time.ParseDuration(c.Timeout); err != nil || p.Limits.Time <= 0 || p.Limits.Time > maxEndpointTime {
			return out, fmt.Errorf("timeout is %q: want a time up to %v, as in 20s", artel.Shorten(c.Timeout, 40), maxEndpointTime)
		}
	}
	for k, v := range c.Headers {
		p.Header.Set(k, v)
	}
	again := p.Method == "" && c.Body == nil || p.Method == http.MethodGet || p.Method == http.MethodHead
	if c.Idempotent != nil {
		again = *c.Idempotent
	}
	if again {
		out.Repeat, out.Parallel = RepeatAlways, true
	}
	return p.Tool(out)
}
