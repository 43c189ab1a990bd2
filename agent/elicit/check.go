// SPDX-License-Identifier: Apache-2.0

package elicit

import (
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// A Mistake is a value of an answer that its form does not take.
type Mistake struct {
	Field string
	Code  Code
	Want  string // the bound, the format or the pattern
}

// A Code says what is wrong with a value.
type Code string

// The codes.
const (
	Missing Code = "missing"
	Wrong   Code = "wrong" // of another type
	Unknown Code = "unknown"
	NoSuch  Code = "no_such" // none of the options
	Small   Code = "small"
	Large   Code = "large"
	Short   Code = "short"
	Long    Code = "long"
	Few     Code = "few"
	Many    Code = "many"
	Format  Code = "format"
	Pattern Code = "pattern"
)

// Error implements error.
func (m *Mistake) Error() string {
	says := map[Code]string{
		Missing: "is missing", Wrong: "want %s", Unknown: "is not asked for", NoSuch: "is none of the options", Small: "want at least %s", Large: "want at most %s",
		Short: "want at least %s characters", Long: "want at most %s characters", Few: "choose at least %s", Many: "choose at most %s", Format: "want the format %s",
		Pattern: "does not match %s",
	}[m.Code]
	if strings.Contains(says, "%s") {
		says = fmt.Sprintf(says, m.Want)
	}
	return artel.Shorten(m.Field, 80) + ": " + says
}

// Check returns the mistakes of an answer, in the order of the fields; nil: there are none.
func (f Form) Check(answer map[string]any) (all []*Mistake) {
	for _, field := range f.Fields {
		v, given := answer[field.Name]
		if !given || v == nil {
			if field.Required {
				all = append(all, &Mistake{field.Name, Missing, ""})
			}
			continue
		}
		if m := field.check(v); m != nil {
			all = append(all, m)
		}
	}
	for name := range answer {
		if !slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Name == name }) {
			all = append(all, &Mistake{name, Unknown, ""})
		}
	}
	return all
}

func (f Field) check(v any) *Mistake {
	no := func(c Code, want any) *Mistake { return &Mistake{f.Name, c, fmt.Sprint(want)} }
	switch f.Kind {
	case Boolean:
		if _, ok := v.(bool); !ok {
			return no(Wrong, "true or false")
		}
	case Number, Integer:
		n, ok := number(v)
		switch {
		case !ok || math.IsNaN(n) || math.IsInf(n, 0):
			return no(Wrong, "a number")
		case f.Kind == Integer && n != math.Trunc(n):
			return no(Wrong, "a whole number")
		case f.Least != nil && n < *f.Least:
			return no(Small, *f.Least)
		case f.Most != nil && n > *f.Most:
			return no(Large, *f.Most)
		}
	case Choice:
		if s, ok := v.(string); !ok || !f.has(s) {
			return no(NoSuch, "")
		}
	case Choices:
		return f.checkChoices(v)
	default:
		return f.checkText(v)
	}
	return nil
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

func (f Field) has(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func (f Field) checkChoices(v any) *Mistake {
	list, ok := v.([]any)
	if !ok {
		return &Mistake{f.Name, Wrong, "a list"}
	}
	seen := map[string]bool{}
	for _, one := range list {
		s, ok := one.(string)
		if !ok || !f.has(s) || seen[s] {
			return &Mistake{f.Name, NoSuch, ""}
		}
		seen[s] = true
	}
	switch {
	case f.Fewest != nil && len(list) < *f.Fewest:
		return &Mistake{f.Name, Few, fmt.Sprint(*f.Fewest)}
	case f.Total != nil && len(list) > *f.Total:
		return &Mistake{f.Name, Many, fmt.Sprint(*f.Total)}
	}
	return nil
}

// longestPattern bounds the memory of a pattern: repetitions are written out.
const longestPattern = 200

func (f Field) checkText(v any) *Mistake {
	s, ok := v.(string)
	n := utf8.RuneCountInString(s)
	switch {
	case !ok || !utf8.ValidString(s):
		return &Mistake{f.Name, Wrong, "a text"}
	case f.Short != nil && n < *f.Short:
		return &Mistake{f.Name, Short, fmt.Sprint(*f.Short)}
	case f.Long != nil && n > *f.Long:
		return &Mistake{f.Name, Long, fmt.Sprint(*f.Long)}
	case n > MaxText:
		return &Mistake{f.Name, Long, fmt.Sprint(MaxText)}
	case !fits(f.Format, s):
		return &Mistake{f.Name, Format, f.Format}
	}
	if f.Pattern == "" || len(f.Pattern) > longestPattern {
		return nil // the server checks it
	}
	// A pattern of JavaScript that RE2 does not know is left to the server.
	if re, err := regexp.Compile(f.Pattern); err == nil && !re.MatchString(s) {
		return &Mistake{f.Name, Pattern, f.Pattern}
	}
	return nil
}

// fits reports whether a text has a format that the protocol names; others are left to the
// server.
func fits(format, s string) bool {
	switch format {
	case "email":
		a, err := mail.ParseAddress(s)
		return err == nil && a.Address == s
	case "uri":
		u, err := url.Parse(s)
		return err == nil && u.Scheme != ""
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}
	return true
}
