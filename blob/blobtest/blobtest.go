// SPDX-License-Identifier: Apache-2.0

// Package blobtest tests implementations of [blob.Store].
//
// Begin with [Run] in a test of the implementation. Each of [Clauses] is one
// promise of the contract; it returns an error if the promise is broken, so
// that the clauses themselves can be tested with broken stores.
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
)

// A Clause is one promise of the contract.
type Clause struct {
	Name  string
	Check func(ctx context.Context, s blob.Store) error // s is empty
}

// Run checks each clause on its own store.
func Run(t *testing.T, open func(testing.TB) blob.Store) {
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(t.Context(), open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Clauses returns the contract.
func Clauses() []Clause {
	return []Clause{
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

func put(ctx context.Context, s blob.Store, b []byte) (blob.Info, error) {
	return s.Put(ctx, bytes.NewReader(b), 0)
}

func fetch(ctx context.Context, s blob.Store, d artel.Digest) (_ []byte, err error) {
	r, err := s.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err := io.ReadAll(r)
	if err == nil && r.Size() != int64(len(b)) {
		err = fmt.Errorf("the reader's size is %d, but it gave %d bytes", r.Size(), len(b))
	}
	return b, err
}

func count(ctx context.Context, s blob.Store) (n int, err error) {
	err = s.List(ctx, func(blob.Info) bool { n++; return true })
	return n, err
}

func empty(ctx context.Context, s blob.Store) error {
	n, err := count(ctx, s)
	if err == nil && n != 0 {
		err = fmt.Errorf("%d blobs are there, want none", n)
	}
	return err
}

func comesBack(ctx context.Context, s blob.Store) error {
	return roundTrip(ctx, s, []byte("some bytes"))
}

func anySize(ctx context.Context, s blob.Store) error {
	for _, n := range []int{0, 1, 4095, 4096, 128 << 10, 128<<10 + 1, 3<<20 + 7} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		if err := roundTrip(ctx, s, b); err != nil {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
	}
	return nil
}

func roundTrip(ctx context.Context, s blob.Store, b []byte) error {
	info, err := s.Put(ctx, iotest.DataErrReader(bytes.NewReader(b)), 0)
	if err != nil {
		return err
	}
	got, err := fetch(ctx, s, info.Digest)
	if err == nil && !bytes.Equal(got, b) {
		err = fmt.Errorf("%d other bytes came back", len(got))
	}
	return err
}

func complete(ctx context.Context, s blob.Store) error {
	b := []byte("complete")
	info, err := put(ctx, s, b)
	if err != nil {
		return err
	}
	stat, err := s.Stat(ctx, info.Digest)
	switch {
	case err != nil:
		return err
	case info.Digest != artel.NewDigest(sha256.Sum256(b)), info.Size != int64(len(b)), info.Time.IsZero():
		return fmt.Errorf("got %+v from Put", info)
	case stat.Digest != info.Digest, stat.Size != info.Size, stat.Time.IsZero():
		return fmt.Errorf("got %+v from Stat, %+v from Put", stat, info)
	}
	return nil
}

func anywhere(ctx context.Context, s blob.Store) (err error) {
	info, err := put(ctx, s, []byte("0123456789"))
	if err != nil {
		return err
	}
	r, err := s.Open(ctx, info.Digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return iotest.TestReader(r, []byte("0123456789"))
}

func limit(ctx context.Context, s blob.Store) error {
	_, err := s.Put(ctx, strings.NewReader("12345"), 4)
	if artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), "4") {
		return fmt.Errorf("5 bytes with a limit of 4: %v, want kind %s naming the limit", err, artel.TooLarge)
	}
	if err := empty(ctx, s); err != nil {
		return err
	}
	_, err = s.Put(ctx, strings.NewReader("1234"), 4)
	return err
}

func failingSource(ctx context.Context, s blob.Store) error {
	broken := errors.New("the line went dead")
	_, err := s.Put(ctx, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0)
	if !errors.Is(err, broken) {
		return fmt.Errorf("the source's error became %v", err)
	}
	if _, err = s.Put(ctx, iotest.ErrReader(fmt.Errorf("wrapped: %w", io.EOF)), 0); err == nil {
		return errors.New("a wrapped EOF counts as the end")
	}
	return empty(ctx, s)
}

func endedContext(ctx context.Context, s blob.Store) error {
	ended, cancel := context.WithCancel(ctx)
	source := io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }),
		strings.NewReader("other half"))
	if _, err := s.Put(ended, source, 0); artel.KindOf(err) != artel.Canceled {
		return fmt.Errorf("after the end of ctx, Put: %v, want kind %s", err, artel.Canceled)
	}
	if _, err := s.Stat(ended, artel.NewDigest([32]byte{})); artel.KindOf(err) != artel.Canceled {
		return fmt.Errorf("after the end of ctx, Stat: %v, want kind %s", err, artel.Canceled)
	}
	return empty(ctx, s)
}

func atomic(ctx context.Context, s blob.Store) error {
	b := bytes.Repeat([]byte("x"), 300<<10)
	var seen error
	last := readerFunc(func([]byte) (int, error) {
		_, err := s.Stat(ctx, artel.NewDigest(sha256.Sum256(b)))
		if artel.KindOf(err) != artel.NotFound {
			err = fmt.Errorf("in the midst of Put, Stat: %v", err)
		} else {
			err = nil
		}
		seen = errors.Join(seen, err, empty(ctx, s))
		return 0, io.EOF
	})
	_, err := s.Put(ctx, io.MultiReader(bytes.NewReader(b), last), 0)
	return errors.Join(err, seen)
}

func once(ctx context.Context, s blob.Store) error {
	a, err := put(ctx, s, []byte("same"))
	if err != nil {
		return err
	}
	b, err := put(ctx, s, []byte("same"))
	if err != nil {
		return err
	}
	n, err := count(ctx, s)
	if err == nil && (n != 1 || a.Digest != b.Digest || a.Size != b.Size) {
		err = fmt.Errorf("%d blobs, %+v and %+v", n, a, b)
	}
	return err
}

// refresh waits, because times of the storage may be whole seconds.
func refresh(ctx context.Context, s blob.Store) error {
	first, err := put(ctx, s, []byte("again"))
	if err != nil {
		return err
	}
	for deadline := first.Time.Add(2500 * time.Millisecond); ; {
		late := time.Now().After(deadline)
		if _, err := put(ctx, s, []byte("again")); err != nil {
			return err
		}
		stat, err := s.Stat(ctx, first.Digest)
		if err != nil || stat.Time.After(first.Time) {
			return err
		}
		if late {
			return fmt.Errorf("the time is still %v", first.Time)
		}
	}
}

func atOnce(ctx context.Context, s blob.Store) error {
	b := bytes.Repeat([]byte("together"), 20_000)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			info, err := put(ctx, s, b)
			if err == nil {
				var got []byte
				if got, err = fetch(ctx, s, info.Digest); err == nil && !bytes.Equal(got, b) {
					err = errors.New("other bytes came back")
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	n, err := count(ctx, s)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d blobs, want one", n)
	}
	return errors.Join(append(errs, err)...)
}

func missing(ctx context.Context, s blob.Store) error {
	for _, d := range []artel.Digest{artel.NewDigest([32]byte{1}), "", "sha256-", "sha256-../../../../etc/passwd", "x"} {
		if _, err := s.Stat(ctx, d); artel.KindOf(err) != artel.NotFound {
			return fmt.Errorf("Stat(%q): %v, want kind %s", d, err, artel.NotFound)
		}
		if r, err := s.Open(ctx, d); artel.KindOf(err) != artel.NotFound {
			if r != nil {
				err = errors.Join(err, r.Close())
			}
			return fmt.Errorf("Open(%q): %v, want kind %s", d, err, artel.NotFound)
		}
		if gone, err := s.Delete(ctx, d, later()); err != nil || !gone {
			return fmt.Errorf("Delete(%q): gone %v, %w", d, gone, err)
		}
	}
	return nil
}

func deleting(ctx context.Context, s blob.Store) error {
	gone, err := put(ctx, s, []byte("gone"))
	if err != nil {
		return err
	}
	stays, err := put(ctx, s, []byte("stays"))
	if err != nil {
		return err
	}
	if ok, err := s.Delete(ctx, gone.Digest, later()); err != nil || !ok {
		return fmt.Errorf("gone %v, %w", ok, err)
	}
	if _, err := s.Stat(ctx, gone.Digest); artel.KindOf(err) != artel.NotFound {
		return fmt.Errorf("after Delete: %v, want kind %s", err, artel.NotFound)
	}
	if _, err := s.Stat(ctx, stays.Digest); err != nil {
		return fmt.Errorf("another blob: %w", err)
	}
	return roundTrip(ctx, s, []byte("gone"))
}

// later is after every put of a test.
func later() time.Time { return time.Now().Add(time.Hour) }

func sparing(ctx context.Context, s blob.Store) error {
	info, err := put(ctx, s, []byte("old"))
	if err != nil {
		return err
	}
	for time.Now().Compare(info.Time) <= 0 { // clocks may be coarse
		time.Sleep(time.Millisecond)
	}
	between := time.Now()
	again, err := put(ctx, s, []byte("old"))
	if err != nil {
		return err
	}
	for _, before := range []time.Time{{}, info.Time, between, again.Time} {
		if gone, err := s.Delete(ctx, info.Digest, before); err != nil || gone {
			return fmt.Errorf("put at %v, deleted before %v: gone %v, %w", again.Time, before, gone, err)
		}
		if _, err := s.Stat(ctx, info.Digest); err != nil {
			return err
		}
	}
	gone, err := s.Delete(ctx, info.Digest, again.Time.Add(time.Nanosecond))
	if err == nil && !gone {
		err = errors.New("what is older stays")
	}
	return err
}

// beside deletes an old blob while it is put again.
func beside(ctx context.Context, s blob.Store) error {
	for i := range 40 {
		content := []byte{byte(i)}
		info, err := put(ctx, s, content)
		if err != nil {
			return err
		}
		for time.Now().Compare(info.Time) <= 0 {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		began, deleted := make(chan bool), make(chan error)
		go func() {
			close(began)
			_, err := s.Delete(ctx, info.Digest, start)
			deleted <- err
		}()
		_, err = s.Put(ctx, io.MultiReader(bytes.NewReader(content), readerFunc(func([]byte) (int, error) {
			<-began
			time.Sleep(time.Duration(i) * 20 * time.Microsecond) // another moment of Delete each time
			return 0, io.EOF
		})), 0)
		if err := errors.Join(err, <-deleted); err != nil {
			return err
		}
		if _, err := s.Stat(ctx, info.Digest); err != nil {
			return fmt.Errorf("what was put is lost: %w", err)
		}
	}
	return nil
}

func openReader(ctx context.Context, s blob.Store) (err error) {
	info, err := put(ctx, s, []byte("still here"))
	if err != nil {
		return err
	}
	r, err := s.Open(ctx, info.Digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := s.Delete(ctx, info.Digest, later()); err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err == nil && string(b) != "still here" {
		err = fmt.Errorf("read %q", b)
	}
	return err
}

func listing(ctx context.Context, s blob.Store) error {
	want := map[artel.Digest]int64{}
	for i := range 20 {
		info, err := put(ctx, s, bytes.Repeat([]byte{byte(i)}, i))
		if err != nil {
			return err
		}
		want[info.Digest] = info.Size
	}
	var wrong error
	err := s.List(ctx, func(i blob.Info) bool {
		if size, ok := want[i.Digest]; !ok || size != i.Size || i.Time.IsZero() {
			wrong = fmt.Errorf("listed %+v", i)
		}
		delete(want, i.Digest)
		return true
	})
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	if len(want) != 0 {
		return fmt.Errorf("%d blobs were not listed", len(want))
	}
	n := 0
	err = s.List(ctx, func(blob.Info) bool { n++; return n < 3 })
	if err == nil && n != 3 {
		err = fmt.Errorf("told to stop after 3, stopped after %d", n)
	}
	return err
}

func notShared(ctx context.Context, s blob.Store) error {
	b := []byte("mine")
	info, err := put(ctx, s, b)
	if err != nil {
		return err
	}
	b[0] = 'X'
	got, err := fetch(ctx, s, info.Digest)
	if err != nil {
		return err
	}
	if len(got) > 0 {
		got[len(got)-1] = 'Y'
	}
	got, err = fetch(ctx, s, info.Digest)
	if err == nil && string(got) != "mine" {
		err = fmt.Errorf("the stored bytes became %q", got)
	}
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
