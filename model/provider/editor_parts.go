// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"mime"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// DataURLPrefix returns the part of a data URL before the base64.
func DataURLPrefix(m artel.Media) string {
	if t, _, err := mime.ParseMediaType(m.MediaType); err == nil {
		return "data:" + t + ";base64,"
	}
	return "data:application/octet-stream;base64,"
}

// JoinParts returns the text of parts to insert into a list, before or after
// its elements.
func JoinParts(list string, parts []string, before bool) string {
	s := strings.Join(parts, ",")
	switch empty := strings.TrimSpace(list[1:len(list)-1]) == ""; {
	case empty:
		return s
	case before:
		return s + ","
	}
	return "," + s
}

// RandomID returns 24 random hexadecimal digits.
func RandomID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// QuoteJSON writes a string as JSON without escaping HTML, as the providers do.
func QuoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // of a string
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// EachElement calls yield for the elements of a list; other values have none.
func EachElement(list gjson.Result, yield func(_, v gjson.Result) bool) {
	if list.IsArray() {
		list.ForEach(yield)
	}
}

// SpanOf returns the span of a value in the parsed text.
func SpanOf(r gjson.Result) Span {
	if !r.Exists() { // gjson gives it the index of what it was searched in
		return Span{}
	}
	return Span{r.Index, r.Index + len(r.Raw)}
}

// TextAt decodes the JSON string at s.
func TextAt(text string, s Span) string {
	var out string
	if json.Unmarshal([]byte(s.Of(text)), &out) != nil {
		return ""
	}
	return out
}

// EditMembers rewrites a JSON object. with returns the JSON that replaces a
// member, key and value, "" to remove it; false keeps the member.
func EditMembers(object string, with func(key string, value gjson.Result) (string, bool)) string {
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

// IsGiven reports whether a value is neither null nor empty.
func IsGiven(v gjson.Result) bool { return Given([]byte(v.Raw)) && v.Raw != "[]" }

// EachModel returns what body returns for each service; never nil.
func EachModel(all []model.Service, body func(model.Service) any) []any {
	out := make([]any, 0, len(all))
	for _, s := range all {
		out = append(out, body(s))
	}
	return out
}
