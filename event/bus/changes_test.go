// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
)

// keys are the changes that a process has heard.
type keys struct {
	mu  sync.Mutex
	all map[string]int
}

func hear(b *bus.Bus, topic string) *keys {
	k := &keys{all: map[string]int{}}
	b.OnChange(topic, func(key string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.all[key]++
	})
	return k
}

func (k *keys) times(key string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// TestChanges: a change is heard in all processes at once; and if messages are lost, then that everything
// may have changed, within seconds.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(nil)
		one, other := open(t, &port{hub: h}), open(t, &port{hub: h})
		one.Announce("first", "") // what comes before the first message that is heard may be lost
		synctest.Wait()
		here, there, topic := hear(one, "users"), hear(other, "users"), hear(other, "keys")
		one.Announce("users", "usr_1")
		if here.times("usr_1") != 1 {
			t.Error("it is not heard where it is announced")
		}
		synctest.Wait()
		if there.times("usr_1") != 1 || len(topic.all) > 0 {
			t.Errorf("heard elsewhere: %v, and in another topic %v", there.all, topic.all)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(here.all) + len(there.all) + len(topic.all); n != 2 {
			t.Error("without a loss, everything may have changed")
		}
		h.mu.Lock()
		h.down = true
		h.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if here.times("") < 4 || there.times("") < 4 || topic.times("") < 4 {
			t.Errorf("while nothing gets through, %d, %d and %d times in five seconds", here.times(""), there.times(""), topic.times(""))
		}
	})
}

func TestChangesLossy(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(rand.New(rand.NewPCG(seed, 3)))
			one, other := open(t, &port{hub: h}), open(t, &port{hub: h})
			there := hear(other, "users")
			for i := range 10 {
				key := fmt.Sprint("usr_", i)
				before := there.times("")
				one.Announce("users", key)
				time.Sleep(4 * bus.Tick)
				synctest.Wait()
				if there.times(key) == 0 && there.times("") == before {
					t.Fatalf("seed %d: change %d is lost", seed, i)
				}
			}
		})
	}
}

// TestMute: a process that cannot send for a while, which others do not notice, tells them
// afterwards that they lack something.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &port{hub: newHub(nil)}
		one, other := open(t, p), open(t, &port{hub: p.hub})
		there := hear(other, "users")
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
		one.Announce("users", "usr_1")
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case n := <-next:
			t.Fatalf("got %+v", n)
		default:
		}
		p.cut(false)
		for grown, text := false, ""; !grown || text != "text" || there.times("") == 0; {
			n := <-next
			grown, text = grown || n.Grown, text+n.Text
		}
		synctest.Wait()
	})
}
