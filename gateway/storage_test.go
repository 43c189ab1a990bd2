// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestMediaOfRequestsAreLimited: media of requests that nothing keeps take at most as much
// of the disk as the storage of the user; then the client is told in its dialect when to
// come back. The same media again, and requests without, pass.
func TestMediaOfRequestsAreLimited(t *testing.T) {
	png := func(n uint8) string {
		return fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":%q}}]}]}`, dataURL(pictureOf(64, 64, n)))
	}
	b := newBench(t, setup{storage: 3 * int64(len(pictureOf(64, 64, 1)))})
	refused := 0
	for n := range uint8(20) {
		status, body := b.post("/v1/chat/completions", png(n))
		switch {
		case status == 413 && strings.Contains(body, "storage_limit") && strings.Contains(body, "last two days") && n >= 2:
			refused++
		case status != 200 || refused > 0:
			t.Fatalf("picture %d: %d %s", n, status, body)
		}
	}
	if refused == 0 {
		t.Error("20 pictures passed, want about 3")
	}
	if status, body := b.post("/v1/chat/completions", asks("chat", "")); status != 200 {
		t.Errorf("a request without media: %d %s", status, body)
	}
}
