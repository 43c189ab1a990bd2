// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch"
)

// A Config is an entry of mcp in artel.yaml: a server with tools for agents, whose
// names begin with the server's and "_".
type Config struct {
	Name    string            `yaml:"name" json:"name"`       // 1 to 30 letters, digits or -
	Command []string          `yaml:"command" json:"-"`       // program and arguments, run in the folder of this file
	Env     map[string]string `yaml:"env" json:"-"`           // for the command, besides PATH, HOME, LANG and TMPDIR; "${NAME}" is expanded from the environment
	URL     string            `yaml:"url" json:"url"`         // streamable HTTP, instead of command
	Headers map[string]string `yaml:"headers" json:"headers"` // of requests to url; "${NAME}" is expanded from the environment
	Tools   []string          `yaml:"tools" json:"tools"`     // offered tools, by the server's names; default: all
	Timeout string            `yaml:"timeout" json:"timeout"` // of a call without a sign of progress, as 30s; default 2m, at most 1h
	Agents  []artel.AgentName `yaml:"agents" json:"agents"`   // agents that get all tools without naming them in their own files

	// Auth is "oauth" if each user connects the server with an account of their own. The
	// rest is needed if the authorization server registers no clients by itself.
	Auth         string   `yaml:"auth" json:"auth"`
	ClientID     string   `yaml:"client_id" json:"client_id"`
	ClientSecret string   `yaml:"client_secret" json:"client_secret"` // "${NAME}" is expanded from the environment
	Scopes       []string `yaml:"scopes" json:"scopes"`               // default: those that the server names
}

// authOAuth is the value of auth for servers with accounts of users.
const authOAuth = "oauth"

// maxCall is the longest timeout of a call without a sign of progress.
const maxCall = time.Hour

// Server returns the server that c describes. Variables in Headers and Env are
// expanded already; secrets are the values that no result and no log may show. The
// environment and the folder of a program are those of c alone. The error says which
// key is wrong.
func (c Config) Server(secrets tool.Secrets) (Server, error) {
	s := Server{Name: c.Name, Only: c.Tools, Secrets: secrets}
	var err error
	if c.Timeout != "" {
		if s.Limits.Call, err = time.ParseDuration(c.Timeout); err != nil || s.Limits.Call <= 0 || s.Limits.Call > maxCall {
			return s, fmt.Errorf("timeout is %q: want a time up to %v, as in 30s", artel.Shorten(c.Timeout, 40), maxCall)
		}
	}
	switch {
	case c.URL != "" && c.Env != nil:
		return s, errors.New("env is for commands")
	case c.URL == "" && c.Headers != nil:
		return s, errors.New("headers are for addresses")
	}
	switch {
	case c.Auth == authOAuth:
		if at := slices.IndexFunc(slices.Collect(maps.Keys(c.Headers)), func(h string) bool { return strings.EqualFold(h, "Authorization") }); at >= 0 {
			return s, errors.New("headers has Authorization, which auth: oauth sends with the token of each user; keep one of them")
		}
		if c.ClientSecret != "" && c.ClientID == "" {
			return s, errors.New("client_secret is given without client_id")
		}
		s.Login = &Login{c.ClientID, c.ClientSecret, c.Scopes}
	case c.Auth != "":
		return s, fmt.Errorf("auth is %q: want oauth, or nothing", artel.Shorten(c.Auth, 40))
	case c.ClientID != "" || c.ClientSecret != "" || c.Scopes != nil:
		return s, errors.New("client_id, client_secret and scopes are for auth: oauth")
	}
	if c.URL != "" {
		// The operator or an administrator chose the address, so it may be on this machine.
		s.Remote = &Remote{URL: c.URL, Header: http.Header{}, Client: fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})}
		for k, v := range c.Headers {
			s.Remote.Header.Set(k, v)
		}
	}
	if len(c.Command) > 0 {
		s.Process = &Process{Args: c.Command}
		for k, v := range c.Env {
			s.Process.Env = append(s.Process.Env, k+"="+v)
		}
	}
	return s, s.Check()
}
