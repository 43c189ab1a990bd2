// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

var newConversation = httpapi.NewConversation{Title: "Mine"}

func asProblem(err error) (*httpapi.Problem, bool) { return errors.AsType[*httpapi.Problem](err) }

// A frame is one server-sent event as received; a comment is one too.
type frame struct{ id, event, data, comment string }

// frames reads the stream at path until stop says so.
func (b *bench) frames(path string, stop func(frame) bool, headers ...header) []frame {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(apptest.Context(b.t), 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range headers {
		for k, v := range h {
			req.Header.Set(k, v)
		}
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		b.t.Fatalf("got %s %v", resp.Status, resp.Header)
	}
	var all []frame
	var f frame
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.t.Fatalf("%v after %d frames", err, len(all))
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			all = append(all, f)
			if stop(f) {
				return all
			}
			f = frame{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		case "":
			f.comment = value
		default:
			b.t.Fatalf("got line %q", line)
		}
	}
}

// stored are the frames that the log has.
func stored(all []frame) []frame {
	return slices.DeleteFunc(slices.Clone(all), func(f frame) bool { return f.id == "" })
}

func atEnd(f frame) bool { return f.event == "run_finished" }

func TestEvents(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	b.ended(c, `{"text":"Write."}`)
	path := "/conversations/" + c + "/events"
	all := stored(b.frames(path, atEnd))
	for i, f := range all {
		var e map[string]any
		if err := json.Unmarshal([]byte(f.data), &e); err != nil {
			t.Fatalf("%v: %s", err, f.data)
		}
		has(t, f.event, e, "seq type run_id agent time data", "")
		if f.id != fmt.Sprint(i+1) || e["seq"] != float64(i+1) || e["type"] != f.event {
			t.Errorf("frame %d: got %+v", i+1, f)
		}
	}
	if all[0].event != "run_started" || all[1].event != "user_input" || !atEnd(all[len(all)-1]) {
		t.Errorf("got %+v", all)
	}
	// Wherever a client breaks off, it gets what it has not had.
	for cut := range all[:len(all)-1] {
		resumed := stored(b.frames(path, atEnd, header{"Last-Event-ID": fmt.Sprint(cut + 1)}))
		if len(resumed) != len(all)-cut-1 || resumed[0].id != fmt.Sprint(cut+2) {
			t.Errorf("after %d: got %d frames, the first is %s", cut+1, len(resumed), resumed[0].id)
		}
		if again := stored(b.frames(path+fmt.Sprintf("?after=%d", cut+1), atEnd)); cmp.Diff(resumed, again, cmp.AllowUnexported(frame{})) != "" {
			t.Errorf("after=%d is not like Last-Event-ID", cut+1)
		}
	}
	if got := stored(b.frames(path+"?after=1", atEnd, header{"Last-Event-ID": "5"})); got[0].id != "6" {
		t.Errorf("Last-Event-ID does not win: got %s", got[0].id)
	}
	if got := stored(b.frames(path+"?after=2", atEnd, header{"Last-Event-ID": "junk"})); got[0].id != "3" {
		t.Errorf("a bad Last-Event-ID: got %s", got[0].id)
	}
	last := len(all)
	beats := b.frames(fmt.Sprintf("%s?after=%d", path, last), func(f frame) bool { return f.comment != "" })
	if len(beats) != 1 {
		t.Errorf("silence: got %+v", beats)
	}
	b.problem(b.do("GET", fmt.Sprintf("%s?after=%d", path, last+1), nil), 422, "invalid")
	b.problem(b.do("GET", path+"?after=-1", nil), 422, "invalid")
	b.problem(b.do("GET", path+"?format=xml", nil), 422, "invalid")
	b.problem(b.do("GET", "/conversations/cnv_x/events", nil), 404, "not_found")
	b.headLeavesTheConnection(path)
	var paged []string
	cursor := ""
	for range last + 1 {
		page := b.object(b.do("GET", path+"?format=json&limit=4&cursor="+cursor, nil), 200)
		for _, item := range page["items"].([]any) {
			paged = append(paged, fmt.Sprint(item.(map[string]any)["seq"]))
		}
		if cursor, _ = page["next_cursor"].(string); cursor == "" {
			break
		}
	}
	if len(paged) != last || paged[last-1] != fmt.Sprint(last) {
		t.Errorf("paging: got %v", paged)
	}
}

// TestLongPages: a page of a log with long events ends early, and its cursor leads to
// the rest.
func TestLongPages(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nShort.\n")
	c := b.conversation()
	b.object(b.do("POST", "/conversations/"+c+"/messages", `{"text":"Go."}`), 202)
	path := "/conversations/" + c + "/events"
	b.frames(path, func(f frame) bool { return f.event == "run_finished" })
	messages := b.object(b.do("GET", "/conversations/"+c+"/messages", nil), 200)["items"].([]any)
	answer := fmt.Sprint(messages[len(messages)-1].(map[string]any)["id"])
	const n = 6
	text := strings.Repeat("some words ", 80_000)
	for range n {
		b.object(b.do("POST", "/conversations/"+c+"/messages/"+answer+"/edit", `{"text":"`+text+`"}`), 202)
	}
	pages, edited, last := 0, 0, 0.0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page := b.object(b.do("GET", path+"?format=json&cursor="+cursor, nil), 200)
		for _, item := range page["items"].([]any) {
			e := item.(map[string]any)
			if e["seq"] != last+1 {
				t.Fatalf("got event %v after %v", e["seq"], last)
			}
			if last++; e["type"] == "message_edited" {
				edited++
			}
		}
		cursor, _ = page["next_cursor"].(string)
	}
	if pages != 2 || edited != n {
		t.Errorf("%d pages have %d edits, want 2 with %d", pages, edited, n)
	}
}

func TestLiveText(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nA long answer that comes in pieces.\n@hang\n")
	c := b.conversation()
	sent := b.object(b.do("POST", "/conversations/"+c+"/messages", `{"text":"Go."}`), 202)
	read := func() string {
		text := ""
		for _, f := range b.frames("/conversations/"+c+"/events", func(f frame) bool {
			if f.event == "message_delta" {
				var e struct {
					Seq  int
					Data struct {
						Text  string
						Reset bool
					}
				}
				_ = json.Unmarshal([]byte(f.data), &e)
				if f.id != "" || e.Seq != 0 || text == "" && !e.Data.Reset {
					t.Errorf("got %+v", f)
				}
				text += e.Data.Text
			}
			return strings.HasSuffix(text, "pieces.")
		}) {
			_ = f
		}
		return text
	}
	for range 2 { // the second reader comes late, and gets all of it
		if got := read(); got != "A long answer that comes in pieces." {
			t.Errorf("got %q", got)
		}
	}
	b.object(b.do("POST", "/runs/"+sent["run_id"].(string)+"/cancel", nil), 200)
}

// TestReconnect stops the server in the middle of a run and starts another one
// on the same address.
func TestReconnect(t *testing.T) {
	a, _ := newApp(t, strings.Replace(writes, "-- turn 3 --", "-- turn 3 --\n@delay 300ms", 1))
	listen := func(addr string) (*http.Server, string) {
		t.Helper()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: apptest.As(httpapi.New(a, httpapi.Options{}))}
		go func() { _ = s.Serve(l) }()
		return s, l.Addr().String()
	}
	first, addr := listen("127.0.0.1:0")
	client := httpapi.NewClient("http://"+addr, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	ctx, stop := context.WithTimeout(apptest.Context(t), 5*time.Minute)
	defer stop()
	c, err := client.CreateConversation(ctx, newConversation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Go."}); err != nil {
		t.Fatal(err)
	}
	var seqs []artel.Seq
	for e, err := range client.Events(ctx, c.ID, 0, 10*time.Second) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 0 {
			continue
		}
		seqs = append(seqs, e.Seq)
		if e.Type == artel.EventArtifactCreated {
			_ = first.Close()
			first, _ = listen(addr)
		}
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	for i, s := range seqs {
		if s != artel.Seq(i+1) {
			t.Errorf("got %v", seqs)
			break
		}
	}
	_ = first.Close()
	var gone error
	for _, err := range client.Events(ctx, c.ID, 0, time.Millisecond) {
		gone = err
	}
	if artel.KindOf(gone) != artel.Unavailable {
		t.Errorf("without a server: got %v", gone)
	}
}

func TestClientErrors(t *testing.T) {
	b := newBench(t, writes)
	for _, err := range b.client.Events(apptest.Context(t), "cnv_x", 0, time.Minute) {
		if p, ok := asProblem(err); !ok || p.Status != 404 {
			t.Errorf("got %v", err)
		}
	}
	c := b.conversation()
	b.ended(c, `{"text":"Go."}`)
	id := artel.ConversationID(c)
	if m, err := b.client.Messages(apptest.Context(t), id, "", 2); err != nil || len(m.Items) != 2 || m.Next == "" {
		t.Errorf("got %+v, %v", m, err)
	}
	if l, err := b.client.Log(apptest.Context(t), id, 3); err != nil || l.Items[0].Seq != 4 {
		t.Errorf("got %+v, %v", l, err)
	}
	if s, err := b.client.Services(apptest.Context(t)); err != nil || len(s.Items) != 2 {
		t.Errorf("got %+v, %v", s, err)
	}
	if l, err := b.client.Conversations(apptest.Context(t), "", 0); err != nil || len(l.Items) != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := b.client.Run(apptest.Context(t), "run_x"); err == nil {
		t.Error("there is no such run")
	}
	if _, err := b.client.Cancel(apptest.Context(t), "run_x"); err == nil {
		t.Error("there is no such run")
	}
	for what, base := range map[string]string{"nobody": "http://127.0.0.1:1", "no address": "http://%zz", "not Artel": strings.TrimSuffix(b.url, httpapi.Base) + "/healthz"} {
		_, err := httpapi.NewClient(base, nil).CreateConversation(apptest.Context(t), newConversation)
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestIdempotency(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nok\n")
	key := func(k string) header { return header{"Idempotency-Key": k} }
	c := b.object(b.do("POST", "/conversations", `{"title":"a"}`, key("1")), 201)["id"].(string)
	if again := b.object(b.do("POST", "/conversations", `{"title":"a"}`, key("1")), 201); again["id"] != c {
		t.Error("the same request made two conversations")
	}
	b.problem(b.do("POST", "/conversations", `{"title":"b"}`, key("1")), 422, "idempotency_key_reused")
	b.problem(b.do("POST", "/conversations/"+c+"/messages", `{"text":"x"}`, key("1")), 422, "idempotency_key_reused")
	b.problem(b.do("POST", "/conversations", `{"agent":"nobody"}`, key("2")), 422, "invalid")
	b.object(b.do("POST", "/conversations", `{}`, key("2")), 201)

	at := "/conversations/" + c + "/messages"
	var wg sync.WaitGroup
	runs := make([]string, 6)
	for i := range runs {
		wg.Go(func() {
			if a, err := b.try("POST", at, `{"text":"x"}`, key("3")); err == nil {
				runs[i] = string(a.body)
			}
		})
	}
	wg.Wait()
	slices.Sort(runs)
	if u := slices.Compact(runs); len(u) != 1 || !strings.Contains(u[0], "run_id") {
		t.Errorf("got %q", u)
	}

	files := "/conversations/" + c + "/artifacts"
	text := header{"Content-Type": "text/plain", "X-Filename": "a.txt"}
	one := b.object(b.do("POST", files, "one", key("4"), text), 201)
	if again := b.object(b.do("POST", files, "one", key("4"), text), 201); again["id"] != one["id"] {
		t.Errorf("got %v and %v", one["id"], again["id"])
	}
	b.problem(b.do("POST", files, "two", key("4"), text), 422, "idempotency_key_reused")
	for range 2 { // another boundary, the same files
		body, contentType := form("file", "b.txt", "one", "c.txt", "two")
		items := b.object(b.do("POST", files, body, key("5"), header{"Content-Type": contentType}), 201)["items"].([]any)
		if len(items) != 2 || items[0].(map[string]any)["id"] != "b.txt" {
			t.Errorf("got %v", items)
		}
	}
	tool := "/conversations/" + c + "/tools/create_artifact"
	for range 2 {
		if m := b.object(b.do("POST", tool, `{"id":"t","title":"T","content":"x"}`, key("6")), 200); m["ok"] != true {
			t.Errorf("got %v", m)
		}
	}
	if list := b.object(b.do("GET", files, nil), 200)["items"].([]any); len(list) != 4 {
		t.Errorf("got %d artifacts", len(list))
	}
}

// headLeavesTheConnection asks with HEAD for a stream, and on the same
// connection for more: the answer to HEAD has an end.
func (b *bench) headLeavesTheConnection(path string) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(b.url, "http://"), httpapi.Base))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		b.t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for _, method := range []string{"HEAD", "HEAD", "GET"} {
		at := path
		if method == "GET" {
			at += "?format=json"
		}
		req, err := http.NewRequestWithContext(apptest.Context(b.t), method, b.url+at, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := req.Write(conn); err != nil {
			b.t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, req)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || resp.Close || len(body) > 0 != (method == "GET") {
			b.t.Errorf("%s: got %s, %d bytes, closing %v, %v", method, resp.Status, len(body), resp.Close, err)
		}
		if method == "HEAD" && resp.Header.Get("Content-Type") != "text/event-stream" {
			b.t.Errorf("HEAD: got %v", resp.Header)
		}
	}
}
