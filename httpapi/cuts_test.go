// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/sse"
)

// A viewer is a client of the event stream as simple as one can be: it keeps
// the events by their numbers and the text that is being written, and when its
// connection ends it asks for what comes after its newest event.
type viewer struct {
	t      *rapid.T
	b      *bench
	path   string
	events []artel.Event
	live   map[artel.MessageID]string
}

// read takes events from one connection that ends after so many bytes, and
// reports whether the run is over. A connection of less than 0 bytes does not end.
func (v *viewer) read(ctx context.Context, bytes int) (over bool) {
	req, err := http.NewRequestWithContext(ctx, "GET", v.b.url+v.path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	if n := len(v.events); n > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(int64(v.events[n-1].Seq), 10))
	}
	resp, err := v.b.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if bytes >= 0 {
		body = io.LimitReader(body, int64(bytes))
	}
	v.live = map[artel.MessageID]string{} // it is sent again
	for frame, err := range sse.Events(body, 1<<20) {
		if err != nil {
			break // in the middle of an event
		}
		var e artel.Event
		if err := json.Unmarshal([]byte(frame.Data), &e); err != nil {
			v.t.Fatalf("%q: %v", frame.Data, err)
		}
		if v.take(e); e.Type == artel.EventRunFinished {
			return true
		}
	}
	return false
}

func (v *viewer) take(e artel.Event) {
	switch e.Type {
	case artel.EventMessageDelta:
		var d artel.MessageDelta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			v.t.Fatal(err)
		}
		if known := v.live[d.Message]; !d.Reset && known == "" {
			v.t.Fatalf("the text of %s begins with %q and does not say that it begins", d.Message, d.Text)
		} else if !d.Reset {
			d.Text = known + d.Text
		}
		v.live[d.Message] = d.Text
		return
	case artel.EventMessageCompleted:
		var c artel.MessageCompleted
		if err := json.Unmarshal(e.Data, &c); err != nil {
			v.t.Fatal(err)
		}
		if whole := artel.TextOf(c.Message.Parts); !strings.HasPrefix(whole, v.live[c.Message.ID]) {
			v.t.Fatalf("%q was being written, and is %q", v.live[c.Message.ID], whole)
		}
		delete(v.live, c.Message.ID)
	}
	v.events = append(v.events, e)
	if e.Seq != artel.Seq(len(v.events)) {
		v.t.Fatalf("event %d (%s) came as number %d", e.Seq, e.Type, len(v.events))
	}
}

// lasting returns the log as it is read later, without the texts that only live
// events have.
func lasting(t *rapid.T, events []artel.Event) []any {
	var all []any
	for _, e := range events {
		var data map[string]any
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		metadata, _ := data["metadata"].(map[string]any)
		snapshot, _ := metadata["artifact_snapshot"].(map[string]any)
		for _, in := range []map[string]any{data, snapshot} {
			delete(in, "content")
			delete(in, "content_omitted")
		}
		all = append(all, map[string]any{"seq": e.Seq, "type": e.Type, "run": e.Run, "agent": e.Agent, "time": e.Time.UTC(), "data": data})
	}
	return all
}

// TestCutStreams follows runs over connections that end at any byte. Such a
// reader sees the same events as one with a stable connection.
func TestCutStreams(t *testing.T) {
	b := newBench(t, strings.Replace(writes, "-- turn 3 --", "-- turn 3 --\nIt is written, 写好了, and more is to come.\n", 1))
	rapid.Check(t, func(t *rapid.T) {
		cuts := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(0, 6000)), 0, 12).Draw(t, "connections end after")
		c := b.conversation()
		path := "/conversations/" + c + "/events"
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
		defer stop()
		b.object(b.do("POST", "/conversations/"+c+"/messages", `{"text":"Go."}`), 202)
		v := &viewer{t: t, b: b, path: path}
		over := false
		for _, n := range cuts {
			if over = over || v.read(ctx, n); over {
				break
			}
		}
		if !over && !v.read(ctx, -1) {
			t.Fatalf("the stream ended after %d events", len(v.events))
		}
		if len(v.live) > 0 {
			t.Errorf("still being written: %v", v.live)
		}
		whole := &viewer{t: t, b: b, path: path}
		whole.read(ctx, -1)
		if diff := cmp.Diff(lasting(t, whole.events), lasting(t, v.events)); diff != "" {
			t.Errorf("-held +cut\n%s", diff)
		}
	})
}
