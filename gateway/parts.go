// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"mime"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
)

// dataURLPrefix returns the part of a data URL before the base64.
func dataURLPrefix(m artel.Media) string {
	if t, _, err := mime.ParseMediaType(m.MediaType); err == nil {
		return "data:" + t + ";base64,"
	}
	return "data:application/octet-stream;base64,"
}

// fillContent implements [requestEditor.fillResult] for dialects whose results
// are a string or a list of parts.
func fillContent(text string, r result, with *string, parts []string, textPart func(string) string) []edit {
	switch {
	case len(parts) == 0 && with != nil:
		return []edit{{r.content, quote(*with)}}
	case len(parts) == 0:
		return nil
	case with != nil:
		if *with != "" {
			parts = append([]string{textPart(*with)}, parts...)
		}
		return []edit{{r.content, "[" + strings.Join(parts, ",") + "]"}}
	case !r.list:
		if said := textOf(text, r.content); said != "" {
			parts = append([]string{textPart(said)}, parts...)
		}
		return []edit{{r.content, "[" + strings.Join(parts, ",") + "]"}}
	}
	return []edit{{span{r.content.to - 1, r.content.to - 1}, joinParts(r.content.of(text), parts, false)}}
}

// joinParts returns the text of parts to insert into a list, before or after
// its elements.
func joinParts(list string, parts []string, before bool) string {
	s := strings.Join(parts, ",")
	switch empty := strings.TrimSpace(list[1:len(list)-1]) == ""; {
	case empty:
		return s
	case before:
		return s + ","
	}
	return "," + s
}

// joinContent implements [requestEditor.prependParts] for dialects whose
// content is a string or a list of parts.
func joinContent(text string, e element, parts []string, textPart func(string) string) []edit {
	content := e.content.of(text)
	switch {
	case strings.HasPrefix(content, "["):
		return []edit{{span{e.content.from + 1, e.content.from + 1}, joinParts(content, parts, true)}}
	case strings.HasPrefix(content, `"`):
		return []edit{{e.content, "[" + strings.Join(append(parts, textPart(textOf(text, e.content))), ",") + "]"}}
	}
	return nil
}

// marshal writes JSON without escaping HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// randomID returns 24 random hexadecimal digits.
func randomID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// quote writes a string as JSON without escaping HTML, as the providers do.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // of a string
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// each calls yield for the elements of a list; other values have none.
func each(list gjson.Result, yield func(_, v gjson.Result) bool) {
	if list.IsArray() {
		list.ForEach(yield)
	}
}

// at returns the span of a value in the parsed text.
func at(r gjson.Result) span { return span{r.Index, r.Index + len(r.Raw)} }

// textOf decodes the JSON string at s.
func textOf(text string, s span) string {
	var out string
	if json.Unmarshal([]byte(s.of(text)), &out) != nil {
		return ""
	}
	return out
}

// editMembers rewrites a JSON object. with returns the JSON that replaces a
// member, key and value, "" to remove it; false keeps the member.
func editMembers(object string, with func(key string, value gjson.Result) (string, bool)) string {
	var out []string
	gjson.Parse(object).ForEach(func(key, value gjson.Result) bool {
		member, ok := with(key.String(), value)
		if !ok {
			member = key.Raw + ":" + value.Raw
		}
		if member != "" {
			out = append(out, member)
		}
		return true
	})
	return "{" + strings.Join(out, ",") + "}"
}
