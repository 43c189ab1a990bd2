// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/store"
)

// gatewayConfig configures access to the gateway.
type gatewayConfig struct {
	Keys     []gatewayKey      `yaml:"keys"`        // default: any key, or none, is accepted
	Aliases  map[string]any    `yaml:"aliases"`     // other names of services: a service, or several with their weights; * stands for any characters
	Cooldown string            `yaml:"cooldown"`    // how long a service that fails is avoided; default 30s; 0: not at all
	Origins  []string          `yaml:"origins"`     // of sites whose pages may call the gateway from browsers; default: none
	Headers  map[string]string `yaml:"headers"`     // further fields of the header of every request to a service; ${NAME} of environment variables
	Store    *bool             `yaml:"store"`       // store responses that clients do not want to be left out; default true
	Repair   *bool             `yaml:"repair"`      // turn lists that clients have sent as strings into lists again; default true
	Scrub    string            `yaml:"scrub"`       // base64 in tool results that becomes a ref: all (default), parts or off
	Cache    string            `yaml:"cache"`       // cache marks of Anthropic's dialect: auto (default), 5m, 1h or off
	Offload  any               `yaml:"offload"`     // characters of a tool result that are shown whole; default off
	Defer    *bool             `yaml:"defer_tools"` // tools beyond 2,000 tokens are listed, found and called by two others; default false
	Dedupe   *bool             `yaml:"dedupe"`      // bodies hold whole conversations, which are stored; default false
}

// gatewayKey is an entry of gateway.keys.
type gatewayKey struct {
	Name              string            `yaml:"name"`                // for the log
	Key               string            `yaml:"key"`                 // sent by clients; ${NAME} of an environment variable
	Services          []artel.ServiceID `yaml:"services"`            // allowed services; default: all
	RequestsPerMinute int               `yaml:"requests_per_minute"` // default and 0: unlimited
	Concurrency       int               `yaml:"concurrency"`         // parallel requests; default and 0: unlimited
	TokensPerMinute   int64             `yaml:"tokens_per_minute"`   // of requests and answers; default and 0: unlimited
	Budget            budgetConfig      `yaml:"budget"`              // dollars in a day or month; default: none
	Scrub             string            `yaml:"scrub"`               // default: that of the gateway
	Offload           any               `yaml:"offload"`             // likewise
	Repair            *bool             `yaml:"repair"`              // likewise
	Defer             *bool             `yaml:"defer_tools"`         // likewise
	Dedupe            *bool             `yaml:"dedupe"`              // likewise
	Cache             string            `yaml:"cache"`               // likewise
}

var variableName = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// check rejects invalid keys.
func (g gatewayConfig) check() error {
	names := map[string]bool{}
	for i, k := range g.Keys {
		where := fmt.Sprintf("gateway.keys[%d]", i)
		switch {
		case k.Name == "":
			return fmt.Errorf("%s has no name", where)
		case names[k.Name]:
			return fmt.Errorf("%s: the name %s is taken", where, artel.Shorten(k.Name, 40))
		case !variableName.MatchString(k.Key):
			return fmt.Errorf("%s.key: want ${NAME}, the environment variable that has the key", where)
		case k.RequestsPerMinute < 0 || k.RequestsPerMinute > maxPerMinute:
			return fmt.Errorf("%s.requests_per_minute is %d: want a number up to %d, or none for no limit", where, k.RequestsPerMinute, maxPerMinute)
		case k.Concurrency < 0:
			return fmt.Errorf("%s.concurrency is %d: want a number, or none for no limit", where, k.Concurrency)
		}
		if err := k.limits().check(where); err != nil {
			return err
		}
		if _, err := backend.ParseCache(k.Cache); err != nil {
			return fmt.Errorf("%s.cache: %w", where, err)
		}
		if _, err := rewriting(where, k.Scrub, k.Offload, k.Repair, k.Defer, k.Dedupe); err != nil {
			return err
		}
		names[k.Name] = true
	}
	if _, err := backend.ParseCache(g.Cache); err != nil {
		return fmt.Errorf("gateway.cache: %w", err)
	}
	if _, err := rewriting("gateway", g.Scrub, g.Offload, g.Repair, g.Defer, g.Dedupe); err != nil {
		return err
	}
	for _, origin := range g.Origins {
		u, err := url.Parse(origin)
		switch {
		case origin == "*" && len(g.Keys) == 0:
			return errors.New("gateway.origins: * lets every web page use the services: it needs gateway.keys")
		case origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host):
			return fmt.Errorf("gateway.origins: %s: want an origin such as https://app.example, without a path", artel.Shorten(origin, 80))
		}
	}
	if _, err := g.aliases(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(g.Headers[name]) {
			return fmt.Errorf("gateway.headers: %q: want the name and the value of a field of a header", artel.Shorten(name, 60))
		}
	}
	_, err := g.cooldown()
	return err
}

// headers returns the fields of the header that every service gets. A variable of the
// environment that is empty is an error.
func (g gatewayConfig) headers() (map[string]model.Secret, error) {
	values, err := expanded("gateway.headers", g.Headers, os.Getenv)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	out := map[string]model.Secret{}
	for name, value := range values {
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, artel.Errorf(artel.Invalid, "config", "gateway.headers", "the value of %s cannot be in a header", name)
		}
		out[http.CanonicalHeaderKey(name)] = model.Secret(value)
	}
	return out, nil
}

// rewriting reads how tools and their texts are rewritten.
func rewriting(where, scrub string, offload any, repair, deferTools, dedupe *bool) (w backend.Rewriting, err error) {
	w.Repair, w.Defer, w.Dedupe = repair, deferTools, dedupe
	if w.Scrub, err = backend.ParseScrub(scrub); err != nil {
		return w, fmt.Errorf("%s.scrub: %w", where, err)
	}
	if offload == nil {
		return w, nil
	}
	if offload == false { // which YAML may read off as
		offload = "off"
	}
	if w.Offload, err = backend.ParseOffload(fmt.Sprint(offload)); err != nil {
		return w, fmt.Errorf("%s.offload: %w", where, err)
	}
	return w, nil
}

// aliases reads the aliases, sorted by their patterns.
func (g gatewayConfig) aliases() ([]backend.Alias, error) {
	var out []backend.Alias
	for _, pattern := range slices.Sorted(maps.Keys(g.Aliases)) {
		a := backend.Alias{Pattern: pattern}
		wrong := fmt.Errorf("gateway.aliases: %s: want a service, or services with their weights, such as {east: 3, west: 1}", artel.Shorten(pattern, 60))
		switch v := g.Aliases[pattern].(type) {
		case string:
			a.Services = []backend.Deployment{{Service: artel.ServiceID(v), Weight: 1}}
		case map[string]any:
			for _, id := range slices.Sorted(maps.Keys(v)) {
				weight, err := strconv.Atoi(fmt.Sprint(v[id]))
				if err != nil || weight < 1 || weight > maxWeight {
					return nil, fmt.Errorf("gateway.aliases: %s: the weight of %s is %v: want a whole number from 1 to %d", artel.Shorten(pattern, 60), artel.Shorten(id, 60), v[id], maxWeight)
				}
				a.Services = append(a.Services, backend.Deployment{Service: artel.ServiceID(id), Weight: weight})
			}
		default:
			return nil, wrong
		}
		if pattern == "" || len(a.Services) == 0 || a.Services[0].Service == "" {
			return nil, wrong
		}
		out = append(out, a)
	}
	return out, nil
}

const maxWeight = 1_000_000

// cooldown returns the time, negative for none.
func (g gatewayConfig) cooldown() (time.Duration, error) {
	switch g.Cooldown {
	case "":
		return 0, nil
	case "0":
		return -1, nil
	}
	d, err := time.ParseDuration(g.Cooldown)
	if err != nil || d < 0 || d > backend.MaxCooldown {
		return 0, fmt.Errorf("gateway.cooldown is %q: want a time of up to 10m such as 30s, or 0 for none", artel.Shorten(g.Cooldown, 40))
	}
	if d == 0 {
		d = -1
	}
	return d, nil
}

const maxPerMinute = 1_000_000

// gateway returns the options of the gateway. A key whose environment variable
// is empty is an error.
func (c config) gateway() (backend.Options, error) {
	var o backend.Options
	var err error
	if o.Headers, err = c.Gateway.headers(); err != nil {
		return o, err
	}
	if o.Aliases, err = c.Gateway.aliases(); err == nil {
		o.Cooldown, err = c.Gateway.cooldown()
	}
	if err == nil {
		o.Rewriting, err = rewriting("gateway", c.Gateway.Scrub, c.Gateway.Offload, c.Gateway.Repair, c.Gateway.Defer, c.Gateway.Dedupe)
	}
	if err != nil {
		return o, err // check has said it before
	}
	o.Cache, o.Limits = backend.Cache(c.Gateway.Cache), c.Limits.Key.limits()
	secrets := map[string]string{}
	for _, k := range c.Gateway.Keys {
		variable := variableName.FindStringSubmatch(k.Key)[1] // validated by check
		secret := os.Getenv(variable)
		if secret == "" {
			return o, artel.Errorf(artel.Invalid, "config", c.path, "gateway.keys: the environment variable %s of the key %s is empty", variable, k.Name)
		}
		if other, taken := secrets[secret]; taken {
			return o, artel.Errorf(artel.Invalid, "config", c.path, "gateway.keys: %s and %s are one key", other, k.Name)
		}
		secrets[secret] = k.Name
		w, err := rewriting(k.Name, k.Scrub, k.Offload, k.Repair, k.Defer, k.Dedupe)
		if err != nil {
			return o, err // check has said it before
		}
		o.Keys = append(o.Keys, backend.Key{
			Name: k.Name, Secret: model.Secret(secret), Services: k.Services, Limits: k.limits().limits(),
			Rewriting: w, Cache: backend.Cache(k.Cache),
		})
	}
	return o, nil
}

// fileKeys are the keys of the configuration as they are listed.
func fileKeys(keys []backend.Key) []store.GatewayKey {
	all := make([]store.GatewayKey, len(keys))
	for i, k := range keys {
		all[i] = store.GatewayKey{ID: backend.FileKeyID(k.Name), User: artel.Local, Name: k.Name, Services: k.Services, Limits: k.Limits}
	}
	return all
}

// forwarders are the providers that forward requests in their original form.
func forwarders(providers map[model.Dialect]model.Provider) map[model.Dialect]provider.Forwarder {
	out := map[model.Dialect]provider.Forwarder{}
	for d, p := range providers {
		if f, ok := p.(provider.Forwarder); ok {
			out[d] = f
		}
	}
	return out
}
