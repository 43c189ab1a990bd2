// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/plugin"
)

// pluginConfig is an entry of pipeline.plugins: a command or a URL.
type pluginConfig struct {
	ID          string            `yaml:"id"`          // its name in settings and records
	Name        string            `yaml:"name"`        // display name; default: the id
	Description string            `yaml:"description"` // for display
	Command     []string          `yaml:"command"`     // program and arguments, run in the folder of this file
	Env         map[string]string `yaml:"env"`         // for the command, besides PATH and LANG; "${NAME}" is expanded from the environment
	URL         string            `yaml:"url"`         // http or https, instead of command
	Headers     map[string]string `yaml:"headers"`     // of requests to url; "${NAME}" is expanded from the environment
	After       string            `yaml:"after"`       // the built-in processor before it; default: after the formatters
	OnFailure   string            `yaml:"on_failure"`  // skip (default): the request is made without it, and the record says so; fail: no request is made
	Timeout     string            `yaml:"timeout"`     // as 5s; default 10s, at most 5m
	MaxAnswer   int64             `yaml:"max_answer"`  // bytes; default 8 MB
	Options     any               `yaml:"options"`     // sent to the program; agents and services may override them
}

// plugins builds the processors of pipeline.plugins. The error, of kind
// Invalid, names the entry.
func (c config) plugins(getenv func(string) string) ([]pipeline.Processor, error) {
	var out []pipeline.Processor
	var client *http.Client
	for i, p := range c.Pipeline.Plugins {
		if p.URL != "" && client == nil {
			// The operator chose the address, so it may be on this machine.
			client = fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
		}
		made, err := p.processor(c, client, getenv)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "config", c.path, "pipeline.plugins[%d] %s: %w", i, artel.Shorten(p.ID, 60), err)
		}
		out = append(out, made)
	}
	return out, nil
}

func (p pluginConfig) processor(c config, client *http.Client, getenv func(string) string) (made pipeline.Processor, err error) {
	o := plugin.Options{Name: p.Name, Description: p.Description, After: p.After, MaxAnswer: p.MaxAnswer}
	switch p.OnFailure {
	case "", "skip":
	case "fail":
		o.Required = true
	default:
		return made, fmt.Errorf("on_failure is %q: want skip or fail", artel.Shorten(p.OnFailure, 40))
	}
	if p.Timeout != "" {
		if o.Timeout, err = time.ParseDuration(p.Timeout); err != nil || o.Timeout <= 0 {
			return made, fmt.Errorf("timeout is %q: want a time, as in 5s", artel.Shorten(p.Timeout, 40))
		}
	}
	if p.Options != nil {
		if o.Options, err = json.Marshal(p.Options); err != nil {
			return made, fmt.Errorf("options cannot be written as JSON: %w", err)
		}
	}
	switch {
	case (p.URL == "") == (len(p.Command) == 0):
		return made, errors.New("want either command or url")
	case p.URL != "":
		if p.Env != nil {
			return made, errors.New("env is for commands")
		}
		headers, err := expanded("headers", p.Headers, getenv)
		if err != nil {
			return made, err
		}
		e := plugin.Endpoint{URL: p.URL, Header: http.Header{}, Client: client}
		for k, v := range headers {
			e.Header.Set(k, v)
		}
		return e.Processor(p.ID, o)
	case p.Headers != nil:
		return made, errors.New("headers are for addresses")
	}
	env, err := expanded("env", p.Env, getenv)
	if err != nil {
		return made, err
	}
	dir, err := filepath.Abs(c.relative("."))
	if err != nil {
		return made, err
	}
	return plugin.Command{Args: p.Command, Env: env, Dir: dir}.Processor(p.ID, o)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expanded replaces "${NAME}" in values. An unset variable is an error, so that
// no request is sent with an incomplete key.
func expanded(under string, values map[string]string, getenv func(string) string) (map[string]string, error) {
	out := maps.Clone(values)
	for k, v := range values {
		missing := ""
		out[k] = variable.ReplaceAllStringFunc(v, func(found string) string {
			name := found[2 : len(found)-1]
			s := getenv(name)
			if s == "" {
				missing = name
			}
			return s
		})
		if missing != "" {
			return nil, fmt.Errorf("%s.%s: the environment variable %s is not set", under, artel.Shorten(k, 60), artel.Shorten(missing, 60))
		}
	}
	return out, nil
}
