// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

//go:embed samples
var samples embed.FS

func demoCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Run a complete demo on sample files, without a model", Args: usage(cobra.NoArgs),
		Long: `Starts a server of its own in a temporary folder, uploads a picture, a PDF and a
text, lets the built-in demo plan, read and report, prints the report, and
removes everything.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dir, err := os.MkdirTemp("", "artel-demo-*")
			if err != nil {
				return artel.Errorf(artel.Unavailable, "demo", "", "no temporary folder: %w", err)
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			files, err := unpack(filepath.Join(dir, "samples"))
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			o := serverOptions{data: filepath.Join(dir, "data"), demoDelay: demoDelay, log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
			url, served := make(chan string, 1), make(chan error, 1)
			go func() { served <- serve(ctx, "127.0.0.1:0", o, func(s started) { url <- s.url }) }()
			select {
			case err := <-served:
				return err
			case at := <-url:
				g.server = at
			}
			err = g.showDemo(ctx, cmd, files)
			stop()
			return errors.Join(err, <-served)
		},
	}
}

func (g *globals) showDemo(ctx context.Context, cmd *cobra.Command, files []string) error {
	t := chatSession{client: g.client(), out: cmd.OutOrStdout(), json: g.json, service: "demo"}
	if err := t.begin(ctx, ""); err != nil {
		return err
	}
	if err := t.send(ctx, "Look at these files, plan, and write a report about them.", files); err != nil {
		return err
	}
	report, err := t.client.Artifact(ctx, artel.Ref{Conversation: t.id, Artifact: "report"})
	if err != nil || g.json {
		return err
	}
	return printReport(cmd, report)
}

func printReport(cmd *cobra.Command, a httpapi.ArtifactView) error {
	text := ""
	if a.Content != nil {
		text = *a.Content
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n--- %s v%d\n%s\n", a.ID, a.Version, text)
	return err
}

// unpack writes the samples to a folder and returns their paths.
func unpack(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(samples, "samples")
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		b, err := samples.ReadFile("samples/" + e.Name())
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, e.Name())
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
