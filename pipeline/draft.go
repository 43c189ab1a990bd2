// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
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
	"github.com/artelhq/artel/pipeline/lore"
)

// Input is the input of a build, which does not change it. The same Input over
// the same Sources gives the same request, byte for byte.
type Input struct {
	Owner        artel.Owner
	Conversation artel.ConversationID
	Agent        Agent
	Service      model.Service

	// History holds the messages of a branch, including those of the current
	// run. If no message has a Parent, they are in the order of the list;
	// otherwise the branch follows Parent from Head to the root.
	History []artel.Message
	Head    artel.MessageID // the newest message to send; "": the last of History

	// At is the stored message on whose branch artifacts are read: the one that
	// the run answers. "": the newest user message of History that belongs to
	// Conversation; if there is none, artifacts that belong to no message.
	At artel.MessageID

	Tools     []model.ToolSpec
	Now       time.Time // the time for the model, in the zone to show it in; zero: none
	Seed      uint64    // of every random choice in the build
	User      Profile
	Variables map[string]string // read by macros; the changes are in Result.Variables
	Globals   map[string]string // variables of the macros with global in their names
	Machine   map[string]string // values of the macros os, osVersion, arch, platform and hostname; nil: empty
	Locale    phrase.Locale
	Placement Placement   // "": PlaceTail
	Books     []lore.Book // world books that Settings name; see [Settings.Books]
	Sources   Sources     // nil: there are no artifacts, and no part can be read

	// Reminder is sent in place of a reminder made from Sources and Now, to repeat a
	// recorded request; nil: it is made.
	Reminder *string

	// Renditions makes other forms of media; nil: no picture is converted and
	// no recording transcribed.
	Renditions *rendition.Maker

	// Settings configure the processors. Processors without a setting use their
	// defaults.
	Settings Settings

	// Instructions are those of a client, sent after the role prompt as they are, without macros;
	// blank: none.
	Instructions string
	Client       *ClientSettings // nil: no client of the gateway has asked

	// Until names the last processor to run, which runs even if it is disabled.
	// It is for inspecting the draft after that processor. "": all run.
	Until string

	// Suggest returns configured services that take a capability and a media
	// type which Service does not; nil: none are suggested.
	Suggest func(artel.Capability, string) []artel.ServiceID

	// Refused reports whether the service refused an earlier request because of
	// these bytes, which are then described; nil: it refused none.
	Refused func(artel.Digest) bool
}

// An Agent is the part of an agent's definition that a build needs.
type Agent struct {
	Name        artel.AgentName
	Description string
	Prompt      string   // the role prompt, sent before all presets; blank: none
	Presets     []Preset // in the order of the skeleton
	Context     Limits
	Character   Character
	Sampling    Sampling
}

// Limits bound how much of a conversation an agent is sent. The configuration
// of the token limiter overrides them.
type Limits struct {
	MaxTokens    int  `json:"max_tokens,omitempty" yaml:"max_tokens"`       // of the window; 0: limited by the service only
	ReplyReserve *int `json:"reply_reserve,omitempty" yaml:"reply_reserve"` // tokens kept free for the reply; nil: the model's longest reply, at most a quarter of the window
	KeepChars    int  `json:"keep_chars,omitempty" yaml:"keep_chars"`       // code points kept of the first message that does not fit; 0: none
}

// A Profile is what users state about themselves, for all of their
// conversations. Every field may be empty.
type Profile struct {
	Name     string          `json:"name,omitempty"`
	Persona  string          `json:"persona,omitempty"`
	Language string          `json:"language,omitempty"` // a BCP 47 tag
	Rules    json.RawMessage `json:"rules,omitempty"`    // a configuration of the regex-processor
}

// Called returns the value of the macro user: the name, or "User" without one,
// as in SillyTavern, so that prompts and greetings stay sentences.
func (p Profile) Called() string { return cmp.Or(p.Name, "User") }

// A Preset is a message written by the author of an agent.
type Preset struct {
	ID      string     `json:"id" yaml:"id"`
	Role    artel.Role `json:"role,omitempty" yaml:"role"` // "": system
	Text    string     `json:"text,omitempty" yaml:"text"`
	Place   Place      `json:"place,omitzero" yaml:"place"`
	Slot    Slot       `json:"slot,omitempty" yaml:"slot"`
	Enabled *bool      `json:"enabled,omitempty" yaml:"enabled"` // nil: yes
	When    *Condition `json:"when,omitempty" yaml:"when"`       // nil: for every model
}

// A Place is the position of a preset. Every field may be empty. An empty Kind
// means depth if Depth is set, otherwise anchor if Anchor is set, otherwise
// list.
type Place struct {
	Kind   PlaceKind `json:"kind,omitempty" yaml:"kind"`
	Depth  string    `json:"depth,omitempty" yaml:"depth"`   // of a depth: "3", "1,5", or "10~5" for 10, 15, 20, …
	Anchor string    `json:"anchor,omitempty" yaml:"anchor"` // of an anchor: the name of a slot
	Side   Side      `json:"side,omitempty" yaml:"side"`     // of an anchor; "": after
	Order  *int      `json:"order,omitempty" yaml:"order"`   // among presets at one place, ascending; nil: 100
}

// A PlaceKind is a way to position a preset.
type PlaceKind string

// The kinds of places.
const (
	InList   PlaceKind = "list"   // in the skeleton, in the order of the list
	AtDepth  PlaceKind = "depth"  // within the history, counted from the newest message
	AtAnchor PlaceKind = "anchor" // beside a slot
)

// A Side is a side of an anchor.
type Side string

// The sides.
const (
	Before Side = "before"
	After  Side = "after"
)

// A Slot is a position in the skeleton that a preset defines.
type Slot string

// The predefined slots. Presets can be anchored to a slot.
const (
	SlotHistory Slot = "chat_history"
	SlotUser    Slot = "user_profile"
)

// A Condition restricts a preset to some models. An empty list matches nothing
// by itself; an empty Condition holds for every model.
type Condition struct {
	Models    []string `json:"models,omitempty" yaml:"models"`       // patterns for the model and its name, case-insensitive
	Providers []string `json:"providers,omitempty" yaml:"providers"` // patterns for the service's id, name and dialect
	Match     Match    `json:"match,omitempty" yaml:"match"`         // how the two lists combine; "": any
	Exclude   bool     `json:"exclude,omitempty" yaml:"exclude"`     // invert the match
}

// A Match says how many of a Condition's lists have to match.
type Match string

// The matches.
const (
	MatchAny Match = "any"
	MatchAll Match = "all"
)

// Sources reads the artifacts and blobs that a conversation refers to.
// [artifact.Collection] implements it.
type Sources interface {
	// Overview returns the task plan and the other artifacts on a branch, with
	// the first preview characters of each text.
	Overview(ctx context.Context, o artel.Owner, c artel.ConversationID, at artel.MessageID, preview int) (artifact.Overview, error)
	// Open returns the bytes of a ref; the caller closes it.
	Open(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Content, error)
	// Derived returns the text extracted from the bytes of a ref.
	Derived(ctx context.Context, o artel.Owner, ref artel.Ref, at artel.MessageID) (artifact.Derived, error)
}

// A Placement is the position of the reminder, which holds plan, inventory and
// time.
type Placement string

// The placements. PlaceTail keeps everything before the newest message the same
// from call to call, so that the provider's prompt cache stays valid.
const (
	PlaceTail   Placement = "tail"
	PlaceSystem Placement = "system"
	PlaceNone   Placement = "none" // no reminder
)

// A Draft is the request under construction. Processors run one after the
// other, so it needs no lock. Everything in Input is read only.
type Draft struct {
	Input

	// Messages is the request so far. A processor may reorder, add and remove
	// messages. It replaces Parts instead of writing into them: parts are
	// shared with the history, and the record would miss a change in place.
	Messages []Message

	target        route.Target
	board         map[reflect.Type]any
	counter       *messageCounter
	sources       map[artel.Ref]source       // by the ref as written in a part
	sentDigests   map[artel.Ref]artel.Digest // digests that replace the refs of media parts
	pages         map[artel.Ref]bool         // pictures of pages that replace a document
	single        bool                       // one part replaces each media part
	decisions     []Decision
	lookback      lookback
	steps         []plannedStep // the processors of this build, including those after Until
	running       Processor
	config        json.RawMessage // of the running processor
	logs          []Log           // of the running processor
	before        []Message       // the messages before the running processor
	unchanged     bool            // set by the running processor if it changed no message
	beforeCurrent bool            // the last processor changed nothing, so before is still current
	total         int             // tokens of the messages after the last processor
	toolTokens    int             // tokens of the tools
	ruleStates    []priorState    // states between the rules of the running processor, for messages that several rules changed
	changes       []priorState    // messages before a processor changed or removed them
}

// A Message is one entry of a draft. Its media are refs, never bytes.
type Message struct {
	ID         string // the stored message's, unique among those; otherwise the name of the preset or processor that made it
	Role       artel.Role
	Parts      artel.Parts
	Agent      artel.AgentName
	Origin     Origin
	MergedFrom []string // ids of the messages merged into this one; replaced, never written into
	Stability  Stability

	history int        // of a merged message: the tokens that come from the history
	count   tokenCount // of Parts
}

// Origin says how a message came into the draft.
type Origin string

// The origins. Only history is dropped to fit the budget.
const (
	OriginHistory       Origin = "history"
	OriginSummary       Origin = "summary" // covers the history before it
	OriginPreset        Origin = "preset"  // in the skeleton
	OriginDepth         Origin = "depth"   // a preset within the history
	OriginAnchor        Origin = "anchor"  // a preset beside a slot
	OriginLore          Origin = "lore"    // an entry of a world book
	OriginReminder      Origin = "reminder"
	OriginTranscription Origin = "transcription" // the text of a recording, in a message of its own
	OriginMerged        Origin = "merged"        // several messages, named by MergedFrom
	OriginPlugin        Origin = "plugin"        // added by a plugin
	OriginFiller        Origin = "filler"        // without content, for APIs that require alternating roles
)

// Stability says how long a message stays the same.
type Stability string

// The stabilities.
const (
	Static  Stability = "static"  // as long as the agent is not edited
	Session Stability = "session" // as long as the conversation's past is not edited
	Turn    Stability = "turn"    // for this call only
)

// rank orders stabilities, the most stable first. An unknown stability counts
// as Turn.
func (s Stability) rank() int {
	switch s {
	case Static:
		return 0
	case Session:
		return 1
	}
	return 2
}

// Least returns the less stable of both.
func (s Stability) Least(o Stability) Stability {
	for _, x := range []Stability{Static, Session} {
		if s.rank() <= x.rank() && o.rank() <= x.rank() {
			return x
		}
	}
	return Turn
}

// Set stores v on the draft's blackboard and replaces an earlier value of the
// same type. A processor declares a type for each value that it shares.
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

// Log adds a note to the step of the running processor.
func (d *Draft) Log(level Level, message string, details map[string]any) {
	d.logs = append(d.logs, Log{Level: level, Message: message, Details: details})
}

// head returns the newest message to send.
func (d *Draft) head() artel.MessageID {
	if d.Head != "" || len(d.History) == 0 {
		return d.Head
	}
	return d.History[len(d.History)-1].ID
}

// branchAt implements the default of Input.At for the branch that is sent.
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

// request makes the model request of the draft.
func (d *Draft) request() *model.Request {
	r := &model.Request{Service: d.Service, Sampling: d.Agent.Sampling.model(), Reasoning: d.Agent.Sampling.reasoning(), Messages: make([]model.Message, len(d.Messages)), Tools: d.Tools}
	d.Client.apply(r)
	for i := range d.Messages {
		r.Messages[i] = model.Message{Role: d.Messages[i].Role, Parts: d.Messages[i].Parts}
	}
	return r
}
