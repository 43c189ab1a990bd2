// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// TestBusyMachineIsNoSlowPattern stops a search by the clock. If it had the
// processor meanwhile, the pattern is too slow; if other work had it, the search
// is repeated with a longer limit.
func TestBusyMachineIsNoSlowPattern(t *testing.T) {
	p, err := compile("(?=a)(a+)+b", "", map[int]bool{}, false)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := compile("(?=a)a{60}", "", map[int]bool{}, false)
	if err != nil {
		t.Fatal(err)
	}
	p.back = []func() (*regexp2.Regexp, error){p.back[0], quick.back[0]} // the second attempt is in time
	text := strings.Repeat("a", 60)
	for _, tt := range []struct {
		name string
		cpu  func() time.Duration
		want int
	}{
		{"busy", func() time.Duration { return 0 }, 1},
		{"idle", wallTime, 0},
	} {
		r := replacement{pattern: p, cpu: tt.cpu}
		got, n, err := r.applyBack(text, never)
		if n != tt.want || (err == nil) != (tt.want > 0) || tt.want > 0 && got != "" {
			t.Errorf("%s: got %q, %d, %v", tt.name, got, n, err)
		}
	}
	r := replacement{pattern: p, cpu: func() time.Duration { return 0 }}
	p.back = p.back[:1]
	if _, _, err := r.applyBack(text, never); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("got %v", err)
	}
}
