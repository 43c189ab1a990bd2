// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A unit formats a figure and says whether more or less is better.
type unit struct {
	name   string
	scale  float64
	higher bool // is better
}

func millis() unit    { return unit{"ms", 1e3, false} }
func megabytes() unit { return unit{"MB", 1e-6, false} }
func kilobytes() unit { return unit{"KB", 1e-3, false} }
func mbPerSec() unit  { return unit{"MB/s", 1e-6, true} }
func gbPerSec() unit  { return unit{"GB/s", 1e-9, true} }
func times(of string) unit {
	return unit{of + "/s", 1, true}
}

func (u unit) format(v float64) string {
	v *= u.scale
	switch {
	case v < 0:
		return "0 " + u.name
	case v < 1:
		return strconv.FormatFloat(v, 'f', 2, 64) + " " + u.name
	case v < 30 && v != math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 1, 64) + " " + u.name
	}
	return count(int(math.Round(v)), u.name)
}

// count formats a number with thousands separators.
func count(n int, things string) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s + " " + things
}

// bytesOf formats a round size.
func bytesOf(n int64) string {
	if n < 1e6 {
		return count(int(n/1e3), "KB")
	}
	return count(int(n/1e6), "MB")
}

// A result is one row of the report.
type result struct {
	work, size string
	unit       unit
	artel      float64
	anchor     float64 // 0: there is none
	target     target
}

// A target is the limit of a row; the zero target is no limit.
type target struct {
	limit float64 // of Artel's figure, in the unit's base
	ratio float64 // of Artel's figure to the anchor's: at least, or for time and memory at most
	// reference is the anchor's figure on the machine for which limit was set.
	// A missed limit is scaled by the anchor's figure on this machine.
	reference float64
}

func (r result) ratio() string {
	if r.anchor == 0 {
		return "–"
	}
	q := r.artel / r.anchor
	digits := 2
	switch {
	case q < 0.1:
		digits = 3
	case q >= 10:
		digits = 0
	}
	return strconv.FormatFloat(q, 'f', digits, 64)
}

func (r result) wanted() string {
	sign := "< "
	if r.unit.higher {
		sign = "≥ "
	}
	text := "–"
	switch t := r.target; {
	case t.ratio > 0:
		text = "ratio " + sign + strconv.FormatFloat(t.ratio, 'g', 3, 64)
	case t.limit > 0:
		text = sign + r.unit.format(t.limit)
		if t.reference > 0 {
			text += " where the anchor has " + r.unit.format(t.reference)
		}
	}
	return text
}

// The verdicts.
const (
	met    = "met"
	scaled = "met in proportion"
	missed = "**missed**"
	none   = "–"
)

// verdict reports whether the target is met.
func (r result) verdict() string {
	within := func(limit float64) bool { return r.artel >= limit == r.unit.higher || r.artel == limit }
	switch t := r.target; {
	case t == target{}:
		return none
	case t.ratio > 0 && within(t.ratio*r.anchor), t.limit > 0 && within(t.limit):
		return met
	case t.reference > 0 && within(t.limit*r.anchor/t.reference):
		return scaled
	}
	return missed
}

type section struct {
	benchmark
	results []result
}

// A report is the content of docs/performance.md.
type report struct {
	machine  machine
	began    time.Time
	sections []section
}

// A machine describes the machine that was measured.
type machine struct {
	cpu, system, memory, version string
	load                         float64 // of the last minute, before
}

func thisMachine(root string) machine {
	m := machine{cpu: runtime.GOARCH, system: runtime.GOOS, memory: "unknown memory", version: "unknown"}
	if name := field("/proc/cpuinfo", "model name"); name != "" {
		m.cpu = name
	}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.memory = fmt.Sprintf("%.0f GB", kb/1e6)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.system += " " + strings.TrimSpace(string(release))
	}
	m.load = load()
	cmd := exec.Command("git", "describe", "--always", "--dirty")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		m.version = strings.TrimSpace(string(out))
	}
	return m
}

// field returns the first value of key in a "key: value" file.
func field(path, key string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load returns the load average of the last minute, or 0 if it is unknown.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

func (r *report) head(w io.Writer) {
	m := r.machine
	fmt.Fprintf(w, `# Performance

Written by `+"`make bench`"+` on %s.

Machine: %s, %d processors, %s, %s, %s. Version %s. Load average before: %.1f.

Beside each work runs an anchor: a small plain program that does the same, or
the usual naive way to do it. Both take turns in one run, and the figures are
medians. Machines differ and are noisy: read the ratio, which is Artel's figure
divided by the anchor's. For speeds more is better; for times and memory less.
Where a target names what the anchor has, that is its figure on the machine that
the target was set on; on a slower one, the target holds in proportion. Clients,
servers and anchors share the processors. MB is a million bytes.
`, r.began.UTC().Format("2006-01-02"), m.cpu, runtime.NumCPU(), m.memory, m.system, runtime.Version(), m.version, m.load)
}

func (r *report) section(w io.Writer, s section) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n| work | size | Artel | anchor | ratio | target | |\n|---|---|---:|---:|---:|---|---|\n", s.title, s.about)
	for _, row := range s.results {
		anchor := "–"
		if row.anchor != 0 {
			anchor = row.unit.format(row.anchor)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n",
			row.work, row.size, row.unit.format(row.artel), anchor, row.ratio(), row.wanted(), row.verdict())
	}
}

// verdicts sums up.
func (r *report) verdicts(w io.Writer) {
	count := map[string]int{}
	var list []string
	for _, s := range r.sections {
		for _, row := range s.results {
			v := row.verdict()
			count[v]++
			if v == missed {
				list = append(list, fmt.Sprintf("- %s: %s, %s\n", s.title, row.work, row.size))
			}
		}
	}
	fmt.Fprintf(w, "\n## In short\n\nOf %d targets %d are met, %d are met in proportion, %d are missed.\n",
		count[met]+count[scaled]+count[missed], count[met], count[scaled], count[missed])
	if len(list) > 0 {
		fmt.Fprintf(w, "\n%s", strings.Join(list, ""))
	}
	fmt.Fprintf(w, "\nThe load average was %.1f before and %.1f after; the run took %.0f s.\n", r.machine.load, load(), time.Since(r.began).Seconds())
}

func (r *report) write(path string) error {
	var out bytes.Buffer
	r.head(&out)
	r.verdicts(&out)
	for _, s := range r.sections {
		r.section(&out, s)
	}
	r.verdicts(os.Stdout)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
