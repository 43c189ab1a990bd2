// SPDX-License-Identifier: Apache-2.0

// Command testsum reads the output of "go test -json" and prints what a person
// needs: the beginning and the end of the output of what failed, the time of each
// package and of the tests that took longest, and one line
//
//	N passed, N failed
//
// Every top-level test, example and fuzz target counts as one, and so does a
// package that does not build or fails outside of its tests. A skipped test,
// and a run in which nothing was tested, is a failure. The exit status is 1 if
// anything failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// An event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// A run collects what the events say.
type run struct {
	out            io.Writer
	passed, failed int
	output         map[string][]string // by package, or package and test
	failedIn       map[string]bool     // packages with a failed test
	slow           []event             // tests that passed, and not soon
	names          []string            // of tests that did not pass
}

// summarize reads events from r until its end and reports whether all is well.
func summarize(r io.Reader, w io.Writer) (bool, error) {
	s := &run{out: w, output: map[string][]string{}, failedIn: map[string]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// What is no event is a word of the go command itself.
			fmt.Fprintln(w, lines.Text())
			continue
		}
		s.take(e)
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	if s.passed+s.failed == 0 {
		fmt.Fprintln(w, "nothing was tested")
	}
	slices.SortStableFunc(s.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range s.slow[:min(len(s.slow), slowest)] {
		fmt.Fprintf(w, "slow  %7.2fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	for _, name := range s.names {
		fmt.Fprintln(w, name)
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", s.passed, s.failed)
	return s.failed == 0 && s.passed > 0, nil
}

// Of the tests that took this many seconds or more, this many are named.
const (
	slowly  = 5
	slowest = 20
)

// So many lines of a failed test's output are shown, of which so many are its
// first.
const (
	most  = 50
	first = 10
)

func (s *run) take(e event) {
	key := e.Package
	if e.Test != "" {
		key += " " + e.Test
	}
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		s.output[e.ImportPath] = append(s.output[e.ImportPath], e.Output)
	case "pass":
		if e.Test == "" {
			fmt.Fprintf(s.out, "ok    %7.2fs  %s\n", e.Elapsed, e.Package)
		} else if top(e.Test) {
			s.passed++
			if e.Elapsed >= slowly {
				s.slow = append(s.slow, e)
			}
		}
		delete(s.output, key)
	case "skip":
		if e.Test == "" {
			return // a package without tests
		}
		s.fail(e, key, "SKIP")
	case "fail":
		s.fail(e, key, "FAIL")
	}
}

func top(test string) bool { return !strings.Contains(test, "/") }

// fail counts e once: a package only if no test of it has been counted.
func (s *run) fail(e event, key, word string) {
	name := e.Package
	switch {
	case e.Test != "":
		name = key
		s.failedIn[e.Package] = true
		if top(e.Test) || word == "SKIP" {
			s.failed++
		}
	case !s.failedIn[e.Package]:
		s.failed++
	}
	fmt.Fprintf(s.out, "%s  %7.2fs  %s\n", word, e.Elapsed, name)
	if e.FailedBuild != "" {
		s.print(s.output[e.FailedBuild])
	}
	s.print(s.output[key])
	if e.Test == "" {
		s.unfinished(e.Package)
	} else {
		s.names = append(s.names, word+"  "+name)
	}
	delete(s.output, key)
}

// unfinished shows what the tests said that were at work when their package
// came to its end: it took too long, or a panic ended it.
func (s *run) unfinished(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(s.output)) {
		if test, of := strings.CutPrefix(key, pkg+" "); of && !strings.HasPrefix(test, "[") { // which is a build
			fmt.Fprintf(s.out, "  %s did not end\n", key)
			s.print(s.output[key])
			delete(s.output, key)
		}
	}
}

// print shows the beginning and the end of an output, which say what is wrong.
func (s *run) print(lines []string) {
	for i, line := range lines {
		switch more := len(lines) - most; {
		case more <= 0 || i < first || i >= first+more:
			fmt.Fprint(s.out, "    ", line)
		case i == first:
			fmt.Fprintf(s.out, "    (%d lines more)\n", more)
		}
	}
}
