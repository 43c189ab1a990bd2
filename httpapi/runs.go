// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// A NewMessage is the body of POST /conversations/{cid}/messages.
type NewMessage struct {
	Text        string    `json:"text,omitempty"`
	Attachments []string  `json:"attachments,omitempty" doc:"artifact ids or refs of this conversation"`
	ParentID    *string   `json:"parent_id,omitempty" doc:"answer another message than the newest of the active branch; empty: a new root"`
	Agent       string    `json:"agent,omitempty" maxLength:"256"`
	Service     string    `json:"service,omitempty" maxLength:"256"`
	Clock       *NewClock `json:"clock,omitempty" doc:"of a preview, with its seed: just that is sent"`
	Seed        uint64    `json:"seed,omitempty" maximum:"9007199254740991"`
	IfActive    string    `json:"if_active,omitempty" enum:"reject,queue" doc:"what to do while another run is active: refuse (default), or queue the message"`
}

// A Sent is the answer to a new message: a run has started or is queued.
type Sent struct {
	RunID     artel.RunID     `json:"run_id" doc:"empty: an answer was edited, which starts no run"`
	State     artel.RunState  `json:"state"`
	MessageID artel.MessageID `json:"message_id"`
	EventsURL string          `json:"events_url"`
}

func sentOf(id artel.ConversationID, run artel.Run) Sent {
	return Sent{run.ID, run.State, run.Message, Base + "/conversations/" + string(id) + "/events"}
}

// A MessageInput is a conversation and a message for it.
type MessageInput struct {
	ConversationPath
	Body NewMessage
}

func (in *MessageInput) parse() (id artel.ConversationID, message run.Input, err error) {
	if id, err = in.id(); err == nil {
		message, err = in.Body.input()
	}
	return id, message, err
}

// A RunPath names a run in a path.
type RunPath struct {
	ID string `path:"rid" doc:"a run"`
}

func (p RunPath) run() (artel.RunID, error) { return artel.ParseRunID(p.ID) }

func (f *server) runs() {
	register(f, f.op(http.MethodPost, "/conversations/{cid}/messages", "send-message", "Send a message and start the run that answers it", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			MessageInput
			OnceHeader
		},
		) (*body[Sent], error) {
			id, input, err := in.parse()
			if err != nil {
				return nil, err
			}
			return answer(once(ctx, f, in.Key, []any{"message", id, in.Body}, func() (Sent, error) {
				run, err := f.app.Runs.Send(ctx, id, input)
				return sentOf(id, run), err
			}))
		})

	register(f, f.op(http.MethodGet, "/runs/{rid}", "read-run", "Read a run", http.StatusOK),
		func(ctx context.Context, in *RunPath) (*body[artel.Run], error) {
			return answerFor(ctx, in.run, f.app.Runs.Find)
		})

	register(f, f.op(http.MethodPost, "/runs/{rid}/cancel", "cancel-run", "Stop a run; what it acknowledged stays", http.StatusOK),
		func(ctx context.Context, in *RunPath) (*body[artel.Run], error) {
			return answerFor(ctx, in.run, f.app.Runs.Cancel)
		})
}

// A NewReplay is the body of POST /runs/{rid}/replay.
type NewReplay struct {
	Service string `json:"service" maxLength:"256" minLength:"1" doc:"makes the run again"`
	From    int    `json:"from,omitempty" minimum:"0" doc:"the first answer to make again, from 1; absent: all"`
}

func (f *server) replays() {
	register(f, f.op(http.MethodPost, "/runs/{rid}/replay", "replay-run", "Make a run that has ended again on another service, with its tool calls answered from its log, and compare both; nothing is stored", http.StatusOK),
		func(ctx context.Context, in *struct {
			RunPath
			Body NewReplay
		},
		) (*body[run.Comparison], error) {
			id, err := in.run()
			if err != nil {
				return nil, err
			}
			return answer(f.app.Replays.Run(ctx, id, artel.ServiceID(in.Body.Service), in.Body.From))
		})
}

func (m NewMessage) input() (run.Input, error) {
	in := run.Input{
		Text: m.Text, Attachments: m.Attachments,
		Agent: artel.AgentName(m.Agent), Service: artel.ServiceID(m.Service), Queue: m.IfActive == "queue",
	}
	if m.Clock != nil || m.Seed != 0 {
		in.Clock = &run.Clock{Seed: m.Seed}
	}
	if m.Clock != nil {
		var err error
		if in.Clock.Now, err = time.Parse(time.RFC3339Nano, m.Clock.Now); err != nil {
			return in, artel.Errorf(artel.Invalid, "httpapi", "clock.now", "want a time as RFC 3339 has it")
		}
		in.Clock.Now = in.Clock.Now.UTC()
	}
	if m.ParentID != nil {
		var parent artel.MessageID
		if *m.ParentID != "" {
			var err error
			if parent, err = artel.ParseMessageID(*m.ParentID); err != nil {
				return in, err
			}
		}
		in.Parent = &parent
	}
	return in, nil
}
