// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// ApplyChanges replays changes on text in order, each on the result of the one
// before. It is of kind [artel.Conflict] if the span of a change is outside the text
// or does not contain Old. Changes from left to right cost one pass over the text;
// changes in any other order cost one pass, and a small part of the text for each.
func ApplyChanges(text string, changes []artel.Change) (string, error) {
	var segmented *segmentedText // instead of text
	for done := 0; done < len(changes); {
		n := ascending(changes[done:])
		fit := 0
		if segmented == nil && (n == len(changes) || n > len(text)/segmentSize) {
			text, fit = applyAscending(text, changes[done:done+n])
		} else {
			if segmented == nil {
				segmented = newSegmentedText(text)
			}
			for fit < n && segmented.replace(changes[done+fit]) {
				fit++
			}
		}
		if done += fit; fit < n {
			c := changes[done]
			return "", artel.Errorf(artel.Conflict, "edit.ApplyChanges", "",
				"change %d of %d does not fit: its old text is not at characters %d to %d", done+1, len(changes), c.Start, c.End)
		}
		if segmented != nil && done < len(changes) && ascending(changes[done:]) > segmented.size/segmentSize {
			text, segmented = segmented.String(), nil
		}
	}
	if segmented != nil {
		return segmented.String(), nil
	}
	return text, nil
}

// ascending returns how many changes, from the first, lie behind each other. Changes
// whose span is impossible end them.
func ascending(changes []artel.Change) int {
	n := 1
	for n < len(changes) && changes[n].Start >= changes[n-1].Start+utf8.RuneCountInString(changes[n-1].New) {
		n++
	}
	return n
}

// applyAscending applies changes that lie behind each other in one pass, and returns
// how many fit.
func applyAscending(text string, changes []artel.Change) (string, int) {
	var done strings.Builder
	done.Grow(len(text))
	rest, at := text, 0 // the text after done, and its position
	for i, c := range changes {
		skip, ok := chars(rest, c.Start-at)
		if !ok || !strings.HasPrefix(rest[skip:], c.Old) || utf8.RuneCountInString(c.Old) != c.End-c.Start {
			return "", i
		}
		done.WriteString(rest[:skip])
		done.WriteString(c.New)
		rest = rest[skip+len(c.Old):]
		at = c.Start + utf8.RuneCountInString(c.New)
	}
	done.WriteString(rest)
	return done.String(), len(changes)
}

// segmentSize is the size of a segment in bytes. A change copies at most two segments
// beside its own text, and looks for its place among all of them.
const segmentSize = 2 << 10

// A segment is a part of a text with its length in code points.
type segment struct {
	text  string
	chars int
}

// A segmentedText is a text in segments of at most twice segmentSize, none of them empty.
type segmentedText struct {
	segments []segment
	size     int // bytes
	near     int // index of the segment of the last change
	at       int // code points before it
}

func newSegmentedText(text string) *segmentedText {
	return &segmentedText{segments: appendSegments(make([]segment, 0, len(text)/segmentSize+1), text), size: len(text)}
}

// appendSegments cuts text between code points.
func appendSegments(to []segment, text string) []segment {
	for len(text) > 2*segmentSize {
		n := segmentSize
		for n > segmentSize-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		to = append(to, segment{text[:n], utf8.RuneCountInString(text[:n])})
		text = text[n:]
	}
	if text == "" {
		return to
	}
	return append(to, segment{text, utf8.RuneCountInString(text)})
}

// replace applies c and reports whether it fits.
func (t *segmentedText) replace(c artel.Change) bool {
	if c.Start < 0 || utf8.RuneCountInString(c.Old) != c.End-c.Start {
		return false
	}
	i, n, ok := t.find(c.Start)
	if !ok {
		return false
	}
	// From byte n of segment i to byte m of segment j.
	j, m, old := i, n, c.Old
	for old != "" {
		if j == len(t.segments) {
			return false
		}
		rest := t.segments[j].text[m:]
		k := min(len(rest), len(old))
		if rest[:k] != old[:k] {
			return false
		}
		if old, m = old[k:], m+k; old != "" {
			j, m = j+1, 0
		}
	}
	t.size += len(c.New) - len(c.Old)
	var before, after string
	if i < len(t.segments) {
		before = t.segments[i].text[:n]
	}
	end := i
	if j < len(t.segments) {
		after, end = t.segments[j].text[m:], j+1
	}
	var buf [4]segment
	put := appendSegments(buf[:0], before+c.New+after)
	if len(put) == end-i {
		copy(t.segments[i:], put)
	} else {
		t.segments = slices.Replace(t.segments, i, end, put...)
	}
	return true
}

// find returns the segment that contains code point number at, and the byte in it. The
// end of the text is the end of the last segment.
func (t *segmentedText) find(at int) (i, n int, ok bool) {
	for t.near > 0 && (at < t.at || t.near >= len(t.segments)) {
		t.near--
		t.at -= t.segments[t.near].chars
	}
	for t.near < len(t.segments)-1 && at >= t.at+t.segments[t.near].chars {
		t.at += t.segments[t.near].chars
		t.near++
	}
	if t.near == len(t.segments) { // the text is empty
		return t.near, 0, at == t.at
	}
	p := t.segments[t.near]
	if len(p.text) == p.chars {
		return t.near, at - t.at, at-t.at <= p.chars
	}
	n, ok = chars(p.text, at-t.at)
	return t.near, n, ok
}

// String returns the whole text.
func (t *segmentedText) String() string {
	var b strings.Builder
	b.Grow(t.size)
	for _, p := range t.segments {
		b.WriteString(p.text)
	}
	return b.String()
}

// chars returns the length in bytes of the first n code points of s.
func chars(s string, n int) (int, bool) {
	if n < 0 || n > len(s) {
		return 0, false
	}
	for i := range s {
		if n == 0 {
			return i, true
		}
		n--
	}
	return len(s), n == 0
}
