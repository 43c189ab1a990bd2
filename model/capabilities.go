// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/picture"
)

// Capabilities says what a model accepts, where, and how much. Each fact has its
// source; an unknown fact has the zero value and [FromNothing].
type Capabilities struct {
	Input   Fact[[]artel.Capability] // always holds at least text
	Accepts Fact[[]string]           // media types, "image/*" allowed; nil: not restricted
	// RefusesFields are the fields of requests that are left out because the model
	// refuses them, such as temperature.
	RefusesFields Fact[[]string]

	Refuses Fact[[]string] // media types excluded from Accepts; "image/*" allowed

	MaxItemBytes    Fact[int64] // bytes of a media part before it is encoded; 0: not limited
	MaxRequestBytes Fact[int64] // bytes of a whole request body; 0: not limited
	MaxSide         Fact[int]   // pixels along the longer side of an image; 0: not limited
	MaxImages       Fact[int]   // images in a request, including the history; 0: not limited
	Many            Fact[int]   // images in a request above which MaxSideOfMany applies; 0: never
	MaxSideOfMany   Fact[int]   // pixels along the longer side of each of many images; 0: not limited
	MaxPages        Fact[int]   // pages of a PDF; 0: not limited

	ContextWindow Fact[int]    // tokens; 0: not known
	MaxOutput     Fact[int]    // tokens; 0: not known
	Tokenizer     Fact[string] // a vocabulary of package token; "": not known
	// TokenRatio is the number of tokens that the endpoint reports per token
	// counted with Tokenizer; 0: not known. See [Service.MeasureRatio].
	TokenRatio Fact[float64]
	Price      Fact[Price] // without a source: not known; 0: free

	ToolImage     Fact[bool]        // tool results may carry images
	ToolFile      Fact[bool]        // tool results may carry other media
	UserAfterTool Fact[bool]        // a user message may follow a tool result; see [Capabilities.NeedsFiller]
	Transport     Fact[[]Transport] // how media may be sent; nil: as bytes
}

// A Transport is a way to send media to an endpoint.
type Transport string

// The transports.
const (
	ByBytes  Transport = "bytes"   // inside the request
	ByURL    Transport = "url"     // the endpoint fetches them
	ByFileID Transport = "file_id" // uploaded before, named by the endpoint's id

	// ByMediaID names media that the endpoint has cached under the id sent with
	// them earlier. It cannot be configured; see [Quirks].
	ByMediaID Transport = "media_id"
)

// Sends reports whether media may be sent by a transport. ByURL and ByFileID leave
// copies at the provider, so only the operator can allow them.
func (c Capabilities) Sends(by Transport) bool {
	if by == ByBytes {
		return c.Transport.Value == nil || slices.Contains(c.Transport.Value, ByBytes)
	}
	return c.Transport.Source == FromOperator && slices.Contains(c.Transport.Value, by)
}

// Transports returns all transports that can be configured.
func Transports() []Transport { return []Transport{ByBytes, ByURL, ByFileID} }

// A Fact is a value and its source.
type Fact[T any] struct {
	Value  T
	Source Provenance
}

// Provenance is the source of a fact.
type Provenance string

// The sources, strongest first.
const (
	FromOperator Provenance = "operator"
	FromProbe    Provenance = "probe"   // probed with test files
	FromLearned  Provenance = "learned" // a refused call succeeded without it
	FromEndpoint Provenance = "endpoint"
	FromCatalog  Provenance = "catalog"
	FromFamily   Provenance = "family"  // the catalog, by a prefix of the model's name
	FromDialect  Provenance = "dialect" // a limit of the wire format
	FromNothing  Provenance = ""        // not known: the safe value applies
)

// TextOnly returns the capabilities of an unknown model.
func TextOnly() Capabilities {
	return Capabilities{Input: Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText}}}
}

// Has reports whether the model accepts input of a capability.
func (c Capabilities) Has(want artel.Capability) bool {
	return want == artel.CanText || slices.Contains(c.Input.Value, want)
}

// Admits reports whether a media type is allowed: it is in Accepts, unless that is
// nil, and not in Refuses.
func (c Capabilities) Admits(mediaType string) bool {
	if listed(c.Refuses.Value, mediaType) {
		return false
	}
	return c.Accepts.Value == nil || listed(c.Accepts.Value, mediaType)
}

// listed reports whether a list of types or patterns covers mediaType.
func listed(types []string, mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	return slices.ContainsFunc(types, func(t string) bool {
		return t == mediaType || t == "*/*" || t == major+"/*"
	})
}

// Takes reports whether media that need the capability may be sent unchanged: the
// model has it, or takes files if they are no images, and the type is admitted.
// An empty mediaType stands for any.
func (c Capabilities) Takes(need artel.Capability, mediaType string) bool {
	if need == artel.CanText {
		return true
	}
	can := c.Has(need) || need != artel.CanVision && c.Has(artel.CanFile)
	return can && (mediaType == "" || c.Admits(mediaType))
}

// NeedsFiller reports whether an assistant message is needed between a tool result
// and a user message. Unknown means no, because nearly every API allows the
// sequence.
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

// Merge takes every fact from the first of cs that has it.
func Merge(cs ...Capabilities) Capabilities {
	out := TextOnly()
	for _, c := range slices.Backward(cs) {
		out.take(c, func(p Provenance) bool { return p != FromNothing })
	}
	return out
}

// combine is [Merge], except that the catalog's accepted types are dropped if the
// inputs have another source.
func combine(cs ...Capabilities) Capabilities {
	out := Merge(cs...)
	if s := out.Accepts.Source; (s == FromCatalog || s == FromFamily) && out.Input.Source != s {
		out.Accepts = Fact[[]string]{}
	}
	return out
}

// stated keeps the operator's facts.
func (c Capabilities) stated() Capabilities {
	out := TextOnly()
	out.take(c, func(p Provenance) bool { return p == FromOperator })
	return out
}

// take replaces the facts of c by those of src that counts accepts.
func (c *Capabilities) take(src Capabilities, counts func(Provenance) bool) {
	take(&c.Input, src.Input, counts)
	take(&c.Accepts, src.Accepts, counts)
	take(&c.Refuses, src.Refuses, counts)
	take(&c.RefusesFields, src.RefusesFields, counts)
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

// PictureForm returns the form that a picture needs for these capabilities.
func (c Capabilities) PictureForm() picture.Form {
	return picture.Form{
		Side: c.MaxSide.Value, Bytes: c.ItemLimit(),
		Types: slices.DeleteFunc([]string{picture.PNG, picture.JPEG}, func(t string) bool { return !c.Admits(t) }),
	}
}

// Fits reports whether a picture is within the limits in bytes and pixels.
// Unknown measures count as within.
func (c Capabilities) Fits(m artel.MediaInfo) bool {
	return within(m.Size, c.ItemLimit()) && within(max(m.Width, m.Height), c.MaxSide.Value)
}

// ForImages returns c with the limits for a request with that many images.
func (c Capabilities) ForImages(images int) Capabilities {
	many, side, now := c.Many.Value, c.MaxSideOfMany.Value, c.MaxSide.Value
	if many > 0 && images > many && side > 0 && (now <= 0 || now > side) {
		c.MaxSide = c.MaxSideOfMany
	}
	return c
}

func within[N int | int64](n, limit N) bool { return limit <= 0 || n <= limit }

// ItemLimit returns the most bytes of one media part before encoding: the smaller
// of the item limit and what fits into a request beside some text. 0: not limited.
func (c Capabilities) ItemLimit() int64 {
	limit := c.MaxItemBytes.Value
	if r := c.MaxRequestBytes.Value; r > 0 {
		if fits := max(1, r/10*9/4*3); limit <= 0 || fits < limit {
			return fits
		}
	}
	return limit
}

// The limits of Anthropic's API on the sides of pictures, in pixels ("Vision" of
// its documentation): those of a request with many of them are lower.
const (
	anthropicSide     = 8000
	anthropicManySide = 2000
	anthropicMany     = 20
)

// ForPictures returns s with the limit of its dialect's API on the sides of pictures in
// a request with that many, unless the operator stated one or a lower one is known.
func (s Service) ForPictures(pictures int) Service {
	if s.Dialect != Anthropic || s.Capabilities.MaxSide.Source == FromOperator {
		return s
	}
	side := anthropicSide
	if pictures > anthropicMany {
		side = anthropicManySide
	}
	if have := s.Capabilities.MaxSide.Value; have == 0 || have > side {
		s.Capabilities.MaxSide = known(FromDialect, side)
	}
	return s
}
