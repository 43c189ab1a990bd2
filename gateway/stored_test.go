// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/store"
)

// services of every dialect.
func dialectServices() []string { return []string{"chat", "messages", "responses", "gemini", "other"} }

// create makes a response and returns it.
func (b *bench) create(body string) gjson.Result {
	b.t.Helper()
	status, got := b.post("/v1/responses", body)
	if status != http.StatusOK {
		b.t.Fatalf("%s\n%d %s", body, status, got)
	}
	return gjson.Parse(got)
}

// said is the text of a response.
func said(response gjson.Result) string {
	return response.Get(`output.#(type=="message").content.0.text`).String()
}

// TestPreviousResponse: a request that names a response continues it on every service, whatever
// continued it before, and at once.
func TestPreviousResponse(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	first := b.create(`{"model":"other","input":"I am Ann.","instructions":"Be brief.","metadata":{"a":"b"}}`)
	if !first.Get("store").Bool() || first.Get("metadata.a").String() != "b" || !strings.Contains(said(first), "Be brief.") {
		t.Fatalf("the first response is %s", first.Raw)
	}
	for _, service := range dialectServices() {
		second := b.create(fmt.Sprintf(`{"model":%q,"input":"I like %s.","previous_response_id":%q}`, service, service, first.Get("id").String()))
		if second.Get("previous_response_id").String() != first.Get("id").String() {
			t.Errorf("%s: %s", service, second.Raw)
		}
		third := said(b.create(fmt.Sprintf(`{"model":"other","input":[{"role":"user","content":"Who am I?"}],"previous_response_id":%q}`, second.Get("id").String())))
		if !strings.Contains(third, "I am Ann.") || !strings.Contains(third, "I like "+service) || !strings.Contains(third, "Who am I?") || !strings.HasPrefix(third, "received 5 messages") || strings.Contains(third, "system: text: Be brief\n") {
			t.Errorf("%s: the service got %s", service, third)
		}
		for _, another := range dialectServices() {
			if another != service && strings.Contains(third, "I like "+another) {
				t.Errorf("%s: the branch has what was said on another:\n%s", service, third)
			}
		}
	}
	// All branches are in one conversation of the page.
	list, _, err := b.app.Conversations.List(apptest.Context(t), store.ConversationQuery{})
	if err != nil || len(list) != 1 || list[0].Title != "I am Ann." {
		t.Fatalf("conversations: %+v, %v", list, err)
	}
	// What a person mutes there is not sent.
	messages, _, err := b.app.Messages.List(apptest.Context(t), list[0].ID, store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.app.Messages.Mute(apptest.Context(t), list[0].ID, messages[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if text := said(b.create(fmt.Sprintf(`{"model":"other","input":"Who am I?","previous_response_id":%q}`, first.Get("id").String()))); !strings.HasPrefix(text, "received 2 messages") {
		t.Errorf("with the first message muted: %s", text)
	}
}

// TestStoredResponses: a stored response is found again as it was, with the items of its input, and
// deleted.
func TestStoredResponses(t *testing.T) {
	b := newBench(t)
	made := b.create(`{"model":"chat","input":[{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"` + dataURL(picture(20, 1)) + `"}]}],"temperature":0.5}`)
	id := made.Get("id").String()
	status, got := b.get("/v1/responses/" + id)
	for _, field := range []string{"id", "output", "status", "temperature", "store", "model"} {
		if status != http.StatusOK || gjson.Get(got, field).Raw != made.Get(field).Raw {
			t.Errorf("%s: %d %s, and it was %s", field, status, gjson.Get(got, field).Raw, made.Get(field).Raw)
		}
	}
	<-b.finished
	_, items := b.get("/v1/responses/" + id + "/input_items")
	<-b.finished
	if c := gjson.Get(items, "data.0.content"); gjson.Get(items, "data.#").Int() != 1 || c.Get("0.text").String() != "What is it?" || !strings.HasPrefix(c.Get("1.image_url").String(), "artifact:") {
		t.Errorf("input items: %s", items)
	}
	// An item is named instead of being sent again.
	next := b.create(`{"model":"other","input":[{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"` + dataURL(picture(20, 1)) + `"}]},{"type":"item_reference","id":"` +
		made.Get("output.0.id").String() + `"},{"role":"user","content":"Sure?"}]}`)
	if text := said(next); !strings.HasPrefix(text, "received 3 messages") || !strings.Contains(text, "assistant: text: received") || !strings.Contains(text, "image image/png") {
		t.Errorf("with a reference: %s", text)
	}
	list, _, err := b.app.Conversations.List(apptest.Context(t), store.ConversationQuery{})
	if err != nil || len(list) != 1 {
		t.Errorf("what was sent as a whole is another conversation: %d, %v", len(list), err)
	}
	status, got = b.ask("DELETE", "/v1/responses/"+id, "")
	<-b.finished
	if status != http.StatusOK || !gjson.Get(got, "deleted").Bool() {
		t.Errorf("deleted: %d %s", status, got)
	}
	if status, got = b.get("/v1/responses/" + id); status != http.StatusNotFound {
		t.Errorf("after that: %d %s", status, got)
	}
	<-b.finished
	if status, got := b.post("/v1/responses", `{"model":"chat","input":"x","previous_response_id":"`+id+`"}`); status != http.StatusBadRequest || gjson.Get(got, "error.code").String() != "previous_response_not_found" {
		t.Errorf("continued: %d %s", status, got)
	}
	if status, got := b.post("/v1/responses", `{"model":"chat","input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`); status != http.StatusNotFound || gjson.Get(got, "error.code").String() != "item_not_found" {
		t.Errorf("an unknown item: %d %s", status, got)
	}
	if status, got := b.post("/v1/responses", `{"model":"chat","input":"x","store":false}`); status != http.StatusOK || gjson.Get(got, "store").Bool() {
		t.Errorf("store false: %d %s", status, got)
	} else if status, _ := b.get("/v1/responses/" + gjson.Get(got, "id").String()); status != http.StatusNotFound {
		t.Error("what was not to be stored is stored")
	}
}

// TestConversationsOfResponses: a conversation takes responses one after the other.
func TestConversationsOfResponses(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	_, got := b.ask("POST", "/v1/conversations", "{}")
	<-b.finished
	name := gjson.Get(got, "id").String()
	b.create(`{"model":"gemini","input":"I am Ann.","conversation":"` + name + `"}`)
	second := b.create(`{"model":"other","input":"Who am I?","conversation":{"id":"` + name + `"}}`)
	if second.Get("conversation.id").String() != name || !strings.Contains(said(second), "I am Ann.") {
		t.Errorf("the second response is %s", second.Raw)
	}
	_, items := b.get("/v1/conversations/" + name + "/items?order=asc&limit=3")
	<-b.finished
	if roles := fmt.Sprint(gjson.Get(items, "data.#.role")); roles != `["user","assistant","user"]` || !gjson.Get(items, "has_more").Bool() {
		t.Errorf("items: %s", items)
	}
	if status, got := b.ask("DELETE", "/v1/conversations/"+name, ""); status != http.StatusOK {
		t.Errorf("deleted: %d %s", status, got)
	}
	<-b.finished
	if status, got := b.post("/v1/responses", `{"model":"other","input":"x","conversation":"`+name+`"}`); status != http.StatusNotFound {
		t.Errorf("after that: %d %s", status, got)
	}
}

// asksIn are requests with one new text, or with the result of a call, in each dialect.
func asksIn(service, dialect, text, call string) (path, body string) {
	quoted, _ := json.Marshal(text)
	switch dialect {
	case "messages":
		content := string(quoted)
		if call != "" {
			content = fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":%s}]`, call, quoted)
		}
		return "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":900,"messages":[{"role":"user","content":%s}],"tools":[{"name":"look","input_schema":{"type":"object"}}]}`, service, content)
	case "responses":
		item := fmt.Sprintf(`{"role":"user","content":%s}`, quoted)
		if call != "" {
			item = fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%s}`, call, quoted)
		}
		return "/v1/responses", fmt.Sprintf(`{"model":%q,"input":[%s],"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]}`, service, item)
	case "gemini":
		part := fmt.Sprintf(`{"text":%s}`, quoted)
		if call != "" {
			part = fmt.Sprintf(`{"functionResponse":{"name":"look","response":{"output":%s}}}`, quoted)
		}
		return "/v1beta/models/" + service + ":generateContent", fmt.Sprintf(`{"contents":[{"role":"user","parts":[%s]}],"tools":[{"functionDeclarations":[{"name":"look","parameters":{"type":"OBJECT"}}]}]}`, part)
	}
	message := fmt.Sprintf(`{"role":"user","content":%s}`, quoted)
	if call != "" {
		message = fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, call, quoted)
	}
	return "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[%s],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`, service, message)
}

// TestConversationHeader: a client of any dialect sends only what is new, also the results of its
// own tools, and a conversation that began in one dialect goes on in another.
func TestConversationHeader(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	calls := 0
	b.answer = func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		last := r.Messages[len(r.Messages)-1]
		if len(artel.ResultsOf(last.Parts)) > 0 || !strings.Contains(artel.TextOf(last.Parts), "look") {
			return fake.Echo(ctx, r)
		}
		return func(yield func(model.Delta, error) bool) {
			mu.Lock()
			calls++
			id := artel.CallID(fmt.Sprintf("call_%d", calls))
			mu.Unlock()
			_ = yield(model.TextDelta("I look."), nil) && yield(model.CallDelta{ID: id, Name: "look", Arguments: json.RawMessage(`{"at":1}`)}, nil) &&
				yield(model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 3, OutputTokens: 4}}, nil)
		}
	}
	conversation, turns := "new", 0
	ask := func(dialect, text, call string) string {
		t.Helper()
		path, body := asksIn("other", dialect, text, call)
		resp := b.send(t.Context(), path, body, gateway.ConversationHeader, conversation)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		<-b.finished
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", dialect, resp.StatusCode, got, err)
		}
		conversation = resp.Header.Get(gateway.ConversationHeader)
		turns++
		return string(got)
	}
	for _, dialect := range []string{"chat", "messages", "responses", "gemini"} {
		ask(dialect, "This is "+dialect+".", "")
		got := ask(dialect, "Please look.", "")
		if !strings.Contains(got, "look") || strings.Contains(got, "received") {
			t.Fatalf("%s: no call in %s", dialect, got)
		}
		mu.Lock()
		call := fmt.Sprintf("call_%d", calls)
		mu.Unlock()
		if dialect == "chat" && gjson.Get(got, "choices.0.finish_reason").String() != "tool_calls" {
			t.Errorf("%s ends with %s", dialect, got)
		}
		got = ask(dialect, "A house.", call)
		if !strings.Contains(got, "This is chat.") || !strings.Contains(got, "This is "+dialect) || !strings.Contains(got, "A house.") || !strings.Contains(got, "received "+fmt.Sprint(2*turns-1)+" messages") {
			t.Errorf("%s: turn %d: the service got %s", dialect, turns, got)
		}
	}
	b.mu.Lock()
	last := b.asked[len(b.asked)-1]
	b.mu.Unlock()
	if len(last.Tools) != 1 || strings.Contains(artel.TextOf(last.Messages[len(last.Messages)-1].Parts), "system-reminder") {
		t.Errorf("the service got %+v", last.Messages[len(last.Messages)-1])
	}
	if status, got := b.post("/v1/chat/completions", asks("other", ""), gateway.ConversationHeader, "cnv_00000000000000000000000000"); status != http.StatusNotFound {
		t.Errorf("an unknown conversation: %d %s", status, got)
	}
}

// TestBackground: a response in the background is answered while nobody waits, and its events are
// followed from its beginning and after any number, which gives the same text.
func TestBackground(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	text := "Grüße, 世界. " + strings.Repeat("Long. ", 20)
	b.answer = func(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			pieces := strings.SplitAfter(text, " ")
			for i, piece := range pieces {
				if i == len(pieces)/2 {
					select {
					case <-release:
					case <-ctx.Done():
						yield(nil, ctx.Err())
						return
					}
				}
				if !yield(model.TextDelta(piece), nil) {
					return
				}
			}
			yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{Calls: 1, InputTokens: 3, OutputTokens: 4}}, nil)
		}
	}
	made := b.create(`{"model":"other","input":"Write.","background":true}`)
	id := made.Get("id").String()
	if status := made.Get("status").String(); status != "in_progress" && status != "queued" || !made.Get("background").Bool() {
		t.Fatalf("the response is %s", made.Raw)
	}
	if status, got := b.post("/v1/responses", `{"model":"other","input":"x","previous_response_id":"`+id+`"}`); status != http.StatusBadRequest || !strings.Contains(got, "still in progress") {
		t.Errorf("continued before its end: %d %s", status, got)
	}
	live := make(chan string)
	go func() {
		_, got := b.get("/v1/responses/" + id + "?stream=true")
		live <- got
	}()
	close(release)
	events := eventsOf(<-live)
	<-b.finished
	if len(events) == 0 {
		t.Fatal("no events")
	}
	if last := events[len(events)-1]; last.Get("type").String() != "response.completed" || said(last.Get("response")) != text {
		t.Fatalf("the last event is %s", last.Raw)
	}
	before := int64(-1)
	for _, e := range events {
		if n := e.Get("sequence_number").Int(); n <= before {
			t.Errorf("%d comes after %d", n, before)
		} else {
			before = n
		}
	}
	for i, e := range events {
		_, got := b.get("/v1/responses/" + id + "?stream=true&starting_after=" + e.Get("sequence_number").Raw)
		<-b.finished
		rest := text
		for _, seen := range events[:i+1] {
			if seen.Get("type").String() == "response.output_text.delta" {
				rest = strings.TrimPrefix(rest, seen.Get("delta").String())
			}
		}
		more := ""
		for _, e := range eventsOf(got) {
			if e.Get("type").String() == "response.output_text.delta" {
				more += e.Get("delta").String()
			}
		}
		if more != rest {
			t.Errorf("after %s: %q, want %q", e.Get("sequence_number").Raw, more, rest)
		}
	}
	if status, got := b.get("/v1/responses/" + id); status != http.StatusOK || gjson.Get(got, "status").String() != "completed" || said(gjson.Parse(got)) != text {
		t.Errorf("at last: %d %s", status, got)
	}
	<-b.finished

	// One that is cancelled says so.
	release = make(chan struct{})
	id = b.create(`{"model":"other","input":"Write again.","background":true}`).Get("id").String()
	status, got := b.ask("POST", "/v1/responses/"+id+"/cancel", "")
	<-b.finished
	if status != http.StatusOK || gjson.Get(got, "status").String() != "cancelled" {
		t.Errorf("cancelled: %d %s", status, got)
	}
}

// eventsOf reads the events of a stream.
func eventsOf(stream string) (events []gjson.Result) {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			events = append(events, gjson.Parse(strings.TrimSpace(data)))
		}
	}
	return events
}

// TestDedupe: of a client that sends everything each time, only what is new becomes messages, if
// its request or its key says so.
func TestDedupe(t *testing.T) {
	t.Run("header", func(t *testing.T) { dedupes(t, newBench(t), gateway.DedupeHeader, "true") })
	on := true
	keyed := newBench(t, setup{options: backend.Options{Keys: []backend.Key{{Name: "agent", Secret: model.Secret("sk-agent"), Rewriting: backend.Rewriting{Dedupe: &on}}}}})
	t.Run("key", func(t *testing.T) { dedupes(t, keyed, "Authorization", "Bearer sk-agent") })
}

func dedupes(t *testing.T, b *bench, header ...string) {
	t.Helper()
	history := `{"role":"user","content":"I am Ann."}`
	conversation := ""
	for turn := range 4 {
		resp := b.send(t.Context(), "/v1/chat/completions", `{"model":"other","messages":[{"role":"system","content":"Be kind."},`+history+`]}`, header...)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		<-b.finished
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s, %v", resp.StatusCode, got, err)
		}
		if c := resp.Header.Get(gateway.ConversationHeader); conversation != "" && c != conversation {
			t.Fatalf("turn %d is in another conversation", turn)
		} else {
			conversation = c
		}
		answer := gjson.GetBytes(got, "choices.0.message.content")
		if !strings.HasPrefix(answer.String(), fmt.Sprintf("received %d messages", 2*turn+2)) || !strings.Contains(answer.String(), "system: text: Be kind.") {
			t.Errorf("turn %d: the service got %s", turn, answer)
		}
		history += `,{"role":"assistant","content":` + answer.Raw + fmt.Sprintf(`},{"role":"user","content":"More %d."}`, turn)
	}
	messages, _, err := b.app.Messages.List(apptest.Context(t), artel.ConversationID(conversation), store.Page{})
	if err != nil || len(messages) != 8 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
}

// TestToolsOfBoth: if a model calls tools of its agent and of the client in one answer, those of the
// agent are called here, and the client gets its own.
func TestToolsOfBoth(t *testing.T) {
	b := newBench(t)
	b.answer = func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		if strings.Contains(artel.TextOf(r.Messages[len(r.Messages)-1].Parts), "Start.") {
			return func(yield func(model.Delta, error) bool) {
				_ = yield(model.CallDelta{ID: "call_own", Name: "create_artifact", Arguments: json.RawMessage(`{"id":"note","title":"Note","content":"kept"}`)}, nil) &&
					yield(model.CallDelta{ID: "call_theirs", Name: "look", Arguments: json.RawMessage(`{}`)}, nil) &&
					yield(model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1}}, nil)
			}
		}
		return fake.Echo(ctx, r)
	}
	path, body := asksIn("other", "chat", "Start.", "")
	resp := b.send(t.Context(), path, body, gateway.ConversationHeader, "new", gateway.AgentHeader, "lead_agent")
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	<-b.finished
	calls := gjson.GetBytes(got, "choices.0.message.tool_calls")
	if err != nil || calls.Get("#").Int() != 1 || calls.Get("0.function.name").String() != "look" {
		t.Fatalf("the client got %s, %v", got, err)
	}
	conversation := resp.Header.Get(gateway.ConversationHeader)
	if a, _, err := b.app.Artifacts.Find(apptest.Context(t), artel.ConversationID(conversation), "note", ""); err != nil || a.Title != "Note" {
		t.Errorf("the artifact is %+v, %v", a, err)
	}
	path, body = asksIn("other", "chat", "A house.", "call_theirs")
	status, text := b.post(path, body, gateway.ConversationHeader, conversation, gateway.AgentHeader, "lead_agent")
	if status != http.StatusOK || !strings.Contains(text, "A house.") || !strings.Contains(text, "note") {
		t.Errorf("the model got %d %s", status, text)
	}
	// What a service refuses has its status.
	b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			yield(nil, artel.Errorf(artel.Unavailable, "test", "", "%w", &model.CallError{Status: http.StatusTooManyRequests, Message: "too much at once"}))
		}
	}
	path, body = asksIn("other", "chat", "Again.", "")
	if status, text := b.post(path, body, gateway.ConversationHeader, conversation); status != http.StatusTooManyRequests || !strings.Contains(text, "too much at once") {
		t.Errorf("a busy service: %d %s", status, text)
	}
	// A result of no call is refused, and nothing of it is stored.
	path, body = asksIn("other", "chat", "Another house.", "call_unknown")
	if status, text := b.post(path, body, gateway.ConversationHeader, conversation); status != http.StatusBadRequest || !strings.Contains(text, "does not wait for") {
		t.Errorf("a result of no call: %d %s", status, text)
	}
}

// TestStoredRoles: a history with messages of the developer in between, without any other message or
// with an empty one is answered and stored.
func TestStoredRoles(t *testing.T) {
	b := newBench(t)
	for _, input := range []string{
		`[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hi."},{"role":"developer","content":"Be kind."},{"role":"user","content":"Again."}]`,
		`[{"role":"developer","content":"Say hello."}]`,
		`[{"role":"user","content":[]},{"role":"user","content":"Hi."}]`,
	} {
		first := b.create(`{"model":"other","input":` + input + `}`)
		second := said(b.create(fmt.Sprintf(`{"model":"other","input":"And now?","previous_response_id":%q}`, first.Get("id").String())))
		if strings.Contains(input, "Be kind.") && !strings.Contains(second, "system: text: Be kind.") || !strings.Contains(second, "And now?") {
			t.Errorf("%s: continued with %s", input, second)
		}
	}
	status, got := b.post("/v1/chat/completions", `{"model":"other","messages":[{"role":"user","content":"Hi."},{"role":"developer","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"`+dataURL(picture(20, 1))+`"}}]}]}`, gateway.ConversationHeader, "new")
	if status != http.StatusOK || !strings.Contains(got, "system: text: Be kind.") || !strings.Contains(got, "image image/png") {
		t.Errorf("with the header: %d %s", status, got)
	}
	list, _, err := b.app.Conversations.List(apptest.Context(t), store.ConversationQuery{})
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for _, c := range list {
		artifacts, err := b.app.Artifacts.List(apptest.Context(t), c.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range artifacts {
			if pictures++; strings.Contains(a.Title, "/") {
				t.Errorf("a picture without a name is titled %q", a.Title)
			}
		}
	}
	if pictures != 1 {
		t.Errorf("%d artifacts", pictures)
	}
}
