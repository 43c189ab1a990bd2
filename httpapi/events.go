// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/store"
)

type eventsInput struct {
	ConversationPath
	After       int64  `query:"after" minimum:"0" doc:"begin after this number; Last-Event-ID wins"`
	Cursor      int64  `query:"cursor" minimum:"0" doc:"what the page before returned; wins over after"`
	Format      string `query:"format" enum:"sse,json" default:"sse" doc:"json pages the log instead of following it"`
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"of format=json; a page with more than 4 MB of data ends earlier"`
	LastEventID string `header:"Last-Event-ID" maxLength:"32"`
}

func (in *eventsInput) after() artel.Seq {
	if n, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && n >= 0 {
		return artel.Seq(n)
	}
	return artel.Seq(cmp.Or(in.Cursor, in.After))
}

// eventsDoc describes the events of the log in the OpenAPI document.
const eventsDoc = "A frame has the event's number as `id`, its type as `event`, and `{seq, type, run_id, agent, within?, time, data}` as `data`; `within` is " +
	"the thread of the subagent that it is about, the ids of the calls that lead to it with `/` between them. " +
	"The types, with what their `data` holds:\n\n" +
	"- `run_started` `{message_id, service}`, `user_input` `{message}`, `agent_started` `{service, model, demo?}`\n" +
	"- `context_built` `{service, attachments}`: before a model call, in which form each attachment on the branch is sent with it, where that is not " +
	"what it was at the call before. An attachment is `{message_id, ref, filename, kind, media_type, size, route, sent?, tokens, dropped?}`; `route` is `{contentType, " +
	"routing, step, reason, need?, suggestedServices?}` with `step` one of native, converted, extracted, transcribed and described; `sent` says what " +
	"goes in the original's place: `{media_type, size, width, height}` of other bytes, `{characters, cut?, service?}` of a text\n" +
	"- `message_delta` `{message_id, text, reasoning?, reset?}`: live only, without a number\n" +
	"- `message_completed` `{message, partial?}`, `tool_started` `{call_id, name, arguments}`, `tool_completed` `{call_id, name, ok, message, duration_ms, metadata?}`\n" +
	"- `artifact_created` `{artifact, content?, content_omitted?}`, `artifact_updated` `{id, version, base_version, update_type, spans?, artifact, …}`\n" +
	"- `message_queued` `{message_id, service, text, attachments?}`: it waits for its turn; `injection_received` `{injection_id, text}`: said to a run at work, " +
	"`message_injected` `{injection_id, message}`: it stands in the conversation now\n" +
	"- `compaction_requested` `{focus?}`: the run at work sums up before its next model call, or before its end; `compaction_started` `{reason, service, tokens?, threshold?, undone?}`, " +
	"`compaction_completed` `{ok, reason, message?, artifact?, replaced?, tokens_before?, tokens_after?, focus?, undone?, duration_ms, error?}` with `reason` one of threshold, overflow and requested; `undone` is the summary that a user has undone and without which the history is too long\n" +
	"- `message_muted` `{message_id, muted}`, `message_edited` `{replaces, message}`: a person has written another answer in place of one, `branch_switched` `{leaf}`\n" +
	"- `permission_requested` `{permission_id, call_id, name, arguments, expires_at, effect?, object?}`, `permission_resolved` `{permission_id, call_id, name, decision, reason}` with " +
	"`decision` one of allow, deny and always, `reason` one of person, timeout and ended; `agent` and `within` name the agent that asks\n" +
	"- `tool_progress` `{call_id, message}`: how far a call of a tool server is, in its words\n" +
	"- `elicitation_requested` `{elicitation_id, call_id, name, server, mode, message, schema?, url?, expires_at}`: a tool server asks a person during a call, with `mode` " +
	"form (values by `schema`) or url (a page to open); `elicitation_resolved` `{elicitation_id, call_id, name, server, action, reason}` with `action` one of accept, " +
	"decline and cancel, `reason` one of person, timeout, ended and withdrawn (the call ended first)\n" +
	"- `service_chosen` `{service, model, demo?, by, needs, candidates, selector?, problem?}`: what `auto` came to, with `by` one of order and selector; " +
	"`conversation_titled` `{title, service, usage}`: a model was asked for a title\n" +
	"- `retrying` `{service, attempt, of, wait_seconds, reason}`: a model call failed before anything was said, and attempt `attempt` of at most `of` comes in " +
	"`wait_seconds`; `service_changed` `{from, to, model, demo?, reason}`: another service continues the run\n" +
	"- `usage` `{service, purpose?, usage}` with `purpose` one of compaction, selection and rendition (a transcript or caption), absent for the agent's own call; " +
	"`run_resumed` `{attempt, planned?}`: the run continues after a crash, or after a stop of the server (`planned`); `run_finished` `{state, reply_id?, error?, usage}`"

func (f *server) events() {
	op := f.op(http.MethodGet, "/conversations/{cid}/events", "follow-events", "Follow a conversation's log (server-sent events), or page through it", http.StatusOK)
	op.Description = eventsDoc
	op.Responses["200"] = &huma.Response{
		Description: "frames with id, event and data; or, with format=json, a list of events",
		Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
			"application/json":  {Schema: &huma.Schema{Type: huma.TypeObject}},
		},
	}
	register(f, op, func(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		if in.Format == "json" {
			events, err := f.app.Events.Page(ctx, id, in.after(), in.Limit)
			if err != nil {
				return nil, err
			}
			next := ""
			if store.MayContinue(events, in.Limit) {
				next = strconv.FormatInt(int64(events[len(events)-1].Seq), 10)
			}
			return jsonStream(listOf(events, next)), nil
		}
		last, err := f.app.Events.Last(ctx, id)
		if err != nil {
			return nil, err
		}
		if in.after() > last {
			return nil, pastEnd(last)
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			f.follow(ctx, r, w, id, in.after())
		}}, nil
	})
}

// pastEnd refuses to follow from a number beyond the end of the log.
func pastEnd(last artel.Seq) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, string(artel.Invalid), fmt.Sprintf("the log ends at %d; follow from there, or from 0 for all of it", last))
	p.Errors = []FieldError{{Parameter: "after", Detail: fmt.Sprintf("expected number <= %d", last)}}
	return p
}

// jsonStream answers with v in a handler that may also stream.
func jsonStream(v any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		_ = strictJSON.Marshal(hc.BodyWriter(), v)
	}}
}

// follow streams the log until the client leaves.
func (f *server) follow(ctx context.Context, r *http.Request, w http.ResponseWriter, c artel.ConversationID, after artel.Seq) {
	out, err := sse.NewWriter(w)
	if err != nil || r.Method == http.MethodHead {
		return
	}
	for e, err := range f.app.Events.FollowWith(ctx, c, after, event.FollowOptions{Heartbeat: f.o.Heartbeat, Idle: out.Flush}) {
		switch {
		case err != nil:
		case e.Type == "":
			err = out.KeepAlive()
		default:
			var frame []byte
			if frame, err = f.frames.of(c, e); err == nil {
				err = out.Gather(frame)
			}
		}
		if err != nil {
			if kind := artel.KindOf(err); kind != artel.Canceled && kind != artel.NotFound {
				f.o.Log.WarnContext(ctx, "an event stream ended", "conversation", c, "err", err)
			}
			return
		}
	}
}

// A frameCache keeps the frames of the newest events, so that an event with
// many followers is encoded once. It is safe for concurrent use.
type frameCache struct {
	mu  sync.Mutex
	all [1024]cachedFrame
}

// A cachedFrame is identified by the address of its event's data: data changed
// for one follower has another address.
type cachedFrame struct {
	conversation artel.ConversationID
	seq          artel.Seq
	data         *byte
	frame        []byte
}

// maxFrame is the size of the longest cached frame.
const maxFrame = 16 << 10

func (fs *frameCache) of(c artel.ConversationID, e artel.Event) ([]byte, error) {
	if e.Seq == 0 || len(e.Data) == 0 || len(e.Data) > maxFrame {
		return frameOf(e)
	}
	slot := &fs.all[uint64(e.Seq)%uint64(len(fs.all))]
	data := &e.Data[0]
	fs.mu.Lock()
	w := *slot
	fs.mu.Unlock()
	if w.data == data && w.seq == e.Seq && w.conversation == c {
		return w.frame, nil
	}
	frame, err := frameOf(e)
	if err == nil {
		fs.mu.Lock()
		*slot = cachedFrame{c, e.Seq, data, frame}
		fs.mu.Unlock()
	}
	return frame, err
}

// frameOf encodes one event.
func frameOf(e artel.Event) ([]byte, error) {
	data, err := compactJSON(e)
	if err != nil {
		return nil, err
	}
	frame := sse.Event{Name: string(e.Type), Data: data}
	if e.Seq > 0 {
		frame.ID = strconv.FormatInt(int64(e.Seq), 10)
	}
	return sse.Append(make([]byte, 0, len(data)+len(e.Type)+64), frame), nil
}

// compactJSON encodes v on one line, without escaping HTML.
func compactJSON(v any) (string, error) {
	var b strings.Builder
	err := strictJSON.Marshal(&b, v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
