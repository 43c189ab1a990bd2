// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/phrase"
	"github.com/artelhq/artel/rendition"
	"github.com/artelhq/artel/route"
)

// Input is what the caller knows before a build. The same Input over the same
// Sources gives the same request, byte for byte. A build changes nothing in it.
type Input struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Agent        Agent
	Service      model.Service

	// History holds the messages of a branch, those of the running run
	// included. Where no message has a Parent the order is that of the list,
	// else it follows Parent from Head to the root.
	History []artel.Message
	Head    artel.MessageID // the newest message to send; "": the last of History

	// At is the stored message on whose branch artifacts are read: the one
	// that the run answers. "": the newest user message of History that is in
	// Conversation; where there is none, what belongs to no message is seen.
	At artel.MessageID

	Tools     []model.ToolSpec
	Now       time.Time // what the model is told about the time; zero: nothing
	Locale    phrase.Locale
	Placement Placement // "": PlaceTail
	Sources   Sources   // nil: there are no artifacts, and no part can be read

	// Renditions makes other forms of media; nil: no picture is converted and
	// no recording written down.
	Renditions *rendition.Maker

	// Settings configures processors by id; what is not named has its default.
	Settings map[string]Setting

	// Suggest names configured services that could take what Service cannot;
	// nil: none are named. It is asked with a capability and a media type.
	Suggest func(artel.Capability, string) []artel.ServiceID

	// Refused reports whether the service has refused a request for these
	// bytes, so that they are described; nil: it has refused none.
	Refused func(artel.Digest) bool
}

// An Agent is what a build needs to know about who is going to answer.
type Agent struct {
	Name   artel.AgentName
	Prompt string // the role prompt; blank: none
}

// Sources reads what the conversation refers to. [artifact.Collection]
// fulfils it.
type Sources interface {
	// Plan returns the task plan on a branch; false where there is none.
	Plan(ctx context.Context, o artel.Owner, c artel.ConversationID, at artel.MessageID) (string, artel.Artifact, bool, error)
	// Inventory returns the other artifacts, each text with its first characters.
	Inventory(ctx context.Context, o artel.Owner, c artel.ConversationID, at artel.MessageID, preview int) ([]artel.Artifact, error)
	// Open returns the bytes of a ref; the caller closes it.
	Open(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Content, error)
	// Derived returns the text that is taken out of the bytes of a ref.
	Derived(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Derived, error)
}

// A Placement says where the reminder of plan, inventory and time goes.
type Placement string

// The placements. The tail keeps everything before the newest message the
// same from call to call, so that the provider's prompt cache holds.
const (
	PlaceTail   Placement = "tail"
	PlaceSystem Placement = "system"
)

// A Draft is the request under construction. Processors run one after the
// other, so it needs no lock. Everything in Input is read only.
type Draft struct {
	Input

	// Messages is the request so far. A processor may reorder it, add to it
	// and take from it, but replaces Parts instead of writing into them: they
	// are shared with the history, and a change in place would not be seen by
	// the record.
	Messages []Message

	target    route.Target
	board     map[reflect.Type]any
	meter     *meter
	found     map[artel.Ref]source       // what refs lead to, by the ref as it stands in a part
	sent      map[artel.Ref]artel.Digest // of the bytes that go in the place of refs that stay media
	decisions []Decision
	config    json.RawMessage // of the running processor
	logs      []Log           // of the running processor
}

// A Message is one entry of a draft. Its media are refs, never bytes.
type Message struct {
	ID        string // of the stored message, or a name of what made it; unique in a draft
	Role      artel.Role
	Parts     artel.Parts
	Agent     artel.AgentName
	Origin    Origin
	Stability Stability
}

// Origin says where a message of a draft comes from.
type Origin string

// The origins. Only history is ever dropped to save room.
const (
	OriginHistory  Origin = "history"
	OriginSummary  Origin = "summary" // stands for the history before it
	OriginPreset   Origin = "preset"
	OriginReminder Origin = "reminder"
)

// Stability says how long a message stays the same.
type Stability string

// The stabilities.
const (
	Static  Stability = "static"  // as long as the agent is not edited
	Session Stability = "session" // as long as the conversation's past is not edited
	Turn    Stability = "turn"    // for this call only
)

// Set puts v on the draft's blackboard, in the place of an earlier value of
// the same type. A processor declares a type for what it has to tell.
func Set[T any](d *Draft, v T) {
	if d.board == nil {
		d.board = make(map[reflect.Type]any)
	}
	d.board[reflect.TypeFor[T]()] = v
}

// Value reads the value of type T from the draft's blackboard.
func Value[T any](d *Draft) (T, bool) {
	v, ok := d.board[reflect.TypeFor[T]()].(T)
	return v, ok
}

// Log leaves a note in the record, under the name of the running processor.
func (d *Draft) Log(level Level, message string, details map[string]any) {
	d.logs = append(d.logs, Log{Level: level, Message: message, Details: details})
}

// head is the newest message to send.
func (d *Draft) head() artel.MessageID {
	if d.Head != "" || len(d.History) == 0 {
		return d.Head
	}
	return d.History[len(d.History)-1].ID
}

// branchAt implements the default of Input.At on what is sent.
func (d *Draft) branchAt(path []artel.Message) artel.MessageID {
	if d.At != "" {
		return d.At
	}
	for _, m := range slices.Backward(path) {
		if m.Role == artel.RoleUser && m.Conversation != "" && m.Conversation == d.Conversation {
			return m.ID
		}
	}
	return ""
}

// request renders the draft for the provider.
func (d *Draft) request() *model.Request {
	r := &model.Request{Service: d.Service, Messages: make([]model.Message, len(d.Messages)), Tools: d.Tools}
	for i, m := range d.Messages {
		r.Messages[i] = model.Message{Role: m.Role, Parts: m.Parts}
	}
	return r
}
