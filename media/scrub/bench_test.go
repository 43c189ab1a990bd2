// SPDX-License-Identifier: Apache-2.0

package scrub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel/media/scrub"
)

// nested is about size bytes of JSON in objects and arrays, with media in one
// entry out of every, and JSON in strings of JSON.
func nested(size, every int, media []byte) []byte {
	encoded := base64.StdEncoding.EncodeToString(media)
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		inner, _ := json.Marshal(map[string]any{
			"id": i, "path": "/var/lib/data/" + fmt.Sprint(i*7919), "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(i)))), "tags": []string{"alpha", "beta", "gamma"},
			"score": float64(i) / 7, "note": "the quick brown fox jumps over the lazy dog, and back again\nto where it was",
		})
		quoted, _ := json.Marshal(string(inner))
		fmt.Fprintf(&b, `{"n":%d,"v":%s,"s":%s,"deep":[[[{"a":{"b":{"c":null,"d":true}}}]]]`, i, inner, quoted)
		if every > 0 && i%every == 0 {
			fmt.Fprintf(&b, `,"block":{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`, encoded)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func ref(_ context.Context, r io.Reader, _ scrub.Hint) (string, error) {
	_, err := io.Copy(io.Discard, r)
	return "blob:x", err
}

func BenchmarkCopy(b *testing.B) {
	png, err := os.ReadFile("../../testdata/files/red.png")
	if err != nil {
		b.Fatal(err)
	}
	large := append(bytes.Clone(png), make([]byte, 1<<20)...)
	const size = 50 << 20
	prose := []byte(strings.Repeat("Nothing but words, and a few numbers: 12345, 67890; it goes on and on.\n", size/72))
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"nested", nested(size, 0, nil)},
		{"nested with small pictures", nested(size, 10, png)},
		{"large pictures", nested(size, 1, large)},
		{"prose", prose},
		{"data members", []byte(strings.Repeat(`{"data":"short","other":1},`, size/27))},
		{"hashes", []byte(strings.Repeat(`"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",`, size/67))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := scrub.Copy(b.Context(), io.Discard, bytes.NewReader(c.text), ref); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
