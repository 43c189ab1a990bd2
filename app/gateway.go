// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// Gateway are the use cases of requests to models that programs write
// themselves and that bring all they need: who may ask which service, and what
// becomes of the media and the tools' results in them. Nothing of such a
// request is kept but the bytes of its media, for as long as that takes.
type Gateway struct {
	*core
	caller *model.Caller
	keys   *keyring
	states *states
	repair bool
}

// GatewayOptions say who may use the gateway, and how.
type GatewayOptions struct {
	Keys     []GatewayKey // nil: any key, or none, is let in
	NoRepair bool         // contents that a client has turned into a string by mistake stay so
}

// gatewayPatience is the longest that the gateway waits before it asks a service
// again: its client waits too, and knows better what to do.
const gatewayPatience = 5 * time.Second

func newGateway(k *core, c Config) *Gateway {
	o := c.Options.Caller
	o.MaxWait = gatewayPatience
	return &Gateway{core: k, caller: k.caller.Sharing(o), keys: newKeyring(c.Gateway.Keys, k.now), states: newStates(), repair: !c.Gateway.NoRepair}
}

// Caller makes the gateway's calls. It shares the limits of services with runs,
// and asks again with little patience.
func (g *Gateway) Caller() *model.Caller { return g.caller }

// Service finds the service that a client means: by its id, else the first that
// calls a model by that name. It is what calls see, as far as its wire carries.
// What the key may not use is not there: of kind NotFound.
func (g *Gateway) Service(_ context.Context, name string, key GatewayKey) (model.Service, error) {
	s, ok := g.services.Called(name, key.allows)
	if !ok {
		return model.Service{}, artel.Errorf(artel.NotFound, "app.Gateway.Service", artel.Shorten(name, 200), "there is no such service, or this key may not use it")
	}
	return s, nil
}

// Services returns the services that a key may use, in the order of preference.
func (g *Gateway) Services(_ context.Context, key GatewayKey) []model.Service {
	return slices.DeleteFunc(g.services.All(), func(s model.Service) bool { return !s.Callable() || !key.allows(s.ID) })
}

// Fallbacks returns the services that may be asked where s is not available.
func (g *Gateway) Fallbacks(ctx context.Context, s model.Service, key GatewayKey) []model.Service {
	var out []model.Service
	for _, id := range s.Fallbacks {
		if other, err := g.Service(ctx, string(id), key); err == nil && other.ID == id && id != s.ID {
			out = append(out, other)
		}
	}
	return out
}

// Learn keeps what a refusal has shown about a service, for all calls.
func (g *Gateway) Learn(marks []model.Mark) {
	for _, m := range marks {
		g.logger.Warn("a model service refused a request and took it with less; requests go without from now on",
			"model", m.Model, "place", m.Place, "media_type", m.MediaType, "limit", m.Limit, "value", m.Value, "digest", m.Digest, "said", m.Evidence)
	}
	g.services.Learn(marks...)
}

// Correct keeps what a call has shown about how a service counts.
func (g *Gateway) Correct(m model.Mark) { g.services.Learn(m) }

// Count estimates the tokens of a request.
func (g *Gateway) Count(_ context.Context, r *model.Request) (int, error) { return g.contexts.Count(r) }

// A Passage is one request on its way through the gateway: it keeps the bytes
// of its media and says what takes their place. It is used by one goroutine.
type Passage struct {
	*Gateway
	owner artel.Owner
	held  map[artel.Digest]artel.MediaInfo
}

// Passage begins with a request.
func (g *Gateway) Passage(ctx context.Context) *Passage {
	return &Passage{Gateway: g, owner: ownerOf(ctx), held: map[artel.Digest]artel.MediaInfo{}}
}

// Blobs is where the bytes of media are.
func (p *Passage) Blobs() blob.Store { return p.blobs }

// Keep takes in the bytes of a piece of media.
func (p *Passage) Keep(ctx context.Context, r io.Reader) (artel.Digest, int64, error) {
	s, err := p.artifacts.Stage(ctx, r, media.Hint{})
	if err != nil {
		return "", 0, err
	}
	p.held[s.Digest] = s.Info
	return s.Digest, s.Info.Size, nil
}

// Media says what is known of bytes that were kept; declared and filename are
// what the request says, and count where the bytes show nothing.
func (p *Passage) Media(ctx context.Context, d artel.Digest, declared, filename string) artel.Media {
	info := p.held[d]
	if info.DetectedBy != artel.FromSignature && (declared != "" || filename != "") {
		if b, err := p.blobs.Open(ctx, d); err == nil {
			head, err := io.ReadAll(io.LimitReader(b, MaxHead))
			if again := media.Detect(head, media.Hint{DeclaredType: declared, Filename: filename}); err == nil && again.IsBinary() == info.IsBinary() {
				again.Size = info.Size
				info = again
				if info.IsBinary() {
					info = media.Measure(ctx, info, b)
				}
			}
			_ = b.Close() // it was read
		}
		p.held[d] = info
	}
	return artel.Media{
		Ref: artel.BlobRef(d), MediaType: info.MediaType, Kind: info.Kind, Filename: filename, Size: info.Size,
		Width: info.Width, Height: info.Height, Pages: info.Pages, Duration: info.Duration,
	}
}

// IsRef reports whether s is written as a ref to something that Artel keeps,
// as it may stand in the place of an address.
func IsRef(s string) bool {
	return strings.HasPrefix(s, "artifact:") || strings.HasPrefix(s, "artel://") || strings.HasPrefix(s, "blob:sha256-")
}

// Resolve finds the bytes that a ref means, of what the owner has. The error is
// of kind NotFound.
func (p *Passage) Resolve(ctx context.Context, ref string) (artel.Media, error) {
	r, err := artel.ParseRef(ref)
	if err != nil {
		return artel.Media{}, err
	}
	at := artel.MessageID("")
	if !r.IsBlob() {
		if r.Conversation == "" {
			return artel.Media{}, artel.Errorf(artel.NotFound, "app.Gateway.Resolve", artel.Shorten(ref, 120), "a ref names the conversation: artifact:{conversation}/{id}")
		}
		if at, err = p.branch(WithOwner(ctx, p.owner), r.Conversation, ""); err != nil {
			return artel.Media{}, err
		}
	}
	c, err := p.open(WithOwner(ctx, p.owner), r, at)
	if err != nil {
		return artel.Media{}, err
	}
	defer c.Close()
	v := c.Version
	if !v.InBlob { // a text that was edited; requests carry blobs
		if v.Digest, v.Size, err = p.Keep(ctx, c); err != nil {
			return artel.Media{}, err
		}
	}
	p.held[v.Digest] = v.MediaInfo
	return artel.Media{
		Ref: artel.BlobRef(v.Digest), MediaType: v.MediaType, Kind: v.Kind, Filename: cmp.Or(v.Filename, string(r.Artifact)), Size: v.Size,
		Width: v.Width, Height: v.Height, Pages: v.Pages, Duration: v.Duration,
	}, nil
}

// Fetch takes in the bytes behind an address, which must be public. The error is
// of kind NotFound, Invalid or Denied where there are none to be had.
func (p *Passage) Fetch(ctx context.Context, address string) (artel.Media, error) {
	if p.web == nil {
		return artel.Media{}, artel.Errorf(artel.Denied, "app.Gateway.Fetch", "", "nothing is fetched here")
	}
	s, err := p.fetch(ctx, address)
	if err != nil {
		return artel.Media{}, err
	}
	p.held[s.Digest] = s.Info
	m := p.Media(ctx, s.Digest, "", "")
	m.Filename = s.Filename
	return m, nil
}

// Settle decides in which form media reach a service; see
// [pipeline.Registry.Settle]. What refused reports is described.
func (p *Passage) Settle(ctx context.Context, s model.Service, all []artel.Media, text int64, refused func(artel.Digest) bool) ([]pipeline.Settled, error) {
	if len(all) == 0 {
		return nil, nil
	}
	pictures := 0
	for _, m := range all {
		if m.Kind == artel.KindImage {
			pictures++
		}
	}
	s = s.Holding(pictures)
	return p.contexts.Settle(ctx, pipeline.Input{
		Owner: p.owner, Service: s, Locale: p.locale, Sources: passing{p}, Renditions: p.renditions, Suggest: p.services.Suggest,
		Refused: func(d artel.Digest) bool { return refused != nil && refused(d) || p.services.Refuses(s.ID, d) },
	}, all, text)
}

// passing reads what a passage holds.
type passing struct{ p *Passage }

// Overview implements [pipeline.Sources]: a request has no plan and no
// inventory.
func (passing) Overview(context.Context, artel.Owner, artel.ConversationID, artel.MessageID, int) (artifact.Overview, error) {
	return artifact.Overview{}, nil
}

// Open implements [pipeline.Sources].
func (s passing) Open(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Content, error) {
	info, ok := s.p.held[ref.Digest]
	if !ok {
		return artifact.Content{}, artel.Errorf(artel.NotFound, "app.Gateway", ref.String(), "the request does not hold these bytes")
	}
	b, err := s.p.blobs.Open(ctx, ref.Digest)
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Reader: b, Version: artel.Version{Digest: ref.Digest, MediaInfo: info, InBlob: true}, Visible: true}, nil
}

// Derived implements [pipeline.Sources].
func (s passing) Derived(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Derived, error) {
	return s.p.artifacts.DerivedFrom(ctx, ref.Digest, s.p.held[ref.Digest])
}

// Mended is the text of a tool's result as models are to get it.
type Mended struct {
	Text  string
	Media []MendedMedia // that were in it
	Steps []MendStep    // what was done; none: the text is as it was
}

// A MendStep is one thing that was done to the text of a tool's result.
type MendStep struct {
	Did MendWord
	Ref artel.Ref // of what was taken out
}

// A MendWord says what was done.
type MendWord string

// What is done to texts.
const (
	MendRepaired  MendWord = "repaired"  // a list of content parts that a client had turned into a string is one again
	MendScrubbed  MendWord = "scrubbed"  // base64 became a ref
	MendOffloaded MendWord = "offloaded" // the whole is kept, and its beginning and end are shown
)

// mendsFrom is the shortest text in which media can be.
const mendsFrom = 64

// Mend takes media out of the text of a tool's result, and what is too long to
// be shown. The same text always gives the same.
func (p *Passage) Mend(ctx context.Context, text string) (Mended, error) {
	out := Mended{Text: text}
	if len(text) < mendsFrom {
		return out, nil
	}
	keep := func(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
		d, _, err := p.Keep(ctx, r)
		if err != nil {
			return "", err
		}
		hint := tool.HintOf(h)
		m := p.Media(ctx, d, hint.DeclaredType, hint.Filename)
		if !slices.ContainsFunc(out.Media, func(b MendedMedia) bool { return b.Ref == m.Ref }) {
			out.Media = append(out.Media, MendedMedia{Media: m})
		}
		out.Steps = append(out.Steps, MendStep{MendScrubbed, m.Ref})
		return m.Ref.String(), nil
	}
	if p.repair {
		if texts, blocks, ok := repaired(text); ok {
			out.Text = texts
			for _, b := range blocks {
				m, err := p.take(ctx, b)
				if err != nil {
					return out, err
				}
				out.Media = append(out.Media, m)
				out.Steps = append(out.Steps, MendStep{MendRepaired, m.Ref})
			}
		}
	}
	scrubbed, err := scrub.Media(ctx, out.Text, keep)
	if err != nil {
		return out, err
	}
	out.Text = scrubbed
	if !p.shown.Exceeded(out.Text) {
		return out, nil
	}
	return out, p.offload(ctx, &out)
}

// offload keeps a long text and shows its beginning and end.
func (p *Passage) offload(ctx context.Context, m *Mended) error {
	kind := tool.TypeOfText(m.Text)
	s, err := p.artifacts.Stage(ctx, strings.NewReader(strings.ToValidUTF8(m.Text, "\uFFFD")), media.Hint{DeclaredType: kind})
	if artel.KindOf(err) == artel.TooLarge && err != nil {
		return nil // too long even for an artifact; the service says what it thinks of it
	}
	if err != nil {
		return err
	}
	if err := p.lend(ctx, s); err != nil {
		return err
	}
	ref := artel.BlobRef(s.Digest)
	x := p.shown.Excerpt(m.Text, s.Info.MediaType)
	form := x.Shape
	if form != "" {
		form = ": " + form
	}
	intro := p.locale.Say(phrase.GatewayOffloaded, map[string]any{
		"Count": x.Characters, "Lines": x.Lines, "Shape": form, "Ref": ref.String(), "URL": FileURL(ref),
	})
	m.Text = x.String(intro, p.locale)
	m.Steps = append(m.Steps, MendStep{MendOffloaded, ref})
	return nil
}

// lentForm is the form under which bytes are kept that are nothing's but a
// request's: a rendition of themselves. It goes with a collection, and comes
// back with the next request that has the same text, as each of a conversation
// has; until then the ref can be read.
const lentForm = "lent"

// lend makes the bytes readable for their owner by their ref.
func (p *Passage) lend(ctx context.Context, s artifact.Staged) error {
	err := p.store.View(ctx, p.owner, func(tx store.Tx) error {
		_, err := tx.Renditions.Get(s.Digest, lentForm)
		return err
	})
	if artel.KindOf(err) != artel.NotFound || err == nil {
		return err
	}
	return p.store.Update(ctx, p.owner, func(tx store.Tx) error {
		return tx.Renditions.Put(store.Rendition{Source: s.Digest, Form: lentForm, Digest: s.Digest, MediaInfo: s.Info, CreatedAt: p.now()})
	})
}

// open returns what a ref points to, of what the owner has.
func (k *core) open(ctx context.Context, r artel.Ref, at artel.MessageID) (artifact.Content, error) {
	c, err := k.artifacts.Open(ctx, ownerOf(ctx), r, at)
	if err != nil && r.IsBlob() && artel.KindOf(err) == artel.NotFound {
		if c, e := k.lent(ctx, r.Digest); e == nil {
			return c, nil
		}
	}
	return c, err
}

// lent opens bytes that a request has left.
func (k *core) lent(ctx context.Context, d artel.Digest) (artifact.Content, error) {
	var row store.Rendition
	err := k.view(ctx, func(tx store.Tx) (err error) {
		row, err = tx.Renditions.Get(d, lentForm)
		return err
	})
	if err != nil {
		return artifact.Content{}, err
	}
	b, err := k.blobs.Open(ctx, d)
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Reader: b, Version: artel.Version{Digest: d, MediaInfo: row.MediaInfo, InBlob: true, CreatedAt: row.CreatedAt}, Visible: true}, nil
}
