// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A role is a server that this program runs when started as
//
//	bench role NAME --addr ADDRESS [--data FOLDER]
//
// It adds its endpoints to mux and returns what the caller must close.
type role func(ctx context.Context, mux *http.ServeMux, data string) io.Closer

func roles() map[string]role {
	return map[string]role{
		"receiver": receive,      // of uploads: the anchor
		"caller":   callModels,   // calls models, both ways
		"fake":     serveFake,    // a model
		"sink":     serveSink,    // a model that looks at nothing
		"plain":    servePlain,   // a handler that answers with ready JSON: the anchor
		"inline":   serveInline,  // a handler that has everything in memory: the anchor
		"events":   serveEvents,  // Artel's event streams, and a way to append events
		"fanout":   serveFanout,  // plain event streams: the anchor
		"instant":  serveInstant, // a model that answers at once
		"proxy":    serveProxy,   // a reverse proxy: the anchor

		"collector": serveCollector, // of traces and metrics
	}
}

// play runs this program in a role.
func play(ctx context.Context, args []string) error {
	if len(args) < 2 || roles()[args[1]] == nil {
		return fmt.Errorf("there is no such role: %q", args[1:])
	}
	flags := flag.NewFlagSet(args[1], flag.ExitOnError)
	addr := flags.String("addr", "127.0.0.1:0", "address to listen on")
	data := flags.String("data", "", "data directory")
	_ = flags.Parse(args[2:])
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	var closer io.Closer
	if err := catch(func() { closer = roles()[args[1]](ctx, mux, *data) }); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err != nil {
		return errors.Join(err, closer.Close())
	}
	streams, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return streams }}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		stop()
		_ = server.Close()
		<-done
	}
	return errors.Join(err, closer.Close())
}

// closers closes all of them, last first.
type closers []io.Closer

func (cs closers) Close() error {
	var err error
	for i := len(cs) - 1; i >= 0; i-- {
		err = errors.Join(err, cs[i].Close())
	}
	return err
}

// handle answers with the result of work as text, or with 500.
func handle(mux *http.ServeMux, pattern string, work func(r *http.Request) (string, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		text, err := work(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, text)
	})
}

// number reads a required query value.
func number(r *http.Request, key string) (int64, error) {
	return strconv.ParseInt(r.URL.Query().Get(key), 10, 64)
}

// post sends a request to a role and returns its answer.
func (p *process) post(ctx context.Context, path string) string {
	resp := must(http.DefaultClient.Do(must(http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, nil))))
	defer resp.Body.Close()
	text := must(io.ReadAll(resp.Body))
	if resp.StatusCode != http.StatusOK {
		fail("%s: %s: %s", path, resp.Status, text)
	}
	return string(text)
}
