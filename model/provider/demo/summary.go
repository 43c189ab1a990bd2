// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel/internal/phrase"
)

// asksForSummary reports whether a message asks to sum up the conversation.
func asksForSummary(text string) bool {
	for _, l := range phrase.Locales() {
		if strings.Contains(text, l.Say(phrase.CompactAsk, nil)) {
			return true
		}
	}
	return false
}

// progressMark matches the line of a summary with the progress of the script. It
// has one language, because the script reads it.
var progressMark = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\(demo: message (\d+), answers (\d+)\)`)
})

// fromSummary reads the progress of the script from a summary in a request, and the
// user's text after it, because formatters may have joined both.
func fromSummary(text string) (ordinal, answers int, rest string, ok bool) {
	at := progressMark().FindStringSubmatchIndex(text)
	if at == nil {
		return 0, 0, "", false
	}
	ordinal, err := strconv.Atoi(text[at[2]:at[3]])
	if err == nil {
		answers, err = strconv.Atoi(text[at[4]:at[5]])
	}
	rest = text[at[1]:]
	for _, l := range phrase.Locales() {
		const mark = "\x00"
		_, end, _ := strings.Cut(l.Say(phrase.DemoSummary, map[string]any{"Memory": mark}), mark)
		rest = strings.TrimPrefix(rest, end)
		if quote, found := strings.CutPrefix(strings.TrimSpace(rest), l.Say(phrase.CompactWords, nil)); found {
			lines := strings.Split(strings.TrimSpace(quote), "\n")
			for len(lines) > 0 && strings.HasPrefix(lines[0], ">") {
				lines = lines[1:]
			}
			rest = strings.Join(lines, "\n")
		}
	}
	return ordinal, answers, strings.TrimSpace(rest), err == nil
}

// summary writes the requested summary: seven sections, with the progress of the
// script.
func (h *history) summary() []move {
	made := "–"
	var ids []string
	for _, c := range h.calls {
		if c.Name == createTool && c.ok() {
			if _, id, ok := strings.Cut(string(c.Arguments), `"id":"`); ok {
				id, _, _ = strings.Cut(id, `"`)
				ids = append(ids, "- artifact:"+id)
			}
		}
	}
	if len(ids) > 0 {
		made = strings.Join(ids, "\n")
	}
	words := "–"
	if h.text != "" {
		words = "> " + strings.ReplaceAll(shorten(h.text, maxQuote), "\n", "\n> ")
	}
	return []move{say(h.locale.Say(phrase.DemoSummary, map[string]any{
		"Notice": h.locale.Say(phrase.DemoNotice, nil), "Words": words, "Artifacts": made, "Calls": len(h.calls),
		"Memory": "(demo: message " + strconv.Itoa(h.ordinal) + ", answers " + strconv.Itoa(h.answers) + ")",
	}))}
}
