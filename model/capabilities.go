// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// Capabilities is what a model accepts, where, and how much. Each fact knows
// its source; a fact that nobody stated has the zero value and [FromNothing].
type Capabilities struct {
	Input   Fact[[]artel.Capability] // always holds at least text
	Accepts Fact[[]string]           // media types, "image/*" allowed; nil: not restricted
	Refuses Fact[[]string]           // media types that are not let in, whatever Accepts says; "image/*" allowed

	MaxItemBytes    Fact[int64] // bytes of a media part before it is encoded; 0: not limited
	MaxRequestBytes Fact[int64] // bytes of a whole request body; 0: not limited
	MaxSide         Fact[int]   // pixels along the longer side of an image; 0: not limited
	MaxImages       Fact[int]   // images in a request, the history's too; 0: not limited
	Many            Fact[int]   // images in a request above which MaxSideOfMany holds; 0: it never does
	MaxSideOfMany   Fact[int]   // pixels along the longer side of each of many images; 0: not limited
	MaxPages        Fact[int]   // pages of a PDF; 0: not limited

	ContextWindow Fact[int]    // tokens; 0: not known
	MaxOutput     Fact[int]    // tokens; 0: not known
	Tokenizer     Fact[string] // a vocabulary of package token; "": not known
	// TokenRatio is how many tokens the endpoint reports for each that is
	// counted in Tokenizer; 0: not known. See [Service.MeasureRatio].
	TokenRatio Fact[float64]
	Price      Fact[Price] // not known where nobody has stated it; 0 is free

	ToolImage     Fact[bool]        // tool results may carry images
	ToolFile      Fact[bool]        // tool results may carry other media
	UserAfterTool Fact[bool]        // a user message may follow a tool result; see [Capabilities.NeedsFiller]
	Transport     Fact[[]Transport] // how media may travel; nil: as bytes, and nothing else is known
}

// A Transport is a way in which media reach an endpoint.
type Transport string

// The transports.
const (
	ByBytes  Transport = "bytes"   // inside the request
	ByURL    Transport = "url"     // the endpoint fetches them
	ByFileID Transport = "file_id" // uploaded before, under an id of the endpoint's

	// ByMediaID is for media that the endpoint has got before and remembers by the
	// id that they had then. Nobody states it: see [Quirks].
	ByMediaID Transport = "media_id"
)

// Sends reports whether an operator has stated that media may travel by a way.
// What others say of ByURL and ByFileID is what an endpoint could do: it leaves
// copies with others, which nobody else decides.
func (c Capabilities) Sends(by Transport) bool {
	if by == ByBytes {
		return c.Transport.Value == nil || slices.Contains(c.Transport.Value, ByBytes)
	}
	return c.Transport.Source == FromOperator && slices.Contains(c.Transport.Value, by)
}

// Transports returns all transports that can be stated.
func Transports() []Transport { return []Transport{ByBytes, ByURL, ByFileID} }

// A Fact is a value and where it was learnt.
type Fact[T any] struct {
	Value  T
	Source Provenance
}

// Provenance says who stated a fact.
type Provenance string

// The sources, strongest first.
const (
	FromOperator Provenance = "operator"
	FromProbe    Provenance = "probe"   // it was tried on purpose
	FromLearned  Provenance = "learned" // a call was refused, and went well without
	FromEndpoint Provenance = "endpoint"
	FromCatalog  Provenance = "catalog"
	FromFamily   Provenance = "family"  // the catalog, by how the model's name begins
	FromDialect  Provenance = "dialect" // what the wire can carry at all
	FromNothing  Provenance = ""        // not known: the safe value stands
)

// TextOnly is what holds for a model of which nothing is known.
func TextOnly() Capabilities {
	return Capabilities{Input: Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText}}}
}

// Has reports whether c is among the inputs.
func (c Capabilities) Has(want artel.Capability) bool {
	return want == artel.CanText || slices.Contains(c.Input.Value, want)
}

// Admits reports whether media of this type are let in: Accepts, where there
// is a list, has it, and Refuses has not.
func (c Capabilities) Admits(mediaType string) bool {
	if listed(c.Refuses.Value, mediaType) {
		return false
	}
	return c.Accepts.Value == nil || listed(c.Accepts.Value, mediaType)
}

// listed reports whether a list of types or patterns has mediaType.
func listed(types []string, mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	return slices.ContainsFunc(types, func(t string) bool {
		return t == mediaType || t == "*/*" || t == major+"/*"
	})
}

// Takes reports whether media that need the capability may be sent as they
// are: the model has it, or it takes files and the media are no images, and
// the accepts list lets the type in. An empty mediaType stands for any.
func (c Capabilities) Takes(need artel.Capability, mediaType string) bool {
	if need == artel.CanText {
		return true
	}
	can := c.Has(need) || need != artel.CanVision && c.Has(artel.CanFile)
	return can && (mediaType == "" || c.Admits(mediaType))
}

// NeedsFiller reports whether an assistant message has to stand between the result
// of a tool and a user message. Nearly every API does without, so nothing being
// known means no.
func (c Capabilities) NeedsFiller() bool {
	return c.UserAfterTool.Source != FromNothing && !c.UserAfterTool.Value
}

// ToolTakes reports whether tool results may carry media of this type.
func (c Capabilities) ToolTakes(mediaType string) bool {
	if strings.HasPrefix(mediaType, "image/") {
		return c.ToolImage.Value
	}
	return c.ToolFile.Value
}

// Merge takes every fact from the first of cs that states it.
func Merge(cs ...Capabilities) Capabilities {
	out := TextOnly()
	for _, c := range slices.Backward(cs) {
		out.take(c, func(p Provenance) bool { return p != FromNothing })
	}
	return out
}

// combine is [Merge], except that a list of accepted types that the table
// knows goes with the table's inputs and not with stronger ones.
func combine(cs ...Capabilities) Capabilities {
	out := Merge(cs...)
	if s := out.Accepts.Source; (s == FromCatalog || s == FromFamily) && out.Input.Source != s {
		out.Accepts = Fact[[]string]{}
	}
	return out
}

// stated keeps what the operator said.
func (c Capabilities) stated() Capabilities {
	out := TextOnly()
	out.take(c, func(p Provenance) bool { return p == FromOperator })
	return out
}

// take replaces the facts of c by those of src whose source counts.
func (c *Capabilities) take(src Capabilities, counts func(Provenance) bool) {
	take(&c.Input, src.Input, counts)
	take(&c.Accepts, src.Accepts, counts)
	take(&c.Refuses, src.Refuses, counts)
	take(&c.MaxItemBytes, src.MaxItemBytes, counts)
	take(&c.MaxRequestBytes, src.MaxRequestBytes, counts)
	take(&c.MaxSide, src.MaxSide, counts)
	take(&c.MaxImages, src.MaxImages, counts)
	take(&c.Many, src.Many, counts)
	take(&c.MaxSideOfMany, src.MaxSideOfMany, counts)
	take(&c.MaxPages, src.MaxPages, counts)
	take(&c.ContextWindow, src.ContextWindow, counts)
	take(&c.MaxOutput, src.MaxOutput, counts)
	take(&c.Tokenizer, src.Tokenizer, counts)
	take(&c.TokenRatio, src.TokenRatio, counts)
	take(&c.Price, src.Price, counts)
	take(&c.ToolImage, src.ToolImage, counts)
	take(&c.ToolFile, src.ToolFile, counts)
	take(&c.UserAfterTool, src.UserAfterTool, counts)
	take(&c.Transport, src.Transport, counts)
}

func take[T any](dst *Fact[T], src Fact[T], counts func(Provenance) bool) {
	if counts(src.Source) {
		*dst = src
	}
}

func known[T any](from Provenance, v T) Fact[T] { return Fact[T]{Value: v, Source: from} }
