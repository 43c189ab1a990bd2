// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// TestPassing: bytes that nothing refers to have at most the limit within two days, each
// digest once; what is kept counts no longer, and no owner counts for another.
func TestPassing(t *testing.T) {
	q := artifact.NewQuota(nil, 1000, time.Now)
	start := time.Date(2026, 1, 1, 10, 30, 0, 0, time.UTC)
	digest := func(n byte) artel.Digest { return artel.NewDigest([32]byte{n}) }
	admits := func(owner artel.Owner, at time.Duration, want bool) time.Duration {
		t.Helper()
		err := q.AdmitPassing(owner, start.Add(at))
		if (err == nil) != want {
			t.Fatalf("after %v: %v", at, err)
		}
		full, _ := errors.AsType[*artifact.Full](err)
		if err == nil {
			return 0
		}
		if full == nil || artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), "limits.user.storage") {
			t.Fatalf("the error is %v", err)
		}
		return full.RetryAfter()
	}
	admits("a", 0, true)
	q.Passed("a", digest(1), 600, start)
	q.Passed("a", digest(1), 600, start.Add(time.Minute)) // again
	admits("a", time.Minute, true)
	q.Passed("a", digest(2), 500, start.Add(5*time.Hour))
	if wait := admits("a", 6*time.Hour, false); wait != 42*time.Hour+30*time.Minute {
		t.Errorf("it may be tried again after %v", wait)
	}
	admits("b", 6*time.Hour, true)
	q.Kept("a", digest(2))
	admits("a", 6*time.Hour, true)
	q.Passed("a", digest(3), 400, start.Add(6*time.Hour))
	admits("a", 6*time.Hour, false)
	admits("a", 48*time.Hour, false)
	admits("a", 49*time.Hour, true) // the first are swept
	var none *artifact.Quota
	none.Passed("a", digest(1), 1, start)
	none.Kept("a", digest(1))
	if err := none.AdmitPassing("a", start); err != nil {
		t.Error(err)
	}
}
