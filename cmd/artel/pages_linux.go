// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startPages is how long after its start a server still runs code that it needs once.
const startPages = time.Second

// releasePages unmaps the pages of the program that have run or been read until then,
// once the server has started: a start runs a little of every package, and Linux maps
// 64 KB around each page that runs. What runs again is mapped again, from the cache of
// files; see madvise(2), MADV_DONTNEED.
func releasePages(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(startPages):
	}
	unmapProgram()
}

func unmapProgram() {
	for _, m := range programPages() {
		// Without it the pages stay mapped, which is no fault.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// programPages returns where the file of the program is mapped and cannot be written,
// none if that cannot be found out; see proc_pid_maps(5).
func programPages() (found []mapping) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer func() { _ = maps.Close() }() // only read
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// from-to rights offset device inode path
		fields := strings.SplitN(lines.Text(), " ", 6)
		if len(fields) < 6 || strings.TrimSpace(fields[5]) != program || strings.Contains(fields[1], "w") {
			continue
		}
		first, last, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(first, 16, 64)
		to, err2 := strconv.ParseUint(last, 16, 64)
		if err1 == nil && err2 == nil {
			found = append(found, mapping{uintptr(from), uintptr(to)})
		}
	}
	return found
}
