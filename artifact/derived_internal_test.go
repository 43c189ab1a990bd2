// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/extract"
)

// document is a version that differs from others by its digest.
func document(n byte) artel.Version {
	return artel.Version{Digest: artel.NewDigest([32]byte{n}), MediaInfo: artel.MediaInfo{MediaType: "application/pdf"}}
}

// TestTheNextMakesWhatTheFirstGaveUp has two wait for one text, whose maker
// is stopped.
func TestTheNextMakesWhatTheFirstGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDerivedTexts()
		first, stop := context.WithCancel(t.Context())
		impatient, leave := context.WithCancel(t.Context())
		results := make(chan string, 3)
		ask := func(ctx context.Context, name string, produce func(context.Context) (extract.Extracted, error)) {
			x, err := d.get(ctx, document(1), produce)
			results <- name + " got " + x.Text + string(artel.KindOf(err))
		}
		go ask(first, "first", func(ctx context.Context) (extract.Extracted, error) {
			<-ctx.Done()
			return extract.Extracted{}, ctx.Err()
		})
		synctest.Wait()
		never := func(context.Context) (extract.Extracted, error) {
			t.Error("made while another was at it")
			return extract.Extracted{}, nil
		}
		go ask(impatient, "impatient", never)
		synctest.Wait()
		leave()
		if got := <-results; got != "impatient got canceled" {
			t.Error(got)
		}
		go ask(t.Context(), "second", func(context.Context) (extract.Extracted, error) { return extract.Extracted{Text: "it"}, nil })
		synctest.Wait()
		stop()
		got := map[string]bool{<-results: true, <-results: true}
		if !got["first got canceled"] || !got["second got it"] {
			t.Errorf("got %v", got)
		}
		go ask(t.Context(), "third", never)
		if got := <-results; got != "third got it" {
			t.Error(got)
		}
	})
}

func TestWhatWasNotAskedForLongIsForgotten(t *testing.T) {
	d := newDerivedTexts()
	big := extract.Extracted{Text: strings.Repeat("x", maxDerived/4)}
	var made []byte
	ask := func(n byte) {
		t.Helper()
		_, err := d.get(t.Context(), document(n), func(context.Context) (extract.Extracted, error) {
			made = append(made, n)
			return big, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []byte{1, 2, 3, 1, 4, 1, 2} { // 4 is one too many, and 2 the oldest
		ask(n)
	}
	if got, want := string(made), string([]byte{1, 2, 3, 4, 2}); got != want {
		t.Errorf("made %v, want %v", []byte(got), []byte(want))
	}
	if d.weight > maxDerived || d.order.Len() != len(d.byKey) || d.weight != d.order.Len()*(len(big.Text)+entryWeight) {
		t.Errorf("%d bytes are held in %d texts of %d keys", d.weight, d.order.Len(), len(d.byKey))
	}
	failed := func(n byte, err error) (calls int) {
		for range 2 {
			_, got := d.get(t.Context(), document(n), func(context.Context) (extract.Extracted, error) {
				calls++
				return extract.Extracted{}, err
			})
			if artel.KindOf(got) != artel.KindOf(err) {
				t.Errorf("got %v, want %v", got, err)
			}
		}
		return calls
	}
	for n, kind := range artel.Kinds() {
		want := 2
		if kind == artel.Invalid || kind == artel.Unsupported || kind == artel.TooLarge {
			want = 1
		}
		if calls := failed(byte(100+n), kind); calls != want {
			t.Errorf("%s: made %d times, want %d", kind, calls, want)
		}
	}
}

func TestWhoWaitsForAPanicIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDerivedTexts()
		begin, panicked, told := make(chan struct{}), make(chan any), make(chan error)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = d.get(t.Context(), document(1), func(context.Context) (extract.Extracted, error) {
				<-begin
				panic("at the disco")
			})
		}()
		synctest.Wait()
		go func() {
			_, err := d.get(t.Context(), document(1), nil)
			told <- err
		}()
		synctest.Wait()
		close(begin)
		if p := <-panicked; p != "at the disco" {
			t.Errorf("got %v", p)
		}
		if err := <-told; artel.KindOf(err) != artel.Internal {
			t.Errorf("got %v", err)
		}
		x, err := d.get(t.Context(), document(1), func(context.Context) (extract.Extracted, error) { return extract.Extracted{Text: "it"}, nil })
		if x.Text != "it" || err != nil || len(d.running) != 0 {
			t.Errorf("afterwards: %q, %v", x.Text, err)
		}
	})
}
