// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/phrase"
)

// funcs are what templates may call. say takes a key and pairs of name and
// value.
func funcs(l phrase.Locale) template.FuncMap {
	return template.FuncMap{
		"say": func(key string, pairs ...any) string {
			args := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				name, _ := pairs[i].(string)
				args[name] = pairs[i+1]
			}
			return l.Say(phrase.Key(key), args)
		},
		"typeName": l.TypeName,
		"clock":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"day":      func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") },
		"takes": func(cs []artel.Capability) string {
			words := make([]string, len(cs))
			for i, c := range cs {
				words[i] = string(c)
			}
			return strings.Join(words, ", ")
		},
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
