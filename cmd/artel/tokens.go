// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline/token"
)

func tokensCommand(g *globals) *cobra.Command {
	var vocabulary, name string
	var list bool
	cmd := &cobra.Command{
		Use: "tokens [FILE]", Short: "Count the tokens of a text", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Counts the tokens of a text file or of the standard input, with a --vocabulary or
that of a --model. --list lists the vocabularies, and how well the estimates of
unpublished ones match.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				known := token.Known()
				return g.print(cmd, httpapi.List[httpapi.VocabularyView]{Items: httpapi.VocabularyViews(known)}, func(w printer) {
					for _, v := range known {
						how := "exact"
						if !v.Exact {
							how = fmt.Sprintf("within %.1f %% on average", 100*v.Error)
						}
						w.linef("%s\t%s\t%s", v.Name, how, v.Source)
					}
				})
			}
			if vocabulary != "" && name != "" {
				return usageError{errors.New("--vocabulary and --model exclude each other: a model has its vocabulary")}
			}
			if vocabulary == "" {
				vocabulary = cmp.Or(model.Catalog(name).Tokenizer.Value, token.O200k)
			}
			text, err := textOf(cmd, args)
			if err != nil {
				return err
			}
			n, err := token.NewCounter().Count(vocabulary, text)
			if err != nil {
				return err
			}
			return g.print(cmd, httpapi.TokenCount{Tokens: n}, func(w printer) { w.linef("%d\t%s", n, vocabulary) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&vocabulary, "vocabulary", "", "one of "+strings.Join(token.Vocabularies(), ", ")+"; default: o200k_base")
	flags.StringVar(&name, "model", "", "use the vocabulary of this model, from the built-in table")
	flags.BoolVar(&list, "list", false, "list the vocabularies")
	return cmd
}

// textOf reads the file in args, or standard input.
func textOf(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 0 || args[0] == "-" {
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return "", artel.Errorf(artel.Invalid, "tokens", "-", "cannot be read: %w", err)
		}
		return string(text), nil
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return "", artel.Errorf(artel.Invalid, "tokens", args[0], "cannot be read: %w", err)
	}
	return string(text), nil
}
