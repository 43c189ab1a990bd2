// SPDX-License-Identifier: Apache-2.0

// Package blobtest tests implementations of [blob.Store].
//
// Begin with [Run] in a test of the implementation. Each clause is one promise of
// the contract, checked on a store of its own. The kit itself is tested with stores
// that are broken on purpose.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/contracttest"
)

// Run checks each clause on the empty store that open returns for it.
func Run(t *testing.T, open func(testing.TB) blob.Store) {
	contracttest.Run(t, clauses(), func(t *testing.T, cl clause) error { return hold(t.Context(), cl, open(t)) })
}

type clause = contracttest.Clause[*check]

func clauses() []clause {
	return []clause{
		{"what is put comes back", comesBack},
		{"any size comes back", anySize},
		{"info is complete", complete},
		{"a reader reads anywhere", anywhere},
		{"a limit holds", limit},
		{"a failing source leaves nothing", failingSource},
		{"an ended context leaves nothing", endedContext},
		{"nothing shows before the end", atomic},
		{"the same bytes are kept once", once},
		{"putting again refreshes the time", refresh},
		{"the same bytes may come at once", atOnce},
		{"what is missing is not found", missing},
		{"deleting removes", deleting},
		{"deleting spares what was put since", sparing},
		{"deleting beside putting loses nothing", beside},
		{"an open reader survives deleting", openReader},
		{"every blob is listed until told to stop", listing},
		{"nothing is shared with the caller", notShared},
	}
}

// hold runs cl on s.
func hold(ctx context.Context, cl clause, s blob.Store) error {
	return contracttest.Hold(ctx, func(c *contracttest.Check) { cl.Check(&check{c, s}) })
}

// A check runs one clause on a store.
type check struct {
	*contracttest.Check
	blob.Store
}

func (c *check) put(b []byte) blob.Info { return c.putFrom(bytes.NewReader(b)) }

func (c *check) putFrom(r io.Reader) blob.Info {
	info, err := c.Put(c.Context(), r, 0)
	c.Must("Put", err)
	return info
}

func (c *check) stat(d artel.Digest) blob.Info {
	info, err := c.Stat(c.Context(), d)
	c.Must("Stat", err)
	return info
}

// holds expects the store to have the bytes b under d.
func (c *check) holds(d artel.Digest, b []byte) {
	r, err := c.Open(c.Context(), d)
	c.Must("Open", err)
	c.reads(r, b)
}

// reads expects a reader to have the bytes b, and closes it.
func (c *check) reads(r blob.Reader, b []byte) {
	got, err := io.ReadAll(r)
	c.Must("read", errors.Join(err, r.Close()))
	c.Want(bytes.Equal(got, b), "read %d bytes %.40q, want %d bytes %.40q", len(got), got, len(b), b)
	c.Want(r.Size() == int64(len(b)), "the reader's size is %d, but it gave %d bytes", r.Size(), len(b))
}

// has expects the store to hold n blobs.
func (c *check) has(n int) {
	found := 0
	c.Must("List", c.List(c.Context(), func(blob.Info) bool { found++; return true }))
	c.Want(found == n, "%d blobs are there, want %d", found, n)
}

// deletes deletes d if it is older than before, and expects it to be gone, or not.
func (c *check) deletes(d artel.Digest, before time.Time, want bool) {
	gone, err := c.Delete(c.Context(), d, before)
	c.Must("Delete", err)
	c.Want(gone == want, "Delete(%q) before %v: gone is %v", d, before, gone)
}

func comesBack(c *check) { c.roundTrip([]byte("some bytes")) }

func anySize(c *check) {
	for _, n := range []int{0, 1, 4095, 4096, 128 << 10, 128<<10 + 1, 3<<20 + 7} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		c.roundTrip(b)
	}
}

func (c *check) roundTrip(b []byte) {
	c.holds(c.putFrom(iotest.DataErrReader(bytes.NewReader(b))).Digest, b)
}

func complete(c *check) {
	b := []byte("complete")
	info := c.put(b)
	c.Want(info.Digest == artel.NewDigest(sha256.Sum256(b)) && info.Size == int64(len(b)) && !info.Time.IsZero(), "got %+v from Put", info)
	stat := c.stat(info.Digest)
	c.Want(stat.Digest == info.Digest && stat.Size == info.Size && !stat.Time.IsZero(), "got %+v from Stat, %+v from Put", stat, info)
}

func anywhere(c *check) {
	r, err := c.Open(c.Context(), c.put([]byte("0123456789")).Digest)
	c.Must("Open", err)
	c.Must("reader", errors.Join(iotest.TestReader(r, []byte("0123456789")), r.Close()))
}

func limit(c *check) {
	_, err := c.Put(c.Context(), strings.NewReader("12345"), 4)
	c.Want(artel.KindOf(err) == artel.TooLarge && strings.Contains(err.Error(), "4"),
		"5 bytes with a limit of 4: %v, want kind %s naming the limit", err, artel.TooLarge)
	c.has(0)
	_, err = c.Put(c.Context(), strings.NewReader("1234"), 4)
	c.Must("4 bytes with a limit of 4", err)
}

func failingSource(c *check) {
	broken := errors.New("the line went dead")
	_, err := c.Put(c.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0)
	c.Want(errors.Is(err, broken), "the source's error became %v", err)
	_, err = c.Put(c.Context(), iotest.ErrReader(fmt.Errorf("wrapped: %w", io.EOF)), 0)
	c.Want(err != nil, "a wrapped EOF counts as the end")
	c.has(0)
}

func endedContext(c *check) {
	ended, cancel := context.WithCancel(c.Context())
	source := io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }),
		strings.NewReader("other half"))
	_, err := c.Put(ended, source, 0)
	c.Kind("Put after the end of ctx", err, artel.Canceled)
	_, err = c.Stat(ended, artel.NewDigest([32]byte{}))
	c.Kind("Stat after the end of ctx", err, artel.Canceled)
	c.has(0)
}

func atomic(c *check) {
	b := bytes.Repeat([]byte("x"), 300<<10)
	last := readerFunc(func([]byte) (int, error) {
		_, err := c.Stat(c.Context(), artel.NewDigest(sha256.Sum256(b)))
		c.Kind("Stat in the midst of Put", err, artel.NotFound)
		if err := c.List(c.Context(), func(i blob.Info) bool { c.Failf("listed in the midst of Put: %+v", i); return true }); err != nil {
			c.Failf("List in the midst of Put: %w", err)
		}
		return 0, io.EOF
	})
	c.putFrom(io.MultiReader(bytes.NewReader(b), last))
}

func once(c *check) {
	a, b := c.put([]byte("same")), c.put([]byte("same"))
	c.Want(a.Digest == b.Digest && a.Size == b.Size, "got %+v and %+v", a, b)
	c.has(1)
}

// refresh waits, because times of the storage may be whole seconds.
func refresh(c *check) {
	first := c.put([]byte("again"))
	for deadline := first.Time.Add(2500 * time.Millisecond); ; {
		late := time.Now().After(deadline)
		c.put([]byte("again"))
		if c.stat(first.Digest).Time.After(first.Time) {
			return
		}
		c.Want(!late, "the time is still %v", first.Time)
	}
}

func atOnce(c *check) {
	b := bytes.Repeat([]byte("together"), 20_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			one := clause{Check: func(c *check) { c.holds(c.put(b).Digest, b) }}
			if err := hold(c.Context(), one, c.Store); err != nil {
				c.Failf("one of many: %w", err)
			}
		})
	}
	wg.Wait()
	c.has(1)
}

func missing(c *check) {
	for _, d := range []artel.Digest{artel.NewDigest([32]byte{1}), "", "sha256-", "sha256-../../../../etc/passwd", "x"} {
		_, err := c.Stat(c.Context(), d)
		c.Kind(fmt.Sprintf("Stat(%q)", d), err, artel.NotFound)
		r, err := c.Open(c.Context(), d)
		c.Kind(fmt.Sprintf("Open(%q)", d), err, artel.NotFound)
		if r != nil {
			c.Must("Close", r.Close())
		}
		c.deletes(d, later(), true)
	}
}

func deleting(c *check) {
	gone, stays := c.put([]byte("gone")), c.put([]byte("stays"))
	c.deletes(gone.Digest, later(), true)
	_, err := c.Stat(c.Context(), gone.Digest)
	c.Kind("Stat after Delete", err, artel.NotFound)
	c.stat(stays.Digest)
	c.roundTrip([]byte("gone"))
}

// later is after every put of a test.
func later() time.Time { return time.Now().Add(time.Hour) }

func sparing(c *check) {
	info := c.put([]byte("old"))
	pass(info.Time)
	between := time.Now()
	again := c.put([]byte("old"))
	for _, before := range []time.Time{{}, info.Time, between, again.Time} {
		c.deletes(info.Digest, before, false)
		c.stat(info.Digest)
	}
	c.deletes(info.Digest, again.Time.Add(time.Nanosecond), true)
}

// pass waits until the clock, which may be coarse, is after t.
func pass(t time.Time) {
	for time.Now().Compare(t) <= 0 {
		time.Sleep(time.Millisecond)
	}
}

// beside deletes an old blob while it is put again.
func beside(c *check) {
	for i := range 40 {
		content := []byte{byte(i)}
		info := c.put(content)
		pass(info.Time)
		start := time.Now()
		began, deleted := make(chan bool), make(chan error)
		go func() {
			close(began)
			_, err := c.Delete(c.Context(), info.Digest, start)
			deleted <- err
		}()
		_, err := c.Put(c.Context(), io.MultiReader(bytes.NewReader(content), readerFunc(func([]byte) (int, error) {
			<-began
			time.Sleep(time.Duration(i) * 20 * time.Microsecond) // another moment of Delete each time
			return 0, io.EOF
		})), 0)
		c.Must("Put beside Delete", errors.Join(err, <-deleted))
		_, err = c.Stat(c.Context(), info.Digest)
		c.Must("what was put is lost", err)
	}
}

func openReader(c *check) {
	info := c.put([]byte("still here"))
	r, err := c.Open(c.Context(), info.Digest)
	c.Must("Open", err)
	_, err = c.Delete(c.Context(), info.Digest, later())
	c.Must("Delete", err)
	c.reads(r, []byte("still here"))
}

func listing(c *check) {
	want := map[artel.Digest]int64{}
	for i := range 20 {
		info := c.put(bytes.Repeat([]byte{byte(i)}, i))
		want[info.Digest] = info.Size
	}
	c.Must("List", c.List(c.Context(), func(i blob.Info) bool {
		if size, ok := want[i.Digest]; !ok || size != i.Size || i.Time.IsZero() {
			c.Failf("listed %+v", i)
		}
		delete(want, i.Digest)
		return true
	}))
	c.Want(len(want) == 0, "%d blobs were not listed", len(want))
	n := 0
	c.Must("List", c.List(c.Context(), func(blob.Info) bool { n++; return n < 3 }))
	c.Want(n == 3, "told to stop after 3, stopped after %d", n)
}

func notShared(c *check) {
	b := []byte("mine")
	info := c.put(b)
	b[0] = 'X'
	r, err := c.Open(c.Context(), info.Digest)
	c.Must("Open", err)
	got, err := io.ReadAll(r)
	c.Must("read", errors.Join(err, r.Close()))
	if len(got) > 0 {
		got[len(got)-1] = 'Y'
	}
	c.holds(info.Digest, []byte("mine"))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
