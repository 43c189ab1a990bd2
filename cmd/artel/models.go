// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
)

func modelsCommand(g *globals) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "models", Short: "List the available services and their capabilities, with sources", Args: usage(cobra.NoArgs),
		Long: `Lists the services that a server would use here. Each fact has a source: operator
(the configuration), probe (a test), learned (from a refused call), endpoint (the
service itself), catalog (the built-in table), family (guessed from the name),
dialect (its API). A star marks the default (none if default_service is auto),
brackets a service that cannot be called.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			s := server{config: conf, log: newLog(conf), http: modelClient()}
			if err := s.findServices(); err != nil {
				return err
			}
			s.services.Learned().Use(openMarks(data, false, s.log))
			s.askServices(cmd.Context())
			list := httpapi.List[httpapi.ServiceView]{}
			for _, m := range s.services.All() {
				list.Items = append(list.Items, httpapi.ServiceViewOf(m, s.services.Learned().Marks(m.ID), s.defaultService()))
			}
			return g.print(cmd, list, func(w printer) {
				w.line("SERVICE\tFACT\tVALUE\tSAYS")
				for _, v := range list.Items {
					showService(w, v)
				}
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", envOr("ARTEL_DATA", defaultData), "data directory, with the learned capabilities")
	cmd.AddCommand(probeCommand(g), forgetCommand(g))
	return cmd
}

// showService prints one line per fact.
func showService(w printer, v httpapi.ServiceView) {
	name := mark(v)
	line := func(fact, value, says string) {
		w.linef("%s\t%s\t%s\t%s", name, fact, value, says)
		name = ""
	}
	line("model", v.Model, v.Origin)
	line("input", joined(v.Input), sourceOf(v.Sources["input"]))
	for _, f := range []struct{ fact, value string }{
		{"accepts", strings.Join(v.Accepts, " ")},
		{"refuses", strings.Join(v.Refuses, " ")},
		{"context_window", itoa(v.ContextWindow)},
		{"max_output", itoa(v.MaxOutput)},
		{"tokenizer", v.Tokenizer},
		{"token_ratio", strconv.FormatFloat(v.TokenRatio, 'f', -1, 64)},
		{"limits.item_bytes", bound(v.Limits.ItemBytes, phrase.Size)},
		{"limits.request_bytes", bound(v.Limits.RequestBytes, phrase.Size)},
		{"limits.side", bound(v.Limits.Side, itoa)},
		{"limits.images", bound(v.Limits.Images, itoa)},
		{"limits.many", bound(v.Limits.Many, itoa)},
		{"limits.side_of_many", bound(v.Limits.SideOfMany, itoa)},
		{"limits.pages", bound(v.Limits.Pages, itoa)},
		{"placement.tool_image", yesNo(v.Placement.ToolImage)},
		{"placement.tool_file", yesNo(v.Placement.ToolFile)},
		{"placement.user_after_tool", yesNo(v.Placement.UserAfterTool)},
		{"transport", spaced(v.Transport)},
	} {
		if source := v.Sources[f.fact]; source != "" {
			line(f.fact, f.value, string(source))
		}
	}
	for _, m := range v.Marks {
		says := fmt.Sprintf("%s, until %s", m.Source, m.Until.Format("2006-01-02"))
		if !m.Applies {
			says += ", not confirmed"
		}
		if m.Evidence != "" {
			says += ": " + artel.Shorten(artel.Visible(m.Evidence), 80)
		}
		line("mark "+m.ID, subjectOf(m), says)
	}
	if v.Problem != "" {
		line("problem", artel.Shorten(v.Problem, 120), "")
	}
}

// subjectOf says in a few words what a mark is about.
func subjectOf(m httpapi.ServiceMark) string {
	verb := "refused"
	if m.OK {
		verb = "accepted"
	}
	switch {
	case m.Field != "":
		return m.Field + " " + verb
	case m.Limit != "":
		return fmt.Sprintf("%s: at most %d", m.Limit, m.Value)
	case m.Digest != "":
		return fmt.Sprintf("%s %s in %s", m.Digest, verb, m.Place)
	case m.MediaType == "":
		return fmt.Sprintf("%s %s", m.Place, verb)
	}
	return fmt.Sprintf("%s %s in %s", m.MediaType, verb, m.Place)
}

// bound formats a limit, which may be known not to exist.
func bound[T int | int64](n T, text func(T) string) string {
	if n == 0 {
		return "none"
	}
	return text(n)
}

func yesNo(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func spaced[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, " ")
}

// mark marks the default service with a star, and one that cannot be called
// with brackets.
func mark(v httpapi.ServiceView) string {
	switch {
	case v.Default:
		return string(v.ID) + " *"
	case !v.Callable:
		return "(" + string(v.ID) + ")"
	}
	return string(v.ID)
}

func joined(cs []artel.Capability) string {
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = string(c)
	}
	return strings.Join(words, ",")
}

func sourceOf(p model.Provenance) string {
	if p == "" {
		return "nobody"
	}
	return string(p)
}

func probeCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "probe [SERVICE]...", Short: "Test the real capabilities of a running server's services", Args: usage(cobra.ArbitraryArgs),
		Long: fmt.Sprintf(`Asks a server that runs to try out services: without a name all that can be
called. Each gets pictures and PDFs with random letters in the places where they
may stand (a user message, the result of a tool, a user message after one), and
only an answer that names the letters counts. That takes up to %d small model
calls for each service, at its price. The results are kept for a month and used
from then on.`, probe.MostCalls),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []artel.ServiceID
			for _, a := range args {
				ids = append(ids, artel.ServiceID(a))
			}
			if len(ids) == 0 {
				list, err := g.client().Services(cmd.Context())
				if err != nil {
					return err
				}
				for _, s := range list.Items {
					if s.Callable && !s.Demo {
						ids = append(ids, s.ID)
					}
				}
			}
			reports := httpapi.List[httpapi.ProbeView]{Items: []httpapi.ProbeView{}}
			for _, id := range ids {
				r, err := g.client().Probe(cmd.Context(), id)
				if err != nil {
					return err
				}
				reports.Items = append(reports.Items, r)
			}
			return g.print(cmd, reports, func(w printer) {
				w.line("SERVICE\tPLACE\tTYPE\tOUTCOME\tSAID")
				for _, r := range reports.Items {
					for _, t := range r.Results {
						w.linef("%s\t%s\t%s\t%s\t%s", r.Service.ID, t.Place, t.MediaType, t.Outcome, artel.Shorten(t.Evidence, 80))
					}
				}
			})
		},
	}
}

func forgetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "forget SERVICE [MARK]...", Short: "Forget what was tested or learned about a service of a running server", Args: usage(cobra.MinimumNArgs(1)),
		Long: `Asks a server that runs to forget what it tested with a service and learned from
its refusals: the named marks, or all. "artel models" lists the marks. What was
forgotten is found out anew: by two refused calls, or by "artel models probe".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			marks := args[1:]
			if len(marks) == 0 {
				marks = []string{""}
			}
			for _, mark := range marks {
				if err := g.client().Forget(cmd.Context(), artel.ServiceID(args[0]), mark); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
