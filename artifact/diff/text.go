// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"strings"
)

const (
	lineEnd = "\n"

	// margin is the number of lines of the common beginning and end that are
	// kept, so that changes can be moved over them.
	margin = 64

	// checkEvery is the number of lines read between two checks of the context.
	checkEvery = 1 << 16
)

// A text holds the lines of a text between its common beginning and common end
// with other texts.
type text struct {
	src    string
	starts []int // of each line in src, and the end of the last one
	before int   // lines in front of the first
}

func (t *text) count() int { return len(t.starts) - 1 }

// line returns line i, from 0, with its end.
func (t *text) line(i int) string { return t.src[t.starts[i]:t.starts[i+1]] }

// span returns the text of the lines from i to before j.
func (t *text) span(i, j int) string { return t.src[t.starts[i]:t.starts[j]] }

// split returns the content of a line and its end.
func split(line string) (content, end string) {
	content, found := strings.CutSuffix(line, lineEnd)
	if !found {
		return line, ""
	}
	if short, found := strings.CutSuffix(content, "\r"); found {
		return short, "\r\n"
	}
	return content, lineEnd
}

// narrow removes the lines with which all sources begin and end, except keep lines
// on either side.
func narrow(ctx context.Context, keep int, sources ...string) ([]text, error) {
	first := sources[0]
	head, tail := len(first), len(first)
	for _, s := range sources[1:] {
		head = min(head, commonPrefix(first, s))
	}
	head = strings.LastIndex(first[:head], lineEnd) + 1
	for _, s := range sources {
		tail = min(tail, len(s)-head, commonSuffix(first, s))
	}
	// The tail begins with a whole line on every side, or it gives up its first.
	for _, s := range sources {
		if at := len(s) - tail; at > head && s[at-1] != '\n' {
			tail = skipLine(first, tail)
			break
		}
	}
	for range keep {
		if head == 0 && tail == 0 {
			break
		}
		head = strings.LastIndex(first[:max(head-1, 0)], lineEnd) + 1
		tail = skipLine(first, tail)
	}
	before := strings.Count(first[:head], lineEnd)
	texts := make([]text, len(sources))
	for i, s := range sources {
		t := text{src: s, before: before}
		t.starts = make([]int, 1, strings.Count(s[head:len(s)-tail], lineEnd)+2)
		t.starts[0] = head
		at := head
		for line := range strings.Lines(s[head : len(s)-tail]) {
			at += len(line)
			t.starts = append(t.starts, at)
			if len(t.starts)%checkEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		texts[i] = t
	}
	return texts, nil
}

// skipLine shortens a tail of s by its first line.
func skipLine(s string, tail int) int {
	i := strings.Index(s[len(s)-tail:], lineEnd)
	if i < 0 {
		return 0
	}
	return tail - i - 1
}

// number gives equal lines equal numbers, from 0, and returns them for each
// text and how many numbers there are.
func number(ctx context.Context, texts []text) ([][]int32, int, error) {
	known := make(map[string]int32, texts[0].count())
	ids := make([][]int32, len(texts))
	for i := range texts {
		t := &texts[i]
		ids[i] = make([]int32, t.count())
		for j := range ids[i] {
			if j%checkEvery == 0 && ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
			line := t.line(j)
			id, ok := known[line]
			if !ok {
				id = int32(len(known))
				known[line] = id
			}
			ids[i][j] = id
		}
	}
	return ids, len(known), nil
}

// stride is the block size in which two texts are compared before single bytes.
const stride = 1 << 10

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i+stride <= n && a[i:i+stride] == b[i:i+stride] {
		i += stride
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i+stride <= n && a[len(a)-i-stride:len(a)-i] == b[len(b)-i-stride:len(b)-i] {
		i += stride
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}
