// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel/artifact/edit"
)

const editAbout = "`edit.Apply` on a document that it has not seen: the exact and the normalised layer find nothing, and the approximate one has to. " +
	"Old texts of 200 and 2,000 characters are passages of the document with 5 % random edits, or, for a miss, shuffled characters of it. " +
	"With the margin, every other place has to be worse by a tenth of the old text; without, only worse. English is the comments of Go's library, Chinese that of token counting. " +
	"The anchor is edlib's infix mode with location and a limit of 30 % (`bench/edlib`, built with `c++ -ledlib`), which counts bytes and asks for no other place; where it cannot be built there is no anchor. Speeds are by processor time, which others on the machine hardly change. " +
	"Of a call on 100 KB of English with 200 characters and no margin, a fifth of the time is the copy of the document with the new text, which edlib does not make, " +
	"and a third are passes over the bytes, each once: whether they are UTF-8, what folding could change, a gram of every eight, the lines and characters before the match. The search itself is a quarter. " +
	"The normalised rows find a passage with other quotes and blanks, at first, and again in a document that is kept; memory is what a call allocates."

func measureEdit(ctx context.Context, l *lab) []result {
	english := goComments(ctx, 1e6)
	chinese := chineseText(l.root)
	anchor := buildEdlib(ctx, l)
	var results []result
	for _, t := range []struct{ name, text string }{{"English", english}, {"Chinese", chinese}} {
		for _, size := range []int{10e3, 100e3, 1e6} {
			for _, length := range []int{200, 2000} {
				rows := measureApproximate(ctx, l, anchor, t.name, cut(t.text, size), size, length)
				results = append(results, rows...)
			}
		}
	}
	for _, t := range []struct{ name, text string }{{"English", english}, {"Chinese", chinese}} {
		for _, size := range []int{10e3, 100e3, 1e6} {
			rows := measureNormalized(ctx, l, t.name, cut(t.text, size), size)
			results = append(results, rows...)
		}
	}
	return results
}

// goComments returns size bytes of English with little repetition.
func goComments(ctx context.Context, size int) string {
	var words strings.Builder
	for _, name := range goFiles(ctx, "*") {
		f := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution))
		for i, c := range f.Comments {
			if i > 0 { // the first is the licence
				words.WriteString(comment(c))
			}
		}
		if words.Len() >= size {
			return words.String()
		}
	}
	fail("the comments of Go's library have %d bytes only", words.Len())
	return ""
}

// buildEdlib compiles the anchor and returns its path, or "" if it cannot.
func buildEdlib(ctx context.Context, l *lab) string {
	program := filepath.Join(l.dir, "edlib")
	out, err := exec.CommandContext(ctx, "c++", "-O3", "-o", program, filepath.Join(l.root, "bench", "edlib", "edlib.cc"), "-ledlib").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "no anchor for approximate matches, edlib is missing: %v\n%s", err, out)
		return ""
	}
	return program
}

// measureApproximate measures hits with and without the margin, and misses.
func measureApproximate(ctx context.Context, l *lab, anchor, name, text string, size, length int) []result {
	const while, patterns = 60 * time.Millisecond, 5
	r := rand.New(rand.NewPCG(uint64(size), uint64(length)))
	var hits, misses []string
	all := []rune(text)
	for tries := 0; len(hits) < patterns; tries++ {
		if tries > 100*patterns {
			fail("%s of %d bytes has too few distinct passages", name, size)
		}
		from := r.IntN(len(all) - length)
		old := string(misquoted(r, all[from:from+length], length/20))
		if _, err := approximate(ctx, text, old, nil); err == nil {
			hits = append(hits, old)
		}
	}
	for range patterns {
		from := r.IntN(len(all) - length)
		old := slices.Clone(all[from : from+length])
		r.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
		misses = append(misses, string(old))
	}
	no := edit.DefaultLimits()
	no.Margin = 0
	try := func(olds []string, limits *edit.Limits, found bool) sample {
		return perBusySecond(float64(len(text)*len(olds)), while, func() error {
			for _, old := range olds {
				_, err := approximate(ctx, text, old, limits)
				if err == nil != found {
					fail("%s of %d bytes: %d characters: %w", name, size, length, cmpErr(err))
				}
			}
			return nil
		})
	}
	works := []sample{try(hits, nil, true), try(hits, &no, true), try(misses, nil, false)}
	if anchor != "" {
		hit := edlibSample(ctx, l, anchor, text, hits, while)
		miss := edlibSample(ctx, l, anchor, text, misses, while)
		works = append(works, hit, miss)
	}
	m := interleave(l.rounds(5), works...)
	m = append(m, 0, 0) // no anchor
	want := func(ratio float64) target {
		if size < 100e3 || anchor == "" {
			return target{}
		}
		return target{ratio: ratio}
	}
	withMargin := 1.5
	if length >= 2000 {
		withMargin = 4
	}
	amount := bytesOf(int64(size)) + ", " + count(length, "characters")
	return []result{
		{work: name + ", margin", size: amount, unit: mbPerSec(), artel: m[0], anchor: m[3], target: want(withMargin)},
		{work: name + ", no margin", size: amount, unit: mbPerSec(), artel: m[1], anchor: m[3], target: want(8)},
		{work: name + ", miss", size: amount, unit: mbPerSec(), artel: m[2], anchor: m[4], target: want(0.9)},
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("it found what is not there")
	}
	return err
}

// approximate searches text for old, which has an approximate match or none.
func approximate(ctx context.Context, text, old string, limits *edit.Limits) (edit.Hit, error) {
	r, err := edit.Apply(ctx, text, []edit.Edit{{Old: old}}, edit.Options{Limits: limits})
	if err != nil {
		return edit.Hit{}, err
	}
	return r.Hits[0], nil
}

// misquoted applies random edits to an excerpt.
func misquoted(r *rand.Rand, passage []rune, edits int) []rune {
	old := slices.Clone(passage)
	for range edits {
		i, c := r.IntN(len(old)), passage[r.IntN(len(passage))]
		switch r.IntN(3) {
		case 0:
			old = slices.Insert(old, i, c)
		case 1:
			old[i] = c
		default:
			old = slices.Delete(old, i, i+1)
		}
	}
	return old
}

// edlibSample measures the anchor over the same text and patterns.
func edlibSample(ctx context.Context, l *lab, program, text string, patterns []string, while time.Duration) sample {
	dir := l.folder()
	args := []string{filepath.Join(dir, "text"), strconv.FormatInt(while.Milliseconds(), 10)}
	check(os.WriteFile(args[0], []byte(text), 0o600))
	for i, p := range patterns {
		name := filepath.Join(dir, strconv.Itoa(i))
		check(os.WriteFile(name, []byte(p), 0o600))
		args = append(args, name)
	}
	return func() float64 {
		out, err := exec.CommandContext(ctx, program, args...).Output()
		if err != nil {
			fail("edlib: %w", err)
		}
		speed, _, _ := strings.Cut(string(out), "\n")
		return must(strconv.ParseFloat(speed, 64))
	}
}

// measureNormalized measures a match in the normalised layer.
func measureNormalized(ctx context.Context, l *lab, name, text string, size int) []result {
	lines := strings.Split(text, "\n")
	if len(lines) < 8 {
		lines = strings.SplitAfter(text, "。")
	}
	lines[len(lines)/2] = "“the one” place  \nthat is quoted otherwise"
	text = strings.Join(lines, "\n")
	edits := []edit.Edit{{Old: "\"the one\" place\nthat is quoted otherwise", New: "x"}}
	kept := edit.NewDocument(text)
	run := func(d *edit.Document) error {
		r, err := d.Apply(ctx, edits, edit.Options{Mode: edit.Normalized})
		if err == nil && r.Hits[0].Count != 1 {
			err = errors.New("found in another layer")
		}
		return err
	}
	again := seconds(func() error { return run(kept) })
	m := interleave(l.rounds(7), seconds(func() error { return run(edit.NewDocument(text)) }), again)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	check(run(edit.NewDocument(text)))
	runtime.ReadMemStats(&after)
	timed, memory := target{}, target{}
	if size == 1e6 {
		timed, memory = target{limit: 0.020}, target{limit: 30e6}
	}
	amount := bytesOf(int64(size))
	return []result{
		{work: name + ", normalised, first call", size: amount, unit: millis(), artel: m[0], target: timed},
		{work: name + ", normalised, document kept", size: amount, unit: millis(), artel: m[1]},
		{work: name + ", normalised, memory of the first call", size: amount, unit: megabytes(), artel: float64(after.TotalAlloc - before.TotalAlloc), target: memory},
	}
}
