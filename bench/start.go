// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const startAbout = "From the start of the process to the first 200 of `GET /healthz`, asked again every 0.1 ms. " +
	"The anchor is the smallest useful server over the same database library: twenty migrations and one endpoint (`bench/minimal`). " +
	"Idle is two seconds after the start. Both are built with `-trimpath -ldflags '-s -w'`, without cgo."

func measureStart(ctx context.Context, l *lab) ([]result, error) {
	type server struct {
		program string
		args    []string
		data    string
	}
	servers := []*server{{program: l.program, args: []string{"serve"}}, {program: l.minimal}}
	begin := func(s *server) sample {
		return func() (float64, error) {
			p, err := start(ctx, "/healthz", s.program, append(slices.Clone(s.args), "--data", s.data)...)
			if err != nil {
				return 0, err
			}
			return p.started.Seconds(), p.stop()
		}
	}
	fresh := func(s *server) sample {
		return func() (float64, error) {
			dir, err := l.folder()
			if err != nil {
				return 0, err
			}
			s.data = filepath.Join(dir, "data")
			return begin(s)()
		}
	}
	idle := func(s *server) sample {
		return func() (float64, error) {
			p, err := start(ctx, "/healthz", s.program, append(slices.Clone(s.args), "--data", s.data)...)
			if err != nil {
				return 0, err
			}
			time.Sleep(2 * time.Second)
			rss, err := p.rss()
			if err != nil {
				return 0, err
			}
			return float64(rss), p.stop()
		}
	}
	size := func(s *server) sample {
		return func() (float64, error) {
			info, err := os.Stat(s.program)
			if err != nil {
				return 0, err
			}
			return float64(info.Size()), nil
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
		{result{work: "resident memory", size: "idle", unit: megabytes(), target: target{limit: 40e6}}, 1, idle},
		{result{work: "program", size: "on disk", unit: megabytes(), target: target{limit: 60e6}}, 1, size},
	} {
		m, err := interleave(row.rounds, row.of(servers[0]), row.of(servers[1]))
		if err != nil {
			return nil, err
		}
		row.artel, row.anchor = m[0], m[1]
		results = append(results, row.result)
	}
	return results, nil
}
