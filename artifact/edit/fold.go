// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"encoding/binary"
	"iter"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A folded is the normalised form of a text, in which characters that look alike
// are the same character. It maps its bytes to those of the original.
type folded struct {
	src    string
	groups []group
	by     string // the replacements of all groups
	size   int    // bytes

	text func() string // the folded text, which is written at the first call
}

// A group is a replaced span: in the folded text and in the original. Between
// groups both texts are equal. If the span of the folded text is empty, the
// original was dropped.
type group struct {
	at, to     int32 // in the folded text
	from, till int32 // in the original
	by         int32 // start of the replacement in folded.by
}

// foldText folds text line by line, in linear time. With indent, it also drops
// white space at the beginning of lines.
func foldText(text string, indent bool) *folded {
	f := folder{src: text}
	for at := 0; at < len(text); {
		done := at
		if !indent {
			done = plainLines(text, at)
		}
		next := len(text)
		end := next // of the line, without its line end
		if i := strings.IndexByte(text[done:], '\n'); i >= 0 {
			end = done + i
			next = end + 1
			if end > at && text[end-1] == '\r' {
				end--
			}
		}
		f.line(at, min(done, end), end, indent)
		if next-end == 2 {
			f.replace(end, next, lineEnd)
		}
		at = next
	}
	done := &folded{src: text, groups: f.groups, by: f.by.String(), size: len(text) + f.shift}
	done.text = sync.OnceValue(done.write)
	return done
}

// write returns the folded text: the original if nothing was folded.
func (f *folded) write() string {
	if f.groups == nil {
		return f.src
	}
	var out strings.Builder
	out.Grow(f.size)
	for s := range f.pieces(0, 0) {
		out.WriteString(s)
	}
	return out.String()
}

// pieces yields the pieces of the folded text from byte at on, at or before which k
// groups end.
func (f *folded) pieces(k, at int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; k < len(f.groups); k++ {
			g := f.groups[k]
			if at < int(g.at) {
				if !yield(f.src[f.step(k, at):g.from]) {
					return
				}
				at = int(g.at)
			}
			if at < int(g.to) && !yield(f.by[int(g.by)+at-int(g.at):int(g.by)+int(g.to-g.at)]) {
				return
			}
			at = int(g.to)
		}
		if at < f.size {
			yield(f.src[f.step(k, at):])
		}
	}
}

// lacks reports whether the folded text certainly does not contain old. It reads
// few bytes, and does not write the text, as a gramFinder would need it. If the
// original does not contain old, it reads only near the groups.
func (f *folded) lacks(old string, original bool) bool {
	if f.groups == nil || len(old) < finderMinOld || f.size < finderMinRatio*finderMinOld {
		return false
	}
	x := indexGrams(old)
	budget := f.size / gram
	k := 0
	for t := len(x.chain) - 1; t+gram <= f.size; t += len(x.chain) {
		for k < len(f.groups) && int(f.groups[k].to) <= t {
			k++
		}
		if original && (k == len(f.groups) || int(f.groups[k].at) > t+len(old)) && (k == 0 || int(f.groups[k-1].to) <= t-len(x.chain)) {
			continue // old would be where nothing was folded
		}
		there := f.gram(k, t)
		for o := x.heads[x.hash.of(there)]; o != 0; o = x.chain[o-1] {
			at := t - int(o-1)
			if budget--; at >= 0 && load(old, int(o-1)) == there {
				budget -= len(old) / gram
				if f.hasPrefix(at, old) {
					return false
				}
			}
			if budget < 0 {
				return false
			}
		}
	}
	return true
}

// gram returns the gram at byte at of the folded text, at or before which k groups end.
func (f *folded) gram(k, at int) uint64 {
	if k == len(f.groups) || at+gram <= int(f.groups[k].at) {
		return load(f.src, f.step(k, at))
	}
	var b [gram]byte
	n := 0
	for s := range f.pieces(k, at) {
		if n += copy(b[n:], s); n == gram {
			break
		}
	}
	return binary.LittleEndian.Uint64(b[:])
}

// hasPrefix reports whether old is at byte at of the folded text.
func (f *folded) hasPrefix(at int, old string) bool {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].to) > at })
	for s := range f.pieces(k, at) {
		n := min(len(s), len(old))
		if s[:n] != old[:n] {
			return false
		}
		if old = old[n:]; old == "" {
			return true
		}
	}
	return old == ""
}

// plainLines skips what folding cannot change: ASCII without white space before the
// end of a line. It begins at byte at, the start of a line, and returns how far it got.
func plainLines(text string, at int) int {
	const low, ends = ones * 0x7f, ones * '\n'
	i := at + 1
	for ; i+four < len(text); i += four {
		b := text[i-1 : i+four]
		p, w, x, y, z := load(b, 0), load(b, 1), load(b, gram+1), load(b, 2*gram+1), load(b, 3*gram+1)
		if (p|w|x|y|z)&tops != 0 {
			break
		}
		if ((w^ends)+low)&((x^ends)+low)&((y^ends)+low)&((z^ends)+low)&tops == tops {
			continue // no line ends here
		}
		if (blankEnds(p, w)|blankEnds(load(b, gram), x)|blankEnds(load(b, 2*gram), y)|blankEnds(load(b, 3*gram), z))&tops != 0 {
			break
		}
	}
	return i - 1
}

// blankEnds sets the highest bits of the bytes of x that end a line, and of which the
// byte before, that of p, is white space or a control character and ends no line. All
// are ASCII: no addition carries from one byte to the next.
func blankEnds(p, x uint64) uint64 {
	const low, ends = ones * 0x7f, ones * '\n'
	return ((p ^ ends) + low) &^ (((x ^ ends) + low) | (p + ones*(0x7f-' ')))
}

// A folder builds a folded text.
type folder struct {
	src    string
	groups []group
	by     strings.Builder
	shift  int // from the original to the folded text
}

func (f *folder) replace(from, till int, by string) {
	at := from + f.shift
	f.groups = append(f.groups, group{int32(at), int32(at + len(by)), int32(from), int32(till), int32(f.by.Len())})
	f.by.WriteString(by)
	f.shift += len(by) - (till - from)
}

func (f *folder) drop(from, till int) {
	if from < till {
		f.replace(from, till, "")
	}
}

// line folds a line that ends at byte end, without its end. Byte at is its start, or
// that of a line before; up to byte done, nothing but the end of the line changes.
func (f *folder) line(at, done, end int, indent bool) {
	kept := end
	if c := f.src[max(end-1, at):end]; c != "" && (c[0] <= ' ' || c[0] >= utf8.RuneSelf) {
		kept = at + len(strings.TrimRightFunc(f.src[at:end], isBlank))
	}
	if indent {
		start := kept - len(strings.TrimLeftFunc(f.src[at:kept], isBlank))
		f.drop(at, start)
		at = start
	}
	done = min(max(at, done), kept)
	if i := done + firstNonASCII(f.src[done:kept]); i < kept {
		// The last ASCII character may combine with the next one.
		f.foldFrom(max(i-1, at), at, kept)
	}
	f.drop(kept, end)
}

// isBlank reports whether r is white space inside a line, or has no width.
func isBlank(r rune) bool {
	switch {
	case r == ' ', r == '\t', r == '\v', r == '\f':
		return true
	case r < utf8.RuneSelf:
		return false
	}
	return fold(r) == ' ' || zeroWidth(r)
}

// foldFrom folds the characters from i to end of a line that begins at begin or later.
// The bytes from there to i are ASCII and stay.
func (f *folder) foldFrom(i, begin, end int) {
	table := firstPlane()
	run := -1        // start of the current run of spaces
	var before trait // traits of the last character kept before the run
	if j := len(strings.TrimRight(f.src[begin:i], " ")) + begin; j > begin && f.src[j-1] != '\n' {
		before = table[f.src[j-1]]
		if j < i {
			run = j
		}
	}
	for i < end {
		if run < 0 {
			i = f.skipPlain(table, i, end)
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
		case r == ' ' && len(by) <= 1: // written once the next character is known
			if run < 0 {
				run = i
			}
		case t&drops != 0 || by == "" && !same:
			if run < 0 {
				f.drop(i, i+n)
			}
		default:
			f.writeSpaces(run, i, before&cjk != 0 && first&latin != 0 || before&latin != 0 && first&cjk != 0)
			run = -1
			if !same {
				f.replace(i, i+n, by)
			}
			before = t
		}
		i += n
	}
	f.writeSpaces(run, end, false)
}

// skipPlain skips characters that folding does not change, and returns the start
// of the last one, because it may combine with the next character.
func (f *folder) skipPlain(table *[0x10000]trait, i, end int) int {
	src := f.src[:end]
	for j := i; j < len(src); {
		if n := plainThrees(src[j:]); n > 0 {
			j += n
			i = j - 3
		}
		if j+gram <= len(src) {
			x := load(src, j)
			if threeTwice(x) && table[threeAt(x)]&table[threeAt(x>>24)]&plain != 0 {
				i = j + 3
				j += 6
				continue
			}
			if x&tops == 0 && src[j] != ' ' {
				// ASCII stays, up to its last character other than a space.
				k := j + gram + firstNonASCII(src[j+gram:])
				i = j + len(strings.TrimRight(src[j:k], " ")) - 1
				if i < k-1 {
					break
				}
				j = k
				continue
			}
		}
		if j == len(src) {
			break
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

// writeSpaces drops a run of spaces and zero-width characters, or keeps its spaces
// as ASCII spaces.
func (f *folder) writeSpaces(from, till int, drop bool) {
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

// startsAt reports whether s begins with a character that cannot combine with the
// one before.
func startsAt(table *[0x10000]trait, s string) bool {
	if s == "" || s[0] < utf8.RuneSelf {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return traits(table, r)&starts != 0
}

// compatible returns the folded form of a character and its combining characters.
func compatible(s string) string {
	return strings.Map(func(r rune) rune {
		if zeroWidth(r) {
			return -1
		}
		return fold(r)
	}, norm.NFKC.String(s))
}

// start converts byte i of the folded text, the start of a span, to a byte of the
// original. Bytes dropped just before i are outside the span. It is false inside
// a group.
func (f *folded) start(i int) (int, bool) {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].to) > i })
	if k < len(f.groups) && int(f.groups[k].at) < i {
		return 0, false
	}
	return f.step(k, i), true
}

// end converts byte i of the folded text, the end of a span, to a byte of the
// original. Bytes dropped just after i are outside the span. It is false inside a
// group.
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

// step converts byte i of the folded text, which follows k groups, to a byte of
// the original.
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

// leftOutAfter returns the end of the bytes of the original that were dropped just
// after byte i of the folded text, which is byte end of the original.
func (f *folded) leftOutAfter(i, end int) int {
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].at) >= i })
	for ; k < len(f.groups) && int(f.groups[k].to) == i; k++ {
		if int(f.groups[k].from) == end {
			end = int(f.groups[k].till)
		}
	}
	return end
}
