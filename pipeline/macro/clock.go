// SPDX-License-Identifier: Apache-2.0

package macro

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/locales"
	"github.com/go-playground/locales/ar"
	"github.com/go-playground/locales/de"
	"github.com/go-playground/locales/en"
	"github.com/go-playground/locales/en_GB"
	"github.com/go-playground/locales/es"
	"github.com/go-playground/locales/fr"
	"github.com/go-playground/locales/it"
	"github.com/go-playground/locales/ja"
	"github.com/go-playground/locales/ko"
	"github.com/go-playground/locales/pt"
	"github.com/go-playground/locales/ru"
	"github.com/go-playground/locales/th"
	"github.com/go-playground/locales/vi"
	"github.com/go-playground/locales/zh"
	"github.com/go-playground/locales/zh_Hant"
	"golang.org/x/text/language"

	"github.com/artelhq/artel"
)

// A Clock shows a shifted and scaled time: at Real it shows Virtual, and runs
// Scale times as fast. The zero value shows the real time.
type Clock struct {
	Virtual time.Time `json:"virtual,omitzero" yaml:"virtual"`
	Real    time.Time `json:"real,omitzero" yaml:"real"`
	Scale   float64   `json:"scale,omitempty" yaml:"scale"` // 0: 1
}

// At returns the time shown at now, in the zone of Virtual. A time outside of
// the years 1 to 9999 is of kind Invalid.
func (c Clock) At(now time.Time) (time.Time, error) {
	if c.Virtual.IsZero() {
		return now, nil
	}
	real, scale := c.Real, c.Scale
	if real.IsZero() {
		real = c.Virtual
	}
	if scale == 0 {
		scale = 1
	}
	// Seconds as numbers: a Duration holds no more than 292 years.
	elapsed := (float64(now.Unix()-real.Unix()) + float64(now.Nanosecond()-real.Nanosecond())/1e9) * scale
	const most = 1e12 // seconds, about 32,000 years
	if !(elapsed > -most && elapsed < most) {
		return time.Time{}, clockError()
	}
	whole := int64(elapsed)
	t := time.Unix(c.Virtual.Unix()+whole, int64(c.Virtual.Nanosecond())+int64((elapsed-float64(whole))*1e9)).In(c.Virtual.Location())
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, clockError()
	}
	return t, nil
}

func clockError() error {
	return artel.Errorf(artel.Invalid, "macro.Clock", "clock", "the time that it shows is outside of the years 1 to 9999; choose another scale")
}

// clockForms are the macros without arguments that show the time.
var clockForms = map[string]func(time.Time) (string, error){
	"time":      layout("3:04 PM"),
	"time24":    layout("15:04"),
	"date":      layout("January 2, 2006"),
	"date_ymd":  layout(time.DateOnly),
	"datetime":  layout(time.DateTime),
	"weekday":   layout("Monday"),
	"isotime":   func(t time.Time) (string, error) { return t.UTC().Format("2006-01-02T15:04:05.000Z"), nil },
	"timestamp": func(t time.Time) (string, error) { return strconv.FormatInt(t.UnixMilli(), 10), nil },

	"date_cn":    layout("2006年1月2日"),
	"weekday_cn": func(t time.Time) (string, error) { return weekdayCN(t), nil },
	"datetime_cn": func(t time.Time) (string, error) {
		return t.Format("2006年1月2日") + weekdayCN(t) + t.Format(" 15:04"), nil
	},
	"date_jp":     func(t time.Time) (string, error) { return dateJP(t), nil },
	"datetime_jp": func(t time.Time) (string, error) { return dateJP(t) + " " + timeJP(t), nil },
	"date_ko":     func(t time.Time) (string, error) { return dateKO(t), nil },

	"date_cn_ancient": lunarDate,
	"time_cn_ancient": func(t time.Time) (string, error) { return doubleHour(t) + quarter(t), nil },
	"datetime_cn_ancient": func(t time.Time) (string, error) {
		date, err := lunarDate(t)
		return date + " " + doubleHour(t) + quarter(t), err
	},
	"shichen": func(t time.Time) (string, error) { return doubleHour(t), nil },

	"date_en_ancient":     func(t time.Time) (string, error) { return dateOldEnglish(t), nil },
	"datetime_en_ancient": func(t time.Time) (string, error) { return timeOldEnglish(t) + ", on " + dateOldEnglish(t), nil },

	"date_cn_uppercase":     func(t time.Time) (string, error) { return dateUpper(t), nil },
	"time_cn_uppercase":     func(t time.Time) (string, error) { return timeUpper(t), nil },
	"datetime_cn_uppercase": func(t time.Time) (string, error) { return dateUpper(t) + " " + timeUpper(t), nil },
}

// timeUTC writes the time at an offset from UTC in hours.
func timeUTC(e *Expander, c call) (string, error) {
	hours, err := strconv.Atoi(strings.TrimPrefix(c.args[0], "+"))
	if err != nil || hours < -14 || hours > 14 {
		return "", errors.New("it takes the hours from UTC, -14 to +14")
	}
	return e.c.Now.In(time.FixedZone("", hours*3600)).Format("3:04 PM"), nil
}

// Duration describes a time span in English words, such as "5 minutes".
func Duration(d time.Duration) string {
	d = d.Abs()
	if d < 45*time.Second {
		return "a few seconds"
	}
	for _, u := range []struct {
		one    string
		length time.Duration
		limit  float64 // of the rounded number from which on the next unit is used
	}{
		{"minute", time.Minute, 45}, {"hour", time.Hour, 22}, {"day", 24 * time.Hour, 26}, {"month", 730 * time.Hour, 11}, {"year", 8766 * time.Hour, math.Inf(1)},
	} {
		n := math.Round(float64(d) / float64(u.length))
		switch {
		case n >= u.limit:
			continue
		case n > 1:
			return fmt.Sprintf("%d %ss", int(n), u.one)
		case u.one == "hour":
			return "an hour"
		}
		return "a " + u.one
	}
	return ""
}

func layout(form string) func(time.Time) (string, error) {
	return func(t time.Time) (string, error) { return t.Format(form), nil }
}

// nth returns the i-th character of s.
func nth(s string, i int) string { return string([]rune(s)[i]) }

func weekdayCN(t time.Time) string { return "星期" + nth("日一二三四五六", int(t.Weekday())) }

func dateJP(t time.Time) string {
	return t.Format("2006年1月2日") + "（" + nth("日月火水木金土", int(t.Weekday())) + "）"
}

func timeJP(t time.Time) string {
	half := "午前"
	if t.Hour() >= 12 {
		half = "午後"
	}
	return half + t.Format("3時04分")
}

func dateKO(t time.Time) string {
	return t.Format("2006년 1월 2일") + " (" + nth("일월화수목금토", int(t.Weekday())) + ")"
}

// dateOldEnglish formats the date as old English documents do.
func dateOldEnglish(t time.Time) string {
	return fmt.Sprintf("the %d%s day of %s, in the year of our Lord %d", t.Day(), ordinal(t.Day()), t.Month(), t.Year())
}

func ordinal(n int) string {
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			return "st"
		case 2:
			return "nd"
		case 3:
			return "rd"
		}
	}
	return "th"
}

func timeOldEnglish(t time.Time) string {
	hour, minute := t.Hour(), t.Minute()
	told := partOfDay(hour)
	switch minute {
	case 0:
		switch hour {
		case 0:
			return "the stroke of midnight"
		case 12:
			return "high noon"
		}
		number, part, _ := strings.Cut(told, " ")
		return number + " o'clock " + part
	case 1:
		return "1 minute past " + told
	case 15:
		return "a quarter past " + told
	case 30:
		return "half past " + told
	case 45:
		return "a quarter to " + partOfDay(hour+1)
	}
	return strconv.Itoa(minute) + " minutes past " + told
}

// partOfDay formats an hour of 0 to 24 on a twelve-hour clock.
func partOfDay(hour int) string {
	part := "morning"
	switch h := hour % 24; {
	case h >= 18:
		part = "evening"
	case h >= 12:
		part = "afternoon"
	}
	return strconv.Itoa((hour+11)%12+1) + " in the " + part
}

func dateUpper(t time.Time) string {
	var year strings.Builder
	for _, d := range strconv.Itoa(t.Year()) {
		year.WriteString(upperDigit(int(d - '0')))
	}
	return year.String() + "年" + upper(int(t.Month())) + "月" + upper(t.Day()) + "日"
}

func timeUpper(t time.Time) string { return upper(t.Hour()) + "时" + upper(t.Minute()) + "分" }

func upperDigit(n int) string { return nth("零壹贰叁肆伍陆柒捌玖", n) }

// upper writes a number below 100 as on banknotes.
func upper(n int) string {
	switch tens, ones := n/10, n%10; {
	case tens == 0:
		return upperDigit(ones)
	case ones == 0:
		return upperDigit(tens) + "拾"
	default:
		return upperDigit(tens) + "拾" + upperDigit(ones)
	}
}

// formTokens are the tokens of datetime_format, longer ones first, with the
// equivalent layouts of package time.
var formTokens = []struct{ token, layout string }{
	{"YYYY", "2006"},
	{"MMMM", "January"},
	{"dddd", "Monday"},
	{"MMM", "Jan"},
	{"ddd", "Mon"},
	{"SSS", "000"},
	{"YY", "06"},
	{"MM", "01"},
	{"DD", "02"},
	{"HH", "15"},
	{"hh", "03"},
	{"mm", "04"},
	{"ss", "05"},
	{"ZZ", "-0700"},
	{"M", "1"},
	{"D", "2"},
	{"H", ""},
	{"h", "3"},
	{"m", "4"},
	{"s", "5"},
	{"Z", "-07:00"},
	{"A", "PM"},
	{"a", "pm"},
}

// datetimeFormat formats the time by a pattern like YYYY-MM-DD HH:mm; text in
// brackets is literal.
func datetimeFormat(e *Expander, c call) (string, error) {
	var b strings.Builder
next:
	for form := c.args[0]; form != ""; {
		if plain, rest, ok := strings.Cut(form[1:], "]"); form[0] == '[' && ok {
			b.WriteString(plain)
			form = rest
			continue
		}
		for _, f := range formTokens {
			if rest, ok := strings.CutPrefix(form, f.token); ok {
				b.WriteString(formatToken(e.c.Now, f.token, f.layout))
				form = rest
				continue next
			}
		}
		b.WriteByte(form[0])
		form = form[1:]
	}
	return b.String(), nil
}

func formatToken(t time.Time, token, layout string) string {
	switch token {
	case "H": // package time has no hour of 24 without a zero
		return strconv.Itoa(t.Hour())
	case "SSS": // nor fractions without a point
		return fmt.Sprintf("%03d", t.Nanosecond()/1e6)
	}
	return t.Format(layout)
}

// datetimeLocale formats date and time in a language.
func datetimeLocale(e *Expander, c call) (string, error) {
	tag, err := language.Parse(c.args[0])
	if err == nil {
		_, i, confidence := formatLocales().matcher.Match(tag)
		if confidence >= language.Low {
			l := formatLocales().locales[i]
			return l.FmtDateFull(e.c.Now) + " " + l.FmtTimeShort(e.c.Now), nil
		}
	}
	return "", errors.New("it takes a language, one of ar, de, en, en-GB, es, fr, it, ja, ko, pt, ru, th, vi, zh, zh-Hant")
}

// A languages holds the languages for datetime_locale.
type languages struct {
	locales []locales.Translator
	matcher language.Matcher
}

var formatLocales = sync.OnceValue(func() languages {
	all := []locales.Translator{
		en.New(), en_GB.New(), ar.New(), de.New(), es.New(), fr.New(), it.New(), ja.New(), ko.New(), pt.New(), ru.New(), th.New(),
		vi.New(), zh.New(), zh_Hant.New(),
	}
	tags := make([]language.Tag, len(all))
	for i, l := range all {
		tags[i] = language.Make(l.Locale())
	}
	return languages{all, language.NewMatcher(tags)}
})
