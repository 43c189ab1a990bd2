// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// What the model begins with. The first is measured by databases: the processor time that
// PostgreSQL and the program need for an update. The others are what runs do: an update about
// twice a second while a model writes and tools work, and the renewal of the lease.
const (
	updateCost    = 400 * time.Microsecond
	updatesPerRun = 2 + 1.0/3
	atWork        = 0.05 // of the users of a day, at the busiest time
	utilisation   = 0.7  // of the processors, so that short peaks find room
)

// model prints how many runs a database of some processors carries, and how long updates wait
// for one: by Erlang's formula for random arrivals and service times, and by a simulation of
// the same queue beside it.
func model() {
	fmt.Println("| processors of the database | updates a second | runs at work | users a day | an update waits, mean | p99, formula | p99, simulated |")
	fmt.Println("|---:|---:|---:|---:|---:|---:|---:|")
	for _, c := range []int{1, 2, 8, 32, 64} {
		rate := utilisation * float64(c) / updateCost.Seconds()
		q := queue{c, rate, updateCost.Seconds()}
		runs := rate / updatesPerRun
		fmt.Printf("| %d | %.0f | %.0f | %.0f | %s | %s | %s |\n", c, rate, runs, runs/atWork, short(q.mean()), short(q.percentile(0.99)), short(q.simulate(400_000, 0.99)))
	}
}

func short(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Microsecond).String()
}

// A queue has some processors, arrivals a second and a mean service time in seconds (M/M/c).
type queue struct {
	processors    int
	rate, service float64
}

// waits returns the probability that an arrival has to wait: Erlang's C formula.
func (q queue) waits() float64 {
	load := q.rate * q.service
	blocked := 1.0 // Erlang B, by recursion
	for n := 1; n <= q.processors; n++ {
		blocked = load * blocked / (float64(n) + load*blocked)
	}
	free := 1 - load/float64(q.processors)
	return blocked / (free + (1-free)*blocked)
}

// mean returns the mean time that arrivals wait.
func (q queue) mean() float64 {
	return q.waits() / (float64(q.processors)/q.service - q.rate)
}

// percentile returns the time within which a part of the arrivals has a processor.
func (q queue) percentile(p float64) float64 {
	return max(0, math.Log(q.waits()/(1-p))/(float64(q.processors)/q.service-q.rate))
}

// simulate lets arrivals come, and returns the same percentile of what they waited.
func (q queue) simulate(arrivals int, p float64) float64 {
	random := rand.New(rand.NewPCG(1, uint64(q.processors)))
	free := make(times, q.processors) // when each processor is free
	waited := make([]float64, arrivals)
	now := 0.0
	for i := range waited {
		now += random.ExpFloat64() / q.rate
		begins := max(now, free[0])
		waited[i] = begins - now
		free[0] = begins + random.ExpFloat64()*q.service
		heap.Fix(&free, 0)
	}
	slices.Sort(waited)
	return waited[int(p*float64(arrivals))]
}

// times is a heap with the earliest first.
type times []float64

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(v any)        { *t = append(*t, v.(float64)) }
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
