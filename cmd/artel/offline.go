// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
)

// The verbs of this file need no server.

func detectCommand(g *globals) *cobra.Command {
	var declared string
	cmd := &cobra.Command{
		Use: "detect FILE", Short: "Detect the type of a file", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, info, err := examine(cmd.Context(), args[0], declared)
			if err != nil {
				return err
			}
			defer f.Close()
			return g.print(cmd, httpapi.DetectedOf(info), func(w printer) {
				w.linef("%s\t%s\t%s\t%s", info.MediaType, info.Kind, phrase.Size(info.Size), strings.Join(details(info), ", "))
			})
		},
	}
	cmd.Flags().StringVar(&declared, "type", "", "declared media type")
	return cmd
}

func details(m artel.MediaInfo) []string {
	var out []string
	if m.Charset != "" {
		out = append(out, m.Charset)
	}
	if m.Width > 0 {
		out = append(out, itoa(m.Width)+"×"+itoa(m.Height))
	}
	if m.Pages > 0 {
		out = append(out, itoa(m.Pages)+" pages")
	}
	if m.Duration > 0 {
		out = append(out, time.Duration(m.Duration*float64(time.Second)).Round(time.Millisecond).String())
	}
	return append(out, "decided by "+string(m.DetectedBy))
}

// examine opens a file and detects its type. The caller closes it.
func examine(ctx context.Context, path, declared string) (*os.File, artel.MediaInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, artel.MediaInfo{}, artel.Errorf(artel.Invalid, "detect", path, "cannot be read: %w", err)
	}
	s := media.NewSniffer(media.Hint{DeclaredType: declared, Filename: filepath.Base(path)})
	if _, err := io.Copy(s, f); err != nil {
		_ = f.Close()
		return nil, artel.MediaInfo{}, artel.Errorf(artel.Invalid, "detect", path, "cannot be read: %w", err)
	}
	return f, media.Measure(ctx, s.Info(), f), nil
}

func routeCommand(g *globals) *cobra.Command {
	var declared, service, locale, pages string
	var capabilities, forms []string
	cmd := &cobra.Command{
		Use: "route FILE", Short: "Show in which form a model would receive a file", Args: usage(cobra.ExactArgs(1)),
		Long: `Shows in which form the model of a --service, or one with the given --capabilities,
would receive a file, and why. With --json it prints the whole result with its
payload. --forms allows text instead of unsupported media: extracted from
documents, or transcribed by a configured service; a run allows both. A PDF whose
text is missing or doubtful is shown by its first pages to a model that sees,
and --pages shows chosen ones, as agents get them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if service != "" && len(capabilities) > 0 {
				return usageError{errors.New("--service and --capabilities exclude each other: a service says what its model takes")}
			}
			conf, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			if locale == "" {
				locale = conf.Locale
			}
			target, err := target(conf, service, capabilities)
			if err != nil {
				return err
			}
			steps, err := stepsOf(forms)
			if err != nil {
				return err
			}
			f, info, err := examine(cmd.Context(), args[0], declared)
			if err != nil {
				return err
			}
			defer f.Close()
			maker, shut, err := target.converter(cmd.Context(), conf, slices.Contains(steps, artel.StepTranscribed))
			if err != nil {
				return err
			}
			defer shut()
			target.Forms = maker.forms().With(steps...)
			open := func() (io.ReadCloser, error) {
				_, err := f.Seek(0, io.SeekStart)
				return io.NopCloser(f), err
			}
			source := route.Source{
				Filename: filepath.Base(args[0]), Info: info, Open: open, Makers: maker.makers(cmd.Context(), f, info),
				Text: func() (string, error) {
					r, err := open()
					if err != nil {
						return "", err
					}
					return media.DecodeText(r, info.Charset)
				},
			}
			result := route.New(source, target.Target, phrase.ParseLocale(locale))
			if pages != "" {
				first, last, err := rendition.ParsePages(pages)
				if err != nil {
					return usageError{fmt.Errorf("--%w", err)}
				}
				if result, err = route.Pages(source, target.Target, first, last, phrase.ParseLocale(locale)); err != nil {
					return err
				}
			}
			if g.json {
				return result.Encode(cmd.Context(), cmd.OutOrStdout())
			}
			return g.print(cmd, nil, func(w printer) {
				r := result.Route
				w.linef("%s\t%s\t%s\t%s", r.ContentType, r.Routing, r.Step, r.Reason)
				if r.Step == artel.StepDescribed || r.Step == artel.StepExtracted || r.Step == artel.StepTranscribed {
					w.line(result.Content)
				}
				if sent, left := result.Pages(); sent > 0 {
					w.linef("pages as pictures: %d, left out: %d", sent, left)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&declared, "type", "", "declared media type")
	flags.StringVar(&service, "service", "", "a service of the configuration or the environment")
	flags.StringSliceVar(&capabilities, "capabilities", nil, "capabilities of the model, instead of a service: text,vision,file,audio,video")
	flags.StringSliceVar(&forms, "forms", nil, "allowed forms instead of unsupported media: extracted,transcribed")
	flags.StringVar(&pages, "pages", "", "pages of a PDF to show as pictures: 3 or 21-24")
	flags.StringVar(&locale, "locale", "", "language of descriptions: en or zh; default: the configuration's")
	return cmd
}

// target builds the target given by the flags; an unknown service supports text
// only.
func target(conf config, service string, capabilities []string) (routing, error) {
	t := routing{Target: route.Target{Service: artel.ServiceID(service), Capabilities: model.TextOnly()}}
	if len(capabilities) > 0 {
		t.Capabilities.Input = model.Fact[[]artel.Capability]{Source: model.FromOperator}
	}
	known := []string{string(artel.CanText), string(artel.CanVision), string(artel.CanFile), string(artel.CanAudio), string(artel.CanVideo)}
	for _, c := range capabilities {
		if !slices.Contains(known, c) {
			return t, usageError{fmt.Errorf("--capabilities: there is no %q; the nearest is %q (there are: %s)", c, model.Nearest(c, known), strings.Join(known, ", "))}
		}
		t.Capabilities.Input.Value = append(t.Capabilities.Input.Value, artel.Capability(c))
	}
	s := server{config: conf, log: slog.New(slog.DiscardHandler)}
	if err := s.findServices(); err != nil {
		return t, err
	}
	t.services, t.Suggest = s.services, s.services.Suggest
	if found, ok := s.services.Lookup(t.Service); ok {
		t.Capabilities = found.Capabilities
	}
	return t, nil
}
