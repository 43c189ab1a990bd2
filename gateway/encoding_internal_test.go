// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/model/provider"
)

// TestDecodedLimit: what a compressed body becomes is read up to a limit, and refused
// beyond it, whatever it consists of.
func TestDecodedLimit(t *testing.T) {
	for _, c := range []struct {
		left int64
		want int
	}{{5, 5}, {6, 6}, {7, 6}} {
		d := &bodyDecoder{r: strings.NewReader("abcdef"), left: c.left}
		got, err := io.ReadAll(d)
		f, refused := errors.AsType[*provider.Fault](err)
		if len(got) != c.want || refused != (c.left <= 6) || refused && f.Status != http.StatusRequestEntityTooLarge || !refused && err != nil {
			t.Errorf("limit %d: %q, %v", c.left, got, err)
		}
	}
}
