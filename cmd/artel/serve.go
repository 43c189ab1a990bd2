// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model/provider/demo"
)

const (
	defaultAddr = "127.0.0.1:7420"
	defaultData = "artel-data"

	// demoDelay is the demo's delay per piece of text, so that users see it
	// stream.
	demoDelay = 15 * time.Millisecond
)

func serveCommand(g *globals) *cobra.Command {
	var addr, data, scenario string
	var standby bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the page and the API", Args: usage(cobra.NoArgs),
		Long: `Serves the page and the API on one address, with a
SQLite database and a folder of blobs in the data directory. Models are found
automatically: OPENAI_API_KEY (with OPENAI_BASE_URL for any compatible server),
ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, an Ollama, llama.cpp, LM
Studio or vLLM server on its usual port (or at OLLAMA_BASE_URL,
LLAMACPP_BASE_URL, LMSTUDIO_BASE_URL, VLLM_BASE_URL), and the services of the
configuration. Without any, the built-in demo answers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loopbackOnly(addr); err != nil {
				return err
			}
			conf, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			o := serverOptions{data: data, config: conf, demoDelay: demoDelay, standby: standby, log: newLog(conf)}
			if scenario != "" {
				if o.scenario, err = readScenario(scenario); err != nil {
					return err
				}
			}
			return serve(cmd.Context(), addr, o, func(url string) {
				fmt.Fprintln(cmd.OutOrStdout(), "artel: listening on "+url)
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", envOr("ARTEL_ADDR", defaultAddr), "address to listen on; port 0 picks one")
	cmd.Flags().StringVar(&data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	cmd.Flags().BoolVar(&standby, "standby", false, "wait until the server that uses the data directory ends, then take over its runs")
	cmd.Flags().StringVar(&scenario, "scenario", "", "answer with this scenario file in the demo")
	return cmd
}

// serve opens a server, prints its address, and serves until ctx ends.
func serve(ctx context.Context, addr string, o serverOptions, ready func(url string)) error {
	if o.standby { // until it takes over, the other server has the address
		return takeOver(ctx, addr, o, ready)
	}
	l, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	s, err := openServer(ctx, o)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer s.shut()
	ready("http://" + l.Addr().String())
	return s.serve(ctx, l)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, artel.Errorf(artel.Conflict, "serve", addr, "cannot listen there: %w", err)
	}
	return l, nil
}

// takeOver waits for the lock of the data directory, then listens and serves.
// It returns nil if ctx ends before that.
func takeOver(ctx context.Context, addr string, o serverOptions, ready func(url string)) error {
	s, err := openServer(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer s.shut()
	l, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	ready("http://" + l.Addr().String())
	return s.serve(ctx, l)
}

// loopbackOnly rejects addresses reachable from other machines: this release
// has no users and no tokens.
func loopbackOnly(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("--addr %q: want host:port", addr)}
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return usageError{fmt.Errorf("--addr %q: only loopback addresses (127.0.0.1, [::1], localhost) are served, because anyone who can reach the server has full access", addr)}
}

func newLog(c config) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Log.Level, ReplaceAttr: withoutMedia}))
}

// withoutMedia shortens bytes encoded as text in log attributes: an error may
// quote them.
func withoutMedia(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(scrub.Line(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(scrub.Line(err.Error()))
		}
	}
	return a
}

func readScenario(path string) (*demo.Scenario, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "serve", path, "the scenario cannot be read: %w", err)
	}
	return demo.ParseScenario(src)
}
