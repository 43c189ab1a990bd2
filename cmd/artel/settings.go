// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
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
	imports := &cobra.Command{
		Use: "import FILE", Short: "Put the settings of a file in the place of all that you have set", Args: usage(cobra.ExactArgs(1)),
		Long: `Puts the settings of a file in the place of all that you have set, all of them
or nothing. What the file does not name is reset. FILE may be -, what is piped in.`,
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
			file, _, err := g.client().SaveSettings(cmd.Context(), data, tag)
			if err != nil {
				return err
			}
			return g.print(cmd, file, func(w printer) { w.line("imported") })
		},
	}
	imports.Flags().StringVar(&tag, "if-match", "", "the ETag of the settings that are replaced; others are refused")
	cmd.AddCommand(imports)
	return cmd
}
