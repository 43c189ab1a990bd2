// SPDX-License-Identifier: Apache-2.0

// Command bench measures Artel against its budgets.
//
//	go run .                    every benchmark; writes ../docs/performance.md
//	go run . -only start,route  some of them; prints, writes nothing
//	go run . -rounds 3          three times as many rounds
//	go run . -profile cpu.out   with a CPU profile of the benchmarks that run in this process
//
// Machines are noisy and differ, so beside each measured work runs an anchor:
// a small plain program that does the same with less around it, or the usual
// naive way. Both take turns in one run, medians are compared, and their
// quotient is what to look at. Servers run in processes of their own, so that
// memory can be measured; it is read from /proc, hence Linux.
//
// The program is a module of its own: the product does not depend on what only
// a measurement needs. Begin reading with [benchmarks].
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A benchmark is one section of the report.
type benchmark struct {
	name  string // of -only
	title string
	about string // what is measured, and what the anchor is
	run   func(context.Context, *lab) []result
}

// benchmarks lists them in the order of the report.
func benchmarks() []benchmark {
	return []benchmark{
		{"start", "Start, idle memory, size", startAbout, measureStart},
		{"upload", "Uploads", uploadAbout, measureUpload},
		{"image", "An image on its way to a model", imageAbout, measureImage},
		{"detect", "Saying what bytes are", detectAbout, measureDetect},
		{"scrub", "Taking media out of text", scrubAbout, measureScrub},
		{"route", "Routing", routeAbout, measureRoute},
		{"wire", "Routed pictures on the wire", wireAbout, measureWire},
		{"journal", "The edit journal", journalAbout, measureJournal},
		{"artifacts", "Artifacts and their versions", artifactsAbout, measureArtifacts},
		{"fold", "The end of a run with many edits", foldAbout, measureFold},
		{"tokens", "Token counting", tokensAbout, measureTokens},
		{"edit", "Matching old text", editAbout, measureEdit},
		{"context", "Building a context", contextAbout, measureContext},
		{"rules", "Finding and replacing", rulesAbout, measureRules},
		{"engine", "The engine", engineAbout, measureEngine},
		{"stream", "Event streams", streamAbout, measureStream},
		{"gateway", "The gateway", gatewayAbout, measureGateway},
		{"clients", "Conversations of clients", clientsAbout, measureClients},
		{"mcp", "The MCP proxy", mcpAbout, measureMCP},
		{"doors", "Users, keys, budgets, metrics and traces", doorsAbout, measureDoors},
	}
}

// A lab is the environment of the benchmarks: folders, programs, options.
type lab struct {
	dir     string // gone afterwards
	root    string // of the product's module
	times   int    // of -rounds
	program string // the product, built
	minimal string // the minimal server, built
}

// rounds scales the usual number of rounds.
func (l *lab) rounds(usual int) int { return usual * l.times }

// folder creates a new folder.
func (l *lab) folder() string { return must(os.MkdirTemp(l.dir, "data-")) }

// open builds what the benchmarks run.
func (l *lab) open(ctx context.Context) {
	l.program, l.minimal = filepath.Join(l.dir, "artel"), filepath.Join(l.dir, "minimal")
	build(ctx, l.root, "./cmd/artel", l.program)
	build(ctx, filepath.Join(l.root, "bench"), "./minimal", l.minimal)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	run := bench
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "role":
			run = play
		case "mcp-server":
			run = func(ctx context.Context, _ []string) error { return serveMCP(ctx) }
		}
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	only := flags.String("only", "", "names of benchmarks, with commas; empty: all")
	times := flags.Int("rounds", 1, "multiply the number of rounds")
	root := flags.String("root", "..", "the product's folder")
	profile := flags.String("profile", "", "write a CPU profile of this process")
	_ = flags.Parse(args)
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "artel-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{dir: dir, root: *root, times: max(1, *times)}
	fmt.Fprintln(os.Stderr, "building")
	if err := catch(func() { l.open(ctx) }); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r := report{machine: thisMachine(*root), began: time.Now()}
	var out io.Writer = os.Stdout
	r.head(out)
	for _, b := range chosen {
		fmt.Fprintln(os.Stderr, "measuring", b.name)
		began := time.Now()
		var results []result
		if err := catch(func() { results = b.run(ctx, l) }); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		r.sections = append(r.sections, section{b, results})
		r.section(out, r.sections[len(r.sections)-1])
		fmt.Fprintf(os.Stderr, "%s took %.1f s\n", b.name, time.Since(began).Seconds())
	}
	if *only != "" {
		return nil
	}
	return r.write(filepath.Join(*root, "docs", "performance.md"))
}

// choose returns the benchmarks of the given names.
func choose(names string) ([]benchmark, error) {
	all := benchmarks()
	if names == "" {
		return all, nil
	}
	var chosen []benchmark
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(b benchmark) bool { return b.name == name })
		if i < 0 {
			var known []string
			for _, b := range all {
				known = append(known, b.name)
			}
			return nil, fmt.Errorf("there is no benchmark %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
