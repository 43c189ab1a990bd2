// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/artelhq/artel"
)

func numbered(n uint64) artel.Digest {
	return artel.NewDigest(sha256.Sum256(binary.BigEndian.AppendUint64(nil, n)))
}

// TestMarks wants what was added and nothing else, in little room, however often
// it was added.
func TestMarks(t *testing.T) {
	const n = 20_000
	var m marks
	for i := range uint64(5 * n) {
		m.add(numbered(i % n))
	}
	if room := float64(8*len(m.table)) / n; room < 10 || room > 20 {
		t.Errorf("%.1f bytes per digest", room)
	}
	for i := range uint64(n) {
		if !m.has(numbered(i)) {
			t.Fatalf("%d is missing", i)
		}
		if m.has(numbered(n + i)) {
			t.Fatalf("%d was never added", n+i)
		}
	}
	if m.n != n {
		t.Errorf("%d marks", m.n)
	}
	var none marks
	if none.has(numbered(1)) || none.has("") {
		t.Error("the empty set has something")
	}
}

// BenchmarkMarks marks a million digests that stand in three places each, and
// says how many bytes one takes.
func BenchmarkMarks(b *testing.B) {
	const n = 1_000_000
	digests := make([]artel.Digest, n)
	for i := range digests {
		digests[i] = numbered(uint64(i))
	}
	for b.Loop() {
		var m marks
		for range 3 {
			for _, d := range digests {
				m.add(d)
			}
		}
		b.ReportMetric(float64(8*len(m.table))/n, "bytes/digest")
	}
}
