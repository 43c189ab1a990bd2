// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/logctx"
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
	var data, database, scenario, format, blobs string
	var shared replica
	var standby, browse bool
	var at binding
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
			conf, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			conf.Hosts = append(conf.Hosts, conf.TLS.Domains...)
			who, err := at.access(conf.Auth, conf.Hosts)
			if err != nil {
				return err
			}
			if who.Exposed {
				if err := conf.errUnguarded(at.addr); err != nil {
					return err
				}
			}
			conf.Hosts = at.hosts(conf.Hosts)
			if format != "" {
				conf.Log.Format = format
			}
			if !slices.Contains(logFormats(), conf.Log.Format) {
				return usageError{fmt.Errorf("--log %q: want json or text", conf.Log.Format)}
			}
			log := newLog(conf)
			if conf.path != "" {
				log.Info("configuration: the file is read", "file", conf.path, "trusted", len(conf.withheld) == 0)
			}
			if conf.running, err = runningServers(); err != nil {
				conf.running = ""
				log.Warn("commands in other folders cannot find this server without --server: there is no configuration directory", "err", err)
			}
			if shared.name == "hostname" {
				if shared.name, err = os.Hostname(); err != nil {
					return err
				}
			}
			conf.blobs, conf.database, conf.replica = blobs, database, shared
			if err := shared.check(conf, standby); err != nil {
				return err
			}
			if shared.shares() {
				log = log.With("replica", shared.name)
			}
			o := serverOptions{data: data, config: conf, demoDelay: demoDelay, standby: standby, log: log, access: who}
			if scenario != "" {
				if o.scenario, err = readScenario(scenario); err != nil {
					return err
				}
			}
			return serve(cmd.Context(), at.addr, o, func(s started) {
				s.tell(cmd.OutOrStdout(), program(os.Args[0]))
				if browse && !standby {
					s.open(func(err error) { log.Warn("the browser cannot be opened", "err", err) })
				}
			})
		},
	}
	cmd.Flags().StringVar(&at.addr, "addr", envOr("ARTEL_ADDR", defaultAddr), "address to listen on; port 0 picks one")
	cmd.Flags().BoolVar(&at.noAuth, "no-auth", false, "need no login, although there are users")
	cmd.Flags().BoolVar(&at.know, "i-know-that-anyone-can-read-and-write", false, "allow --no-auth on addresses that other machines reach")
	cmd.Flags().StringVar(&data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	databaseFlag(cmd, &database)
	blobsFlag(cmd, &blobs)
	replicaFlags(cmd, &shared)
	cmd.Flags().BoolVar(&standby, "standby", false, "wait until the server that uses the data directory or the database ends, then take over its runs")
	cmd.Flags().BoolVar(&browse, "open", true, "open the page in the browser, if the output is a terminal of this machine and there is a display")
	cmd.Flags().StringVar(&format, "log", "", "format of the log on standard error: json or text (default json, or log.format of the configuration)")
	cmd.Flags().StringVar(&scenario, "scenario", "", "answer with this scenario file in the demo")
	return cmd
}

// serve opens a server, prints its address, and serves until ctx ends.
func serve(ctx context.Context, addr string, o serverOptions, ready func(started)) error {
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
	s.announce(l.Addr(), o, ready)
	return s.serve(ctx, l)
}

// announce reports the address, and where the first administrator is made if
// a login is needed and there is none.
func (s *server) announce(at net.Addr, o serverOptions, ready func(started)) {
	if o.access.Exposed && s.tls == nil {
		s.log.Warn("other machines can reach this server without TLS: passwords and tokens travel readable; set tls, or put a proxy with TLS in front of it", "address", at.String())
	}
	scheme := "http://"
	if s.tls != nil {
		scheme = "https://"
	}
	if s.peers != nil {
		s.peers.self = s.config.replica.address(scheme, at)
	}
	setup := ""
	if !s.app.Access.Open() && !s.app.Access.HasUsers() {
		setup = scheme + o.config.setupHost(at) + o.config.prefix() + setupPath(s.app.Access.NewSetupCode())
	}
	s.publishAddress(o.data, scheme, at)
	if o.config.running != "" {
		s.publishRunning(o.config.running, o.data, s.addressFor(scheme, at), s.secret)
	}
	ready(started{scheme + reachable(at) + o.config.prefix(), setup, s.services.All()})
}

// wayToListen says what to do if an address cannot be listened on.
func wayToListen(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "; artel doctor says whether a server of Artel has it; otherwise stop the other program, or run: artel serve --addr 127.0.0.1:0"
	case errors.Is(err, syscall.EACCES):
		return "; take a port above 1023, as in: artel serve --addr 127.0.0.1:7420"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "; this machine does not have that address: run artel serve --addr 127.0.0.1:7420"
	}
	return ""
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, artel.Errorf(artel.Conflict, "serve", addr, "cannot listen there: %w%s", err, wayToListen(err))
	}
	return l, nil
}

// takeOver waits for the lock of the data directory, then listens and serves.
// It returns nil if ctx ends before that.
func takeOver(ctx context.Context, addr string, o serverOptions, ready func(started)) error {
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
	s.announce(l.Addr(), o, ready)
	return s.serve(ctx, l)
}

func newLog(c config) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Log.Level, ReplaceAttr: withoutMedia}
	if c.Log.Format == "text" {
		return slog.New(logctx.Handler(slog.NewTextHandler(os.Stderr, o)))
	}
	return slog.New(logctx.Handler(slog.NewJSONHandler(os.Stderr, o)))
}

// logFormats returns the formats of the log.
func logFormats() []string { return []string{"", "json", "text"} }

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
