// SPDX-License-Identifier: Apache-2.0

package token

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/tiktoken-go/tokenizer"
)

var update = flag.Bool("update", false, "write the packed vocabularies")

// TestVocabularies holds the packed vocabularies to those of the library.
func TestVocabularies(t *testing.T) {
	for _, e := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		codec, err := tokenizer.Get(e)
		if err != nil {
			t.Fatal(err)
		}
		codec.SetErrorMode(tokenizer.ErrorModeNone) // some tokens are parts of characters
		var lengths, text []byte
		for one := []uint{0}; ; one[0]++ { // the ranks have no gaps
			s, err := codec.Decode(one)
			if err != nil {
				break
			}
			if len(s) == 0 || len(s) > 255 {
				t.Fatalf("%s: token %d has %d bytes", e, one[0], len(s))
			}
			lengths, text = append(lengths, byte(len(s))), append(text, s...)
		}
		if *update {
			z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
			if err != nil {
				t.Fatal(err)
			}
			packed := z.EncodeAll(slices.Concat(lengths, []byte{0}, text), nil)
			if err := os.WriteFile(string(e)+".zst", packed, 0o644); err != nil {
				t.Fatal(err)
			}
			continue // the program has what was there when it was built
		}
		got, ends, err := unpackVocabulary(string(e))
		if err != nil {
			t.Fatal(err)
		}
		if got != string(text) || len(ends) != len(lengths) {
			t.Errorf("%s is not the library's; run go test -run TestVocabularies ./pipeline/token -update", e)
		}
	}
}
