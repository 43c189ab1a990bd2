// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

//go:embed search_history.md
var searchHistoryDoc string

// SearchHistory is the name of the tool that searches [Env.History].
const SearchHistory = "search_history"

// Limits of one search and of one page of a message.
const (
	maxHistoryWords  = 20   // words and phrases
	maxHistoryShown  = 50   // messages
	someHistoryShown = 10   // messages, if the model gives no number
	maxHistoryPage   = 8000 // characters
	excerptBefore    = 100  // characters before a match
	excerptAfter     = 180  // characters after the beginning of a match
	maxExcerpts      = 2    // of one message
)

type searchHistoryArgs struct {
	Words   string `json:"words,omitempty"`
	Max     int    `json:"max,omitempty"`
	Message string `json:"message,omitempty" jsonschema:"id of a message to read"`
	Offset  int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Column  int    `json:"column,omitempty"`
}

// SearchHistoryTool returns the tool that finds and reads messages that a model is not
// sent any more.
func SearchHistoryTool() Tool {
	t := reads(Func(SearchHistory, searchHistoryDoc, searchHistory))
	t.Parallel, t.ShowsContent = true, true
	return t
}

func searchHistory(ctx context.Context, e *Env, in searchHistoryArgs) (Result, error) {
	in.Words, in.Message = strings.TrimSpace(in.Words), strings.TrimSpace(in.Message)
	switch {
	case in.Offset < 0 || in.Column < 0:
		return Failed("%s: offset and column are numbers from 1", SearchHistory), nil
	case in.Max < 0 || in.Max > maxHistoryShown:
		return Failed("%s: max is %d, want 1 to %d", SearchHistory, in.Max, maxHistoryShown), nil
	case (in.Words == "") == (in.Message == ""):
		return Failed("%s: give words to find messages, or message to read one", SearchHistory), nil
	}
	var history []artel.Message
	if e.History != nil {
		var err error
		if history, err = e.History(ctx); err != nil {
			return failure(err)
		}
	}
	if in.Message != "" {
		return readHistory(e, history, in), nil
	}
	words, err := historyWords(in.Words)
	if err != nil {
		return failure(err)
	}
	return findInHistory(e, history, words, in), nil
}

// historyWord is a word of a query, or a phrase in double quotes.
var historyWord = regexp.MustCompile(`"[^"]+"|[^\s"]+`)

// historyWords returns what matches each word of a query.
func historyWords(query string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, w := range historyWord.FindAllString(query, -1) {
		fields := strings.Fields(strings.Trim(w, `"`))
		if len(fields) == 0 {
			continue
		}
		for i, f := range fields {
			fields[i] = regexp.QuoteMeta(f)
		}
		re, err := regexp.Compile(`(?i)` + strings.Join(fields, `\s+`))
		if err != nil {
			return nil, err
		}
		out = append(out, re)
	}
	switch {
	case len(out) == 0:
		return nil, artel.Errorf(artel.Invalid, "tool.Call", "words", "has no words; give what to look for")
	case len(out) > maxHistoryWords:
		return nil, artel.Errorf(artel.TooLarge, "tool.Call", "words", "has %d words; at most %d are looked for", len(out), maxHistoryWords)
	}
	return out, nil
}

// A historyMatch is a message in which words occur.
type historyMatch struct {
	message artel.Message
	text    string
	places  [][]int // of each word that occurs, the first place
}

func findInHistory(e *Env, history []artel.Message, words []*regexp.Regexp, in searchHistoryArgs) Result {
	names := callNames(history)
	var found []historyMatch
	for _, m := range slices.Backward(history) {
		hit := historyMatch{message: m, text: historyText(m, names)}
		for _, w := range words {
			if at := w.FindStringIndex(hit.text); at != nil {
				hit.places = append(hit.places, at)
			}
		}
		if len(hit.places) > 0 {
			found = append(found, hit)
		}
	}
	slices.SortStableFunc(found, func(a, b historyMatch) int { return len(b.places) - len(a.places) })
	all := 0
	for all < len(found) && len(found[all].places) == len(words) {
		all++
	}
	notes := ""
	switch {
	case len(history) == 0:
		notes = "[No message is searched: no summary stands for messages here, so that you have the whole conversation.]\n"
	case len(found) == 0:
		notes = "Nothing matches.\n"
	case all == 0:
		notes = "[No message has all words; these have some of them.]\n"
	default:
		found = found[:all]
	}
	var b strings.Builder
	shown, most := 0, min(e.Shown.page(), maxHistoryPage)
	for _, hit := range found[:min(len(found), cmp.Or(in.Max, someHistoryShown))] {
		entry := fmt.Sprintf("<match message=\"%s\" role=\"%s\"%s at=\"%s\">%s</match>\n", hit.message.ID, hit.message.Role, toolsOf(hit.message, names),
			hit.message.CreatedAt.UTC().Format(time.RFC3339), hit.excerpt())
		if shown > 0 && b.Len()+len(entry) > most {
			break
		}
		b.WriteString(entry)
		shown++
	}
	if rest := len(found) - shown; rest > 0 {
		notes += fmt.Sprintf("[%d more messages match; give more words, or a greater max.]\n", rest)
	}
	return Result{
		Content: fmt.Sprintf("<history_matches words=\"%s\" matches=\"%d\" shown=\"%d\" searched=\"%d\">\n%s%s</history_matches>",
			attribute(artel.Shorten(in.Words, maxPattern)), len(found), shown, len(history), b.String(), notes),
		Metadata: map[string]any{"content_type": "list", "count": len(found), "complete": shown == len(found)},
	}
}

// excerpt shows what is around the first places of the words.
func (h historyMatch) excerpt() string {
	slices.SortFunc(h.places, func(a, b []int) int { return a[0] - b[0] })
	var b strings.Builder
	end := 0
	for n, taken := 0, 0; n < len(h.places) && taken < maxExcerpts; n++ {
		at := h.places[n]
		if at[1] <= end {
			continue // it is shown already
		}
		from := max(end, back(h.text, at[0], excerptBefore))
		if from > end {
			b.WriteString("… ")
		}
		end = forth(h.text, max(at[0], from), excerptAfter)
		b.WriteString(strings.Join(strings.Fields(h.text[from:end]), " ") + " ")
		taken++
	}
	if end < len(h.text) {
		b.WriteString("…")
	}
	return escaper.Replace(strings.TrimSpace(b.String()))
}

// back returns the place n characters before at.
func back(s string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return at
}

// forth returns the place n characters after at.
func forth(s string, at, n int) int {
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// callNames maps the calls of messages to their tools.
func callNames(history []artel.Message) map[artel.CallID]string {
	names := map[artel.CallID]string{}
	for _, m := range history {
		for _, c := range artel.CallsOf(m.Parts) {
			names[c.ID] = c.Name
		}
	}
	return names
}

// toolsOf names the tools whose results a message has, as an attribute.
func toolsOf(m artel.Message, names map[artel.CallID]string) string {
	var all []string
	for _, r := range artel.ResultsOf(m.Parts) {
		if n := names[r.CallID]; n != "" && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(` tool="%s"`, attribute(strings.Join(all, " ")))
}

// historyText is what a message says, its calls and results included. Media are their
// refs.
func historyText(m artel.Message, names map[artel.CallID]string) string {
	var out []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Text:
			out = append(out, p.Text)
		case artel.Media:
			out = append(out, mediaLine(p))
		case artel.ToolCall:
			out = append(out, "call "+p.Name+" "+string(p.Arguments))
		case artel.ToolResult:
			label := "result"
			if n := names[p.CallID]; n != "" {
				label += " of " + n
			}
			out = append(out, label+": "+p.Content)
			for _, inner := range artel.MediaOf(p.Parts) {
				out = append(out, mediaLine(inner))
			}
		}
	}
	return strings.Join(out, "\n")
}

func mediaLine(m artel.Media) string {
	return fmt.Sprintf("attachment %s (%s, %s)", m.Ref, artel.Visible(m.Filename), m.MediaType)
}

// readHistory returns a page of a message.
func readHistory(e *Env, history []artel.Message, in searchHistoryArgs) Result {
	i := slices.IndexFunc(history, func(m artel.Message) bool { return string(m.ID) == in.Message })
	if i < 0 {
		return Failed("%s: no message %q is among the %d that a summary stands for; words finds them with their ids", SearchHistory, artel.Shorten(in.Message, 60), len(history))
	}
	m, names := history[i], callNames(history)
	text := historyText(m, names)
	p := pageAt(text, max(in.Offset, 1), max(in.Column, 1), 0, min(e.Shown.page(), maxHistoryPage))
	hint := ""
	if p.line > 0 {
		hint = fmt.Sprintf("To continue: %s(message='%s', offset=%d", SearchHistory, m.ID, p.line)
		if p.column > 1 {
			hint += fmt.Sprintf(", column=%d", p.column)
		}
		hint = fmt.Sprintf(` hint="%s"`, attribute(hint+")"))
	}
	return Result{Content: fmt.Sprintf("<history_message id=\"%s\" role=\"%s\"%s at=\"%s\" total_chars=\"%d\" has_more=\"%t\"%s>\n%s\n</history_message>", m.ID, m.Role, toolsOf(m, names),
		m.CreatedAt.UTC().Format(time.RFC3339), utf8.RuneCountInString(text), p.line > 0, hint, strings.TrimSuffix(p.body, "\n"))}
}
