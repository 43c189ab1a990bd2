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
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
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
	Now       time.Time // what the model is told about the time, in the zone that it is told in; zero: nothing
	Seed      uint64    // of all that is random in the build
	User      Profile
	Variables map[string]string // that macros read; what they set is in the result
	Globals   map[string]string // those of the macros with global in their names
	Machine   map[string]string // what the macros os, osVersion, arch, platform and hostname tell; nil: nothing
	Locale    phrase.Locale
	Placement Placement // "": PlaceTail
	Sources   Sources   // nil: there are no artifacts, and no part can be read

	// Renditions makes other forms of media; nil: no picture is converted and
	// no recording written down.
	Renditions *rendition.Maker

	// Settings configure the processors; what they do not name has its default.
	Settings Settings

	// Until names the processor that is the last to run, whether it is enabled
	// or not, so that the draft behind it can be looked at. "": all run.
	Until string

	// Suggest names configured services that could take what Service cannot;
	// nil: none are named. It is asked with a capability and a media type.
	Suggest func(artel.Capability, string) []artel.ServiceID

	// Refused reports whether the service has refused a request for these
	// bytes, so that they are described; nil: it has refused none.
	Refused func(artel.Digest) bool
}

// An Agent is what a build needs to know about who is going to answer.
type Agent struct {
	Name        artel.AgentName
	Description string
	Prompt      string   // the role prompt, which stands before all presets; blank: none
	Presets     []Preset // in the order of the skeleton
	Context     Limits
}

// Limits say how much of a conversation an agent is sent. What the token
// limiter is configured with goes before them.
type Limits struct {
	MaxTokens    int  `json:"max_tokens,omitempty" yaml:"max_tokens"`       // of the window; 0: the service's alone limits
	ReplyReserve *int `json:"reply_reserve,omitempty" yaml:"reply_reserve"` // tokens kept free for the reply; nil: the model's longest reply, at most a quarter of the window
	KeepChars    int  `json:"keep_chars,omitempty" yaml:"keep_chars"`       // code points that are kept of the first message that does not fit; 0: none
}

// A Profile is what people say about themselves, for all of their
// conversations. Every field may be empty.
type Profile struct {
	Name     string          `json:"name,omitempty"`
	Persona  string          `json:"persona,omitempty"`
	Language string          `json:"language,omitempty"` // a BCP 47 tag
	Rules    json.RawMessage `json:"rules,omitempty"`    // a configuration of the regex-processor
}

// A Preset is a message that an agent's author has written.
type Preset struct {
	ID      string     `json:"id" yaml:"id"`
	Role    artel.Role `json:"role,omitempty" yaml:"role"` // "": system
	Text    string     `json:"text,omitempty" yaml:"text"`
	Place   Place      `json:"place,omitzero" yaml:"place"`
	Slot    Slot       `json:"slot,omitempty" yaml:"slot"`
	Enabled *bool      `json:"enabled,omitempty" yaml:"enabled"` // nil: yes
	When    *Condition `json:"when,omitempty" yaml:"when"`       // nil: for every model
}

// A Place says where a preset stands. Every field may be empty: the kind is
// then depth where Depth says something, else anchor where Anchor does, else
// list.
type Place struct {
	Kind   PlaceKind `json:"kind,omitempty" yaml:"kind"`
	Depth  string    `json:"depth,omitempty" yaml:"depth"`   // of a depth: "3", "1,5", or "10~5" for 10, 15, 20, …
	Anchor string    `json:"anchor,omitempty" yaml:"anchor"` // of an anchor: the name of a slot
	Side   Side      `json:"side,omitempty" yaml:"side"`     // of an anchor; "": after
	Order  *int      `json:"order,omitempty" yaml:"order"`   // among presets at one place, ascending; nil: 100
}

// A PlaceKind is a way to say where a preset stands.
type PlaceKind string

// The kinds of places.
const (
	InList   PlaceKind = "list"   // in the skeleton, in the order of the list
	AtDepth  PlaceKind = "depth"  // among the history, counted from the newest message
	AtAnchor PlaceKind = "anchor" // beside a slot
)

// A Side is one of an anchor.
type Side string

// The sides.
const (
	Before Side = "before"
	After  Side = "after"
)

// A Slot is what a preset makes room for.
type Slot string

// The slots, which are anchors too.
const (
	SlotHistory Slot = "chat_history"
	SlotUser    Slot = "user_profile"
)

// A Condition says for which models a preset is meant. A list that is empty
// matches nothing by itself; an empty Condition holds for every model.
type Condition struct {
	Models    []string `json:"models,omitempty" yaml:"models"`       // patterns on the model and its name, whatever the case
	Providers []string `json:"providers,omitempty" yaml:"providers"` // patterns on the service's id, name and dialect
	Match     Match    `json:"match,omitempty" yaml:"match"`         // of both lists; "": any
	Exclude   bool     `json:"exclude,omitempty" yaml:"exclude"`     // for all models but these
}

// A Match says how many lists have to agree.
type Match string

// The matches.
const (
	MatchAny Match = "any"
	MatchAll Match = "all"
)

// Sources reads what the conversation refers to. [artifact.Collection]
// fulfils it.
type Sources interface {
	// Overview returns the task plan and the other artifacts on a branch, each
	// text of these with its first characters.
	Overview(ctx context.Context, o artel.Owner, c artel.ConversationID, at artel.MessageID, preview int) (artifact.Overview, error)
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
	PlaceNone   Placement = "none" // there is none
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

	target        route.Target
	board         map[reflect.Type]any
	counter       *messageCounter
	sources       map[artel.Ref]source       // what refs lead to, by the ref as it stands in a part
	sentDigests   map[artel.Ref]artel.Digest // of the bytes that go in the place of refs that stay media
	decisions     []Decision
	lookback      lookback
	steps         []plannedStep // all that this build runs, and what it would run behind Until
	running       Processor
	config        json.RawMessage // of the running processor
	logs          []Log           // of the running processor
	before        []Message       // what the running processor was given
	unchanged     bool            // the running processor says that it has touched no message
	beforeCurrent bool            // the last one has left that as it was
	total         int             // tokens of the messages behind the last one
	toolTokens    int             // tokens of the tools
	ruleStates    []priorState    // by rules of the running processor, where several worked on one message
	changes       []priorState    // what processors have changed or taken out
}

// A Message is one entry of a draft. Its media are refs, never bytes.
type Message struct {
	ID         string // of the stored message, and unique among these; else a name of what made it
	Role       artel.Role
	Parts      artel.Parts
	Agent      artel.AgentName
	Origin     Origin
	MergedFrom []string // ids of the messages that were joined in it; replaced, never written into
	Stability  Stability

	history int        // of a merged message: the tokens of the history in it
	count   tokenCount // of Parts
}

// Origin says where a message of a draft comes from.
type Origin string

// The origins. Only history is ever dropped to save room.
const (
	OriginHistory       Origin = "history"
	OriginSummary       Origin = "summary" // stands for the history before it
	OriginPreset        Origin = "preset"  // in the skeleton
	OriginDepth         Origin = "depth"   // a preset among the history
	OriginAnchor        Origin = "anchor"  // a preset beside a slot
	OriginReminder      Origin = "reminder"
	OriginTranscription Origin = "transcription" // a text that stands for a recording, in a message of its own
	OriginMerged        Origin = "merged"        // several messages, which MergedFrom names
	OriginPlugin        Origin = "plugin"        // of another program
	OriginFiller        Origin = "filler"        // says nothing, for APIs that want somebody to speak
)

// Stability says how long a message stays the same.
type Stability string

// The stabilities.
const (
	Static  Stability = "static"  // as long as the agent is not edited
	Session Stability = "session" // as long as the conversation's past is not edited
	Turn    Stability = "turn"    // for this call only
)

// rank orders stabilities; what nobody has said anything about is for this
// call only.
func (s Stability) rank() int {
	switch s {
	case Static:
		return 0
	case Session:
		return 1
	}
	return 2
}

// Least returns the stability of something that is made of both.
func (s Stability) Least(o Stability) Stability {
	for _, x := range []Stability{Static, Session} {
		if s.rank() <= x.rank() && o.rank() <= x.rank() {
			return x
		}
	}
	return Turn
}

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
	for i := range d.Messages {
		r.Messages[i] = model.Message{Role: d.Messages[i].Role, Parts: d.Messages[i].Parts}
	}
	return r
}
