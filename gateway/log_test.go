// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/store"
)

// TestLog: every entry is written by Close, says what was done to each part,
// names bytes that can be read, and holds nothing of them.
func TestLog(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{{Name: "ci", Secret: "sk-ci"}}}})
	png := picture(8, 1)
	in := toolTurn("text", `[{"type":"text","text":"a chart"},{"type":"image_url","image_url":{"url":"`+dataURL(png)+`"}}]`)
	if status, body := b.post("/v1/chat/completions", in, "Authorization", "Bearer sk-ci"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	b.post("/v1/chat/completions", asks("chat", ""), "Authorization", "Bearer sk-ci")
	b.post("/v1/chat/completions", asks("nothing", ""), "Authorization", "Bearer sk-ci")
	b.post("/v1/messages", asks("chat", ""), "Authorization", "Bearer wrong")
	changed := b.app.GatewayLog.Changed()
	if err := b.app.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-changed

	list := func(q gatewaylog.Query) []gatewaylog.GatewayEntry {
		t.Helper()
		items, _, err := b.app.GatewayLog.List(apptest.Context(t), q)
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	all := list(gatewaylog.Query{})
	var statuses []int
	for _, e := range all {
		statuses = append(statuses, e.Status)
	}
	if fmt.Sprint(statuses) != "[401 404 200 200]" {
		t.Fatal("statuses", statuses)
	}
	for what, is := range map[string]struct {
		q    gatewaylog.Query
		want int
	}{
		"a key": {gatewaylog.Query{Key: "ci"}, 3}, "another key": {gatewaylog.Query{Key: "c"}, 0},
		"a service": {gatewaylog.Query{Service: "text"}, 1}, "changed": {gatewaylog.Query{Changed: true}, 1},
		"ok": {gatewaylog.Query{Status: "ok"}, 2}, "failed": {gatewaylog.Query{Status: "failed"}, 2},
		"a class": {gatewaylog.Query{Status: "4xx"}, 2}, "one status": {gatewaylog.Query{Status: "404"}, 1}, "together": {gatewaylog.Query{Status: "failed", Key: "ci"}, 1},
	} {
		if got := list(is.q); len(got) != is.want {
			t.Errorf("%s: %d entries, want %d", what, len(got), is.want)
		}
	}
	if _, _, err := b.app.GatewayLog.List(apptest.Context(t), gatewaylog.Query{Status: "6xx"}); artel.KindOf(err) != artel.Invalid {
		t.Error("a status that is none:", err)
	}

	e := all[3]
	if e.Service != "text" || len(e.Changes) == 0 || e.Time.IsZero() || e.Key != "ci" || e.Number < 1 {
		t.Fatalf("%+v", e)
	}
	if s := fmt.Sprintf("%+v", all); strings.Contains(s, "a chart") || strings.Contains(s, encoded(png)[:40]) || strings.Contains(s, "sk-ci") {
		t.Error("the log holds content:", s)
	}
	c, err := b.app.Files.Open(apptest.Context(t), e.Changes[0].Ref.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Content.Close()
	if got, err := io.ReadAll(c.Content); err != nil || string(got) != string(png) || c.Info.MediaType != "image/png" {
		t.Errorf("%d bytes of %s, %v", len(got), c.Info.MediaType, err)
	}
}

// TestLogBounds: many entries at once are written in few turns and in part
// forgotten, and what is written is there when Flush returns.
func TestLogBounds(t *testing.T) {
	b := newBench(t)
	l := b.app.GatewayLog
	var wg sync.WaitGroup
	const rounds, each = 3, 4000
	for range rounds {
		for range 8 {
			wg.Go(func() {
				for i := range each / 8 {
					changes := 1
					if i > each/8-20 {
						changes = 201 // more than are kept
					}
					l.Add(apptest.Context(t), gatewaylog.GatewayEntry{Status: 200, Changes: make([]gatewaylog.GatewayChange, changes)})
				}
			})
		}
		wg.Wait()
		if err := l.Flush(apptest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	count, q := 0, gatewaylog.Query{Page: store.Page{Limit: 500}}
	for {
		items, next, err := l.List(apptest.Context(t), q)
		if err != nil {
			t.Fatal(err)
		}
		if count == 0 && (len(items[0].Changes) != 200 || items[0].Unlisted != 1) {
			t.Errorf("%d changes, %d unlisted", len(items[0].Changes), items[0].Unlisted)
		}
		count += len(items)
		if q.Page.Cursor = next; next == "" {
			break
		}
	}
	// What is too much goes when some hundreds of it have come together.
	if count < gatewaylog.Kept || count >= gatewaylog.Kept+500 {
		t.Errorf("%d entries are kept, want %d and not 500 more", count, gatewaylog.Kept)
	}
}
