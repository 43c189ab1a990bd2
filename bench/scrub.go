// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/artelhq/artel/media/scrub"
)

const scrubAbout = "Media are taken out of a tool's result, as a stream, into a sink that hashes them. Nested is JSON of objects, arrays and JSON in strings, without any media, with a picture of 96 bytes in every tenth object, and with one of 1 MB in each. " +
	"The anchor is json.Valid of the standard library, which goes over the same bytes once, in memory, and takes nothing out."

// The target for a stream of nested JSON in bytes per second, and the anchor's figure
// on the machine of that target.
const scrubLimit, scrubReference = 300e6, 200e6

var errNotJSON = errors.New("the made text is no JSON")

func measureScrub(ctx context.Context, l *lab) []result {
	picture := must(base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAACXBIWXMAAAABAAAAAQBPJcTWAAAAEklEQVR4nGP4y8CAFWEXHbQSAPZwP0G2GkFNAAAAAElFTkSuQmCC"))
	large := append(bytes.Clone(picture), bytes.Repeat([]byte{0x5a, 0xa5, 0x3c}, 1<<20/3)...)
	var results []result
	for _, size := range []int{2e6, 10e6, 50e6} {
		for _, w := range []struct {
			name  string
			every int
			media []byte
		}{{"nested JSON", 0, nil}, {"nested JSON with small pictures", 10, picture}, {"nested JSON with large pictures", 1, large}} {
			text := nestedJSON(size, w.every, w.media)
			m := interleave(l.rounds(3),
				perSecond(float64(len(text)), 0, func() error { return scrubbed(ctx, text) }),
				perSecond(float64(len(text)), 0, func() error {
					if !json.Valid(text) {
						return errNotJSON
					}
					return nil
				}))
			r := result{work: w.name, size: bytesOf(int64(size)), unit: mbPerSec(), artel: m[0], anchor: m[1]}
			if size == 50e6 && w.every != 10 { // many hits cost more than many bytes
				r.target = target{limit: scrubLimit, reference: scrubReference}
			}
			results = append(results, r)
		}
	}
	return results
}

func scrubbed(ctx context.Context, text []byte) error {
	return scrub.Copy(ctx, io.Discard, bytes.NewReader(text), func(_ context.Context, r io.Reader, _ scrub.Hint) (string, error) {
		sum := sha256.New()
		_, err := io.Copy(sum, r)
		return fmt.Sprintf("blob:sha256-%x", sum.Sum(nil)), err
	})
}

// nestedJSON is about size bytes of JSON with a picture in one of every objects; 0
// for none.
func nestedJSON(size, every int, media []byte) []byte {
	encoded := base64.StdEncoding.EncodeToString(media)
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		inner := fmt.Sprintf(`{"id":%d,"path":"/var/lib/data/%d","sha256":"%x","tags":["alpha","beta"],"score":%f,"note":"the quick brown fox jumps over the lazy dog,\nand back again"}`,
			i, i*7919, sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)}), float64(i)/7)
		fmt.Fprintf(&b, `{"n":%d,"v":%s,"s":%q,"deep":[[[{"a":{"b":{"c":null,"d":true}}}]]]`, i, inner, inner)
		if every > 0 && i%every == 0 {
			fmt.Fprintf(&b, `,"block":{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`, encoded)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return b.Bytes()
}
