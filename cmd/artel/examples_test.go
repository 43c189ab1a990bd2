// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that runs has an example, and each line of an example that starts with the
// program is accepted: the command, its flags and the number of its arguments.
func TestExamples(t *testing.T) {
	var all []string
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		all = append(all, strings.Split(cmd.Example, "\n")...)
	})
	all = append(all, strings.Split(exampleLines, "\n")...)
	for _, line := range all {
		command, _, _ := strings.Cut(shellWords(line), " < ") // what a shell does with input and output
		command, _, _ = strings.Cut(command, " > ")
		command, _, _ = strings.Cut(command, " | ")
		words := strings.Fields(strings.TrimSuffix(command, "\\"))
		if len(words) == 0 || words[0] != "artel" {
			continue
		}
		cmd, rest, err := newRoot().Find(words[1:])
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// shellWords joins what stands in quotes to one word, for strings.Fields.
func shellWords(line string) string {
	var quote rune
	return strings.Map(func(r rune) rune {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
			return -1
		case r == quote:
			quote = 0
			return -1
		case quote != 0 && r == ' ':
			return '_'
		}
		return r
	}, line)
}
