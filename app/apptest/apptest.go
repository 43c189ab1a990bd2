// SPDX-License-Identifier: Apache-2.0

// Package apptest makes applications for the tests of the packages above and of app
// itself. Begin with [Config] and [Open].
package apptest

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// A Log is what an application has logged. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Config returns the configuration of an application in memory whose only service is
// the demo. p answers for it; nil: its own script. It logs to the [Log].
func Config(t testing.TB, p model.Provider) (app.Config, *Log) {
	t.Helper()
	blobs, log, service := blob.NewMemory(), &Log{}, model.DemoService()
	if p == nil {
		p = demo.New(blobs, demo.Options{})
	}
	return app.Config{
		Store: rowstest.Open(t), Blobs: blobs, Notifier: event.NewNotifier(),
		Services:  model.NewRegistry([]model.Service{service}, service.ID),
		Providers: map[model.Dialect]model.Provider{model.Demo: p},
		Options:   app.Options{Log: slog.New(slog.NewTextHandler(log, nil)), SpoolDir: t.TempDir()},
	}, log
}

// Open makes an application and closes it at the end of the test.
func Open(t testing.TB, c app.Config) *app.App {
	t.Helper()
	a, err := app.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute) // ends a hang
		defer stop()
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return a
}

// Context returns the context of a test, in which the operator acts.
func Context(t testing.TB) context.Context { return access.With(t.Context(), access.Operator()) }

// As returns a handler in whose requests the operator acts.
func As(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Operator())))
	})
}
