// SPDX-License-Identifier: Apache-2.0

// Command counting counts the tokens of a file's pieces in a process of its
// own, where none of its words has been seen:
//
//	counting artel|tiktoken FILE SIZE
//
// It prints what is counted in a second of processor time, in bytes: at first,
// and when the words of the pieces have been seen; and how many tokens they are.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"github.com/artelhq/artel/pipeline/token"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "counting:", err)
		os.Exit(1)
	}
}

func run(by, file, length string) error {
	size, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var pieces []string
	for rest := string(text); rest != ""; {
		to := min(size, len(rest))
		for to < len(rest) && !utf8.RuneStart(rest[to]) {
			to--
		}
		pieces = append(pieces, rest[:to])
		rest = rest[to:]
	}
	count := func(text string) (int, error) { return token.NewCounter().Count(token.O200k, text) }
	if by == "tiktoken" {
		codec, err := tokenizer.Get(tokenizer.O200kBase)
		if err != nil {
			return err
		}
		count = codec.Count
	}
	if _, err := count("load the vocabulary"); err != nil {
		return err
	}
	pass := func(mark string) (n int, took time.Duration, err error) {
		began := busy()
		for _, p := range pieces {
			k, err := count(mark + p)
			if err != nil {
				return 0, 0, err
			}
			n += k
		}
		return n, busy() - began, nil
	}
	tokens, cold, err := pass("")
	if err != nil {
		return err
	}
	var warm time.Duration
	n := 0
	for ; warm < 300*time.Millisecond; n++ {
		_, took, err := pass(strconv.Itoa(n) + "\n")
		if err != nil {
			return err
		}
		warm += took
	}
	_, err = fmt.Printf("%.0f %.0f %d\n", float64(len(text))/cold.Seconds(), float64(len(text)*n)/warm.Seconds(), tokens)
	return err
}

// busy returns how long this process has been at work.
func busy() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
