// SPDX-License-Identifier: Apache-2.0

// Command testsum reads the output of "go test -json" and prints a summary:
// each package when it ends, the beginning and the end of the output of a failed
// test, how far the run is every 20 seconds, and at the end the ten slowest tests,
// the failed and the skipped ones, and the line
//
//	N passed, N failed, N skipped
//
// Every top-level test, example and fuzz target counts as one, and so does a
// package that does not build or fails outside of its tests. The exit status is
// 1 if a test failed or was skipped, or if nothing was tested.
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
	"time"
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
	Time        time.Time
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// A run is the state of the summary after some events.
type run struct {
	out                     io.Writer
	passed, failed, skipped int
	started, reported       time.Time           // first event; last line of progress
	running                 map[string]bool     // packages
	output                  map[string][]string // by package, or package and test
	failedIn                map[string]bool     // packages with a failed test
	slow                    []event             // passed tests that took long
	names                   []string            // of tests that did not pass
}

// summarize reads events from r until its end and reports whether all is well.
func summarize(r io.Reader, w io.Writer) (bool, error) {
	s := &run{out: w, running: map[string]bool{}, output: map[string][]string{}, failedIn: map[string]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// A line that is no event is a message of the go command.
			fmt.Fprintln(w, lines.Text())
			continue
		}
		s.progress(e)
		s.take(e)
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	if s.passed+s.failed+s.skipped == 0 {
		fmt.Fprintln(w, "nothing was tested")
	}
	slices.SortStableFunc(s.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range s.slow[:min(len(s.slow), slowest)] {
		fmt.Fprintf(w, "slow  %7.2fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	for _, name := range s.names {
		fmt.Fprintln(w, name)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return s.failed+s.skipped == 0 && s.passed > 0, nil
}

// progress prints a line when none has been printed for an interval.
func (s *run) progress(e event) {
	switch {
	case e.Time.IsZero():
	case s.started.IsZero():
		s.started, s.reported = e.Time, e.Time
	case e.Time.Sub(s.reported) >= interval:
		s.reported = e.Time
		fmt.Fprintf(s.out, "...   %7.2fs  %d passed, %d failed; running: %s\n",
			e.Time.Sub(s.started).Seconds(), s.passed, s.failed, strings.Join(slices.Sorted(maps.Keys(s.running)), " "))
	}
}

const (
	slow     = 1  // seconds a test that is listed takes at least
	slowest  = 10 // tests listed at most
	interval = 20 * time.Second
)

// Bounds on the printed lines of a failed test's output, and of its first ones.
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
	case "start":
		s.running[e.Package] = true
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		s.output[e.ImportPath] = append(s.output[e.ImportPath], e.Output)
	case "pass":
		if e.Test == "" {
			delete(s.running, e.Package)
			fmt.Fprintf(s.out, "ok    %7.2fs  %s\n", e.Elapsed, e.Package)
		} else if top(e.Test) {
			s.passed++
			if e.Elapsed >= slow {
				s.slow = append(s.slow, e)
			}
		}
		delete(s.output, key)
	case "skip":
		if e.Test == "" {
			delete(s.running, e.Package) // it has no tests
			return
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
	case word == "SKIP":
		name = key
		s.skipped++
	case e.Test != "":
		name = key
		s.failedIn[e.Package] = true
		if top(e.Test) {
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
		delete(s.running, e.Package)
		s.unfinished(e.Package)
	} else {
		s.names = append(s.names, word+"  "+name)
	}
	delete(s.output, key)
}

// unfinished prints the output of the tests that had not ended when their
// package did, by a timeout or a panic.
func (s *run) unfinished(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(s.output)) {
		if test, of := strings.CutPrefix(key, pkg+" "); of && !strings.HasPrefix(test, "[") { // which is a build
			fmt.Fprintf(s.out, "  %s did not end\n", key)
			s.print(s.output[key])
			delete(s.output, key)
		}
	}
}

// print prints the beginning and the end of an output.
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
