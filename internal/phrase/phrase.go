// SPDX-License-Identifier: Apache-2.0

// Package phrase is the catalogue of the texts that Artel writes for people
// and for models, in English and Chinese.
//
// Begin with [ParseLocale], which turns a preference into a [Locale], and
// [Locale.Say], which says a [Key] in it. [Locale.TypeName] and [Size] write
// media types and sizes the way people do.
//
// The texts lie in en.json and zh.json, in the format of go-i18n: a text is a
// Go template over its arguments, and an object with "one" and "other" where
// the number Count chooses the form. A new text is a constant in keys.go, or
// page.go and the files beside it that begin so for the page, and a line in both
// files; a test fails while one of the three is missing or the
// languages differ in their variables.
//
// Saying never fails and never escapes: whoever puts a text into HTML escapes
// it. Words of a wire contract, such as error codes and the forms of refs, do
// not belong here, as they have one spelling in every language.
package phrase

import (
	"embed"
	"strconv"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

// A Locale is a language of the catalogue. Any other value speaks English.
type Locale string

// The languages.
const (
	English Locale = "en"
	Chinese Locale = "zh"
)

// Locales returns the languages of the catalogue.
func Locales() []Locale { return []Locale{English, Chinese} }

// maxPreference bounds what ParseLocale looks at: a preference comes from a
// request header, and no honest one is longer.
const maxPreference = 256

// ParseLocale returns the language that s asks for: a language tag ("zh",
// "zh-CN", "zh_CN.UTF-8"), or the value of an Accept-Language header
// (RFC 9110, section 12.5.4) by its weights. It falls back to English.
func ParseLocale(s string) Locale {
	if len(s) > maxPreference {
		return English
	}
	if !strings.ContainsAny(s, ",;") {
		s, _, _ = strings.Cut(s, ".") // a POSIX locale names its charset after a dot
	}
	tags, _, err := language.ParseAcceptLanguage(s)
	if err != nil || len(tags) == 0 {
		return English
	}
	if _, i, confidence := loaded().matcher.Match(tags...); confidence != language.No {
		return Locales()[i]
	}
	return English
}

// Say returns the text of k in l with args in the places of its variables.
// An argument "Count" of an integer type chooses between singular and plural.
// A key that is in no catalogue is returned as it is. It is safe for
// concurrent use.
func (l Locale) Say(k Key, args map[string]any) string {
	c := loaded()
	speaker := c.english
	if l == Chinese {
		speaker = c.chinese
	}
	// A text without a form for this count is said in its general form and
	// reported as an error, so only an empty text means that there is none.
	if text, _ := speaker.Localize(&i18n.LocalizeConfig{
		MessageID: string(k), TemplateData: args, PluralCount: count(args),
	}); text != "" {
		return text
	}
	return string(k)
}

func count(args map[string]any) any {
	switch n := args["Count"].(type) {
	case int, int64:
		return n
	}
	return nil
}

// Size writes a number of bytes with one decimal in units of 1,024: "512 B",
// "1.2 MB". It is the same in every language.
func Size(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(max(n, 0), 10) + " B"
	}
	f, unit := float64(n), ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB", "EB"} {
		f /= 1024
		if f < 1023.95 { // more would be rounded up to 1024.0
			break
		}
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + unit
}

//go:embed en.json zh.json
var files embed.FS

type catalogue struct {
	english, chinese *i18n.Localizer
	matcher          language.Matcher
}

// loaded parses the catalogue when a text is first wanted, so that a program
// that says nothing pays nothing. What it returns never changes.
var loaded = sync.OnceValue(func() catalogue {
	bundle := i18n.NewBundle(language.English)
	for _, l := range Locales() {
		if _, err := bundle.LoadMessageFileFS(files, string(l)+".json"); err != nil {
			panic("phrase: " + err.Error()) // the files are part of the program and under test
		}
	}
	return catalogue{
		english: i18n.NewLocalizer(bundle, string(English)),
		chinese: i18n.NewLocalizer(bundle, string(Chinese)),
		matcher: language.NewMatcher([]language.Tag{language.English, language.Chinese}),
	}
})
