// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// TestLocalBellKeepsNothing: rooms are there only while somebody writes or
// listens in them.
func TestLocalBellKeepsNothing(t *testing.T) {
	b := NewBell()
	b.Ring("cnv_a")
	b.Hush("cnv_a")
	l := b.Listen("cnv_b")
	l.Close()
	l.Close()
	b.Say("cnv_c", Speech{Message: "msg_1", Text: "text"})
	l = b.Listen("cnv_c")
	b.Hush("cnv_c")
	l.Close()
	l = b.Listen("cnv_d")
	b.Say("cnv_d", Speech{Message: "msg_1", Reasoning: "thought"})
	l.Close()
	if len(b.rooms) != 1 {
		t.Errorf("%d rooms are kept, want the one in which an answer is being written", len(b.rooms))
	}
	b.Hush("cnv_d")
	if len(b.rooms) != 0 {
		t.Errorf("%d rooms are kept, want none", len(b.rooms))
	}
	if _, err := l.Wait(t.Context()); err == nil {
		t.Error("a closed listener waits without an error")
	}
}

// TestLocalBellSharesText: what many listeners are told is one copy.
func TestLocalBellSharesText(t *testing.T) {
	const listeners, size = 500, 1 << 20
	b := NewBell()
	ears := make([]Listener, listeners)
	for i := range ears {
		ears[i] = b.Listen("cnv_a")
		defer ears[i].Close()
	}
	b.Say("cnv_a", Speech{Message: "msg_1", Text: strings.Repeat("x", size)})
	texts := make([]string, listeners)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, l := range ears {
		n, err := l.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = n.Text
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 10*size {
		t.Errorf("telling %d listeners %d bytes took %d bytes", listeners, size, grown)
	}
	for _, s := range texts {
		if len(s) != size {
			t.Fatalf("got %d bytes, want %d", len(s), size)
		}
	}
}

func BenchmarkLocalBell(b *testing.B) {
	const listeners = 1000
	bell := NewBell()
	ears := make([]Listener, listeners)
	for i := range ears {
		ears[i] = bell.Listen("cnv_a")
		defer ears[i].Close()
	}
	ctx := context.Background()
	piece := Speech{Run: "run_1", Agent: "lead", Message: "msg_1", Text: "token "}
	for b.Loop() {
		bell.Say("cnv_a", piece)
		for _, l := range ears {
			if _, err := l.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*listeners/b.Elapsed().Seconds(), "deliveries/s")
}
