// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustMerge(t testing.TB, base, mine, theirs string, o MergeOptions) Merged {
	t.Helper()
	m, err := Merge(t.Context(), base, mine, theirs, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMerge(t *testing.T) {
	tests := []struct{ name, base, mine, theirs, want string }{
		{"nothing", "", "", "", ""},
		{"nobody changed", "a\n", "a\n", "a\n", "a\n"},
		{"mine alone", "a\nb\n", "a\nx\n", "a\nb\n", "a\nx\n"},
		{"theirs alone", "a\nb\n", "a\nb\n", "x\nb\n", "x\nb\n"},
		{"both, apart", "a\nb\nc\n", "x\nb\nc\n", "a\nb\nz\n", "x\nb\nz\n"},
		{"both the same", "a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\n", "a\nx\nc\n"},
		{"both the same and one more", "a\nb\nc\nd\n", "a\nx\nc\nd\n", "a\nx\nc\ny\n", "a\nx\nc\ny\n"},
		{"both removed", "a\nb\nc\n", "a\nc\n", "a\nc\n", "a\nc\n"},
		{"added at both ends", "m\n", "a\nm\n", "m\nz\n", "a\nm\nz\n"},
		{"removed and added apart", "a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nb\nc\nd\nx\ne\n", "a\nc\nd\nx\ne\n"},
		{"the last line gets an end", "a\nb\nc", "x\nb\nc", "a\nb\nc\n", "x\nb\nc\n"},
		{"line ends are kept", "a\r\nb\nc\r\n", "a\r\nb\nx\r\n", "y\nb\nc\r\n", "y\nb\nx\r\n"},
		{"all of it", "a\n", "", "a\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustMerge(t, tt.base, tt.mine, tt.theirs, MergeOptions{})
			if diff := cmp.Diff(Merged{Text: tt.want, Conflicts: []Conflict{}}, m); diff != "" || !m.Clean() {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	tests := []struct {
		name, base, mine, theirs string
		o                        MergeOptions
		want                     Merged
	}{
		{
			"a line", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n",
			MergeOptions{},
			Merged{
				"a\n<<<<<<< mine\nx\n||||||| base\nb\n=======\ny\n>>>>>>> theirs\nc\n",
				[]Conflict{{2, 7, 2, 1, 2, 1, 2, 1, "b\n", "x\n", "y\n"}},
			},
		},
		{
			"added at the same place", "a\nc\n", "a\nx\nc\n", "a\ny\nz\nc\n",
			MergeOptions{Mine: "ours", Base: "version 3", Theirs: "two\nlines"},
			Merged{
				"a\n<<<<<<< ours\nx\n||||||| version 3\n=======\ny\nz\n>>>>>>> two lines\nc\n",
				[]Conflict{{2, 7, 1, 0, 2, 1, 2, 2, "", "x\n", "y\nz\n"}},
			},
		},
		{
			"removed and changed", "a\nb\n", "a\n", "a\nB\n",
			MergeOptions{},
			Merged{"a\n<<<<<<< mine\n||||||| base\nb\n=======\nB\n>>>>>>> theirs\n", []Conflict{{2, 6, 2, 1, 1, 0, 2, 1, "b\n", "", "B\n"}}},
		},
		{
			"last lines without an end", "a", "b", "c\r\n",
			MergeOptions{},
			Merged{"<<<<<<< mine\nb\n||||||| base\na\n=======\nc\r\n>>>>>>> theirs\n", []Conflict{{1, 7, 1, 1, 1, 1, 1, 1, "a", "b", "c\r\n"}}},
		},
		{
			"marks end as the text does", "a\r\n", "b\r\n", "c\r\n",
			MergeOptions{},
			Merged{"<<<<<<< mine\r\nb\r\n||||||| base\r\na\r\n=======\r\nc\r\n>>>>>>> theirs\r\n", []Conflict{{1, 7, 1, 1, 1, 1, 1, 1, "a\r\n", "b\r\n", "c\r\n"}}},
		},
		{
			"two", "a\nm\nb\n", "a1\nm\nb1\n", "a2\nm\nb2\n",
			MergeOptions{},
			Merged{
				"<<<<<<< mine\na1\n||||||| base\na\n=======\na2\n>>>>>>> theirs\nm\n<<<<<<< mine\nb1\n||||||| base\nb\n=======\nb2\n>>>>>>> theirs\n",
				[]Conflict{{1, 7, 1, 1, 1, 1, 1, 1, "a\n", "a1\n", "a2\n"}, {9, 7, 3, 1, 3, 1, 3, 1, "b\n", "b1\n", "b2\n"}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustMerge(t, tt.base, tt.mine, tt.theirs, tt.o)
			if diff := cmp.Diff(tt.want, m); diff != "" || m.Clean() {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	long := strings.Repeat("line\n", 500)
	c := mustMerge(t, long+"a\n"+long, long+"b\n"+long, long+"c\n"+long, MergeOptions{}).Conflicts
	if diff := cmp.Diff([]Conflict{{501, 7, 501, 1, 501, 1, 501, 1, "a\n", "b\n", "c\n"}}, c); diff != "" {
		t.Errorf("far from the beginning: -want +got\n%s", diff)
	}
}

// checkMerge holds a merge to everything that is promised of it.
func checkMerge(ctx context.Context, base, mine, theirs string) error {
	merge := func(base, mine, theirs string) Merged {
		m, err := Merge(ctx, base, mine, theirs, MergeOptions{Mine: "side", Theirs: "side"})
		if err != nil {
			m.Text = err.Error()
		}
		return m
	}
	m := merge(base, mine, theirs)
	for _, tt := range []struct{ what, base, mine, theirs, want string }{
		{"mine is unchanged", base, base, theirs, theirs},
		{"theirs is unchanged", base, mine, base, mine},
		{"both are the same", base, mine, mine, mine},
		{"nothing before", "", mine, "", mine},
	} {
		if got := merge(tt.base, tt.mine, tt.theirs); !got.Clean() || got.Text != tt.want {
			return fmt.Errorf("%s: got %q, want %q", tt.what, got.Text, tt.want)
		}
	}
	other := merge(base, theirs, mine)
	for i, c := range other.Conflicts {
		c.Mine, c.Theirs = c.Theirs, c.Mine
		c.MineStart, c.TheirsStart = c.TheirsStart, c.MineStart
		c.MineLines, c.TheirsLines = c.TheirsLines, c.MineLines
		other.Conflicts[i] = c
	}
	if diff := cmp.Diff(m.Conflicts, other.Conflicts); diff != "" {
		return fmt.Errorf("swapped, other conflicts:\n%s", diff)
	}
	if m.Clean() && m.Text != other.Text {
		return fmt.Errorf("swapped: %q, not %q", other.Text, m.Text)
	}
	lines := func(text string, start, count int) string {
		if count > 0 {
			start--
		}
		return strings.Join(strings.SplitAfter(text, "\n")[start:start+count], "")
	}
	for _, c := range m.Conflicts {
		if c.Mine == c.Theirs || c.Mine == c.Base || c.Theirs == c.Base {
			return fmt.Errorf("no conflict: %+v", c)
		}
		if lines(base, c.BaseStart, c.BaseLines) != c.Base || lines(mine, c.MineStart, c.MineLines) != c.Mine || lines(theirs, c.TheirsStart, c.TheirsLines) != c.Theirs {
			return fmt.Errorf("the places are wrong: %+v", c)
		}
		block := lines(m.Text, c.Start, c.Lines)
		if !strings.HasPrefix(block, "<<<<<<< side") || !strings.Contains(block, c.Mine) || !strings.Contains(block, c.Base) || !strings.Contains(block, c.Theirs) {
			return fmt.Errorf("the marks of %+v are not around %q", c, block)
		}
	}
	return nil
}

func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, mine := drawTexts(t)
		_, theirs := drawTexts(t)
		if rapid.Bool().Draw(t, "near") {
			lines := strings.SplitAfter(base, "\n")
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			lines[i] = "theirs\n"
			theirs = strings.Join(lines, "")
		}
		if err := checkMerge(context.Background(), base, mine, theirs); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzMerge(f *testing.F) {
	for _, seed := range [][3]string{
		{"a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n"}, {"", "a", "b"}, {"a\r\n", "a\n", "a"}, {"<<<<<<< side\n", "=======\n", ">>>>>>> side"}, {"\xff\n\x00", "\x00\n\xff", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, base, mine, theirs string) {
		if err := checkMerge(t.Context(), base, mine, theirs); err != nil {
			t.Fatal(err)
		}
	})
}

// Markers counts whole conflicts only, as Merge and Git write them.
func TestMarkers(t *testing.T) {
	m, err := Merge(t.Context(), "a\nb\nc\n", "x\nb\ny\n", "1\nb\n2\n", MergeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		text         string
		count, first int
	}{
		{m.Text, 2, 1},
		{"a\r\n<<<<<<< HEAD\r\nx\r\n=======\r\ny\r\n>>>>>>> other\r\n", 1, 2},
		{"", 0, 0},
		{"<<<<<<< mine\n<<<<<<< mine\nx\n=======\ny\n>>>>>>> theirs\n", 1, 2},
		{"<<<<<<< mine\n>>>>>>> theirs\n=======\n", 0, 0},
		{"Title\n=======\n>>>>>>> quoted\n<<<<<<< begins\n", 0, 0},
		{" <<<<<<< mine\n=======\n>>>>>>> theirs\n", 0, 0},
	} {
		if count, first := Markers(x.text); count != x.count || first != x.first {
			t.Errorf("%q: %d from line %d, want %d from %d", x.text, count, first, x.count, x.first)
		}
	}
}
