// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel/httpapi"
)

const startAbout = "From the start of the process to the first 200 of `GET /healthz`, asked again every 0.1 ms. " +
	"The anchor is the smallest useful server over the same database library: twenty migrations and one endpoint (`bench/minimal`). " +
	"Idle is two seconds after the start, before anything is used. Its own memory is what it has written to; the rest are pages of the program, " +
	"of which Linux maps at least 64 KB around each that runs, and which it shares with its file cache; those that only the start has used are unmapped after a second. " +
	"The first answer of the API comes after the first 200, and makes the operations. Both are built with `-trimpath -ldflags '-s -w'`, without cgo."

func measureStart(ctx context.Context, l *lab) []result {
	type server struct {
		program string
		args    []string
		data    string
	}
	servers := []*server{{program: l.program, args: []string{"serve"}}, {program: l.minimal}}
	begin := func(s *server) sample {
		return func() float64 {
			p := start(ctx, "/healthz", s.program, append(slices.Clone(s.args), "--data", s.data)...)
			check(p.stop())
			return p.started.Seconds()
		}
	}
	fresh := func(s *server) sample {
		return func() float64 {
			s.data = filepath.Join(l.folder(), "data")
			return begin(s)()
		}
	}
	idle := func(s *server, field string) sample {
		return func() float64 {
			p := start(ctx, "/healthz", s.program, append(slices.Clone(s.args), "--data", s.data)...)
			time.Sleep(2 * time.Second)
			rss := p.memory(field)
			check(p.stop())
			return float64(rss)
		}
	}
	total := func(s *server) sample { return idle(s, "VmRSS:") }
	own := func(s *server) sample { return idle(s, "RssAnon:") }
	size := func(s *server) sample {
		return func() float64 {
			return float64(must(os.Stat(s.program)).Size())
		}
	}
	var results []result
	for _, row := range []struct {
		result
		rounds int
		of     func(*server) sample
	}{
		{result{work: "first 200", size: "fresh data directory", unit: millis(), target: target{limit: 0.060}}, l.rounds(15), fresh},
		{result{work: "first 200", size: "existing data directory", unit: millis(), target: target{limit: 0.025, reference: 0.005}}, l.rounds(15), begin},
		{result{work: "resident memory", size: "idle", unit: megabytes(), target: target{limit: 40e6}}, 1, total},
		{result{work: "resident memory, its own", size: "idle", unit: megabytes()}, 1, own},
		{result{work: "program", size: "on disk", unit: megabytes(), target: target{limit: 60e6}}, 1, size},
	} {
		m := interleave(row.rounds, row.of(servers[0]), row.of(servers[1]))
		row.artel, row.anchor = m[0], m[1]
		results = append(results, row.result)
	}
	first := interleave(l.rounds(7), func() float64 {
		p := start(ctx, "/healthz", l.program, "serve", "--data", servers[0].data)
		defer func() { check(p.stop()) }()
		return seconds(func() error {
			if !ok(ctx, strings.TrimPrefix(p.url, "http://"), httpapi.Base+"/conversations") {
				return errors.New("the API does not answer")
			}
			return nil
		})()
	})
	return append(results, result{work: "first answer of the API", size: "existing data directory", unit: millis(), artel: first[0]})
}
