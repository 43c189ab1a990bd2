// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/bits"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A folded is the normalised form of a text: what is left of it when spellings
// that look alike are written alike. It knows which bytes each byte of it came
// from.
type folded struct {
	text   string // the text itself where nothing had to be folded
	groups []group
}

// A group is a span of the folded text and the span of the original that it
// stands for. Between groups both run in step. An empty span of the folded
// text is something that was left out.
type group struct {
	at, to     int32 // in the folded text
	from, till int32 // in the original
}

// foldText folds text. With indent, white space at the beginning of lines is
// left out too. The time is linear, and each line is folded by itself.
func foldText(text string, indent bool) *folded {
	f := folder{src: text}
	for at := 0; at < len(text); {
		if !indent {
			if at = plainLines(text, at); at == len(text) {
				break
			}
		}
		next := len(text)
		end := next // of what the line holds
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
			next = end + 1
			if end > at && text[end-1] == '\r' {
				end--
			}
		}
		f.line(at, end, indent)
		if next-end == 2 {
			f.replace(end, next, lineEnd)
		}
		at = next
	}
	if f.groups == nil {
		return &folded{text: text}
	}
	f.out.WriteString(text[f.done:])
	return &folded{text: f.out.String(), groups: f.groups}
}

// plainLines goes over lines from byte at on, where one begins, that stay as
// they are for sure: ASCII, with nothing blank before their ends. It returns
// where the first other line begins.
func plainLines(text string, at int) int {
	const lows, ends = tops >> 7, tops >> 7 * '\n'
	i := at
	for ; i+gram < len(text); i += gram {
		x := load(text, i)
		if x&tops != 0 {
			return at
		}
		// Bytes that are line ends; all are below 0x80, so that nothing is
		// carried from one to the next.
		for m := ^((x ^ ends) + (tops - lows)) & tops; m != 0; m &= m - 1 {
			end := i + bits.TrailingZeros64(m)/8
			if end > at && text[end-1] <= ' ' {
				return at
			}
			at = end + 1
		}
	}
	return at
}

// A folder writes a folded text. What is neither replaced nor left out is
// copied.
type folder struct {
	src    string
	out    strings.Builder
	done   int // bytes of src that out stands for
	groups []group
}

func (f *folder) replace(from, till int, by string) {
	if f.groups == nil {
		f.out.Grow(len(f.src) + len(f.src)/64) // few texts get longer
	}
	f.out.WriteString(f.src[f.done:from])
	at := f.out.Len()
	f.out.WriteString(by)
	f.done = till
	f.groups = append(f.groups, group{int32(at), int32(f.out.Len()), int32(from), int32(till)})
}

func (f *folder) drop(from, till int) {
	if from < till {
		f.replace(from, till, "")
	}
}

// line folds src[at:end], which holds no line end.
func (f *folder) line(at, end int, indent bool) {
	kept := end
	if c := f.src[max(end-1, at):end]; c != "" && (c[0] <= ' ' || c[0] >= utf8.RuneSelf) {
		kept = at + len(strings.TrimRightFunc(f.src[at:end], isBlank))
	}
	if indent {
		start := kept - len(strings.TrimLeftFunc(f.src[at:kept], isBlank))
		f.drop(at, start)
		at = start
	}
	if i := firstForeign(f.src[at:kept]); i < kept-at {
		// The last ASCII character may have to join what follows.
		f.foreign(at+max(i-1, 0), at, kept)
	}
	f.drop(kept, end)
}

// isBlank reports whether r is white space inside a line, or nothing to see.
func isBlank(r rune) bool {
	switch {
	case r == ' ', r == '\t', r == '\v', r == '\f':
		return true
	case r < utf8.RuneSelf:
		return false
	}
	return fold(r) == ' ' || zeroWidth(r)
}

// foreign folds the characters from i to end of a line that begins at begin;
// what stands between is ASCII and stays.
func (f *folder) foreign(i, begin, end int) {
	table := firstPlane()
	run := -1        // where a run of spaces began
	var before trait // of the last character that was kept before it
	if j := len(strings.TrimRight(f.src[begin:i], " ")) + begin; j > begin {
		before = table[f.src[j-1]]
		if j < i {
			run = j
		}
	}
	for i < end {
		if run < 0 {
			i = f.stay(table, i, end)
		}
		r, n := rune(f.src[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(f.src[i:])
		}
		t := traits(table, r)
		first, by, same := t, "", true
		switch {
		case t&(plain|folds|drops) == 0, !startsAt(table, f.src[i+n:end]):
			n = norm.NFKC.NextBoundaryInString(f.src[i:end], true)
			by = compatible(f.src[i : i+n])
			same = by == f.src[i:i+n]
			r, _ = utf8.DecodeRuneInString(by)
			first = traits(table, r)
			r, _ = utf8.DecodeLastRuneInString(by)
			t = traits(table, r)
		case t&folds != 0:
			r = fold(r)
			by, same, t = string([]byte{byte(r)}), false, table[r]
			first = t
		}
		switch {
		case r == ' ' && len(by) <= 1: // settled when it is known what follows
			if run < 0 {
				run = i
			}
		case t&drops != 0 || by == "" && !same:
			if run < 0 {
				f.drop(i, i+n)
			}
		default:
			f.settle(run, i, before&cjk != 0 && first&latin != 0 || before&latin != 0 && first&cjk != 0)
			run = -1
			if !same {
				f.replace(i, i+n, by)
			}
			before = t
		}
		i += n
	}
	f.settle(run, end, false)
}

// stay goes over characters that stay as they are, and returns the last of
// them: whether that stays depends on what comes behind it.
func (f *folder) stay(table *[0x10000]trait, i, end int) int {
	src := f.src[:end]
	for j := i; j < len(src); {
		if j+gram <= len(src) {
			x := load(src, j)
			if threeTwice(x) && table[threeAt(x)]&table[threeAt(x>>24)]&plain != 0 {
				i = j + 3
				j += 6
				continue
			}
			if x&tops == 0 && src[j] != ' ' {
				// ASCII stays up to the last of it that is no space.
				k := j + gram + firstForeign(src[j+gram:])
				i = j + len(strings.TrimRight(src[j:k], " ")) - 1
				if i < k-1 {
					break
				}
				j = k
				continue
			}
		}
		n, t := 1, trait(0)
		switch c := src[j]; {
		case c == ' ':
		case c < utf8.RuneSelf:
			t = table[c]
		case c>>4 == 0b1110 && j+3 <= len(src):
			n = 3
			t = table[uint16(c)<<12|uint16(src[j+1]&0x3f)<<6|uint16(src[j+2]&0x3f)]
		}
		if t&plain == 0 {
			break
		}
		i = j
		j += n
	}
	return i
}

// settle leaves out a run of spaces and characters without width, or keeps the
// spaces as they are written in ASCII.
func (f *folder) settle(from, till int, drop bool) {
	switch {
	case from < 0:
		return
	case drop:
		f.drop(from, till)
		return
	}
	for i := from; i < till; {
		r, n := utf8.DecodeRuneInString(f.src[i:])
		switch {
		case zeroWidth(r):
			f.drop(i, i+n)
		case n > 1:
			f.replace(i, i+n, " ")
		}
		i += n
	}
}

// startsAt reports whether what follows stands for itself, so that what is
// before it ends there.
func startsAt(table *[0x10000]trait, s string) bool {
	if s == "" || s[0] < utf8.RuneSelf {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return traits(table, r)&starts != 0
}

// compatible returns the folded form of a character with all that joins it.
func compatible(s string) string {
	return strings.Map(func(r rune) rune {
		if zeroWidth(r) {
			return -1
		}
		return fold(r)
	}, norm.NFKC.String(s))
}

// start returns where in the original the folded text from byte i on begins;
// what was left out just before it is not part of it. It is false inside a
// group.
func (f *folded) start(i int) (int, bool) {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].to) > i })
	if k < len(f.groups) && int(f.groups[k].at) < i {
		return 0, false
	}
	return f.step(k, i), true
}

// end returns where in the original the folded text up to byte i ends; what
// was left out just behind it is not part of it. It is false inside a group.
func (f *folded) end(i int) (int, bool) {
	k := sort.Search(len(f.groups), func(k int) bool {
		g := f.groups[k]
		return int(g.to) > i || int(g.to) == i && g.at == g.to
	})
	if k < len(f.groups) && int(f.groups[k].at) < i {
		return 0, false
	}
	return f.step(k, i), true
}

// step returns the byte of the original that byte i of the folded text stands
// for, where k groups end before.
func (f *folded) step(k, i int) int {
	if k == 0 {
		return i
	}
	return int(f.groups[k-1].till) + i - int(f.groups[k-1].to)
}

// leftOutBefore returns where in the original that begins which was left out
// just before byte i of the folded text.
func (f *folded) leftOutBefore(i int) int {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].to) > i })
	at := f.step(k, i)
	for ; k > 0 && int(f.groups[k-1].at) == i && int(f.groups[k-1].till) == at; k-- {
		at = int(f.groups[k-1].from)
	}
	return at
}

// leftOutAfter returns where in the original that ends which was left out
// just behind byte i of the folded text, where end is what comes before it.
func (f *folded) leftOutAfter(i, end int) int {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].at) >= i })
	for ; k < len(f.groups) && int(f.groups[k].to) == i; k++ {
		if int(f.groups[k].from) == end {
			end = int(f.groups[k].till)
		}
	}
	return end
}
