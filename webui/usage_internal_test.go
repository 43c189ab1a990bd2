// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"testing"

	"github.com/artelhq/artel"
)

// What is not known of a cost is never nothing.
func TestMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cost    artel.Cost
		calls   int
		money   string
		unknown int
	}{
		{artel.Cost{}, 3, "", 3},
		{artel.Cost{Calls: 2}, 2, "$0", 0},
		{artel.Cost{USD: 0.00001, Calls: 1}, 1, "< $0.0001", 0},
		{artel.Cost{USD: 0.01234, Calls: 1}, 4, "$0.0123", 3},
		{artel.Cost{USD: 12.345, Calls: 4}, 4, "$12.35", 0},
	} {
		u := Usage{Usage: artel.Usage{Calls: c.calls, Cost: c.cost}}
		if u.Money() != c.money || u.Unknown() != c.unknown {
			t.Errorf("%+v of %d calls: %q and %d unknown, want %q and %d", c.cost, c.calls, u.Money(), u.Unknown(), c.money, c.unknown)
		}
	}
}
