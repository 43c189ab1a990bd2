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
		Use: "settings", Short: "Export and import what you have set", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "export", Short: "Print all that you have set as one file", Args: usage(cobra.NoArgs),
		Long: `Prints the profile, the settings of services and agents and the order of
processors as one JSON file, which artel settings import reads. No key is in it.`,
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
		Use: "import FILE", Short: "Put the settings of a file in the place of all that you have set", Args: usage(cobra.ExactArgs(1)),
		Long: `Puts the settings of a file in the place of all that you have set, all of them
or nothing, and says what that changed. What the file does not name is reset.
FILE may be -, what is piped in. With --dry-run it only says what it would change.`,
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
	imports.Flags().BoolVar(&dry, "dry-run", false, "say what would change, and change nothing")
	imports.Flags().StringVar(&tag, "if-match", "", "the ETag of the settings that are replaced; others are refused")
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
