// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

func booksCommand(g *globals) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List your world books with the agents that use them", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Books(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, b := range all.Items {
					agents := make([]string, len(b.Agents))
					for i, a := range b.Agents {
						agents[i] = string(a)
					}
					w.linef("%s\t%d entries\t%s", b.Name, b.Entries, strings.Join(agents, ", "))
				}
			})
		},
	}
	cmd := &cobra.Command{
		Use: "books", Short: "List, show, try and use world books", Args: usage(cobra.NoArgs),
		Long: `A world book is a list of texts that a request gets if their keys occur in the newest
messages. artel import FILE imports books and character cards. Without a verb, lists
the books.`,
		RunE: list.RunE,
	}
	cmd.AddCommand(list, g.showBook(), g.tryBook(), g.useBook(true), g.useBook(false), &cobra.Command{
		Use: "rm NAME", Short: "Delete a world book", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return g.client().DeleteBook(cmd.Context(), args[0]) },
	})
	return cmd
}

func (g *globals) showBook() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Print a world book as JSON", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := g.client().Book(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return writeJSON(cmd, b)
		},
	}
}

func (g *globals) useBook(on bool) *cobra.Command {
	use, short := "use NAME AGENT", "Let an agent use a world book"
	if !on {
		use, short = "drop NAME AGENT", "Let an agent use a world book no longer"
	}
	return &cobra.Command{
		Use: use, Short: short, Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().UseBook(cmd.Context(), args[0], artel.AgentName(args[1]), on)
		},
	}
}

func (g *globals) tryBook() *cobra.Command {
	var t httpapi.BookTrial
	cmd := &cobra.Command{
		Use: "try NAME [FILE]", Short: "Say which entries of a world book fire for a text, and why", Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := textOf(cmd, args[1:])
			if err != nil {
				return err
			}
			t.Name, t.Messages = args[0], []httpapi.BookMessage{{Text: text}}
			r, err := g.client().TryBook(cmd.Context(), t)
			if err != nil {
				return err
			}
			return g.print(cmd, r, func(w printer) {
				for _, f := range r.Fired {
					w.linef("%s\t%s\t%s\t%d tokens\t%s", f.Name, f.Reason, f.Key, f.Tokens, artel.Shorten(f.Text, 60))
				}
				for _, f := range r.Left {
					w.linef("%s\tnot sent: %s\t%s\t%d tokens", f.Name, f.Reason, f.Key, f.Tokens)
				}
				for _, p := range r.Problems {
					w.linef("%s\tcannot be used: %s\t%s", p.Entry, p.Key, p.Message)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&t.Budget, "budget", 0, "tokens of all entries; 0: no limit")
	flags.StringVar(&t.User, "user", "", "value of the macro user")
	flags.StringVar(&t.Char, "char", "", "value of the macro char")
	return cmd
}

// importFile imports a file of another program: a character card, a world book, a
// preset or regex scripts.
func importFile(g *globals) *cobra.Command {
	var into string
	var replace bool
	cmd := &cobra.Command{
		Use: "character FILE", Short: "Import a character card, a world book or a preset", Args: usage(cobra.ExactArgs(1)), Aliases: []string{"book", "preset"},
		Long: `Imports a character card (PNG, JSON or CHARX) as an agent with its greetings, world book
and picture, a world book (JSON), or a preset of SillyTavern (JSON) as an agent or, with
--into, in one. What works differently here is listed on the standard error.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			defer f.Close()
			done, err := g.client().ImportFile(cmd.Context(), filepath.Base(args[0]), artel.AgentName(into), replace, f)
			if err != nil {
				return err
			}
			if !g.json {
				for _, l := range done.Losses {
					fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimPrefix(l.Field+": "+l.Message, ": "))
				}
			}
			if done.Rules != nil && !g.json {
				return writeJSON(cmd, done.Rules)
			}
			return g.print(cmd, done, func(w printer) {
				w.linef("%s\t%s", done.Kind, done.Format)
				if done.Agent != "" {
					w.linef("agent\t%s", done.Agent)
				}
				if done.Book != "" {
					w.linef("book\t%s", done.Book)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&into, "into", "", "agent that a preset changes; default: a new one")
	flags.BoolVar(&replace, "replace", false, "replace your agent and book of the same names")
	return cmd
}

// writeJSON prints v as JSON.
func writeJSON(cmd *cobra.Command, v any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
