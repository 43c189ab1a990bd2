// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// A NewInjection is the body of POST /runs/{rid}/inject.
type NewInjection struct {
	Text string `json:"text" minLength:"1"`
}

// A NewDecision is the body of POST /runs/{rid}/permissions/{pid}.
type NewDecision struct {
	Decision artel.Decision `json:"decision" enum:"allow,deny,always" doc:"always: and do not ask again about this tool on this branch"`
	Comment  string         `json:"comment,omitempty" maxLength:"4000" doc:"for the model, if it is denied"`
}

// A NewElicitAnswer is the body of POST /runs/{rid}/elicitations/{eid}.
type NewElicitAnswer struct {
	Action  artel.ElicitAction `json:"action" enum:"accept,decline,cancel" doc:"cancel: no answer is given"`
	Content map[string]any     `json:"content,omitempty" doc:"of an accepted form: values by the names of its schema"`
}

func (f *server) control() {
	register(f, f.op(http.MethodPost, "/runs/{rid}/inject", "inject", "Send a text to an active run; its next model call gets it", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			RunPath
			OnceHeader
			Body NewInjection
		},
		) (*body[run.Injection], error) {
			id, err := in.run()
			if err != nil {
				return nil, err
			}
			return answer(once(ctx, f, in.Key, []any{"inject", id, in.Body}, func() (run.Injection, error) {
				return f.app.Runs.Inject(ctx, id, in.Body.Text)
			}))
		})

	register(f, f.op(http.MethodPost, "/runs/{rid}/permissions/{pid}", "decide-permission", "Answer a run's question whether a tool may be called", http.StatusOK),
		func(ctx context.Context, in *struct {
			RunPath
			Permission string `path:"pid" doc:"a question, from the event permission_requested"`
			Body       NewDecision
		},
		) (*body[run.Permission], error) {
			id, err := in.run()
			if err != nil {
				return nil, err
			}
			question, err := artel.ParsePermissionID(in.Permission)
			if err != nil {
				return nil, err
			}
			return answer(f.app.Permissions.Decide(ctx, id, question, in.Body.Decision, in.Body.Comment))
		})

	register(f, f.op(http.MethodPost, "/runs/{rid}/elicitations/{eid}", "answer-elicitation", "Answer what a tool server asks a person during a call", http.StatusOK),
		func(ctx context.Context, in *struct {
			RunPath
			Elicitation string `path:"eid" doc:"a question, from the event elicitation_requested"`
			Body        NewElicitAnswer
		},
		) (*body[run.Elicitation], error) {
			id, err := in.run()
			if err != nil {
				return nil, err
			}
			question, err := artel.ParseElicitationID(in.Elicitation)
			if err != nil {
				return nil, err
			}
			return answer(f.app.Elicitations.Answer(ctx, id, question, in.Body.Action, in.Body.Content))
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/waiting", "list-waiting", "List what waits: queued messages, injections not yet sent to a model, questions of permission and of tool servers", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[run.Waiting], error) {
			return answerFor(ctx, in.id, f.app.Runs.Waiting)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/usage", "conversation-usage", "Tell what all runs of a conversation took; a cost of fewer calls than there were is not all of it", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[artel.Usage], error) {
			return answerFor(ctx, in.id, f.app.Conversations.Usage)
		})
}
