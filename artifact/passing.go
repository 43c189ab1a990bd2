// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"time"

	"github.com/artelhq/artel"
)

// Bytes of requests that nothing refers to, such as media on their way to a model and
// uploads of requests that broke off, stay
// in the blob store until they are swept, at most two days later. They do not count as
// stored; but within that time an owner's have at most the limit again. This is kept in
// memory: a restart forgets it.

const (
	passingTime = 48 * time.Hour
	passingStep = time.Hour
	// maxPassing bounds the digests that are remembered of an owner; what comes again
	// beyond it counts again.
	maxPassing = 50_000
)

// passing are the unreferenced bytes of an owner.
type passing struct {
	sum   int64
	steps []passingBytes // the oldest first
	known map[artel.Digest]passingBlob
}

type passingBytes struct {
	until time.Time // when they are swept
	bytes int64
}

type passingBlob struct {
	until time.Time
	bytes int64
}

// drop forgets what is swept by now.
func (p *passing) drop(now time.Time) {
	gone := 0
	for gone < len(p.steps) && !p.steps[gone].until.After(now) {
		p.sum -= p.steps[gone].bytes
		gone++
	}
	if gone == 0 {
		return
	}
	p.steps = p.steps[gone:]
	for d, b := range p.known {
		if !b.until.After(now) {
			delete(p.known, d)
		}
	}
}

// add counts n bytes, which may be negative, of a step.
func (p *passing) add(until time.Time, n int64) {
	p.sum += n
	for i := len(p.steps) - 1; i >= 0; i-- {
		if p.steps[i].until.Equal(until) {
			p.steps[i].bytes += n
			return
		}
	}
	p.steps = append(p.steps, passingBytes{until, n})
}

// AdmitPassing refuses bytes that nothing will refer to if those of the owner within the
// last two days have reached the limit. The error is a [*Full]. It comes before the bytes
// are read, so a request may exceed the limit by its own.
func (q *Quota) AdmitPassing(owner artel.Owner, now time.Time) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.passing[owner]
	if p == nil {
		return nil
	}
	if p.drop(now); p.sum < q.limit {
		return nil
	}
	return full("artifact.Quota.AdmitPassing", Full{Used: p.sum, Limit: q.limit, Needs: -1, Passing: p.steps[0].until.Sub(now)})
}

// Passed counts bytes that nothing refers to, each digest once.
func (q *Quota) Passed(owner artel.Owner, d artel.Digest, size int64, now time.Time) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.passing[owner]
	if p == nil {
		p = &passing{known: map[artel.Digest]passingBlob{}}
		q.passing[owner] = p
	}
	p.drop(now)
	if _, again := p.known[d]; again {
		return
	}
	until := now.Truncate(passingStep).Add(passingStep + passingTime)
	if len(p.known) < maxPassing {
		p.known[d] = passingBlob{until, size}
	}
	p.add(until, size)
}

// Kept takes back what [Quota.Passed] has counted: the bytes now count as stored.
func (q *Quota) Kept(owner artel.Owner, d artel.Digest) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.passing[owner]
	if p == nil {
		return
	}
	if b, ok := p.known[d]; ok {
		delete(p.known, d)
		p.add(b.until, -b.bytes)
	}
}
