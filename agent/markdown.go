// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/artelhq/artel/pipeline"
)

// Markdown writes d as a file that [Parse] reads. Values are written as JSON,
// which is valid YAML without surprises; names that are plain words have no
// quotes.
func (d Definition) Markdown() []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	d = d.Tidy()
	line := func(name string, v any, there bool) {
		if there {
			b.WriteString(name + ": " + encodeValue(v) + "\n")
		}
	}
	line("name", string(d.Name), true)
	line("description", d.Description, d.Description != "")
	line("service", string(d.Service), d.Service != "")
	names(&b, "fallbacks", d.Fallbacks)
	names(&b, "tools", d.Tools)
	names(&b, "subagents", d.Subagents)
	if d.Skills.All() && len(d.Skills) == 1 {
		b.WriteString("skills: " + allSkills + "\n")
	} else {
		names(&b, "skills", d.Skills)
	}
	line("permissions", d.Permissions, len(d.Permissions) > 0)
	line("limits", d.Limits, d.Limits != Limits{})
	line("context", d.Context, d.Context.MaxTokens != 0 || d.Context.KeepChars != 0 || d.Context.ReplyReserve != nil)
	line("clock", d.Clock, d.Clock != (Definition{}).Clock)
	line("compaction", d.Compaction, d.Compaction != Compaction{})
	line("sampling", d.Sampling, !d.Sampling.IsZero())
	line("character", d.Character, d.Character != pipeline.Character{})
	items(&b, "greetings", d.Greetings)
	items(&b, "preset_messages", d.Presets)
	items(&b, "processors", d.Processors)
	b.WriteString("---\n" + d.Prompt + "\n")
	return b.Bytes()
}

// Tidy returns d as read back from its file: without surrounding white space in
// its texts, and with "\n" line ends.
func (d Definition) Tidy() Definition {
	d.Prompt, d.Description = tidy(d.Prompt), tidy(d.Description)
	return d
}

func tidy(s string) string { return strings.TrimSpace(lineEnd.ReplaceAllString(s, "\n")) }

// lineEnd also matches "\r\r\n", from which a reader of the file would make "\r\n".
var lineEnd = regexp.MustCompile(`\r+\n`)

// A word needs no quotes in any version of YAML.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)+$`)

func encodeValue(v any) string {
	if s, ok := v.(string); ok && word.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings, numbers and valid JSON cannot fail
	return strings.TrimSpace(b.String())
}

func names[T ~string](b *bytes.Buffer, name string, list []T) {
	if len(list) == 0 {
		return
	}
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = encodeValue(string(n))
	}
	b.WriteString(name + ": [" + strings.Join(texts, ", ") + "]\n")
}

func items[T any](b *bytes.Buffer, name string, list []T) {
	if len(list) == 0 {
		return
	}
	b.WriteString(name + ":\n")
	for _, v := range list {
		b.WriteString("  - " + encodeValue(v) + "\n")
	}
}
