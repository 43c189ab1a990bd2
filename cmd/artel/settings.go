// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

func settingsCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "settings", Short: "Export and import your settings", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "export", Short: "Print all your settings as one file", Args: usage(cobra.NoArgs),
		Long: `Prints the profile, the settings of services and agents and the order of
processors as one JSON file, for artel settings import. It contains no keys.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, _, err := g.client().Settings(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, file, func(w printer) {
				out, err := json.MarshalIndent(file, "", "  ")
				if err == nil {
					w.line(string(out))
				}
			})
		},
	})
	var tag string
	var dry bool
	imports := &cobra.Command{
		Use: "import FILE", Short: "Replace all your settings by those of a file", Args: usage(cobra.ExactArgs(1)),
		Long: `Replaces all your settings by those of a file, completely or not at all, and
lists the changes. Settings that the file does not name are reset. FILE may be -,
the standard input. With --dry-run it only lists the changes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var data []byte
			var err error
			if args[0] == "-" {
				data, err = io.ReadAll(cmd.InOrStdin())
			} else {
				data, err = os.ReadFile(args[0])
			}
			if err != nil {
				return artel.Errorf(artel.Invalid, "settings", args[0], "cannot be read: %w", err)
			}
			report, err := g.client().CompareSettings(cmd.Context(), data)
			if err == nil && !dry {
				// The revision of the report is the one that is replaced.
				_, _, err = g.client().SaveSettings(cmd.Context(), data, cmp.Or(tag, report.ETag))
			}
			if err != nil {
				return err
			}
			return g.print(cmd, report, func(w printer) { printSettings(w, report, dry) })
		},
	}
	imports.Flags().BoolVar(&dry, "dry-run", false, "list the changes without making them")
	imports.Flags().StringVar(&tag, "if-match", "", "replace only settings with this ETag")
	cmd.AddCommand(imports)
	return cmd
}

// printSettings prints the changes of an import, one setting after the other.
func printSettings(w printer, r httpapi.SettingsReport, dry bool) {
	for _, c := range r.Changes {
		what := c.Area
		if c.Name != "" {
			what += " " + artel.Visible(c.Name)
		}
		if c.Processor != "" {
			what += ": " + c.Processor
		}
		if c.Unknown {
			what += " (not known here)"
		}
		w.linef("%s\t%s", c.Change, what)
		if len(c.Was) > 0 {
			w.linef("\t  - %s", artel.Shorten(string(c.Was), 300))
		}
		if len(c.Is) > 0 {
			w.linef("\t  + %s", artel.Shorten(string(c.Is), 300))
		}
	}
	switch {
	case len(r.Changes) == 0:
		w.line("nothing changes")
	case dry:
		w.linef("%d changes, none of them made", len(r.Changes))
	default:
		w.linef("imported, %d changes", len(r.Changes))
	}
}
