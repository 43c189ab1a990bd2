// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// FuzzFrames: what is packed comes out, whatever its bytes, also when its first payload comes twice; what is no payload is
// refused; and after a loss the next whole payload is read again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("text"), []byte("zero\x00, \xff and 中"), uint16(3), "m a b 3\nabc")
	f.Add([]byte{}, bytes.Repeat([]byte("long "), 10), uint16(2000), "M a  4\n!!!!")
	f.Add([]byte("a"), []byte("b\n"), uint16(700), "m a  99999999999999999999\n")
	f.Fuzz(func(t *testing.T, one, two []byte, times uint16, foreign string) {
		two = bytes.Repeat(two, int(times)%1000)
		two = two[:min(len(two), maxMessage)]
		want := []frame{
			{kind: frameMessage, subject: "artel.one", data: one},
			{kind: frameQuestion, subject: "artel.two", id: "self/1", data: two},
			{kind: frameReply, subject: "self", id: "1", data: one},
		}
		payloads, last := pack("me", 0, want)
		if int(last) != len(payloads) {
			t.Fatalf("%d payloads, the last is %d", len(payloads), last)
		}
		known, now := peers{}, time.Now()
		var got []frame
		for i, p := range payloads {
			if len(p) > maxPayload || strings.ContainsFunc(p, func(r rune) bool { return r == 0 || r > '~' }) {
				t.Fatalf("payload %d of %d bytes cannot be sent", i, len(p))
			}
			from, number, kind, body, ok := parse(p)
			if !ok || from != "me" {
				t.Fatalf("payload %d cannot be read", i)
			}
			frames, lost := known.take(from, number, kind, body, now)
			if lost {
				t.Fatalf("payload %d: something is lost", i)
			}
			got = append(got, frames...)
			if again, _ := known.take(from, number, kind, body, now); i == 0 && len(again) > 0 {
				t.Fatal("what comes twice is taken twice")
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames of %d", len(got), len(want))
		}
		for i, g := range got {
			if w := want[i]; g.kind != w.kind || g.subject != w.subject || g.id != w.id || !bytes.Equal(g.data, w.data) {
				t.Errorf("frame %d: got %q, want %q", i, g, w)
			}
		}
		for _, kind := range []byte{payloadWhole, payloadFirst, payloadNext, payloadLast, 'x'} {
			last += 2
			if _, lost := known.take("me", last, kind, foreign, now); !lost {
				t.Errorf("the loss before a payload %q is not seen", kind)
			}
		}
		if frames, lost := known.take("me", last+1, payloadWhole, "m a  2\nhi", now); lost || len(frames) != 1 {
			t.Errorf("after a loss: %v, lost %t", frames, lost)
		}
		if from, number, kind, body, ok := parse(foreign); ok {
			known.take(from, number, kind, body, now)
		}
	})
}

// TestPeers: processes that have ended are forgotten, and parts that do not end are dropped.
func TestPeers(t *testing.T) {
	known, now := peers{}, time.Now()
	for i := range 3 * maxPeers {
		known.take(strings.Repeat("x", i), 1, payloadWhole, "", now)
	}
	if len(known) > maxPeers {
		t.Errorf("%d processes are known", len(known))
	}
	known.take("new", 1, payloadFirst, "", now.Add(time.Hour))
	if len(known) != 1 {
		t.Errorf("%d processes are known after an hour", len(known))
	}
	part := strings.Repeat("x", maxPayload)
	for n := uint64(2); ; n++ {
		if _, lost := known.take("new", n, payloadNext, part, now); lost {
			break
		} else if len(known["new"].parts) > 3*maxMessage {
			t.Fatal("parts grow without limit")
		}
	}
}
