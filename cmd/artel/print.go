// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/httpapi"
)

// client returns a client of the server given by --server.
func (g *globals) client() *httpapi.Client { return httpapi.NewClient(g.server, nil) }

// print prints v as JSON with --json, otherwise with people.
func (g *globals) print(cmd *cobra.Command, v any, people func(printer)) error {
	out := cmd.OutOrStdout()
	if g.json {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	people(printer{tw})
	return tw.Flush()
}

// A printer writes lines; tabs align columns.
type printer struct{ w io.Writer }

func (p printer) line(s string)               { fmt.Fprintln(p.w, s) }
func (p printer) linef(f string, args ...any) { fmt.Fprintf(p.w, f+"\n", args...) }

func itoa(n int) string { return strconv.Itoa(n) }
