// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// TestMute: a process that cannot send for a while, which others do not notice, tells them
// afterwards that they lack something.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &port{hub: newHub(nil)}
		one, other := open(t, p), open(t, &port{hub: p.hub})
		const c artel.ConversationID = "cnv_a"
		l := other.Listen(c)
		defer l.Close()
		next := make(chan event.Notification)
		var work sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		defer work.Wait()
		defer stop()
		work.Go(func() {
			for {
				n, err := l.Wait(ctx)
				if err != nil {
					return
				}
				select {
				case next <- n:
				case <-ctx.Done():
					return
				}
			}
		})
		<-next
		synctest.Wait() // the question of the listener is asked
		p.cut(true)
		one.Notify(c)
		one.Stream(c, event.Delta{Message: "msg_1", Text: "text"})
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case n := <-next:
			t.Fatalf("got %+v", n)
		default:
		}
		p.cut(false)
		for grown, text := false, ""; !grown || text != "text"; {
			n := <-next
			grown, text = grown || n.Grown, text+n.Text
		}
		synctest.Wait()
	})
}
