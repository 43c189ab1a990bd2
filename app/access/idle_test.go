// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// TestStreamsEndWithTheirSession: a stream ends when its session is idle, also if nothing
// else asks, and is no use of the session itself; that of a token ends with the token.
func TestStreamsEndWithTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, access.Options{Idle: time.Hour, Absolute: 3 * time.Hour})
		b.follow = true
		admin := b.setUp()
		token, _ := b.token(admin, b.clock().Add(80*time.Minute), store.ScopeRead)
		session, long := b.login("ann@example.org"), b.login("ann@example.org")
		stream, ofToken, ofLong := b.as(session), b.as(token), b.as(long)
		running := func(after time.Duration, want ...bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			for i, ctx := range []context.Context{stream, ofToken, ofLong} {
				if (ctx.Err() == nil) != want[i] {
					t.Errorf("after %v, stream %d: %v", after, i, context.Cause(ctx))
				}
			}
		}
		running(50*time.Minute, true, true, true)
		b.must(b.identified(session))
		b.must(b.identified(long))
		running(31*time.Minute, true, false, true) // the token has ended
		b.must(b.identified(long))
		running(30*time.Minute, false, false, true) // the session was idle for an hour
		b.kind("the session", b.identified(session), artel.Unauthenticated)
		b.must(b.identified(long))
		running(50*time.Minute, false, false, true)
		b.must(b.identified(long))
		running(20*time.Minute, false, false, false) // three hours old
	})
}
