// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/token"
)

// A Processor is one step on a draft. It is a value; what Process closes over
// is safe for concurrent builds.
type Processor struct {
	ID          string // lower case, digits and "-"; names it in settings and records
	Name        string // for people
	Description string // for people: one sentence
	Priority    int    // ascending; processors of one priority run in the order of registration
	Core        bool   // part of the product: cannot be unregistered
	Required    bool   // its failure fails the build; else the build goes on without it
	Always      bool   // cannot be disabled
	DefaultOff  bool   // runs only where it is asked for
	Fields      []Field
	Timeout     time.Duration // of one run; 0: DefaultTimeout

	// Process does the step. It honours ctx, which ends after Timeout. What
	// it did to Draft.Messages is undone where it fails and is not required.
	Process func(ctx context.Context, d *Draft) error
}

// DefaultTimeout is how long a processor may take that sets no other limit.
const DefaultTimeout = 30 * time.Second

// A Field describes one value of a processor's configuration. Pages draw a
// form from it.
type Field struct {
	Key         string   `json:"key"`
	Label       string   `json:"label"`
	Type        string   `json:"type"` // text, number, boolean, select, textarea, json or list
	Placeholder string   `json:"placeholder,omitempty"`
	Default     any      `json:"default,omitempty"`
	Options     []string `json:"options,omitempty"` // of a select
}

// The priorities of the built-in processors. Plugins stand between
// PriorityTokenLimiter and PriorityAssetResolver, after which nothing comes.
const (
	PrioritySessionLoader = 100
	PriorityTranscription = 250
	PriorityInjection     = 300
	PriorityTokenLimiter  = 400
	PriorityPlugin        = 900
	PriorityAssetResolver = 10000
)

// The ids of the built-in processors.
const (
	SessionLoader          = "session-loader"
	TranscriptionProcessor = "transcription-processor"
	InjectionAssembler     = "injection-assembler"
	TokenLimiter           = "token-limiter"
	AssetResolver          = "asset-resolver"
)

const maxProcessorID = 64

// BuiltIn returns the processors of the product.
func BuiltIn() []Processor {
	return []Processor{
		sessionLoader(),
		transcriptionProcessor(),
		injectionAssembler(),
		tokenLimiter(),
		assetResolver(),
	}
}

// A Registry is the list of processors that builds run through. It is safe for
// concurrent use; a build that has begun keeps the list that it began with.
type Registry struct {
	counter *token.Counter

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
// function and one that would come after asset-resolver, and (kind Conflict)
// an id that is taken.
func (r *Registry) Register(p Processor) error {
	const op = "pipeline.Register"
	if p.ID == "" || len(p.ID) > maxProcessorID || strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return artel.Errorf(artel.Invalid, op, artel.Shorten(p.ID, 80),
			"not an id for a processor: want 1 to %d lower-case letters, digits or -", maxProcessorID)
	}
	if p.Process == nil {
		return artel.Errorf(artel.Invalid, op, p.ID, "the processor has no function")
	}
	if p.Priority >= PriorityAssetResolver && p.ID != AssetResolver {
		return artel.Errorf(artel.Invalid, op, p.ID, "priority %d is not before %s: want less than %d",
			p.Priority, AssetResolver, PriorityAssetResolver)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.list, func(q Processor) bool { return q.ID == p.ID }) {
		return artel.Errorf(artel.Conflict, op, p.ID, "a processor with this id is registered")
	}
	list := append(slices.Clone(r.list), p)
	slices.SortStableFunc(list, func(a, b Processor) int { return cmp.Compare(a.Priority, b.Priority) })
	r.list = list
	return nil
}

// Unregister removes a processor. It is of kind NotFound where there is none
// with this id, of kind Denied where it is a core processor.
func (r *Registry) Unregister(id string) error {
	const op = "pipeline.Unregister"
	r.mu.Lock()
	defer r.mu.Unlock()
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

// Processors returns the list in the order in which a build runs it.
func (r *Registry) Processors() []Processor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// failed names the processor in the error that ends a build.
func failed(id string, err error) error {
	return &artel.Error{Op: "pipeline.Build", Subject: id, Kind: artel.KindOf(err), Err: err}
}
