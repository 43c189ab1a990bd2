// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/demo"
)

func fakeCommand() *cobra.Command {
	var addr, key, scenario string
	var models []string
	var echo bool
	cmd := &cobra.Command{
		Use: "fake " + strings.Join(fakeDialects(), "|"), Short: "Run a stand-in for a model API that enforces the real one's rules (dialect: " + strings.Join(fakeDialects(), ", ") + ")",
		Args: usage(cobra.ExactArgs(1)), ValidArgs: fakeDialects(),
		Long: `Runs a server with a model API that refuses what the real one refuses.
It calls no model: the demo answers, or --echo returns the received request. GET
/_fake/requests lists the requests, POST /_fake/behave makes it misbehave, or
refuse what other servers refuse; it reads the test pictures of "artel models
probe".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			api := fakeOf(model.Dialect(args[0]))
			if api.serve == nil {
				return usageError{fmt.Errorf("there is no fake of %q; there is: %s", args[0], strings.Join(fakeDialects(), ", "))}
			}
			if err := loopbackOnly(addr); err != nil {
				return err
			}
			if len(models) == 0 {
				models = api.models
			}
			o := fake.Options{Key: key, Models: models}
			if !echo {
				var play demo.Options
				if scenario != "" {
					var err error
					if play.Scenario, err = readScenario(scenario); err != nil {
						return err
					}
				}
				blobs := blob.NewMemory()
				o.Blobs, o.Responder = blobs, fake.Sees(blobs, demo.New(blobs, play).Generate)
			}
			return listenAndServe(cmd.Context(), addr, api.serve(o), func(url string) {
				fmt.Fprintln(cmd.OutOrStdout(), "artel: fake "+args[0]+" with "+strings.Join(models, ", ")+" on "+url+api.base)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&addr, "addr", "127.0.0.1:7421", "address to listen on; port 0 picks one")
	flags.StringSliceVar(&models, "models", nil, "available models (default: one per generation)")
	flags.StringVar(&key, "key", "", "the key that requests must carry; empty: any key, but one is needed")
	flags.StringVar(&scenario, "scenario", "", "answer with this scenario file")
	flags.BoolVar(&echo, "echo", false, "answer with the received request instead of the demo")
	return cmd
}

// A fakeServer is the fake server of a dialect.
type fakeServer struct {
	serve  func(fake.Options) *fake.Server // nil: no fake
	base   string                          // suffix of a service's base URL
	models []string
}

// fakeOf returns the fake of a dialect.
func fakeOf(d model.Dialect) fakeServer {
	switch d {
	case model.OpenAI, model.OpenAIResponses: // one server has both
		return fakeServer{fake.OpenAI, "/v1", []string{"fake-1"}}
	case model.Anthropic:
		return fakeServer{fake.Anthropic, "", []string{"fake-1"}}
	case model.Gemini:
		return fakeServer{fake.Gemini, "", []string{"gemini-3-fake", "gemini-2.5-fake"}} // of two generations
	}
	return fakeServer{}
}

// fakeDialects are the dialects with a fake.
func fakeDialects() []string {
	var out []string
	for _, d := range model.Dialects() {
		if fakeOf(d).serve != nil {
			out = append(out, string(d))
		}
	}
	return out
}

// listenAndServe serves h until ctx ends, and prints its address.
func listenAndServe(ctx context.Context, addr string, h http.Handler, ready func(url string)) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return artel.Errorf(artel.Conflict, "fake", addr, "cannot listen there: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	ready("http://" + l.Addr().String())
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// loopbackOnly refuses addresses that other machines reach.
func loopbackOnly(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("--addr %q: want host:port", addr)}
	}
	if access.IsLoopback(host) {
		return nil
	}
	return usageError{fmt.Errorf("--addr %q: only loopback addresses (127.0.0.1, [::1], localhost) are served", addr)}
}
