// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/httpapi"
)

func servicesCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "services", Short: "Add, change, check, list and remove the model services of a running server", Args: usage(cobra.NoArgs),
		Long: `Manages the model services that administrators add to a running server, beside
those of its artel.yaml and environment. They can be used at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(addServiceCommand(g), setServiceCommand(g), listServicesCommand(g), checkServiceCommand(g), removeServiceCommand(g))
	return cmd
}

// serviceFlags describe a service on the command line.
type serviceFlags struct {
	name, dialect, url string
	models             []string
	all, keyed         bool
	price              map[string]any // by the keys of an entry
}

func (f *serviceFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "base URL of its API, such as http://gpu.example:8000/v1")
	flags.StringVar(&f.dialect, "dialect", "openai", "openai, openai-responses, anthropic or gemini")
	flags.StringSliceVar(&f.models, "model", nil, "a model of it; may be repeated, each is a service of its own")
	flags.BoolVar(&f.all, "all-models", false, "every chat model that it lists")
	f.price = map[string]any{}
	flags.Var(dollars{f.price, "input"}, "price-input", "price of a million tokens of input in US dollars, for budgets; 0 if it costs nothing")
	flags.Var(dollars{f.price, "output"}, "price-output", "price of a million tokens of output")
	flags.Var(dollars{f.price, "cache_read"}, "price-cached", "price of a million cached tokens of input; default: that of input")
	flags.BoolVar(&f.keyed, "key", false, "read its key from standard input, one line")
}

// dollars is a flag that sets an amount of US dollars in an entry.
type dollars struct {
	to  map[string]any
	key string
}

func (d dollars) String() string { return "" }

func (d dollars) Type() string { return "USD" }

func (d dollars) Set(text string) error {
	usd, err := strconv.ParseFloat(text, 64)
	if err != nil || !(usd >= 0) || math.IsInf(usd, 0) {
		return errors.New("want an amount of US dollars from 0, such as 1.25")
	}
	d.to[d.key] = usd
	return nil
}

// entry returns the fields of an entry. The key comes from in: arguments are seen by
// other accounts of the machine.
func (f *serviceFlags) entry(in io.Reader) (httpapi.ServiceEntry, error) {
	e := httpapi.ServiceEntry{"dialect": f.dialect}
	for key, value := range map[string]string{"name": f.name, "baseURL": f.url} {
		if value != "" {
			e[key] = value
		}
	}
	if f.all && len(f.models) > 0 {
		return nil, usageError{errors.New("--model and --all-models exclude each other")}
	}
	if f.all {
		e["models"] = "all"
	} else if len(f.models) > 0 {
		e["model"], e["models"] = f.models[0], f.models[1:]
	}
	if len(f.price) > 0 {
		e["price"] = f.price
	}
	if f.keyed {
		line, err := bufio.NewReader(io.LimitReader(in, 1<<16)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line = strings.TrimSpace(line); line == "" {
			return nil, usageError{errors.New("--key: there is no key on standard input")}
		}
		e["apiKey"] = line
	}
	return e, nil
}

func addServiceCommand(g *globals) *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: "add ID --url URL", Short: "Add a service, which can be used at once", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel services add gpu --url http://gpu.example:8000/v1 --all-models
  artel services add own --url https://api.example/v1 --model some-model --key < key.txt \
    --price-input 1.25 --price-output 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.entry(cmd.InOrStdin())
			if err != nil {
				return err
			}
			e["id"] = args[0]
			made, err := g.client().AddService(cmd.Context(), e)
			if err != nil {
				return err
			}
			return g.printService(cmd, made)
		},
	}
	f.declare(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "name for users; default: the id")
	return cmd
}

// printService prints what an entry stands for.
func (g *globals) printService(cmd *cobra.Command, v httpapi.StoredView) error {
	return g.print(cmd, v, func(w printer) {
		for _, id := range v.Services {
			w.line(string(id))
		}
	})
}

// over returns the fields of a stored entry, with those of e in their place. The dialect
// of e counts if its flag was given, and prices replace one by one.
func over(cmd *cobra.Command, stored httpapi.StoredView, e httpapi.ServiceEntry) httpapi.ServiceEntry {
	out := maps.Clone(stored.Entry)
	if e["model"] != nil || e["models"] != nil {
		delete(out, "model")
		delete(out, "models")
	}
	if !cmd.Flags().Changed("dialect") {
		delete(e, "dialect")
	}
	if was, ok := out["price"].(map[string]any); ok && e["price"] != nil {
		price := maps.Clone(was)
		maps.Copy(price, e["price"].(map[string]any))
		e["price"] = price
	}
	maps.Copy(out, e)
	return out
}

func setServiceCommand(g *globals) *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: "set ID", Short: "Change a service that was added; what no flag names stays", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel services set own --price-input 1.25 --price-output 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.entry(cmd.InOrStdin())
			if err != nil {
				return err
			}
			stored, err := g.client().StoredService(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e = over(cmd, stored, e)
			if stored.Disabled {
				e["disabled"] = true
			}
			changed, err := g.client().ChangeService(cmd.Context(), args[0], e)
			if err != nil {
				return err
			}
			return g.printService(cmd, changed)
		},
	}
	f.declare(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "name for users")
	return cmd
}

func listServicesCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the services and where they come from", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Services(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, s := range all.Items {
					state := "ready"
					switch {
					case s.Disabled:
						state = "switched off"
					case !s.Callable:
						state = "cannot be called"
					}
					w.linef("%s\t%s\t%s\t%s\t%s", s.ID, s.Name, s.Model, state, s.Origin)
				}
			})
		},
	}
}

// errNoAnswer makes artel services check exit with 1.
var errNoAnswer = errors.New("the service does not work")

func checkServiceCommand(g *globals) *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: "check [ID] --url URL", Short: "Try a service, added or not: reach it, use its key, list its models, get a word and show a picture", Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.entry(cmd.InOrStdin())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				stored, err := g.client().StoredService(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				e = over(cmd, stored, e)
			}
			r, err := g.client().CheckService(cmd.Context(), e)
			if err != nil {
				return err
			}
			err = g.print(cmd, r, func(w printer) {
				for _, s := range r.Items {
					w.linef("%s\t%s\t%s\t%s", s.Name, s.State, s.Cause, explained(s))
				}
				for _, m := range r.Models {
					w.linef("model\t%s", m)
				}
			})
			if err == nil && !r.OK {
				err = errNoAnswer
			}
			return err
		},
	}
	f.declare(cmd)
	return cmd
}

// explained is what a step says beside its cause.
func explained(s entries.CheckStep) string {
	out := s.Detail
	if s.Try != "" {
		out = fmt.Sprintf("try %s. %s", s.Try, out)
	}
	return out
}

func removeServiceCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Delete a service that was added", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().DeleteService(cmd.Context(), args[0])
		},
	}
}
