// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"io"
	"strings"
	"testing"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model/provider"
)

// TestMerged: a body keeps its bytes beside the merged members, and its blobs.
func TestMerged(t *testing.T) {
	blobs := blob.NewMemory()
	put, err := blobs.Put(t.Context(), strings.NewReader("picture"), 100)
	if err != nil {
		t.Fatal(err)
	}
	body := func() *provider.Body {
		b := provider.NewBody(blobs)
		b.WriteString(`{"model": "m","g":{"a":1.50,"b":[1]},"x":"<&","data":"`)
		b.WriteBlob(put.Digest, put.Size)
		b.WriteString(`","last":"`)
		b.WriteBlob(put.Digest, put.Size)
		b.WriteString(`"}`)
		return b
	}
	for patch, want := range map[string]string{
		``:           `{"model": "m","g":{"a":1.50,"b":[1]},"x":"<&","data":"cGljdHVyZQ==","last":"cGljdHVyZQ=="}`,
		`{"x":null}`: `{"model":"m","g":{"a":1.50,"b":[1]},"data":"cGljdHVyZQ==","last":"cGljdHVyZQ=="}`,
		`{"g":{"b":2,"c":{"d":null,"e":1}},"tier":"flex"}`: `{"model":"m","g":{"a":1.50,"b":2,"c":{"e":1}},"x":"<&","data":"cGljdHVyZQ==","last":"cGljdHVyZQ==","tier":"flex"}`,
		`{"x":{"y":1}}`: `{"model":"m","g":{"a":1.50,"b":[1]},"x":{"y":1},"data":"cGljdHVyZQ==","last":"cGljdHVyZQ=="}`,
	} {
		out := body().Merged([]byte(patch))
		r := out.Open(t.Context())
		got, err := io.ReadAll(r)
		_ = r.Close() // it was read
		if err != nil || string(got) != want || out.Len() != int64(len(got)) {
			t.Errorf("%s: %v, %d bytes\n%s\nwant\n%s", patch, err, out.Len(), got, want)
		}
	}
}
