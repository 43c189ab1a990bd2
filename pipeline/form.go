// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
)

// forms returns the forms that can be made with the means of in.
func forms(in Input) route.Forms {
	f := route.Forms{Extracted: in.Sources != nil}
	if in.Renditions == nil || in.Sources == nil {
		return f
	}
	var written, seen bool
	f.Transcriber, f.MaxRecording, written = in.Renditions.Transcriber()
	f.Captioner, seen = in.Renditions.Captioner()
	f.Converted, f.Transcribed = true, written || seen
	f.Pages = in.Renditions.Pages() != nil
	return f
}

// A preference is what is wanted of a media part, apart from what the service
// takes.
type preference struct {
	attaching
	stale bool // the part is a stale picture
}

// route decides the form of s.
func (d *Draft) route(s source, w preference) artel.Route {
	target := d.target
	kind := s.info.Kind
	if slices.Contains(w.Never, kind) {
		target.Forms.Transcribed = false
	}
	r := d.avoidRefused(s, route.Decide(s.info, target))
	if r.Routing == artel.RoutingText {
		return r
	}
	words := target.Forms.Transcribed && (kind == artel.KindImage && target.Forms.Captioner != "" || kind != artel.KindImage && target.Forms.Readable(s.info))
	switch {
	case w.stale && kind == artel.KindImage:
		r = describedAs(r, artel.ReasonStale)
	case slices.Contains(w.Always, kind) && words:
		r = describedAs(r, artel.ReasonPolicy)
	default:
		return r
	}
	if words {
		r.Step = artel.StepTranscribed
	}
	return r
}

// prepare decides the form of m and makes it. room is the remaining media
// budget of the request; nil: unlimited. Only the end of ctx is an error.
func (d *Draft) prepare(ctx context.Context, id string, m artel.Media, w preference, room *mediaBudget) (preparedPart, error) {
	s, err := d.find(ctx, m)
	if err != nil {
		return preparedPart{}, err
	}
	m = s.media
	partial := s.err == nil && s.digest == "" && s.info.IsBinary() // a preview knows its first bytes only
	key := cmp.Or(s.digest, artel.Digest(m.Ref.String()))
	form, pending := rendered{route: d.route(s, w)}, false
	switch {
	case s.err != nil:
		d.Log(Warn, "the bytes of an attachment cannot be read", map[string]any{"message_id": id, "ref": m.Ref.String(), "error": s.err.Error()})
		form.route = artel.Route{ContentType: "binary", Routing: artel.RoutingText, Step: artel.StepDescribed, Reason: artel.ReasonUnreadable}
		form.text = route.Unreadable(m, d.Locale)
	case form.route.Routing != artel.RoutingText && !room.fits(s.info.Kind, key, 0):
		form.route = route.RequestFull(form.route)
	case partial && form.route.Routing != artel.RoutingText:
		form.media, pending = &m, true
	case partial && form.route.Step != artel.StepDescribed:
		form.text, pending = d.Locale.Say(phrase.AttachmentPending, map[string]any{"Name": name(m), "Filename": oneLine(m.Filename)}), true
	default:
		form, err = d.render(ctx, s, form.route, w.InlineLimit, room)
		if err != nil && ctx.Err() != nil {
			return preparedPart{}, context.Cause(ctx)
		}
		switch {
		case err == nil:
		case artel.CodeOf(err) == rendition.CodePending:
			form.text, pending = d.Locale.Say(phrase.AttachmentPending, map[string]any{"Name": name(m), "Filename": oneLine(m.Filename)}), true
		default:
			d.Log(Warn, "an attachment could not be given another form", map[string]any{
				"message_id": id, "ref": m.Ref.String(), "form": string(form.route.Step), "error": err.Error(),
			})
			if form.route.Reason == artel.ReasonStale {
				form = rendered{route: describedAs(form.route, artel.ReasonStale)}
			} else {
				form = rendered{route: route.Fallback(form.route)}
			}
		}
	}
	if form.media != nil && d.refused(form.digest) {
		form = rendered{route: describedAs(form.route, artel.ReasonRefused)}
	}
	if form.media != nil && !room.reserve(s.info.Kind, key, form.media.Size) {
		form = rendered{route: route.RequestFull(form.route)}
	}
	var parts artel.Parts
	switch {
	case form.pages != nil:
		for i, p := range form.pages {
			parts = append(parts, artel.Text{Text: pageLabel(m, i+1, form.sent)}, p)
			if d.pages == nil {
				d.pages = map[artel.Ref]bool{}
			}
			d.sentDigests[p.Ref], d.pages[p.Ref] = p.Ref.Digest, true
		}
	case form.media != nil:
		parts = artel.Parts{artel.Text{Text: label(m, form.sent)}, *form.media}
		d.sentDigests[m.Ref] = form.digest
	default:
		if form.text == "" {
			form.text = route.Describe(m, form.route, d.Locale)
		}
		parts = artel.Parts{artel.Text{Text: form.text}}
		room.spend(form.text)
	}
	return preparedPart{parts, Decision{Digest: s.digest, AttachmentRoute: artel.AttachmentRoute{
		Message: artel.MessageID(id), Ref: m.Ref, Filename: m.Filename, Kind: s.info.Kind, MediaType: s.info.MediaType, Size: s.info.Size,
		Route: form.route, Sent: form.sent, Tokens: d.counter.parts(parts), Pending: pending,
	}}}, nil
}

// isPage reports whether a part is a picture of a page of a document.
func (d *Draft) isPage(p artel.Part) bool {
	m, ok := p.(artel.Media)
	return ok && d.pages[m.Ref]
}

// avoidRefused changes the route of bytes that the service refused before: to
// their text if they have one, otherwise to their description.
func (d *Draft) avoidRefused(s source, r artel.Route) artel.Route {
	if r.Routing == artel.RoutingText || !d.refused(s.digest) {
		return r
	}
	r = describedAs(r, artel.ReasonRefused)
	if d.target.Forms.Extracted && extract.Supports(s.info.MediaType) {
		r.Step = artel.StepExtracted
	}
	return r
}

func (d *Draft) refused(digest artel.Digest) bool { return d.Refused != nil && d.Refused(digest) }

func describedAs(r artel.Route, why artel.Reason) artel.Route {
	r.Step, r.Routing, r.Reason = artel.StepDescribed, artel.RoutingText, why
	return r
}

// A rendered is a form of a media part: media, a text, or neither if the part
// has to be described.
type rendered struct {
	route  artel.Route
	media  *artel.Media
	digest artel.Digest // of media's bytes
	text   string
	sent   *artel.SentForm
	pages  []artel.Media // in the place of media
}

// render makes the form that r asks for. If that fails, the route of the result
// is still r.
func (d *Draft) render(ctx context.Context, s source, r artel.Route, inline int, room *mediaBudget) (rendered, error) {
	out := rendered{route: r}
	m := s.media
	written := func(origin, text string) {
		form := artel.SentForm{}
		out.text, form = inlineText(m, origin, text, inline)
		out.sent = &form
	}
	switch {
	case r.Step == artel.StepNative && r.Reason == artel.ReasonText:
		written("", s.text)
	case r.Step == artel.StepNative:
		out.media, out.digest = &m, s.digest
	case r.Step == artel.StepConverted:
		p, err := d.Renditions.Picture(ctx, d.Owner, rendition.Source{Digest: s.digest, MediaInfo: s.info}, d.target.Capabilities.PictureForm())
		if err != nil {
			return out, err
		}
		small := m
		small.MediaType, small.Size, small.Width, small.Height = p.MediaType, p.Size, p.Width, p.Height
		out.media, out.digest = &small, p.Digest
		out.sent = &artel.SentForm{MediaType: p.MediaType, Size: p.Size, Width: p.Width, Height: p.Height}
	case r.Step == artel.StepExtracted:
		ref, at := d.resolveRef(m.Ref)
		x, err := d.Sources.Derived(ctx, d.Owner, ref, at)
		if err != nil {
			return out, err
		}
		if x.Doubt != "" {
			better, err := d.renderDoubtful(ctx, s, r, x.Pages, inline, room)
			if err == nil || artel.CodeOf(err) == rendition.CodePending || ctx.Err() != nil {
				if better.route.Step != r.Step {
					return better, err
				}
			} else {
				d.Log(Warn, "the text of a document is doubtful, and its pages could not be shown", map[string]any{"ref": m.Ref.String(), "form": string(better.route.Step), "error": err.Error()})
			}
		}
		origin := ", the text that was taken out of it"
		if x.Doubt != "" && d.target.Forms.Captioner == "" {
			origin += ", which is doubtful: no service that reads its pages is configured (caption.service)"
		}
		written(origin, x.Text)
		out.sent.Cut = out.sent.Cut || x.Cut
	case r.Step == artel.StepTranscribed:
		w, err := d.transcript(ctx, s)
		if err != nil {
			return out, err
		}
		how := "written down"
		if s.info.Kind == artel.KindImage {
			how = "put into words"
		}
		written(fmt.Sprintf(", %s by %s", how, w.Service), w.Text)
		out.sent.Service = w.Service
		if r.Reason == artel.ReasonStale && !m.Ref.IsBlob() && d.hasTool("get_artifact") {
			out.text += "\n" + d.Locale.Say(phrase.RouteSeeAgain, map[string]any{"ID": string(m.Ref.Artifact)})
		}
	}
	return out, nil
}

// renderDoubtful makes the form of a PDF whose text is doubtful: its pages as pictures, or
// their text as a service reads it. Without either the route of the result is still r.
func (d *Draft) renderDoubtful(ctx context.Context, s source, r artel.Route, pages, inline int, room *mediaBudget) (rendered, error) {
	out := rendered{route: route.Doubtful(r, s.info, d.target)}
	src := rendition.Source{Digest: s.digest, MediaInfo: s.info}
	src.Pages = pages
	switch out.route.Step {
	case artel.StepConverted:
		if d.single { // the request has one place for the part
			out.route = r
			return out, nil
		}
		for n := 1; n <= min(pages, rendition.MaxPages); n++ {
			p, err := d.Renditions.Pages().Picture(ctx, d.Owner, src, n, d.target.Capabilities.PictureForm())
			if err != nil {
				return out, err
			}
			if d.refused(p.Digest) || !room.reserve(artel.KindImage, p.Digest, p.Size) {
				break
			}
			out.pages = append(out.pages, p.Media())
		}
		if len(out.pages) == 0 {
			out.route = r
			return out, nil
		}
		out.sent = &artel.SentForm{MediaType: out.pages[0].MediaType, Pages: len(out.pages), PagesLeft: pages - len(out.pages)}
	case artel.StepTranscribed:
		s.info.Pages = pages
		w, err := d.transcript(ctx, s)
		if err != nil {
			return out, err
		}
		origin := ", read from its pages by " + string(w.Service)
		if next := rendition.After(rendition.MaxPages, pages); next != "" {
			origin += fmt.Sprintf("; pages %d to %d of %d are missing", rendition.MaxPages+1, pages, pages)
			if !s.media.Ref.IsBlob() && d.hasTool("get_artifact") {
				origin += fmt.Sprintf(", get_artifact(ref='%s', pages='%s') reads on", s.media.Ref.Artifact, next)
			}
		}
		text, form := inlineText(s.media, origin, w.Text, inline)
		form.Service, form.Cut = w.Service, form.Cut || pages > rendition.MaxPages
		out.text, out.sent = text, &form
	}
	return out, nil
}

// transcript transcribes a recording, or captions a picture, within
// transcriptionTime.
func (d *Draft) transcript(ctx context.Context, s source) (rendition.Text, error) {
	limited, stop := context.WithTimeoutCause(ctx, transcriptionTime,
		artel.Errorf(artel.Unavailable, "pipeline.Build", "", "it was not written down within %v", transcriptionTime))
	defer stop()
	w, err := d.Renditions.Words(limited, d.Owner, rendition.Source{Digest: s.digest, MediaInfo: s.info})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	return w, err
}

// transcribeAll transcribes all parts whose route asks for it, concurrently,
// before they are prepared one by one. The results are cached; errors are
// reported when each part is prepared. stale says which pictures are stale;
// nil: none.
func (d *Draft) transcribeAll(ctx context.Context, parts []artel.Media, conf attaching, stale func(int) bool) error {
	if !d.target.Forms.Transcribed {
		return nil
	}
	var all []source
	for i, m := range parts {
		s, err := d.find(ctx, m)
		if err != nil {
			return err
		}
		if s.err == nil && d.route(s, preference{conf, stale != nil && stale(i)}).Step == artel.StepTranscribed {
			all = append(all, s)
		}
	}
	if len(all) < 2 {
		return nil
	}
	var g errgroup.Group
	g.SetLimit(4)
	for _, s := range all {
		g.Go(func() error {
			_, _ = d.transcript(ctx, s)
			return nil
		})
	}
	return g.Wait()
}

// limitForImageCount applies the service's limits for requests with many
// images. all are the media of the request; old, which may be nil, marks those
// sent as text. Each image counts once, because it is sent once.
func (d *Draft) limitForImageCount(all []artel.Media, old func(int) bool) {
	images := map[artel.Ref]bool{}
	for i, m := range all {
		if m.Kind == artel.KindImage && (old == nil || !old(i)) {
			images[m.Ref] = true
		}
	}
	d.target.Capabilities = d.target.Capabilities.ForImages(len(images))
}

// A mediaBudget is the number and size of media that a request can still take.
// nil is unlimited.
type mediaBudget struct {
	images   int   // remaining; < 0: unlimited
	bytes    int64 // remaining bytes of the body
	limited  bool  // bytes is limited
	reserved map[artel.Digest]bool
}

// newMediaBudget returns the budget left by the text of a draft.
func newMediaBudget(d *Draft) *mediaBudget {
	c := d.Service.Capabilities
	r := &mediaBudget{images: -1, reserved: map[artel.Digest]bool{}}
	if n := c.MaxImages.Value; n > 0 {
		r.images = n
	}
	if n := c.MaxRequestBytes.Value; n > 0 {
		r.limited, r.bytes = true, n
		for _, m := range d.Messages {
			for _, p := range m.Parts {
				r.bytes -= partBytes(p)
			}
		}
		for _, t := range d.Tools {
			r.bytes -= encodedSize(len(t.Name) + len(t.Description) + len(t.Schema))
		}
	}
	return r
}

// partBytes estimates the encoded size of a part that is not media.
func partBytes(p artel.Part) int64 {
	switch p := p.(type) {
	case artel.Text:
		return encodedSize(len(p.Text))
	case artel.ToolCall:
		return encodedSize(len(p.Name) + len(p.Arguments) + len(p.Opaque))
	case artel.ToolResult:
		return encodedSize(len(p.Content))
	case artel.Reasoning:
		return encodedSize(len(p.Text) + len(p.Opaque))
	}
	return 0
}

// encodedSize estimates the size of n bytes of text in JSON, with the syntax
// around them.
func encodedSize(n int) int64 { return int64(n) + int64(n)/10 + 200 }

// fits reports whether media of a kind and size fit. Media that are already in
// the request cost nothing.
func (r *mediaBudget) fits(kind artel.MediaKind, d artel.Digest, size int64) bool {
	if r == nil || r.reserved[d] {
		return true
	}
	return (kind != artel.KindImage || r.images != 0) && (!r.limited || encodedSize(0)+(size+2)/3*4 <= r.bytes)
}

// reserve takes the size of media from the budget, and reports whether they
// fit.
func (r *mediaBudget) reserve(kind artel.MediaKind, d artel.Digest, size int64) bool {
	if !r.fits(kind, d, size) {
		return false
	}
	if r == nil || r.reserved[d] {
		return true
	}
	r.reserved[d] = true
	r.bytes -= encodedSize(0) + (size+2)/3*4
	if kind == artel.KindImage && r.images > 0 {
		r.images--
	}
	return true
}

// spend takes the size of a text from the budget.
func (r *mediaBudget) spend(text string) {
	if r != nil {
		r.bytes -= encodedSize(len(text))
	}
}

// PreparedMedia replaces one media part in a request that was not built by this
// package.
type PreparedMedia struct {
	Media    *artel.Media // with the digest of the bytes to send; nil: Text replaces the part
	Text     string
	Decision Decision
}

// PrepareMedia decides and makes the form of each media part of a request that
// another client wrote, as a build does: unchanged, converted, as its text, or
// described. media are in the order of the request, whose text has about text
// bytes; if the service takes no more media, the earlier ones are described.
// Only the fields of in about the service and media are used. The error is of
// kind Canceled.
func (r *Registry) PrepareMedia(ctx context.Context, in Input, media []artel.Media, text int64) ([]PreparedMedia, error) {
	d := &Draft{
		Input:       in,
		target:      route.Target{Service: in.Service.ID, Capabilities: in.Service.Capabilities, Suggest: in.Suggest, Forms: forms(in)},
		counter:     newMessageCounter(r.counter, in.Service, ""),
		sources:     make(map[artel.Ref]source),
		sentDigests: make(map[artel.Ref]artel.Digest),
		single:      true,
	}
	if err := d.transcribeAll(ctx, media, attaching{}, nil); err != nil {
		return nil, err
	}
	d.limitForImageCount(media, nil)
	room := newMediaBudget(d)
	room.bytes -= text
	out := make([]PreparedMedia, len(media))
	for i := len(media) - 1; i >= 0; i-- {
		s, err := d.prepare(ctx, "", media[i], preference{attaching: attaching{InlineLimit: defaultInline}}, room)
		if err != nil {
			return nil, err
		}
		out[i].Decision = s.decision
		switch p := s.parts[len(s.parts)-1].(type) {
		case artel.Media:
			p.Ref.Digest = d.sentDigests[p.Ref]
			out[i].Media = &p
		case artel.Text:
			out[i].Text = p.Text
		}
	}
	return out, nil
}

// Count estimates the tokens of a request in the vocabulary of its service:
// text is counted, and media cost what the service's dialect charges. What a build
// has counted is not counted again.
func (r *Registry) Count(req *model.Request) (int, error) {
	m := newMessageCounter(r.counter, req.Service, "")
	known := r.cache.counts(m.key(), len(req.Messages), func(i int) artel.Parts { return req.Messages[i].Parts })
	n := r.cache.tools.count(req.Tools, m)
	for i := range req.Messages {
		tokens, ok := known.find(req.Messages[i].Parts)
		if !ok {
			tokens = int32(min(m.parts(req.Messages[i].Parts), math.MaxInt32))
		}
		n += int(tokens)
	}
	return n, m.err
}
