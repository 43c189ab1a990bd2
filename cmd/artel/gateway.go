// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// gatewayConfig configures access to the gateway.
type gatewayConfig struct {
	Keys   []gatewayKey `yaml:"keys"`   // default: any key, or none, is accepted
	Repair *bool        `yaml:"repair"` // turn lists that clients have sent as strings into lists again; default true
}

// gatewayKey is an entry of gateway.keys.
type gatewayKey struct {
	Name              string            `yaml:"name"`                // for the log
	Key               string            `yaml:"key"`                 // sent by clients; ${NAME} of an environment variable
	Services          []artel.ServiceID `yaml:"services"`            // allowed services; default: all
	RequestsPerMinute int               `yaml:"requests_per_minute"` // default and 0: unlimited
	Concurrency       int               `yaml:"concurrency"`         // parallel requests; default and 0: unlimited
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
		names[k.Name] = true
	}
	return nil
}

const maxPerMinute = 1_000_000

// gateway returns the options of the gateway. A key whose environment variable
// is empty is an error.
func (c config) gateway() (backend.Options, error) {
	o := backend.Options{NoRepair: c.Gateway.Repair != nil && !*c.Gateway.Repair}
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
		o.Keys = append(o.Keys, backend.Key{
			Name: k.Name, Secret: model.Secret(secret), Services: k.Services, PerMinute: k.RequestsPerMinute, Concurrency: k.Concurrency,
		})
	}
	return o, nil
}

func keyNames(keys []backend.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
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
