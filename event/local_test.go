// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// TestLocalNotifierKeepsNothing: a feed exists only while it has a writer
// or a listener.
func TestLocalNotifierKeepsNothing(t *testing.T) {
	b := NewNotifier()
	b.Notify("cnv_a")
	b.Discard("cnv_a", "")
	l := b.Listen("cnv_b")
	l.Close()
	l.Close()
	b.Stream("cnv_c", Delta{Message: "msg_1", Text: "text"})
	l = b.Listen("cnv_c")
	b.Discard("cnv_c", "")
	l.Close()
	l = b.Listen("cnv_d")
	b.Stream("cnv_d", Delta{Message: "msg_1", Reasoning: "thought"})
	l.Close()
	if len(b.feeds) != 1 {
		t.Errorf("%d feeds are kept, want the one in which an answer is being written", len(b.feeds))
	}
	b.Discard("cnv_d", "")
	if len(b.feeds) != 0 {
		t.Errorf("%d feeds are kept, want none", len(b.feeds))
	}
	if _, err := l.Wait(t.Context()); err == nil {
		t.Error("a closed listener waits without an error")
	}
}

// TestLocalNotifierSharesText: listeners share one copy of the text.
func TestLocalNotifierSharesText(t *testing.T) {
	const count, size = 500, 1 << 20
	b := NewNotifier()
	listeners := make([]Listener, count)
	for i := range listeners {
		listeners[i] = b.Listen("cnv_a")
		defer listeners[i].Close()
	}
	b.Stream("cnv_a", Delta{Message: "msg_1", Text: strings.Repeat("x", size)})
	texts := make([]string, count)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, l := range listeners {
		n, err := l.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = n.Text
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 10*size {
		t.Errorf("delivering %d bytes to %d listeners took %d bytes", size, count, grown)
	}
	for _, s := range texts {
		if len(s) != size {
			t.Fatalf("got %d bytes, want %d", len(s), size)
		}
	}
}

func BenchmarkLocalNotifier(b *testing.B) {
	const count = 1000
	n := NewNotifier()
	listeners := make([]Listener, count)
	for i := range listeners {
		listeners[i] = n.Listen("cnv_a")
		defer listeners[i].Close()
	}
	ctx := context.Background()
	piece := Delta{Run: "run_1", Agent: "lead", Message: "msg_1", Text: "token "}
	for b.Loop() {
		n.Stream("cnv_a", piece)
		for _, l := range listeners {
			if _, err := l.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*count/b.Elapsed().Seconds(), "deliveries/s")
}
