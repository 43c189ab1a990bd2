// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// The verbs of this file need no server.

func regexCommand(g *globals) *cobra.Command {
	var rules, stage, role string
	var r app.Replacing
	depth := -1
	cmd := &cobra.Command{
		Use: "regex [FILE]", Short: "Apply find-and-replace rules to a text", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Applies rules to a text file or to the standard input, and prints the result. The
rules are a JSON file, in the form of the regex-processor's configuration. Matching
and unusable rules are listed on the standard error.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules == "" {
				return usageError{fmt.Errorf("--rules is missing: give a file of rules")}
			}
			raw, err := os.ReadFile(rules)
			if err != nil {
				return artel.Errorf(artel.Invalid, "regex", rules, "cannot be read: %w", err)
			}
			if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") { // a bare list of rules
				raw = []byte(`{"rules":` + string(raw) + `}`)
			}
			if r.Config, err = rule.ParseConfig(raw); err != nil {
				return err
			}
			if r.Text, err = textOf(cmd, args); err != nil {
				return err
			}
			r.Stage, r.Role = rule.Stage(stage), artel.Role(role)
			if depth >= 0 {
				r.Depth = &depth
			}
			done, err := app.ReplaceOffline(cmd.Context(), r)
			if err != nil {
				return err
			}
			if g.json {
				return g.print(cmd, httpapi.RegexAppliedOf(done), nil)
			}
			for _, p := range done.Problems {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is left out: %s\n", p.Rule, p.Message)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d rules found something: %s\n", len(done.Applied), strings.Join(done.Applied, ", "))
			_, err = io.WriteString(cmd.OutOrStdout(), done.Text)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&rules, "rules", "", "file of rules, as JSON")
	flags.StringVar(&stage, "stage", string(rule.Request), "request (sent to a model) or display (shown on the page)")
	flags.StringVar(&role, "role", string(artel.RoleUser), "role of the message: system, user, assistant or tool")
	flags.IntVar(&depth, "depth", -1, "distance of the message from the newest one, which is 0; default: ignore depth limits of rules")
	flags.StringVar(&r.User, "user", "", "value of the macro user")
	flags.StringVar(&r.Char, "char", "", "value of the macro char")
	return cmd
}

func macrosCommand(g *globals) *cobra.Command {
	var values map[string]string
	var t httpapi.MacroText
	var list bool
	cmd := &cobra.Command{
		Use: "macros [FILE]", Short: "Expand the macros in a text", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Expands the macros in a text file or in the standard input, like in the prompts of
agents. --set sets the value of a macro (--set user=Ann), --variable the value of a
variable. --list lists all macros.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return g.print(cmd, macro.Names(), func(w printer) {
					for _, name := range macro.Names() {
						w.line(name)
					}
				})
			}
			e, err := t.Expanding()
			if err != nil {
				return err
			}
			for name, value := range values {
				if !slices.Contains(macro.Values(), name) {
					return usageError{fmt.Errorf("--set %s: there is no such value; there are %s", name, strings.Join(macro.Values(), ", "))}
				}
				e.Values[name] = value
			}
			if e.Text, err = textOf(cmd, args); err != nil {
				return err
			}
			x, err := e.Expand()
			if err != nil {
				return err
			}
			if g.json {
				return g.print(cmd, httpapi.MacroExpandedOf(x), nil)
			}
			for _, p := range x.Problems {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is left as it is: %s\n", p.Macro, p.Message)
			}
			for _, name := range slices.Sorted(maps.Keys(x.Variables)) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is %q\n", name, x.Variables[name])
			}
			_, err = io.WriteString(cmd.OutOrStdout(), x.Text)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringToStringVar(&values, "set", nil, "value of a macro, as user=Ann (repeatable)")
	flags.StringToStringVar(&t.Variables, "variable", nil, "value of a variable, as name=value (repeatable)")
	flags.StringVar(&t.Clock, "clock", "", "time, as 2026-01-02T15:04:05Z; default: now")
	flags.StringVar(&t.Timezone, "timezone", "", "time zone, as Europe/Berlin")
	flags.StringVar(&t.Seed, "seed", "", "random seed; default: a new one each time")
	flags.StringVar(&t.ConversationID, "conversation", "", "conversation id, for the macro pick")
	flags.BoolVar(&list, "list", false, "list all macros")
	return cmd
}

func importSillyTavern(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "sillytavern FILE", Short: "Convert regex scripts of SillyTavern to rules", Args: usage(cobra.ExactArgs(1)),
		Long: `Reads a regex script of SillyTavern, a list of them, or a settings file or
character card with some, and prints a configuration of the regex-processor.
Fields that work differently here are listed on the standard error.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			config, losses, err := app.ImportRules(raw)
			if err != nil {
				return err
			}
			if g.json {
				return g.print(cmd, httpapi.RegexImportedOf(config, losses), nil)
			}
			for _, l := range losses {
				fmt.Fprintln(cmd.ErrOrStderr(), strings.Join(slices.DeleteFunc([]string{l.Script, l.Field, l.Message}, func(s string) bool { return s == "" }), ": "))
			}
			return writeJSON(cmd, config)
		},
	}
}
