// SPDX-License-Identifier: Apache-2.0

// Package phrase is the catalogue of the texts that Artel writes for users
// and for models, in English and Chinese.
//
// Begin with [ParseLocale], which turns a preference into a [Locale], and
// [Locale.Say], which returns the text of a [Key] in it.
//
// The texts are in en.json and zh.json, in the format of go-i18n: a text is a
// Go template over its arguments, and an object with "one" and "other" if the
// argument Count selects the plural form. To add a text, write it into both
// files, with the same variables, and run go generate.
//
// Say never fails and never escapes: a caller that writes a text into HTML
// escapes it. Words of a wire contract, such as error codes and the forms of
// refs, are not phrases: they have one spelling in every language.
package phrase

import (
	"cmp"
	"embed"
	"strconv"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:generate go run ../../scripts/phrasekeys

// A Key names a text of the catalogue. Its first segment tells the reader of
// the text: page (the user), export (the reader of an exported file), agent
// (the author of an agent), why and type (users and models), demo (the built-in
// scripted model's users); all others are for models.
type Key string

// A Locale is a language of the catalogue. Any other value means English.
type Locale string

// The languages.
const (
	English Locale = "en"
	Chinese Locale = "zh"
)

// Locales returns the languages of the catalogue.
func Locales() []Locale { return []Locale{English, Chinese} }

// maxPreference bounds the input of ParseLocale, in bytes: a preference comes
// from a request header.
const maxPreference = 256

// ParseLocale returns the language requested by s: a language tag ("zh",
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

// Say returns the text of k in l with its variables replaced by args.
// An argument "Count" of an integer type selects singular or plural.
// An unknown key is returned unchanged. Say is safe for concurrent use.
func (l Locale) Say(k Key, args map[string]any) string {
	c := loaded()
	localizer := c.english
	if l == Chinese {
		localizer = c.chinese
	}
	// For a text without a form for this count, Localize returns the general
	// form and an error, so only an empty text means an unknown key.
	if text, _ := localizer.Localize(&i18n.LocalizeConfig{
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

// TypeName returns the display name of a media type ("PNG image"), or the
// media type itself if the catalogue has no name for it. The empty type is a
// binary file.
func (l Locale) TypeName(mediaType string) string {
	key := "type." + cmp.Or(mediaType, "application/octet-stream")
	if name := l.Say(Key(key), nil); name != key {
		return name
	}
	return mediaType
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

// loaded parses the catalogue on first use, so that programs without texts
// pay nothing. The result is immutable.
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
