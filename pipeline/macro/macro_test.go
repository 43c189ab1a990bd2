// SPDX-License-Identifier: Apache-2.0

package macro_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
)

// evening is a Friday in November.
func evening(t testing.TB) time.Time {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2025, time.November, 7, 22, 30, 5, 6_000_000, zone)
}

func context(t testing.TB) macro.Context {
	return macro.Context{
		Values: map[string]string{
			"user": "Ann", "char": "Bob", "persona": "likes $& and {{time}}", "lastUserMessage": "{{setvar::x::1}}$1",
			"modelId": "m-1", "description": "a::b", "input": "  spaced  ",
		},
		Tools: []macro.Tool{{Name: "read", Description: "reads", Schema: `{"type":"object"}`}, {Name: "write", Description: "writes", Schema: "{}"}},
		Now:   evening(t), Conversation: "c1", Seed: "s",
	}
}

func TestExpand(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		unknown    []string
	}{
		"a value":               {text: "Hi {{user}}!", want: "Hi Ann!"},
		"white space and case":  {text: "{{ USER }}{{Char}}{{\tmOdElId }}", want: "AnnBobm-1"},
		"an alias":              {text: "{{agent}}", want: "Bob"},
		"what is absent":        {text: "[{{scenario}}{{hostname}}]", want: "[]"},
		"no macro":              {text: "a { b } {{ c", want: "a { b } {{ c"},
		"no end":                {text: "{{user", want: "{{user"},
		"no beginning":          {text: "user}} {{user}}", want: "user}} Ann"},
		"no name":               {text: "{{}} {{ }} {{::a}}", want: "{{}} {{ }} {{::a}}"},
		"code":                  {text: "f({{\n a: {{user}} }})", want: "f({{\n a: Ann }})"},
		"three braces":          {text: "{{{user}}}", want: "{Ann}"},
		"four braces":           {text: "{{{{user}}}}", want: "{{Ann}}"},
		"escaped":               {text: `\{{user}} \\{{user}} \{ {{user}}`, want: `{{user}} \{{user}} \{ Ann`},
		"escaped in arguments":  {text: `{{repeat::\{{x::2}}`, want: `{{x{{x`},
		"an open macro inside":  {text: "{{random::a {{ b}} {{user}}", want: "{{random::a {{ b}} Ann", unknown: []string{"b"}},
		"nested":                {text: "{{repeat::<{{user}}>::{{repeat::2::1}}}}", want: "<Ann><Ann>"},
		"a value is not split":  {text: "{{setvar::v::{{description}}}}{{getvar::v}}", want: "a::b"},
		"single colons":         {text: "{{setvar::t::10:30}}{{getvar::t}}", want: "10:30"},
		"no rescan":             {text: "{{persona}}", want: "likes $& and {{time}}"},
		"no rescan of messages": {text: "{{lastUserMessage}}{{getvar::x}}", want: "{{setvar::x::1}}$1"},
		"no rescan of nested":   {text: "{{repeat::{{persona}}::1}}", want: "likes $& and {{time}}"},
		"left to right":         {text: "{{getvar::n}}.{{setvar::n::1}}{{getvar::n}}", want: ".1"},
		"each time":             {text: "{{incvar::n}}{{incvar::n}}{{getvar::n}}", want: "2"},
		"down":                  {text: "{{decvar::n}}{{getvar::n}}", want: "-1"},
		"fractions":             {text: "{{setvar::n::1.5}}{{incvar::n}}{{getvar::n}}", want: "2.5"},
		"no number":             {text: "{{setvar::n::many}}{{incvar::n}}{{getvar::n}} {{setvar::n::NaN}}{{decvar::n}}{{getvar::n}}", want: "1 -1"},
		"scopes":                {text: "{{setvar::a::1}}{{setglobalvar::a::2}}{{incglobalvar::a}}{{getvar::a}}{{getglobalvar::a}}{{decglobalvar::a}}{{getglobalvar::a}}", want: "132"},
		"names keep their case": {text: "{{setvar::a::1}}{{getvar::A}}", want: ""},
		"white space in values": {text: "{{setvar::a:: {{newline}} }}[{{getvar::a}}]", want: "[\n]"},
		"unknown":               {text: "{{nope}} {{NOPE::{{user}}}} {{user}}", want: "{{nope}} {{NOPE::{{user}}}} Ann", unknown: []string{"nope", "NOPE"}},
		"too many arguments":    {text: "{{user::x}}", want: "{{user::x}}", unknown: []string{"user"}},
		"too few arguments":     {text: "{{setvar::x}}{{roll}}{{random}}{{pick}}", want: "{{setvar::x}}{{roll}}{{random}}{{pick}}", unknown: []string{"setvar", "roll", "random", "pick"}},
		"twice":                 {text: "{{nope}}{{nope}}", want: "{{nope}}{{nope}}", unknown: []string{"nope"}},
		"bad dice":              {text: "{{roll::0d6}}{{roll::101d6}}{{roll::1d1001}}{{roll::-1d6}}{{roll::+1d6}}", want: "{{roll::0d6}}{{roll::101d6}}{{roll::1d1001}}{{roll::-1d6}}{{roll::+1d6}}", unknown: []string{"roll"}},
		"one side":              {text: "{{roll::1d1}} {{roll::3D1}}", want: "1 3 (1, 1, 1)"},
		"bad numbers":           {text: "{{randomInt::2::1}}{{randomInt::a::b}}{{repeat::x::1001}}{{repeat::x::-1}}", want: "{{randomInt::2::1}}{{randomInt::a::b}}{{repeat::x::1001}}{{repeat::x::-1}}", unknown: []string{"randomInt", "repeat"}},
		"one number":            {text: "{{randomInt::3::3}}", want: "3"},
		"one choice":            {text: "{{random::a}}{{pick::a}}{{random::}}", want: "aa"},
		"newline":               {text: "a{{newline}}b", want: "a\nb"},
		"trim":                  {text: "a \n\t{{trim}}\u3000 b", want: "ab"},
		"trim takes from values": {
			text: "{{newline}}{{trim}}{{input}}{{trim}}{{newline}}.", want: "spaced.",
		},
		"trim at the ends": {text: " {{trim}} ", want: ""},
		"trim in arguments": {
			text: "{{repeat::a {{trim}} b::2}}", want: "abab",
		},
		"no variable name":     {text: "{{setvar::::x}}", want: "{{setvar::::x}}", unknown: []string{"setvar"}},
		"all tools":            {text: "{{tools}}", want: "- read: reads\n- write: writes"},
		"how tools are called": {text: "{{tool_usage}}", want: `- read: {"type":"object"}` + "\n- write: {}"},
		"some tools":           {text: "{{tools::write::other}}", want: "- write: writes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := macro.New(context(t)).Expand(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Text); diff != "" {
				t.Error("text (-want +got):", diff)
			}
			if diff := cmp.Diff(c.unknown, got.Unknown()); diff != "" {
				t.Error("unknown (-want +got):", diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"{{time}}":                  "10:30 PM",
		"{{time24}}":                "22:30",
		"{{date}}":                  "November 7, 2025",
		"{{date_ymd}}":              "2025-11-07",
		"{{datetime}}":              "2025-11-07 22:30:05",
		"{{weekday}}":               "Friday",
		"{{isotime}}":               "2025-11-07T14:30:05.006Z",
		"{{timestamp}}":             "1762525805006",
		"{{date_cn}}":               "2025年11月7日",
		"{{datetime_cn}}":           "2025年11月7日星期五 22:30",
		"{{weekday_cn}}":            "星期五",
		"{{date_jp}}":               "2025年11月7日（金）",
		"{{datetime_jp}}":           "2025年11月7日（金） 午後10時30分",
		"{{date_ko}}":               "2025년 11월 7일 (금)",
		"{{date_cn_ancient}}":       "乙巳年（蛇年）九月十八",
		"{{time_cn_ancient}}":       "亥时六刻",
		"{{datetime_cn_ancient}}":   "乙巳年（蛇年）九月十八 亥时六刻",
		"{{shichen}}":               "亥时",
		"{{date_en_ancient}}":       "the 7th day of November, in the year of our Lord 2025",
		"{{datetime_en_ancient}}":   "half past 10 in the evening, on the 7th day of November, in the year of our Lord 2025",
		"{{date_cn_uppercase}}":     "贰零贰伍年壹拾壹月柒日",
		"{{time_cn_uppercase}}":     "贰拾贰时叁拾分",
		"{{datetime_cn_uppercase}}": "贰零贰伍年壹拾壹月柒日 贰拾贰时叁拾分",

		"{{datetime_format::YYYY-M-D [at] H:mm:ss.SSS a Z, dddd MMM YY}}": "2025-11-7 at 22:30:05.006 pm +08:00, Friday Nov 25",
		"{{datetime_format::年}}":     "年",
		"{{datetime_locale::de}}":    "Freitag, 7. November 2025 22:30",
		"{{datetime_locale::fr-CA}}": "vendredi 7 novembre 2025 22:30",
		"{{datetime_locale::zh}}":    "2025年11月7日星期五 下午10:30",
		"{{datetime_locale::xx}}":    "{{datetime_locale::xx}}",
		"{{datetime_locale::?}}":     "{{datetime_locale::?}}",
	} {
		got, err := macro.New(context(t)).Expand(text)
		if err != nil || got.Text != want {
			t.Errorf("%s is %q, %v; want %q", text, got.Text, err, want)
		}
	}
}

func TestOldTimes(t *testing.T) {
	for clock, want := range map[string]string{
		"00:00": "the stroke of midnight", "12:00": "high noon", "09:00": "9 o'clock in the morning", "15:00": "3 o'clock in the afternoon",
		"23:45": "a quarter to 12 in the morning", "00:15": "a quarter past 12 in the morning", "13:01": "1 minute past 1 in the afternoon",
		"18:20": "20 minutes past 6 in the evening",
	} {
		now, err := time.Parse("15:04 2006-01-02", clock+" 2025-01-22")
		if err != nil {
			t.Fatal(err)
		}
		got, err := macro.New(macro.Context{Now: now}).Expand("{{datetime_en_ancient}}")
		if want += ", on the 22nd day of January, in the year of our Lord 2025"; err != nil || got.Text != want {
			t.Errorf("%s is %q, %v; want %q", clock, got.Text, err, want)
		}
	}
}

func TestChineseCalendar(t *testing.T) {
	for day, want := range map[string]string{
		"1984-02-02": "甲子年（鼠年）正月初一",
		"1984-02-01": "癸亥年（猪年）腊月三十",
		"2025-01-01": "甲辰年（龙年）腊月初二",
		"2025-07-25": "乙巳年（蛇年）闰六月初一",
		"2025-08-01": "乙巳年（蛇年）闰六月初八",
		"2025-08-23": "乙巳年（蛇年）七月初一",
		"2033-12-22": "癸丑年（牛年）闰冬月初一",
		"2023-04-09": "癸卯年（兔年）闰二月十九",
		"2024-06-15": "甲辰年（龙年）五月初十",
		"2024-06-25": "甲辰年（龙年）五月二十",
		"2024-06-26": "甲辰年（龙年）五月廿一",
		"1900-01-30": "{{date_cn_ancient}}",
		"1900-01-31": "庚子年（鼠年）正月初一",
		"2100-12-31": "庚申年（猴年）腊月初一",
		"2101-01-01": "{{date_cn_ancient}}",
	} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		got, err := macro.New(macro.Context{Now: now}).Expand("{{date_cn_ancient}}")
		if err != nil || got.Text != want {
			t.Errorf("%s is %q, %v; want %q", day, got.Text, err, want)
		}
	}
}

// Days follow each other: a month is over after 29 or 30 of them, and no day
// is missing or told twice.
func TestChineseCalendarIsWhole(t *testing.T) {
	var last string
	months, days := 0, 0
	for day := time.Date(1900, 1, 31, 0, 0, 0, 0, time.UTC); day.Year() < 2101; day = day.AddDate(0, 0, 1) {
		got, err := macro.New(macro.Context{Now: day}).Expand("{{date_cn_ancient}}")
		if err != nil || len(got.Problems) > 0 || got.Text == last {
			t.Fatalf("%s is %q, the day before was %q", day.Format(time.DateOnly), got.Text, last)
		}
		if last = got.Text; strings.HasSuffix(last, "初一") {
			if months > 0 && days != 29 && days != 30 {
				t.Fatalf("the month before %s has %d days", last, days)
			}
			months, days = months+1, 0
		}
		days++
	}
	if months != 2486 {
		t.Errorf("%d months in 201 years", months)
	}
}

func TestClock(t *testing.T) {
	base := time.Date(1890, 5, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	real := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		clock macro.Clock
		after time.Duration
		want  string
	}{
		"as fast":        {macro.Clock{Virtual: base, Real: real}, time.Hour, "1890-05-01T13:00:00+01:00"},
		"twice as fast":  {macro.Clock{Virtual: base, Real: real, Scale: 2}, time.Hour, "1890-05-01T14:00:00+01:00"},
		"backwards":      {macro.Clock{Virtual: base, Real: real, Scale: -0.5}, time.Hour, "1890-05-01T11:30:00+01:00"},
		"before":         {macro.Clock{Virtual: base, Real: real}, -time.Hour, "1890-05-01T11:00:00+01:00"},
		"no real time":   {macro.Clock{Virtual: real}, time.Hour, "2025-01-01T01:00:00Z"},
		"the zero value": {macro.Clock{}, time.Hour, "2025-01-01T01:00:00Z"},
	} {
		got, err := c.clock.At(real.Add(c.after))
		if err != nil || got.Format(time.RFC3339) != c.want {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		}
	}
	_, err := macro.Clock{Virtual: base, Real: real, Scale: 1e9}.At(real.AddDate(100, 0, 0))
	if !errors.Is(err, artel.Invalid) {
		t.Error("a time after the year 9999:", err)
	}
}

func TestSeed(t *testing.T) {
	const text = "{{random::a::b::c::d}}{{roll::4d20}}{{randomInt::1::1000000}}"
	expand := func(seed string) string {
		c := context(t)
		c.Seed = seed
		got, err := macro.New(c).Expand(text)
		if err != nil {
			t.Fatal(err)
		}
		return got.Text
	}
	first, again := expand("1"), expand("1")
	if first != again {
		t.Error("one seed, two results")
	}
	if first == expand("2") {
		t.Error("two seeds, one result")
	}
}

func TestPick(t *testing.T) {
	pick := func(conversation, seed, text string) string {
		got, err := macro.New(macro.Context{Conversation: conversation, Seed: seed}).Expand(text)
		if err != nil {
			t.Fatal(err)
		}
		return got.Text
	}
	const text = "{{pick::a::b::c::d::e::f::g::h}}"
	var conversations, texts []string
	for i := range 20 {
		id := fmt.Sprint("c", i)
		if pick(id, "1", text) != pick(id, "2", "x {{user}}"+text)[2:] {
			t.Error("it is not the same for the same text in the same conversation")
		}
		conversations = append(conversations, pick(id, "", text))
		texts = append(texts, pick("c", "", fmt.Sprintf("{{pick::%d::b::c::d::e::f::g::h}}", i)))
	}
	for _, picked := range [][]string{conversations, texts} {
		if slices.Sort(picked); len(slices.Compact(picked)) < 3 {
			t.Error("the picks hardly differ:", picked)
		}
	}
}

// Values become part of a template of a rule, where they must stay literal.
func TestExpandInto(t *testing.T) {
	escape := func(s string) string { return strings.ReplaceAll(s, "$", "$$") }
	c := context(t)
	c.Values["user"] = "$1"
	got, err := macro.New(c).ExpandInto("{{user}}$1{{repeat::{{user}}$::2}}{{nope::$}}", escape)
	if want := "$$1$1$$1$$$$1$${{nope::$}}"; err != nil || got.Text != want {
		t.Errorf("got %q, %v; want %q", got.Text, err, want)
	}
}

func TestLimits(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("{{repeat::", n) + "x" + strings.Repeat("::1}}", n) }
	double := "{{setvar::a::" + strings.Repeat("x", 1000) + "}}" + strings.Repeat("{{setvar::a::{{getvar::a}}{{getvar::a}}}}", 7)
	for name, c := range map[string]struct {
		text string
		want string // in the error; "": none
	}{
		"depth":         {nest(macro.MaxDepth), ""},
		"too deep":      {nest(macro.MaxDepth + 1), "nested deeper than 32"},
		"output":        {strings.Repeat("{{repeat::aaaa::1000}}", 1000), ""},
		"too much":      {strings.Repeat("{{repeat::aaaa::1000}}", 1100), "more than 4194304 bytes"},
		"too much once": {"{{repeat::" + strings.Repeat("a", 5000) + "::1000}}", "more than 4194304 bytes"},
		"in arguments":  {double + strings.Repeat("{{setvar::b::{{getvar::a}}}}", 100), "more than 4194304 bytes"},
		"macros":        {strings.Repeat("{{user}}", macro.MaxMacros+1), "more than 100000 macros"},
		"not macros":    {strings.Repeat("{", 1_000_000), ""},
	} {
		_, err := macro.New(macro.Context{}).Expand(c.text)
		if (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, artel.TooLarge) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := macro.New(macro.Context{})
	var problems []macro.Problem
	for i := range 1001 {
		got, err := many.Expand(fmt.Sprintf("{{setvar::v%d::x}}", i))
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, got.Problems...)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "1000 variables") {
		t.Error("one variable too many:", problems)
	}
	got, err := many.Expand("{{setvar::v1::" + strings.Repeat("x", 300<<10) + "}}")
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "at most") {
		t.Error("a variable that is too large:", got.Problems, err)
	}
}

func TestNames(t *testing.T) {
	known := macro.Names()
	for _, name := range slices.Concat(macro.Values(), []string{"trim", "agent", "time", "roll", "getglobalvar"}) {
		if !slices.Contains(known, name) {
			t.Error(name, "is not among the names")
		}
	}
	if !slices.IsSorted(known) || len(known) != len(slices.Compact(slices.Clone(known))) {
		t.Error("the names are not sorted, or not unique")
	}
}

// texts draws texts with many braces.
func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"{{", "}}", "{", "}", "::", ":", `\`, `\{{`, " ", "\n", "user", "repeat", "setvar", "getvar", "random", "trim", "2", "x", "é", "{{user}}", "{{nope}}",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 30), func(s []string) string { return strings.Join(s, "") })
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		c := macro.Context{Values: map[string]string{"user": "{{char}}", "char": "WRONG"}}
		first, err := macro.New(c).Expand(text)
		if err != nil {
			t.Fatal(err)
		}
		second, err := macro.New(c).Expand(text)
		if err != nil || !cmp.Equal(first, second) {
			t.Fatalf("the same text gives %q and %q, %v", first.Text, second.Text, err)
		}
		if strings.Contains(first.Text, "WRONG") {
			t.Fatalf("a value was expanded: %q", first.Text)
		}
		escaped, err := macro.New(c).Expand(strings.ReplaceAll(strings.ReplaceAll(text, `\`, ""), "{{", `\{{`))
		if want := strings.ReplaceAll(text, `\`, ""); err != nil || !strings.Contains(want, "{{{") && escaped.Text != want {
			t.Fatalf("escaped, %q gives %q", want, escaped.Text)
		}
		for _, name := range first.Unknown() {
			if !strings.Contains(text, name) {
				t.Fatalf("%q is not in the text", name)
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, text := range []string{
		"", "{{", "}}", "{{{user}}}", `\{{user}}`, "{{repeat::{{user}}::3}}", "a {{trim}} b", "{{setvar::a::{{roll::2d6}}}}{{getvar::a}}",
		"{{datetime_format::YYYY [x] }}", "{{datetime_locale::zh-Hant-TW}}", "{{random::a::b}}{{pick::a::b}}", "{{a::b::c}}{{//}}{{ {{x}} }}",
	} {
		f.Add(text, "Ann {{user}}")
	}
	f.Fuzz(func(t *testing.T, text, user string) {
		before := map[string]string{"a": "1"}
		vars := &macro.Variables{Local: maps.Clone(before)}
		got, err := macro.New(macro.Context{Values: map[string]string{"user": user}, Now: time.Unix(1, 0), Variables: vars}).Expand(text)
		if err != nil {
			if !errors.Is(err, artel.TooLarge) {
				t.Fatal(err)
			}
			return
		}
		if len(got.Text) > 33*len(text)+macro.MaxOutput+len(user) {
			t.Fatalf("%d bytes from %d", len(got.Text), len(text))
		}
		if !strings.Contains(text, "{{") && got.Text != text {
			t.Fatalf("%q became %q", text, got.Text)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	for name, text := range map[string]string{
		"nothing":   strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1000),
		"macros":    strings.Repeat("Dear {{user}}, it is {{time}} now. {{random::a::{{char}}}} ", 1000),
		"unclosed":  strings.Repeat("{{repeat::", 10_000),
		"many trim": strings.Repeat("a {{trim}} ", 5_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			c := context(b)
			for b.Loop() {
				if _, err := macro.New(c).Expand(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
