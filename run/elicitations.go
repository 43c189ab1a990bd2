// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/elicit"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// An Elicitation is a question of a tool server to a person, asked during a call of a
// run. It waits for [Elicitations.Answer] until ExpiresAt; then the server gets "cancel".
type Elicitation struct {
	ID        artel.ElicitationID `json:"id"`
	Run       artel.RunID         `json:"run_id"`
	Agent     artel.AgentName     `json:"agent"`            // that made the call
	Within    artel.CallPath      `json:"within,omitempty"` // its thread, if it is a subagent
	Call      artel.CallID        `json:"call_id"`
	Name      string              `json:"name"` // of the tool
	Server    string              `json:"server"`
	Mode      string              `json:"mode"`
	Message   string              `json:"message"`
	Schema    json.RawMessage     `json:"schema,omitempty"` // of a form
	URL       string              `json:"url,omitempty"`    // that the person opens
	ExpiresAt time.Time           `json:"expires_at"`
	Action    artel.ElicitAction  `json:"action,omitempty"` // "": none yet
	Reason    artel.Resolution    `json:"reason,omitempty"`
	Content   map[string]any      `json:"content,omitempty"` // of an accepted form
}

// elicitation is the body of its note.
type elicitation struct {
	Agent     artel.AgentName    `json:"agent"`
	Within    artel.CallPath     `json:"within,omitempty"`
	Call      artel.CallID       `json:"call_id"`
	Key       string             `json:"key"` // tells the questions of a call apart
	Name      string             `json:"name"`
	Server    string             `json:"server"`
	Mode      string             `json:"mode"`
	Message   string             `json:"message"`
	Schema    json.RawMessage    `json:"schema,omitempty"`
	URL       string             `json:"url,omitempty"`
	ExpiresAt time.Time          `json:"expires_at"`
	Action    artel.ElicitAction `json:"action,omitempty"`
	Reason    artel.Resolution   `json:"reason,omitempty"`
	Content   map[string]any     `json:"content,omitempty"`
}

func (q elicitation) of(n store.Note) Elicitation {
	return Elicitation{artel.ElicitationID(n.ID), n.Run, q.Agent, q.Within, q.Call, q.Name, q.Server, q.Mode, q.Message, q.Schema, q.URL, q.ExpiresAt, q.Action, q.Reason, q.Content}
}

// Elicitations are the use cases of the questions of tool servers.
type Elicitations struct{ runs *Runs }

// NewElicitations returns the questions of rs.
func NewElicitations(rs *Runs) *Elicitations { return &Elicitations{rs} }

// List returns all questions of tool servers in a conversation with their answers,
// oldest first.
func (es *Elicitations) List(ctx context.Context, c artel.ConversationID) (out []Elicitation, err error) {
	err = es.runs.config.view(ctx, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Kind: noteElicitation})
		for _, n := range list {
			q, err := bodyOf[elicitation](n)
			if err != nil {
				return err
			}
			out = append(out, q.of(n))
		}
		return err
	})
	return out, err
}

// CodeElicitationResolved is the error code of an answer to an answered question.
const CodeElicitationResolved = "elicitation_resolved"

// A FormError has the mistakes of an answer to a form.
type FormError struct{ Mistakes []*elicit.Mistake }

// Error implements error.
func (e *FormError) Error() string {
	all := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		all[i] = m.Error()
	}
	return strings.Join(all, "; ")
}

// maxAnswer is the longest answer to a form, in bytes of JSON.
const maxAnswer = 256 << 10

// Answer answers a question of a tool server. content is for the acceptance of a form; its
// mistakes are a [FormError], of kind Invalid. A question that is already answered, or
// whose call has ended, is of kind Conflict, code "elicitation_resolved".
func (es *Elicitations) Answer(ctx context.Context, id artel.RunID, question artel.ElicitationID, a artel.ElicitAction, content map[string]any) (Elicitation, error) {
	const op = "run.Elicitations.Answer"
	switch a {
	case artel.ElicitAccept:
	case artel.ElicitDecline, artel.ElicitCancel:
		content = nil
	default:
		return Elicitation{}, artel.Errorf(artel.Invalid, op, "action", "is %q: want accept, decline or cancel", artel.Shorten(string(a), 40))
	}
	if raw, err := json.Marshal(content); err != nil || len(raw) > maxAnswer {
		return Elicitation{}, artel.Errorf(artel.TooLarge, op, "content", "has more than %d bytes", maxAnswer)
	}
	asked := openQuestion{op: op, run: id, id: string(question), kind: noteElicitation, resolved: CodeElicitationResolved, action: audit.ElicitationAnswered}
	n, err := es.runs.answer(ctx, asked, func(tx store.Tx, x *execution, n store.Note) (string, error) {
		q, err := bodyOf[elicitation](n)
		if err != nil {
			return "", err
		}
		values := content
		if a == artel.ElicitAccept {
			if values, err = checked(q, content); err != nil {
				return "", artel.Errorf(artel.Invalid, op, "content", "%w", err)
			}
		}
		return q.Server + " " + string(a), x.resolve(tx, n, a, artel.ResolvedByPerson, values)
	})
	if err != nil {
		return Elicitation{}, err
	}
	q, err := bodyOf[elicitation](n)
	return q.of(n), err
}

// checked compares an answer with its form. A page that is opened has no values.
func checked(q elicitation, content map[string]any) (map[string]any, error) {
	if q.Mode == artel.ElicitURL {
		if len(content) > 0 {
			return nil, errors.New("what is asked for at an address is not sent here; leave the content out")
		}
		return nil, nil
	}
	form, err := elicit.Parse(q.Schema)
	if err != nil {
		return nil, err
	}
	if mistakes := form.Check(content); mistakes != nil {
		return nil, &FormError{mistakes}
	}
	if content == nil {
		content = map[string]any{}
	}
	return content, nil
}

// resolve stores the answer to a question of a server and its event.
func (x *execution) resolve(tx store.Tx, n store.Note, a artel.ElicitAction, why artel.Resolution, content map[string]any) error {
	q, err := bodyOf[elicitation](n)
	if err != nil {
		return err
	}
	q.Action, q.Reason, q.Content, n.Open = a, why, content, false
	if err := putNote(tx, n, q); err != nil {
		return err
	}
	from := artel.Event{Run: x.run.ID, Agent: cmp.Or(q.Agent, x.run.Agent), Within: q.Within}
	return x.config.Events.Append(tx, x.run.Conversation, from, artel.ElicitationResolved{
		Elicitation: artel.ElicitationID(n.ID), Call: q.Call, Name: q.Name, Server: q.Server, Action: a, Reason: why,
	})
}

// closeQuestion answers an open question in the place of a person.
func (x *execution) closeQuestion(tx store.Tx, n store.Note, why artel.Resolution) error {
	switch n.Kind {
	case notePermission:
		return x.decide(tx, n, Verdict{Decision: artel.Deny, Reason: why})
	case noteElicitation:
		return x.resolve(tx, n, artel.ElicitCancel, why, nil)
	}
	return nil
}

// questionPlace is where a question was asked, and how long it waits. Bodies of both kinds
// have it.
type questionPlace struct {
	Within    artel.CallPath `json:"within"`
	Call      artel.CallID   `json:"call_id"`
	ExpiresAt time.Time      `json:"expires_at"`
}

// openQuestions returns the open questions of the run.
func (x *execution) openQuestions(tx store.Tx) (open []store.Note, err error) {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: x.run.Conversation, Run: x.run.ID, Open: true})
	for _, n := range list {
		if n.Kind == notePermission || n.Kind == noteElicitation {
			open = append(open, n)
		}
	}
	return open, err
}

// keyOf tells a question from others of its call, also in another process.
func keyOf(q elicitation) string {
	h := sha256.New()
	for _, s := range []string{q.Key, q.Server, q.Mode, q.Message, string(q.Schema), q.URL} {
		_, _ = h.Write([]byte(s + "\x00")) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
