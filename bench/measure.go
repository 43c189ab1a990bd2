// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A sample is one measurement of one work.
type sample func() (float64, error)

// interleave runs the works in turn and returns the median of each, so that other
// load on the machine affects all of them alike.
func interleave(rounds int, works ...sample) ([]float64, error) {
	all := make([][]float64, len(works))
	for range rounds {
		for i, work := range works {
			runtime.GC() // what one leaves behind is not the next one's to clear
			v, err := work()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], v)
		}
	}
	medians := make([]float64, len(works))
	for i, list := range all {
		medians[i] = median(list)
	}
	return medians, nil
}

func median(list []float64) float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// seconds measures one call.
func seconds(work func() error) sample {
	return func() (float64, error) {
		began := time.Now()
		err := work()
		return time.Since(began).Seconds(), err
	}
}

// perBusySecond returns how much of amount is done per second of CPU time of this
// process. It repeats work for a minimum time; other load does not count.
func perBusySecond(amount float64, while time.Duration, work func() error) sample {
	return func() (float64, error) {
		began, err := busy()
		if err != nil {
			return 0, err
		}
		for n := 1; ; n++ {
			if err := work(); err != nil {
				return 0, err
			}
			now, err := busy()
			if err != nil {
				return 0, err
			}
			if d := now - began; d >= while {
				return amount * float64(n) / d.Seconds(), nil
			}
		}
	}
}

// busy returns the CPU time of this process on all processors.
func busy() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// perSecond returns how much of amount is done per second. It repeats work for a
// minimum time.
func perSecond(amount float64, while time.Duration, work func() error) sample {
	return func() (float64, error) {
		began := time.Now()
		for n := 1; ; n++ {
			if err := work(); err != nil {
				return 0, err
			}
			if d := time.Since(began); d >= while {
				return amount * float64(n) / d.Seconds(), nil
			}
		}
	}
}
