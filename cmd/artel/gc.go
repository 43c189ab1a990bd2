// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// gcOptions holds the arguments of artel gc.
type gcOptions struct {
	data     string
	blobs    string
	database string
	dry      bool
	grace    time.Duration
}

func gcCommand(g *globals) *cobra.Command {
	var c gcOptions
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove unreferenced bytes", Args: usage(cobra.NoArgs),
		Long: `Removes bytes without a reference from a version, message or event: unused uploads,
and the remains of deleted conversations and failed imports. Unreferenced tool
results outside any run are removed after a week (files.retention). A server does
this automatically, once a day and after deletions.

It works on the data directory if no server uses it; otherwise, and with --server,
it calls the server. Bytes stored within --grace are kept, because a reference to
them may follow.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, g) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	databaseFlag(cmd, &c.database)
	blobsFlag(cmd, &c.blobs)
	flags.BoolVar(&c.dry, "dry-run", false, "list what would be removed, without removing it")
	flags.DurationVar(&c.grace, "grace", app.DefaultGrace, "keep bytes stored within this time")
	return cmd
}

func (c gcOptions) run(cmd *cobra.Command, g *globals) error {
	if c.grace < 0 {
		return usageError{fmt.Errorf("--grace %s: want a time from 0", c.grace)}
	}
	report, err := c.collect(cmd, g)
	if err != nil {
		return err
	}
	return g.print(cmd, report, func(w printer) {
		amount := func(what string, a sweep.Amount) {
			w.linef("%s\t%d\t%s", what, a.Count, phrase.Size(a.Bytes))
		}
		gone := "removed"
		if report.DryRun {
			gone = "would be removed"
			for _, d := range report.Digests {
				w.line(string(d))
			}
			for _, r := range report.Refs {
				w.line(r.String())
			}
			if n := report.Removed.Count + report.Results.Count - int64(len(report.Digests)+len(report.Refs)); n > 0 {
				w.linef("… and %d more", n)
			}
		}
		amount(gone, report.Removed)
		if report.Results.Count > 0 {
			amount("results of tools, "+gone, report.Results)
		}
		amount("wanted", report.Wanted)
		amount("put within "+c.grace.String(), report.Young)
		if report.Staged.Count > 0 {
			amount("of broken writes, removed", report.Staged)
		}
	})
}

// collect works on the data directory if it is free, otherwise through its
// server.
func (c gcOptions) collect(cmd *cobra.Command, g *globals) (app.Collected, error) {
	if g.server != "" {
		return c.ask(cmd, g)
	}
	g.server = localServer // a login elsewhere is not meant
	var err error
	if c.database == "" {
		_, err = os.Stat(filepath.Join(c.data, databaseFile))
	}
	if err != nil && cmd.Flags().Changed("data") {
		return app.Collected{}, usageError{fmt.Errorf("--data %s: there is no database in it", c.data)}
	}
	if err != nil {
		return c.ask(cmd, g)
	}
	report, err := c.directly(cmd, g)
	if errors.Is(err, errInUse) || c.database != "" && artel.KindOf(err) == artel.Conflict {
		fmt.Fprintf(cmd.ErrOrStderr(), "artel: a server uses this data; asking %s\n", g.server)
		return c.ask(cmd, g)
	}
	return report, err
}

// directly opens the data directory for this process alone.
func (c gcOptions) directly(cmd *cobra.Command, g *globals) (app.Collected, error) {
	conf, err := loadConfig(g.config)
	if err != nil {
		return app.Collected{}, err
	}
	conf.blobs, conf.database = c.blobs, c.database
	o := serverOptions{data: c.data, config: conf, log: newLog(conf)}
	s := &server{config: conf, log: o.log}
	defer s.shut()
	db, blobs, err := s.openData(cmd.Context(), o)
	if err != nil {
		return app.Collected{}, err
	}
	a, err := app.New(app.Config{
		Store: db, Blobs: blobs, Notifier: event.NewNotifier(), Services: model.NewRegistry(nil, ""),
		Files: app.FileOptions{Alone: func() error { return s.checkAlone(o) }, Retention: conf.retention()}, Options: app.Options{SpoolDir: o.spoolDir(), Log: o.log},
	})
	if err != nil {
		return app.Collected{}, err
	}
	if !c.dry {
		if _, err := a.Purge(cmd.Context()); err != nil {
			return app.Collected{}, err
		}
	}
	var report app.Collected
	err = withProgress(access.With(cmd.Context(), access.Operator()), cmd.ErrOrStderr(), func(ctx context.Context) (err error) {
		report, err = a.Storage.Collect(ctx, app.CollectOptions{DryRun: c.dry, Grace: c.grace})
		return err
	}, a.Storage.Collection)
	return report, err
}

// ask calls the server.
func (c gcOptions) ask(cmd *cobra.Command, g *globals) (app.Collected, error) {
	if c.grace < app.MinGrace {
		return app.Collected{}, usageError{fmt.Errorf("--grace %s: a running server keeps bytes stored within %s for uploads in progress; stop the server to use less", c.grace, app.MinGrace)}
	}
	var report app.Collected
	client := g.client()
	err := withProgress(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context) (err error) {
		report, err = client.CollectGarbage(ctx, c.dry, c.grace)
		return err
	}, client.Collection)
	return report, err
}

// withProgress runs work, and shows its progress on a terminal.
func withProgress(ctx context.Context, w io.Writer, work func(context.Context) error, far func(context.Context) (app.CollectionState, error)) error {
	f, ok := w.(*os.File)
	if !ok {
		return work(ctx)
	}
	if stat, err := f.Stat(); err != nil || stat.Mode()&os.ModeCharDevice == 0 {
		return work(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			fmt.Fprint(f, "\r\x1b[K")
			return err
		case <-tick.C:
			if state, err := far(ctx); err == nil && state.Running {
				r := state.Report
				fmt.Fprintf(f, "\r\x1b[K%s: %d references, %d blobs, %d to remove", r.Phase, r.References, r.Blobs.Count, r.Removed.Count)
			}
		}
	}
}
