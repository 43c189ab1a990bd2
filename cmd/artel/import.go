// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
)

func importCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Short: "Bring in what was exported, here or elsewhere", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "zip FILE", Short: "Make a new conversation of a ZIP that artel export made", Args: usage(cobra.ExactArgs(1)),
		Long: `Makes a new conversation of a ZIP that artel export made, all of it or nothing.
The ZIP may have twenty times the server's artifacts.upload_limit.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			defer f.Close()
			size := int64(-1)
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				size = info.Size()
			}
			done, err := g.client().Import(cmd.Context(), f, size)
			if err != nil {
				return err
			}
			return g.print(cmd, done, func(w printer) {
				w.linef("%s\t%d messages\t%d artifacts\t%d versions\t%s", done.Conversation.ID, done.Messages, done.Artifacts, done.Versions, artel.Shorten(done.Conversation.Title, 60))
			})
		},
	}, importSillyTavern(g))
	return cmd
}
