// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strings"

	"github.com/artelhq/artel/model"
)

// A BaseEditor has the methods of an [Editor] that most dialects share, made of what
// distinguishes the dialects. Their editors embed it, and replace the methods that do
// not fit.
type BaseEditor struct {
	BaseRequests
	BaseParts
}

// BaseRequests are the requests of a dialect whose body names the model.
type BaseRequests struct {
	Name       model.Dialect
	Rule       Rule
	Operations map[string]Operation // by path
}

// Choices implements [CallFinder] for one choice.
func (*BaseRequests) Choices(string) []string { return nil }

// Dialect implements [RequestReader].
func (b *BaseRequests) Dialect() model.Dialect { return b.Name }

// Target implements [RequestReader].
func (b *BaseRequests) Target(*http.Request) (Head, bool) { return Head{}, false }

// Payloads implements [RequestReader].
func (b *BaseRequests) Payloads(path []string) Encoding { return b.Rule(path) }

// StripForeign implements [RequestReader] for dialects without wrapped state.
func (b *BaseRequests) StripForeign(text string) string { return text }

// Operation implements [Server].
func (b *BaseRequests) Operation(path string) Operation { return b.Operations[path] }

// CountedText implements [Server].
func (b *BaseRequests) CountedText(text string) string { return text }

// CountBody implements [Server].
func (b *BaseRequests) CountBody(tokens int) any { return map[string]int{"input_tokens": tokens} }

// AskUsage implements [RequestEditor] for dialects whose streams always have token
// counts.
func (b *BaseRequests) AskUsage(text string) (with string, added bool) { return text, false }

// IsPing implements [CallFinder] for dialects without such events.
func (b *BaseRequests) IsPing([]byte) bool { return false }

// BaseParts are the messages of a dialect whose content is a string or a list of
// parts, as the JSON before what they hold.
type BaseParts struct {
	Text      string // of a part of text, before the text
	User      string // of a message of the user, before its parts
	Assistant string // of a message of the assistant, before its text
}

// TextPart implements [PartWriter].
func (b *BaseParts) TextPart(s string) string { return b.Text + QuoteJSON(s) + "}" }

// UserMessage implements [RequestEditor].
func (b *BaseParts) UserMessage(parts []string) string {
	return b.User + strings.Join(parts, ",") + "]}"
}

// Filler implements [RequestEditor].
func (b *BaseParts) Filler() string { return b.Assistant + QuoteJSON(FillerMessage) + "}" }

// FillResult implements [RequestEditor].
func (b *BaseParts) FillResult(text string, r Result, with *string, parts []string) []Edit {
	switch {
	case len(parts) == 0 && with != nil:
		return []Edit{{r.Content, QuoteJSON(*with)}}
	case len(parts) == 0:
		return nil
	case with != nil:
		if *with != "" {
			parts = append([]string{b.TextPart(*with)}, parts...)
		}
		return []Edit{{r.Content, "[" + strings.Join(parts, ",") + "]"}}
	case !r.List:
		if said := TextAt(text, r.Content); said != "" {
			parts = append([]string{b.TextPart(said)}, parts...)
		}
		return []Edit{{r.Content, "[" + strings.Join(parts, ",") + "]"}}
	}
	return []Edit{{Span{r.Content.To - 1, r.Content.To - 1}, JoinParts(r.Content.Of(text), parts, false)}}
}

// PrependParts implements [RequestEditor].
func (b *BaseParts) PrependParts(text string, e Element, parts []string) []Edit {
	content := e.Content.Of(text)
	switch {
	case strings.HasPrefix(content, "["):
		return []Edit{{Span{e.Content.From + 1, e.Content.From + 1}, JoinParts(content, parts, true)}}
	case strings.HasPrefix(content, `"`):
		return []Edit{{e.Content, "[" + strings.Join(append(parts, b.TextPart(TextAt(text, e.Content))), ",") + "]"}}
	}
	return nil
}
