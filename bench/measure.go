// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A failure is the panic that ends a benchmark with its first error: nothing that is
// measured after one counts. [catch] returns the error.
type failure struct{ error }

// catch runs work and returns the error with which it failed.
func catch(work func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	work()
	return nil
}

// during runs work, and names what in the error with which it fails.
func during(what string, work func()) {
	if err := catch(work); err != nil {
		fail("%s: %w", what, err)
	}
}

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// check fails if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v, or fails.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// shut closes c, or fails.
func shut(c io.Closer) { check(c.Close()) }

// atOnce calls work for 0 to n-1 at once and joins the errors. work must not fail.
func atOnce(n int, work func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A sample is one measurement of one work.
type sample func() float64

// interleave runs the works in turn and returns the median of each, so that other
// load on the machine affects all of them alike.
func interleave(rounds int, works ...sample) []float64 {
	all := make([][]float64, len(works))
	for range rounds {
		for i, work := range works {
			runtime.GC() // what one leaves behind is not the next one's to clear
			all[i] = append(all[i], work())
		}
	}
	medians := make([]float64, len(works))
	for i, list := range all {
		medians[i] = median(list)
	}
	return medians
}

func median(list []float64) float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// seconds measures one call.
func seconds(work func() error) sample {
	return func() float64 {
		began := time.Now()
		check(work())
		return time.Since(began).Seconds()
	}
}

// perBusySecond returns how much of amount is done per second of CPU time of this
// process. It repeats work for a minimum time; other load does not count.
func perBusySecond(amount float64, while time.Duration, work func() error) sample {
	return func() float64 { return repeat(amount, while, busy, work) }
}

// busySeconds returns the CPU time of one call.
func busySeconds(work func() error) float64 {
	began := busy()
	check(work())
	return (busy() - began).Seconds()
}

// busy returns the CPU time of this process on all processors.
func busy() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perSecond returns how much of amount is done per second. It repeats work for a
// minimum time.
func perSecond(amount float64, while time.Duration, work func() error) sample {
	return func() float64 {
		began := time.Now()
		return repeat(amount, while, func() time.Duration { return time.Since(began) }, work)
	}
}

// repeat calls work until clock has advanced by while, and returns how much of
// amount was done per second of it.
func repeat(amount float64, while time.Duration, clock func() time.Duration, work func() error) float64 {
	began := clock()
	for n := 1; ; n++ {
		check(work())
		if d := clock() - began; d >= while {
			return amount * float64(n) / d.Seconds()
		}
	}
}
