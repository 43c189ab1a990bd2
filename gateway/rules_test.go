// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/store"
)

// anyJSON draws a JSON value in an arbitrary layout.
func anyJSON(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		kinds := 5
		if depth <= 0 {
			kinds = 3
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"0", "1.50", "-2e+10", "1E5", "12345678901234567890.10"}).Draw(t, "number")
		case 1:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
		case 2, 3:
			return quoted(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"model", "tool", "stream", "payload:x", "data:", "messages"})).Draw(t, "text"))
		case 4:
			items := rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "items")
			return "[" + space + strings.Join(items, space+", ") + "]"
		}
		var members []string
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			key := rapid.SampledFrom([]string{"a", "model", "role", "url", "type", "é", "content", "x"}).Draw(t, "key")
			members = append(members, quoted(key)+space+":"+space+anyJSON(depth-1).Draw(t, "value"))
		}
		return "{" + strings.Join(members, ","+space) + space + "}"
	})
}

// TestForwardsByteForByte: without media, nothing but the model's name changes,
// whatever stands in a request and wherever.
func TestForwardsByteForByte(t *testing.T) {
	b := newBench(t)
	b.upstream = says(completion)
	rapid.Check(t, func(rt *rapid.T) {
		extra := func() string {
			return rapid.SampledFrom([]string{"", `,"x_a":` + anyJSON(2).Draw(rt, "x"), `, "metadata" : ` + anyJSON(1).Draw(rt, "y")}).Draw(rt, "extra")
		}
		var messages []string
		for i := range rapid.IntRange(0, 4).Draw(rt, "messages") {
			content := quoted(rapid.String().Draw(rt, "text"))
			switch rapid.IntRange(0, 4).Draw(rt, "role") {
			case 0:
				messages = append(messages, `{"role":"user","content":`+content+extra()+`}`)
			case 1:
				messages = append(messages, `{"content":[{"type":"text","text":`+content+extra()+`}],"role":"user"`+extra()+`}`)
			case 2:
				messages = append(messages, `{"role":"system" ,"content":`+content+extra()+`}`)
			case 3:
				id := fmt.Sprintf(`"c%d"`, i)
				messages = append(messages, `{"role":"assistant","tool_calls":[{"id":`+id+`,"type":"function","function":{"name":"f","arguments":"{ }"}`+extra()+`}]}`,
					`{"role":"tool","tool_call_id":`+id+`,"content":`+content+extra()+`}`)
			default:
				messages = append(messages, anyJSON(2).Draw(rt, "message"))
			}
		}
		before, after := extra(), extra()
		if before != "" {
			before = before[1:] + ","
		}
		write := func(model string) string {
			return "{" + before + `"model":"` + model + `" , "messages": [` + strings.Join(messages, " ,\n") + `]` + after + "}\n"
		}
		if strings.Count(write("chat"), `"stream"`) > 0 {
			return // another answer is expected then
		}
		status, body := b.post("/v1/chat/completions", write("chat"))
		if status != 200 {
			rt.Fatalf("%d %s\nfor %s", status, body, write("chat"))
		}
		if got := b.last(); got != write("upstream-model") {
			rt.Fatalf("sent\n%q\nwant\n%q", got, write("upstream-model"))
		}
	})
}

// TestBrokenStream: whatever breaks a stream, and wherever, it ends with an
// error and without the mark of a good end; before its first event it is an
// error of the request.
func TestBrokenStream(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}})
	chunk := func(s string) string {
		return `data: {"id":"a","choices":[{"index":0,"delta":{"content":` + quoted(s) + `},"finish_reason":null}]}` + "\n\n"
	}
	whole := []string{": hello\n\n", chunk("one"), chunk("two"), `data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n", "data: [DONE]\n\n"}
	for cut := range len(whole) {
		for _, abort := range []bool{true, false} {
			for _, half := range []string{"", "data: {\"id\":\"a\",\"cho"} {
				b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, strings.Join(whole[:cut], "")+half)
					_ = http.NewResponseController(w).Flush()
					if abort {
						panic(http.ErrAbortHandler)
					}
				})
				status, body := b.post("/v1/chat/completions", asks("chat", `,"stream":true`))
				if strings.Contains(body, "[DONE]") || strings.Contains(body, `"cho`+"\n") {
					t.Fatalf("cut at %d: %s", cut, body)
				}
				if cut <= 1 { // a comment is no answer
					if status != 502 {
						t.Errorf("before the first chunk: %d %s", status, body)
					}
					errorOf(t, body)
					continue
				}
				sent := strings.Join(whole[:cut], "")
				if cut == 4 && !abort && half == "" { // a finish reason is an end, too
					if status != 200 || body != sent {
						t.Errorf("without [DONE]: %d %q", status, body)
					}
					continue
				}
				rest, ok := strings.CutPrefix(body, sent)
				data, isEvent := strings.CutPrefix(rest, "data: ")
				if status != 200 || !ok || !isEvent || !strings.HasSuffix(rest, "\n\n") {
					t.Fatalf("cut at %d: %d %q", cut, status, body)
				}
				errorOf(t, data)
				if e := b.entry(); e.Status != 502 || e.Error == "" {
					t.Errorf("entry %+v", e)
				}
			}
		}
	}
	// The other way too.
	b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			if yield(model.TextDelta("one"), nil) {
				yield(nil, artel.Errorf(artel.Unavailable, "test", "", "the stream broke off"))
			}
		}
	}
	status, body := b.post("/v1/chat/completions", asks("other", `,"stream":true`))
	if status != 200 || strings.Contains(body, "[DONE]") || !strings.HasSuffix(body, "\n\n") || !strings.Contains(body, `data: {"error":{`) || !strings.Contains(body, "the stream broke off") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := b.post("/v1/chat/completions", asks("other", "")); status != 502 {
		t.Errorf("%d %s", status, body)
	}
}

// TestStreamIsNotHeldBack: each event reaches the client before the next is
// there.
func TestStreamIsNotHeldBack(t *testing.T) {
	b := newBench(t)
	next := make(chan struct{})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"n\":%d}\r\n\r\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	resp := b.send(apptest.Context(t), "/v1/chat/completions", asks("chat", `,"stream":true`))
	defer resp.Body.Close()
	for i := range 3 {
		want := fmt.Sprintf("data: {\"n\":%d}\r\n\r\n", i)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("event %d is %q, %v", i, got, err)
		}
		next <- struct{}{}
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "data: [DONE]\n\n" {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// TestClientLeaves: the call of the service ends when the client leaves, before
// and in the middle of an answer, both ways.
func TestClientLeaves(t *testing.T) {
	b := newBench(t)
	gone := make(chan struct{}, 1)
	for _, begun := range []bool{false, true} {
		came := make(chan struct{}, 1)
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: {\"n\":1}\n\n")
				_ = http.NewResponseController(w).Flush()
			}
			came <- struct{}{}
			<-r.Context().Done()
			gone <- struct{}{}
		})
		b.answer = func(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
			return func(yield func(model.Delta, error) bool) {
				if !begun || yield(model.TextDelta("x"), nil) {
					came <- struct{}{}
					<-ctx.Done()
				}
				gone <- struct{}{}
				yield(nil, artel.Errorf(artel.Canceled, "test", "", "left"))
			}
		}
		for _, service := range []string{"chat", "other"} {
			ctx, leave := context.WithCancel(apptest.Context(t))
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/v1/chat/completions", strings.NewReader(asks(service, `,"stream":true`)))
				if err != nil {
					return
				}
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
			<-came
			leave()
			<-gone
			<-answered
			<-b.finished
			if e := b.entry(); e.Status != 499 {
				t.Errorf("%s, begun %v: entry %+v", service, begun, e)
			}
		}
	}
}

// TestRevoked: a client whose key is revoked while the service is asked is told so.
func TestRevoked(t *testing.T) {
	b := newBench(t)
	revoke := make(chan func(), 1)
	b.upstream = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		(<-revoke)()
		<-r.Context().Done()
	})
	b.answer = func(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			(<-revoke)()
			<-ctx.Done()
			yield(nil, artel.Errorf(artel.Canceled, "test", "", "left"))
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		revoke <- func() { end(access.Unknown()) }
		b.handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	for _, service := range []string{"chat", "other"} {
		for _, options := range []string{"", `,"stream":true`} {
			status, body := b.post("/v1/chat/completions", asks(service, options))
			if status != http.StatusUnauthorized || !strings.Contains(body, "log in") {
				t.Errorf("%s%s: %d %s", service, options, status, body)
			}
			if e := b.entry(); e.Status != http.StatusUnauthorized {
				t.Errorf("%s%s: entry %+v", service, options, e)
			}
		}
	}
}

// TestRetries: what may pass is tried again before the first byte, with little
// patience; other errors keep the service's message and status.
func TestRetries(t *testing.T) {
	b := newBench(t)
	up := fake.OpenAI(fake.Options{Open: true})
	b.upstream = up
	for name, c := range map[string]struct {
		behavior fake.Behavior
		stream   bool
		calls    int
		status   int
		says     string
	}{
		"busy once":        {fake.Behavior{Mode: fake.RateLimit, RetryAfter: 1, Times: 1}, false, 2, 200, "received"},
		"busy too long":    {fake.Behavior{Mode: fake.RateLimit, RetryAfter: 6}, false, 1, 429, "ate limit"},
		"broken twice":     {fake.Behavior{Mode: fake.ServerError, Times: 2}, true, 3, 200, "[DONE]"},
		"broken":           {fake.Behavior{Mode: fake.ServerError}, true, 3, 500, "server had an error"},
		"overloaded once":  {fake.Behavior{Mode: fake.Overloaded, Times: 1}, true, 2, 200, "[DONE]"},
		"bad":              {fake.Behavior{Mode: fake.BadRequest}, false, 1, 400, "Bad request."},
		"garbage":          {fake.Behavior{Mode: fake.Garbage}, false, 3, 502, "not valid JSON"},
		"streamed garbage": {fake.Behavior{Mode: fake.Garbage}, true, 3, 502, "not valid JSON"},
		"a web page":       {fake.Behavior{Mode: fake.WebPage}, false, 1, 502, "web page"},
		"half an answer":   {fake.Behavior{Mode: fake.HalfStream}, false, 3, 502, "broke off"},
	} {
		before := b.calls()
		if err := up.Behave(c.behavior); err != nil {
			t.Fatal(err)
		}
		more := ""
		if c.stream {
			more = `,"stream":true`
		}
		begun := time.Now()
		status, body := b.post("/v1/chat/completions", asks("chat", more))
		if status != c.status || !strings.Contains(body, c.says) || b.calls()-before != c.calls {
			t.Errorf("%s: %d calls, %d %s", name, b.calls()-before, status, body)
		}
		if status >= 400 {
			errorOf(t, body)
		}
		if name == "busy once" && time.Since(begun) < time.Second {
			t.Error("Retry-After was not honored")
		}
		if e := b.entry(); e.Tries != c.calls || e.Status != c.status {
			t.Errorf("%s: entry %+v", name, e)
		}
	}
}

// TestTriesOfTranslated counts the calls of a request that goes to another
// dialect, too.
func TestTriesOfTranslated(t *testing.T) {
	b := newBench(t)
	up := fake.OpenAI(fake.Options{Open: true})
	var calls atomic.Int64
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			http.Error(w, `{"error":{"message":"busy"}}`, http.StatusServiceUnavailable)
			return
		}
		up.ServeHTTP(w, r)
	})
	status, body := b.post("/v1/messages", `{"model":"chat","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	if e := b.entry(); status != 200 || e.Tries != 3 || calls.Load() != 3 {
		t.Errorf("%d %s: %d calls, entry %+v", status, body, calls.Load(), e)
	}
}

// TestFallbacks: they are asked in order where a service is not available, in
// whatever dialect, and not where it refuses.
func TestFallbacks(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		s[0].Fallbacks = []artel.ServiceID{"nothing", "chat", "other"}
		return s
	}})
	up := fake.OpenAI(fake.Options{Open: true})
	b.upstream = up
	_ = up.Behave(fake.Behavior{Mode: fake.ServerError})
	status, body := b.post("/v1/chat/completions", asks("chat", ""))
	if status != 200 || !strings.Contains(body, "received 1 messages and 0 tools for other-model") {
		t.Errorf("%d %s", status, body)
	}
	if e := b.entry(); e.Service != "other" || e.Outbound != model.Demo || e.Tries != 4 {
		t.Errorf("entry %+v", e)
	}
	_ = up.Behave(fake.Behavior{Mode: fake.BadRequest})
	if status, body := b.post("/v1/chat/completions", asks("chat", "")); status != 400 {
		t.Errorf("%d %s", status, body)
	}
}

// TestRelenting: a wrong claim about a service costs one more call; the client gets its
// answer. When a second request has confirmed it, further ones go without at once.
func TestRelenting(t *testing.T) {
	png := picture(8, 2)
	user := `{"model":"chat","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}]}]}`
	for name, c := range map[string]struct {
		refuses fake.Refusal
		in      string
		want    string
	}{
		"no pictures": {fake.NoImages, user, "[cannot read]"},
		"no user after tool": {
			fake.NoUserAfterTool, toolTurn("chat", `[{"type":"image_url","image_url":{"url":"`+dataURL(png)+`"}}]`), `{"role":"assistant","content":"(I have read the results.)"},{"role":"user"`,
		},
	} {
		b := newBench(t)
		up := fake.OpenAI(fake.Options{Open: true, Blobs: b.blobs, Behavior: fake.Behavior{Refuses: []fake.Refusal{c.refuses}}})
		b.upstream = up
		status, body := b.post("/v1/chat/completions", c.in)
		if status != 200 || b.calls() != 2 || !strings.Contains(b.last(), c.want) {
			t.Errorf("%s: %d calls, %d %s\nsent %s", name, b.calls(), status, body, b.last())
		}
		if e := b.entry(); e.Relents != 1 || e.Tries != 2 {
			t.Errorf("%s: entry %+v", name, e)
		}
		for n, calls := range []int{4, 5, 6} {
			if status, body := b.post("/v1/chat/completions", c.in); status != 200 || b.calls() != calls {
				t.Errorf("%s, again %d: %d calls, %d %s", name, n, b.calls(), status, body)
			}
		}
	}
	// An unknown id is an error.
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"message":"no image for you","type":"x","code":"odd"}}`)
	})
	status, body := b.post("/v1/chat/completions", user)
	if message, code := errorOf(t, body); status != 403 || b.calls() != 1 || message != "no image for you" || code != "odd" {
		t.Errorf("%d calls, %d %s", b.calls(), status, body)
	}
}

// TestGroups: results of a group stand together, whatever a client puts between
// them.
func TestGroups(t *testing.T) {
	b := newBench(t)
	in := toolTurn("chat", `"one"`, `"two"`)
	in = strings.Replace(in, `},{"role":"tool","tool_call_id":"call_2"`, `}, {"role":"user","content":"between"} ,{"role":"tool","tool_call_id":"call_2"`, 1)
	if status, body := b.post("/v1/chat/completions", in); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if want := `"content":"one"}, {"role":"tool","tool_call_id":"call_2","content":"two"} ,{"role":"user","content":"between"}]}`; !strings.HasSuffix(b.last(), want) || !has(b.did(), gateway.DidMove) {
		t.Errorf("sent %s, did %v", b.last(), b.did())
	}
}

// TestTexts: what no model is to read as text leaves the results of tools.
func TestTexts(t *testing.T) {
	png := picture(8, 3)
	aiSDK := quoted(`[{"type":"text","text":"hi"},{"type":"image-data","data":"` + encoded(png) + `","mediaType":"image/png"}]`)
	label := `{"role":"user","content":[{"type":"text","text":"file, from tool call call_1"},{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}]}`
	for name, c := range map[string]struct {
		content, want string
		did           []string
	}{
		"the AI SDK's": {aiSDK, `"content":"hi"},` + label, []string{"repaired", "carried"}},
		"LangChain's": {
			quoted(`[{"type":"image","source_type":"base64","mime_type":"image/png","data":"` + encoded(png) + `"}]`), `"content":"(the result is the media that follow)"},` + label, []string{"repaired"},
		},
		"a data URI": {quoted("before " + dataURL(png) + " after"), `"content":"before blob:sha256-`, []string{"scrubbed", "carried"}},
		"a long run": {quoted(`{"shot":"` + encoded(png) + `"}`), `"content":"{\"shot\":\"blob:sha256-`, []string{"scrubbed"}},
		"in a list":  {`[{"type":"text","text":` + quoted("x "+dataURL(png)) + `}]`, `"content":"x blob:sha256-`, []string{"scrubbed"}},
		"nearly one": {quoted(`[{"type":"image-data","data":"AAAA","mediaType":"image/png"},{"type":"text","text":"long enough to be looked at"}]`), "", nil},
		"a key":      {quoted("sk-proj-" + strings.Repeat("Ab3", 60)), "", nil},
	} {
		b := newBench(t)
		in := toolTurn("chat", c.content)
		status, body := b.post("/v1/chat/completions", in)
		if status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if c.want == "" {
			if want := strings.Replace(in, `"chat"`, `"upstream-model"`, 1); b.last() != want {
				t.Errorf("%s: sent\n%s\nwant\n%s", name, b.last(), want)
			}
			continue
		}
		if !strings.Contains(b.last(), c.want) || !strings.Contains(b.last(), label) || !has(b.did(), c.did...) {
			t.Errorf("%s: did %v, sent\n%s\nwant\n%s", name, b.did(), b.last(), c.want)
		}
		if strings.Count(b.last(), encoded(png)) != 1 {
			t.Errorf("%s: the picture is there %d times", name, strings.Count(b.last(), encoded(png)))
		}
		// The same in another dialect.
		b.post("/v1/chat/completions", toolTurn("other", c.content))
		res := b.asked[0].Messages[2].Parts[0].(artel.ToolResult)
		if len(res.Parts) != 1 || strings.Contains(res.Content, encoded(png)[:60]) {
			t.Errorf("%s: translated %+v", name, res)
		}
	}
	b := newBench(t, setup{options: backend.Options{Rewriting: backend.Rewriting{Repair: new(false)}}})
	b.post("/v1/chat/completions", toolTurn("chat", aiSDK))
	if has(b.did(), "repaired") {
		t.Errorf("the switch is off, and did %v", b.did())
	}
}

func TestLongResults(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Rewriting: backend.Rewriting{Offload: new(2000)}}})
	long := strings.Repeat("a line of words\n", 1000)
	in := toolTurn("chat", quoted(long))
	b.post("/v1/chat/completions", in)
	first := b.last()
	b.post("/v1/chat/completions", in)
	if b.last() != first {
		t.Error("the same request gave other bytes")
	}
	if len(first) > 5000 || !has(b.did(), "offloaded") || !strings.Contains(first, "16000 characters in 1000 lines") || !strings.Contains(first, "blob:sha256-") || !strings.Contains(first, " "+b.url+"/api/v1/files/") {
		t.Errorf("did %v, sent %s", b.did(), first)
	}
	// Only the owner can read by the ref.
	ref := b.entry().Changes[0].Ref
	f, err := b.app.Files.Open(apptest.Context(t), ref.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Content.Close()
	if _, err := b.app.Files.Open(artel.WithOwner(apptest.Context(t), "eve"), ref.String()); artel.KindOf(err) != artel.NotFound {
		t.Errorf("another owner: %v", err)
	}
	r, err := b.blobs.Open(apptest.Context(t), ref.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if kept, err := io.ReadAll(r); err != nil || string(kept) != long {
		t.Errorf("kept %d bytes, %v", len(kept), err)
	}
}

// TestRefs: what Artel keeps can be named in the place of an address.
func TestRefs(t *testing.T) {
	b := newBench(t)
	c, err := b.app.Conversations.Create(apptest.Context(t), app.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	png := picture(8, 4)
	staged, err := b.app.Artifacts.Stage(apptest.Context(t), c.ID, app.Upload{Body: bytes.NewReader(png), Filename: "pic.png"})
	if err != nil {
		t.Fatal(err)
	}
	added, err := b.app.Artifacts.Add(apptest.Context(t), c.ID, []artifact.Staged{staged})
	if err != nil {
		t.Fatal(err)
	}
	long := string(c.ID) + "/" + string(added[0].ID)
	for _, part := range []string{
		`{"type":"image_url","image_url":{"url":"artifact:` + long + `","detail":"low"}}`,
		`{"type":"image_url","image_url":{"url":"artel://` + long + `@1"}}`,
		`{"type":"image_url","image_url":{"url":"` + artel.BlobRef(added[0].Digest).String() + `"}}`,
		`{"type":"file","file":{"file_id":"artifact:` + long + `"}}`,
	} {
		for _, service := range []string{"chat", "other"} {
			status, body := b.post("/v1/chat/completions", `{"model":"`+service+`","messages":[{"role":"user","content":[`+part+`]}]}`)
			if status != 200 || !strings.Contains(body, "image image/png") || !has(b.did(), "resolved") {
				t.Errorf("%s to %s: %d %s", part, service, status, body)
			}
		}
	}
	if !strings.Contains(string(b.sent[0]), `"detail":"low"`) {
		t.Errorf("the rest of the part is lost: %s", b.sent[0])
	}
	for _, ref := range []string{"artifact:" + long + "x", "blob:" + string(artel.NewDigest([32]byte{1})), "artifact:short"} {
		status, body := b.post("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+ref+`"}}]}]}`)
		if message, _ := errorOf(t, body); status != 400 || !strings.Contains(message, ref) {
			t.Errorf("%s: %d %s", ref, status, body)
		}
	}
}

func TestDamage(t *testing.T) {
	b := newBench(t)
	for name, in := range map[string]string{
		"no JSON":         `{"model":"chat","messages":[`,
		"no object":       `["model"]`,
		"two models":      `{"model":"chat","model":"text","messages":[]}`,
		"damaged base64":  `{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBOR%%%"}}]}]}`,
		"nested too deep": `{"model":"chat","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
	} {
		status, body := b.post("/v1/chat/completions", in)
		if errorOf(t, body); status != 400 || b.calls() != 0 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, path := range []string{"/v1/nothing", "/v1/embeddings"} {
		if status, body := b.post(path, "{}"); status != 404 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestModels(t *testing.T) {
	b := newBench(t)
	get := func(path string) (int, string) {
		resp, err := http.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	status, body := get("/v1/models")
	var list struct {
		Object string
		Data   []struct{ ID, Object string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || list.Object != "list" || len(list.Data) != 7 || list.Data[0].ID != "chat" || list.Data[6].ID != "demo" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/models/other"); status != 200 || !strings.Contains(body, `"id":"other"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/models/none"); status != 404 || !strings.Contains(body, "model_not_found") {
		t.Errorf("%d %s", status, body)
	}
}

func TestKeys(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{
		{Name: "one", Secret: "key-1", Services: []artel.ServiceID{"chat"}, Limits: store.KeyLimits{Requests: 2}},
		{Name: "two", Secret: "key-2", Limits: store.KeyLimits{Concurrent: 1}},
	}}})
	b.upstream = says(completion)
	if status, body := b.post("/v1/chat/completions", asks("chat", "")); status != 401 {
		t.Errorf("without a key: %d %s", status, body)
	}
	if status, body := b.post("/v1/chat/completions", asks("chat", ""), "Authorization", "Bearer key-3"); status != 401 || strings.Contains(body, "key-3") {
		t.Errorf("with another: %d %s", status, body)
	}
	if status, body := b.post("/v1/chat/completions", asks("other", ""), "Authorization", "Bearer key-1"); status != 404 {
		t.Errorf("a service that it may not use: %d %s", status, body)
	}
	if status, _ := b.post("/v1/chat/completions", asks("chat", ""), "x-api-key", "key-1"); status != 200 || b.entry().Key != "one" {
		t.Errorf("%d, %+v", status, b.entry())
	}
	resp := b.send(apptest.Context(t), "/v1/chat/completions", asks("chat", ""), "Authorization", "Bearer key-1")
	_ = resp.Body.Close()
	if <-b.finished; resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("over the limit: %d %v", resp.StatusCode, resp.Header)
	}
	came, goOn := make(chan struct{}), make(chan struct{})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(came)
		<-goOn
		says(completion).ServeHTTP(w, r)
	})
	done := make(chan int)
	go func() {
		resp := b.send(context.Background(), "/v1/chat/completions", asks("chat", ""), "Authorization", "Bearer key-2")
		_ = resp.Body.Close()
		done <- resp.StatusCode
	}()
	<-came
	if status, body := b.post("/v1/chat/completions", asks("chat", ""), "Authorization", "Bearer key-2"); status != 429 {
		t.Errorf("two at once: %d %s", status, body)
	}
	close(goOn)
	if status := <-done; status != 200 {
		t.Errorf("the first of the two: %d", status)
	}
	<-b.finished
}

// TestAddresses: what only an address names reaches services of other dialects
// as bytes; in its own dialect it stays.
func TestAddresses(t *testing.T) {
	b := newBench(t)
	png := picture(8, 6)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.png" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(png)
	}))
	defer web.Close()
	ask := func(service, path string) string {
		return `{"model":"` + service + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + web.URL + path + `"}}]}]}`
	}
	b.post("/v1/chat/completions", ask("chat", "/a.png"))
	if want := ask("upstream-model", "/a.png"); b.last() != want {
		t.Errorf("it got %s", b.last())
	}
	if status, body := b.post("/v1/chat/completions", ask("other", "/a.png")); status != 200 || !strings.Contains(body, "image image/png") || !has(b.did(), gateway.DidFetch) {
		t.Errorf("%d %s, did %v", status, body, b.did())
	}
	if status, body := b.post("/v1/chat/completions", ask("other", "/none.png")); status != 200 || !strings.Contains(body, "/none.png") {
		t.Errorf("%d %s", status, body)
	}
}

// TestLargeMedia: what is held in memory does not grow with a picture, on its
// way in or out.
func TestLargeMedia(t *testing.T) {
	dir, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	b := newBench(t, setup{blobs: dir})
	b.untapped = true
	const size = 50 << 20
	var got atomic.Int64
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n != r.ContentLength {
			t.Errorf("%d bytes of %d", n, r.ContentLength)
		}
		got.Store(n)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
		_, _ = io.CopyN(w, endless('A'), size)
		_, _ = io.WriteString(w, `"}}]}`)
	})
	head := `{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	// A PNG whose pixels are zeros: what precedes and follows them is a multiple of
	// three bytes.
	const letters = size / 3 * 4
	begin := binary.BigEndian.AppendUint32(bytes.Clone(picture(8, 1)[:33]), letters/4*3+3)
	encodedHead := encoded(append(begin, "IDAT\x00"...))
	tail := encoded(append(make([]byte, 2+4+4), "IEND\xae\x42\x60\x82"...)) + `"}}]}]}`
	body := io.MultiReader(strings.NewReader(head+encodedHead), io.LimitReader(endless('A'), letters), strings.NewReader(tail))
	req, err := http.NewRequestWithContext(apptest.Context(t), http.MethodPost, b.url+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := b.post("/v1/chat/completions", asks("other", "")); status != 200 { // tables that are made once are made
		t.Fatal(status)
	}
	if _, err := token.NewCounter().Count(token.O200k, "hi"); err != nil { // so that its table is there
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	runtime.ReadMemStats(&after)
	if err != nil || resp.StatusCode != 200 || n < size || got.Load() < letters {
		t.Fatalf("%d, %d bytes of %d sent, %d came back, %v", resp.StatusCode, got.Load(), letters, n, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 24<<20 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// TestManyPictures: Anthropic takes smaller ones where there are more than 20.
func TestManyPictures(t *testing.T) {
	b := newBench(t)
	b.upstream = says(`{"type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	large := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded(pictureOf(2100, 20, 1)) + `"}}`
	small := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded(picture(8, 1)) + `"}}`
	for _, count := range []int{19, 20} {
		in := `{"model":"messages","max_tokens":5,"messages":[{"role":"user","content":[` + strings.Repeat(small+",", count) + large + `]}]}`
		if status, body := b.post("/v1/messages", in); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		if kept := strings.Contains(b.last(), large); kept != (count == 19) || kept == has(b.did(), "converted") {
			t.Errorf("beside %d others: kept %v, did %v", count, kept, b.did())
		}
	}
}
