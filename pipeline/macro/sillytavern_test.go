// SPDX-License-Identifier: Apache-2.0

package macro_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/pipeline/macro"
)

func TestFromSillyTavern(t *testing.T) {
	for text, c := range map[string]struct {
		want string
		lost []string // the beginnings of the losses
	}{
		"Hi {{user}}, I am {{char}}.":              {want: "Hi {{user}}, I am {{char}}."},
		"<USER> and <bot> in <b>":                  {want: "{{user}} and {{char}} in <b>"},
		"{{random:a,b}}":                           {want: "{{random::a::b}}"},
		"{{random: a , b\\, c }}":                  {want: "{{random::a::b, c}}"},
		"{{random::a,b}}":                          {want: "{{random::a::b}}"},
		"{{random::a::b,c}}":                       {want: "{{random::a::b,c}}"},
		"{{random:a::b}}":                          {want: "{{random::a::b}}"},
		"{{random a,b}}":                           {want: "{{random::a::b}}"},
		"{{pick:{{random:a,b}},{{user}}}}":         {want: "{{pick::{{random::a::b}}::{{user}}}}"},
		"{{roll:d20}} {{roll d6}} {{roll::2d6+1}}": {want: "{{roll_total::d20}} {{roll_total::d6}} {{roll_total::2d6+1}}"},
		"{{roll 20}}{{roll:3d4 - 2}}":              {want: "{{roll_total::20}}{{roll_total::3d4-2}}"},
		"{{roll::3d6>4}}":                          {want: "{{roll::3d6>4}}", lost: []string{"{{roll::3d6>4}}: these dice"}},
		"{{roll::{{getvar::n}}}}":                  {want: "{{roll_total::{{getvar::n}}}}"},
		"a{{// a {{user}} comment}}b":              {want: "ab"},
		"a{{//}}b {{user}} c{{///}}d":              {want: "ad"},
		"a{{comment::x}}b":                         {want: "ab"},
		"{{addvar::n::2}}{{getvar::n}}":            {want: "{{addvar::n::2}}{{getvar::n}}"},
		"{{incvar::n}} {{decglobalvar::g}}":        {want: "{{incvar::n}}{{getvar::n}} {{decglobalvar::g}}{{getglobalvar::g}}"},
		"{{getvar n}} {{.n}} {{$ g}}":              {want: "{{getvar::n}} {{getvar::n}} {{getglobalvar::g}}"},
		"{{varexists::n}}{{flushvar::n}}":          {want: "{{hasvar::n}}{{deletevar::n}}"},
		"{{reverse::abc}} {{reverse:abc}}":         {want: "{{reverse::abc}} {{reverse::abc}}"},
		"{{time_UTC-5}} {{time_UTC+2}}":            {want: "{{time_utc::-5}} {{time_utc::+2}}"},
		"{{time::UTC+2}} {{time}}":                 {want: "{{time_utc::+2}} {{time}}"},
		"{{isotime}} {{isodate}}":                  {want: "{{time24}} {{date_ymd}}"},
		"{{datetimeformat DD.MM.YYYY HH:mm}}":      {want: "{{datetime_format::DD.MM.YYYY HH:mm}}"},
		"{{idle_duration}} {{idleDuration}}":       {want: "{{idle_duration}} {{idle_duration}}"},
		"{{charDescription}}{{model}}{{group}}":    {want: "{{description}}{{modelId}}{{char}}"},
		"{{newline::2}}{{space}}{{noop}} {{trim}}": {want: "{{newline::2}}{{space}}{{noop}} {{trim}}"},
		"{{lastSwipeId}} {{user::x}}":              {want: "{{lastSwipeId}} {{user::x}}", lost: []string{"{{lastSwipeId}}: it is not known", "{{user::x}}: it takes no"}},
		"{{if x}}a{{else}}b{{/if}}":                {want: "{{if x}}a{{else}}b{{/if}}", lost: []string{"{{if x}}: conditions", "{{else}}: conditions", "{{/if}}: it is not known"}},
		`{{banned "x"}} {{outlet::a}}`:             {want: `{{banned "x"}} {{outlet::a}}`, lost: []string{`{{banned "x"}}: words`, "{{outlet::a}}: entries"}},
		"{{nope {{random:a,b}}}}":                  {want: "{{nope {{random:a,b}}}}", lost: []string{"{{nope {{random:a,b}}}}: it is not known"}},
		"{ {{ user }} {{user":                      {want: "{ {{user}} {{user"},
		"no macros":                                {want: "no macros"},
	} {
		got, lost := macro.FromSillyTavern(text)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", text, got, c.want)
		}
		if !slices.EqualFunc(c.lost, lost, func(a, b string) bool { return strings.HasPrefix(b, a) }) {
			t.Errorf("%s: losses %q, want %q", text, lost, c.lost)
		}
		if len(lost) > 0 {
			continue
		}
		vars := &macro.Variables{Local: map[string]string{"n": "1"}, Global: map[string]string{"g": "1"}}
		r, err := macro.New(macro.Context{Now: time.Unix(1, 0), Variables: vars}).Expand(got)
		if err != nil || len(r.Problems) > 0 && !strings.Contains(got, "roll_total::{{") {
			t.Errorf("%s became %s, which does not expand: %+v, %v", text, got, r.Problems, err)
		}
	}
}

func TestNewMacros(t *testing.T) {
	for text, want := range map[string]string{
		"a{{// x {{setvar::n::9}} }}b{{getvar::n}}":  "ab1",
		"{{//}}{{ // two\nlines }}":                  "",
		"{{noop}}[{{space}}{{space::2}}{{newline}}]": "[   \n]",
		"{{reverse::añb}}":                           "bña",
		"{{addvar::n::1.5}}{{getvar::n}} {{addvar::n::x}}{{getvar::n}} {{addvar::new::2}}{{getvar::new}}":                                                  "2.5 2.5x 2",
		"{{hasvar::n}}{{deletevar::n}}{{hasvar::n}} {{addglobalvar::g::a}}{{hasglobalvar::g}}{{getglobalvar::g}}{{deleteglobalvar::g}}{{hasglobalvar::g}}": "truefalse trueafalse",
		"{{time_utc::+2}} {{time_utc::-3}} {{time_utc::0}}":                                                                                                "2:00 AM 9:00 PM 12:00 AM",
		"{{roll::d1}} {{roll::1}} {{roll::2d1+3}} {{roll_total::3d1-1}}":                                                                                   "1 1 5 (1, 1) 2",
		"{{time_utc::15}}{{roll::d}}{{roll::1d2+}}{{noop::x}}":                                                                                             "{{time_utc::15}}{{roll::d}}{{roll::1d2+}}{{noop::x}}",
	} {
		r, err := macro.New(macro.Context{Now: time.Unix(0, 0), Variables: &macro.Variables{Local: map[string]string{"n": "1"}}}).Expand(text)
		if err != nil || r.Text != want {
			t.Errorf("%s: got %q, %v, want %q", text, r.Text, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	var got []string
	for _, d := range []time.Duration{
		0, 44 * time.Second, 45 * time.Second, -89 * time.Second, 90 * time.Second, 44 * time.Minute, 45 * time.Minute, 3 * time.Hour, 22 * time.Hour, 50 * time.Hour,
		27 * 24 * time.Hour, 61 * 24 * time.Hour, 340 * 24 * time.Hour, 800 * 24 * time.Hour,
	} {
		got = append(got, macro.Duration(d))
	}
	want := []string{
		"a few seconds", "a few seconds", "a minute", "a minute", "2 minutes", "44 minutes", "an hour", "3 hours", "a day", "2 days", "a month", "2 months", "a year", "2 years",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzFromSillyTavern(f *testing.F) {
	for _, s := range []string{"{{random:a,{{user}}}}", "{{//}}a{{///}}", "{{roll d20}}{{.x}}", "{{time_UTC+2}}{{if a}}<BOT>", "{{a::{{b", "{{{{}}}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, lost := macro.FromSillyTavern(text)
		if !strings.Contains(text, "{{") && !strings.Contains(text, "<") && (got != text || lost != nil) {
			t.Fatalf("%q became %q", text, got)
		}
		if again, _ := macro.FromSillyTavern(text); again != got {
			t.Fatalf("%q became %q and %q", text, got, again)
		}
	})
}

// TestComments: a comment of one line has no end to be sought, and many comments without
// an end do not take the square of their number.
func TestComments(t *testing.T) {
	if got, _ := macro.FromSillyTavern("{{// note}}{{user}} {{pick:a,b}}{{///}}"); !strings.HasPrefix(got, "{{user}} {{pick::a::b}}") {
		t.Errorf("got %q", got)
	}
	for _, comment := range []string{"{{//}}", "{{// x}}"} {
		if got, _ := macro.FromSillyTavern(strings.Repeat(comment, macro.MaxMacros)); got != "" {
			t.Errorf("%d bytes are left of %s", len(got), comment)
		}
	}
}
