// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked writes the changed lines with their changed spans in brackets and the
// number of their pair.
func marked(d Diff) string {
	var out strings.Builder
	for _, h := range d.Hunks {
		for _, l := range h.Lines {
			if l.Op == Equal {
				continue
			}
			text := []rune(l.Text)
			var body strings.Builder
			for _, s := range l.Spans {
				if part := string(text[s.Start:s.End]); s.Changed {
					body.WriteString("[" + part + "]")
				} else {
					body.WriteString(part)
				}
			}
			if l.Spans == nil {
				body.WriteString(l.Text)
			}
			fmt.Fprintf(&out, "%s%s|%d\n", map[Op]string{Added: "+", Removed: "-"}[l.Op], body.String(), l.Pair)
		}
	}
	return out.String()
}

func TestWords(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"one word", "the quick fox\n", "the slow fox\n", "-the [quick] fox|1\n+the [slow] fox|1\n"},
		{"a word more", "the fox\n", "the red fox\n", "-the fox|1\n+the [red ]fox|1\n"},
		{"words beside each other are one span", "see the quick fox run\n", "see a slow fox run\n", "-see [the quick] fox run|1\n+see [a slow] fox run|1\n"},
		{"signs", "f(x, y)\n", "f(x; y)\n", "-f(x[,] y)|1\n+f(x[;] y)|1\n"},
		{"names are whole", "total_sum = 1\n", "total_size = 1\n", "-[total_sum] = 1|1\n+[total_size] = 1|1\n"},
		{"Chinese by character", "我们今天去北京\n", "我们明天去上海\n", "-我们[今]天去[北京]|1\n+我们[明]天去[上海]|1\n"},
		{"emoji of several code points are whole", "hello 👩‍👩‍👧 there\n", "hello 👩‍👩‍👦 there\n", "-hello [👩‍👩‍👧] there|1\n+hello [👩‍👩‍👦] there|1\n"},
		{"nothing in common", "alpha beta\n", "gamma delta\n", "-alpha beta|0\n+gamma delta|0\n"},
		{"only indentation in common", "        alpha\n", "        beta\n", "-        alpha|0\n+        beta|0\n"},
		{"only white space in common", "a b c\n", "x y z\n", "-a b c|0\n+x y z|0\n"},
		{"only the line end", "same text", "same text\n", "-same text|1\n+same text|1\n"},
		{"empty lines that end otherwise", "\r\nx\n", "\nx\n", "-|1\n+|1\n"},
		{
			"the most alike are paired", "first line of it\nanother thing here\n", "new words only\nanother thing there\n",
			"-first line of it|0\n-another thing [here]|2\n+new words only|0\n+another thing [there]|2\n",
		},
		{
			"pairs do not cross", "one two three\nfour five six\n", "four five six!\none two three!\n",
			"-one two three|2\n-four five six|0\n+four five six!|0\n+one two three[!]|1\n",
		},
		{
			"more lines than before", "a = 1\nb = 2\n", "a = 10\nnothing like it\nb = 20\n",
			"-a = [1]|1\n-b = [2]|3\n+a = [10]|1\n+nothing like it|0\n+b = [20]|2\n",
		},
		{"bytes that are no text", "a \xff b\n", "a \xfe b\n", "-a [\uFFFD] b|1\n+a [\uFFFD] b|1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, marked(mustLines(t, tt.old, tt.new, Options{}))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	d := mustLines(t, "the quick fox\n", "the slow fox\n", Options{Plain: true})
	if l := d.Hunks[0].Lines[0]; l.Pair != 0 || l.Spans != nil {
		t.Errorf("%+v", l)
	}
}

// TestGreatBlock pairs lines of a block that is too great for all pairs.
func TestGreatBlock(t *testing.T) {
	var old, new strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&old, "value %d of color\n", i)
		fmt.Fprintf(&new, "value %d of colour\n", i)
	}
	d := mustLines(t, old.String(), new.String(), Options{})
	if err := check(d, old.String(), new.String(), Options{Context: 3}); err != nil {
		t.Error(err)
	}
	for _, l := range d.Hunks[0].Lines {
		if l.Pair != l.Old+l.New || len(l.Spans) != 2 {
			t.Fatalf("%+v", l)
		}
	}
}

// TestLongLines finds what changed in lines that are too long for words.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("some words, 一些字 ", 1<<14)
	at := strings.Index(long[len(long)/2:], "some") + len(long)/2
	tests := []struct{ name, old, new, want string }{
		{"one word", long, long[:at] + "more" + long[at+4:], "some more"},
		{"a part of a word", long, long[:at] + "somewhat" + long[at+4:], "some somewhat"},
		{"at the beginning", long, "x" + long, "some xsome"},
		{"at the end", long, long + "x", " x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := mustLines(t, tt.old, tt.new, Options{})
			if err := checkSpans(d.Hunks[0]); err != nil {
				t.Error(err)
			}
			var got []string
			for _, l := range d.Hunks[0].Lines {
				text, changed := []rune(l.Text), ""
				for _, s := range l.Spans {
					if s.Changed {
						changed += string(text[s.Start:s.End])
					}
				}
				got = append(got, changed)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("changed: %q", got)
			}
		})
	}
	t.Run("all of the middle", func(t *testing.T) {
		from := strings.Index(long[len(long)/4:], "some") + len(long)/4
		d := mustLines(t, long, long[:from]+strings.ToUpper(long[from:at])+long[at:], Options{})
		if err := checkSpans(d.Hunks[0]); err != nil {
			t.Error(err)
		}
		if s := d.Hunks[0].Lines[0].Spans; len(s) != 3 || !s[1].Changed {
			t.Errorf("%d spans", len(s))
		}
	})
}

// TestWordLimits tells lines without spans once the limits are reached, and
// keeps to them.
func TestWordLimits(t *testing.T) {
	var hunk Hunk
	for i := range 4000 {
		hunk.Lines = append(hunk.Lines, Line{Op: Removed, Old: i + 1, Text: fmt.Sprintf("the line of number %d", i)})
	}
	for i := range 4000 {
		hunk.Lines = append(hunk.Lines, Line{Op: Added, New: i + 1, Text: fmt.Sprintf("a line of number %d", i)})
	}
	for _, left := range []struct{ bytes, steps int }{{10_000, wordSteps}, {wordBytes, 1_000_000}} {
		lines := append([]Line(nil), hunk.Lines...)
		s := &speller{ctx: t.Context(), known: map[string]int32{}, bytes: left.bytes, steps: left.steps}
		if err := s.block(lines[:4000], lines[4000:]); err != nil {
			t.Fatal(err)
		}
		if lines[0].Spans == nil || lines[3999].Spans != nil || lines[3999].Pair != 0 {
			t.Errorf("%+v: %+v and %+v", left, lines[0], lines[3999])
		}
		if s.bytes < -1000 || s.steps < -1000 {
			t.Errorf("%+v: %d bytes and %d steps are left", left, s.bytes, s.steps)
		}
	}
}
