// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/token"
)

// A Processor is one step of a build. It is a value. Variables captured by
// Process are safe for concurrent builds.
type Processor struct {
	ID          string // lower case letters, digits and "-"; used in settings and records
	Name        string // shown to users
	Description string // shown to users: one sentence
	Priority    int    // ascending; processors of one priority run in the order of registration
	Icon        string // shown to users: one character; "": none
	Origin      string // shown to users: the program or address of a plugin; "": built in
	Core        bool   // part of the product: cannot be unregistered
	Required    bool   // its failure fails the build; otherwise the build continues without it
	Always      bool   // cannot be disabled
	DefaultOff  bool   // runs only if a setting enables it
	Group       string // id by which settings address several processors together; "": none
	Fields      []Field
	Timeout     time.Duration // of one run; 0: DefaultTimeout

	// Adds is the least stable class of the messages that it adds or changes; a
	// changed message may keep a less stable class. "": Turn. A processor that
	// adds something less stable fails.
	Adds Stability

	// Process runs the step. It honours ctx, which ends after Timeout. If it
	// fails and is not required, its changes to Draft.Messages are undone. A
	// processor that is not Core works on a copy of the draft; if it does not
	// return soon after Timeout, the build continues without it, and what it
	// does to the copy later has no effect.
	Process func(ctx context.Context, d *Draft) error

	format formatter // of a formatter; the token limiter applies it to count what fits
}

// DefaultTimeout is the time limit of processors that set none.
const DefaultTimeout = 30 * time.Second

// The priorities of the built-in processors. Nothing comes after
// PriorityAssetResolver.
const (
	PrioritySessionLoader     = 100
	PriorityRegex             = 200
	PriorityTranscription     = 250
	PriorityLore              = 275
	PriorityInjection         = 300
	PriorityTokenLimiter      = 400
	PriorityMergeSystem       = 500
	PriorityMergeRoles        = 600
	PriorityConvertSystem     = 700
	PriorityEnsureAlternation = 750
	PriorityFirstUser         = 800
	PriorityPlugin            = 900
	PriorityAssetResolver     = 10000
)

// The ids of the built-in processors.
const (
	SessionLoader          = "session-loader"
	RegexProcessor         = "regex-processor"
	TranscriptionProcessor = "transcription-processor"
	Lore                   = "lore"
	InjectionAssembler     = "injection-assembler"
	TokenLimiter           = "token-limiter"
	MergeSystem            = "merge-system"
	MergeRoles             = "merge-roles"
	ConvertSystem          = "convert-system"
	EnsureAlternation      = "ensure-alternation"
	FirstUser              = "first-user"
	AssetResolver          = "asset-resolver"
)

// MessageFormatters is the group of the processors that reshape a draft for
// APIs with rules about the order of roles.
const MessageFormatters = "message-formatters"

const maxProcessorID = 64

// BuiltIn returns the processors of the product.
func BuiltIn() []Processor {
	return slices.Concat(
		[]Processor{sessionLoader(), regexProcessor(), transcriptionProcessor(), loreProcessor(), injectionAssembler(), tokenLimiter()},
		formatters(),
		[]Processor{assetResolver()},
	)
}

// A Registry is the list of processors of a build. It is safe for concurrent
// use; a running build keeps the list that it started with.
type Registry struct {
	// Log gets the stacks of processors that panicked; nil: slog.Default. It is
	// set before the first build.
	Log *slog.Logger

	counter *token.Counter
	overdue overdue
	cache   requestCache
	buffers sync.Pool // of *[]Message, empty: buffers for Draft.before

	mu   sync.Mutex
	list []Processor // by priority; replaced, never written into
}

// NewRegistry makes a registry of the processors. It refuses what
// [Registry.Register] refuses.
func NewRegistry(counter *token.Counter, processors ...Processor) (*Registry, error) {
	r := &Registry{counter: counter}
	for _, p := range processors {
		if err := r.Register(p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Register adds a processor. It refuses (kind Invalid) one without an id or a
// function, one with a priority after asset-resolver, and fields from which no
// form can be drawn. An id that a processor or a group already has is of kind
// Conflict.
func (r *Registry) Register(p Processor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.register(p)
}

func (r *Registry) register(p Processor) error {
	const op = "pipeline.Register"
	if p.ID == "" || len(p.ID) > maxProcessorID || strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return artel.Errorf(artel.Invalid, op, artel.Shorten(p.ID, 80),
			"not an id for a processor: want 1 to %d lower-case letters, digits or -", maxProcessorID)
	}
	if p.Process == nil {
		return artel.Errorf(artel.Invalid, op, p.ID, "the processor has no function")
	}
	if err := checkFields(p.Fields); err != nil {
		return artel.Errorf(artel.Invalid, op, p.ID, "%w", err)
	}
	if p.Always && p.DefaultOff {
		return artel.Errorf(artel.Invalid, op, p.ID, "a processor that cannot be disabled cannot be off by default")
	}
	if p.Priority >= PriorityAssetResolver && p.ID != AssetResolver {
		return artel.Errorf(artel.Invalid, op, p.ID, "priority %d is not before %s: want less than %d",
			p.Priority, AssetResolver, PriorityAssetResolver)
	}
	if slices.ContainsFunc(r.list, func(q Processor) bool { return q.ID == p.ID || q.Group == p.ID || q.ID == p.Group }) {
		return artel.Errorf(artel.Conflict, op, p.ID, "a processor with this id is registered")
	}
	list := append(slices.Clone(r.list), p)
	slices.SortStableFunc(list, func(a, b Processor) int { return cmp.Compare(a.Priority, b.Priority) })
	r.list = list
	return nil
}

// Processors are the processors of a registry, in the order in which a build runs
// them.
type Processors []Processor

// Ordered returns them in the order in which a build runs them with this order of
// the movable ones.
func (list Processors) Ordered(order []string) Processors { return ordered(list, order) }

// Find returns the processor with an id.
func (list Processors) Find(id string) (Processor, bool) {
	for _, p := range list {
		if p.ID == id {
			return p, true
		}
	}
	return Processor{}, false
}

// Replace unregisters the processors with the ids in old and registers those of
// next, in one step. It refuses what [Registry.Unregister] and
// [Registry.Register] refuse, and changes nothing then. Running builds keep the
// processors that they started with.
func (r *Registry) Replace(old []string, next []Processor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.list
	for _, id := range old {
		if err := r.unregister(id); err != nil {
			r.list = before
			return err
		}
	}
	for _, p := range next {
		if err := r.register(p); err != nil {
			r.list = before
			return err
		}
	}
	return nil
}

// Unregister removes a processor. It is of kind NotFound if no processor has
// the id, and of kind Denied for a core processor.
func (r *Registry) Unregister(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unregister(id)
}

func (r *Registry) unregister(id string) error {
	const op = "pipeline.Unregister"
	i := slices.IndexFunc(r.list, func(p Processor) bool { return p.ID == id })
	if i < 0 {
		return artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such processor")
	}
	if r.list[i].Core {
		return artel.Errorf(artel.Denied, op, id, "a core processor cannot be unregistered")
	}
	r.list = slices.Delete(slices.Clone(r.list), i, i+1)
	return nil
}

// Processors returns the processors in the order in which a build runs them.
func (r *Registry) Processors() Processors {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// processorError names the processor in an error that ends a build.
func processorError(id string, err error) error {
	return &artel.Error{Op: "pipeline.Build", Subject: id, Kind: artel.KindOf(err), Err: err}
}
