// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/pipeline"
)

// prepareTranslation prepares a request for a service of another dialect.
func (x *exchange) prepareTranslation(ctx context.Context, s *model.Service, refused map[artel.Digest]bool, d *toolindex.Deferral) (prepared, error) {
	if err := x.fetchMedia(ctx); err != nil {
		return prepared{}, err
	}
	if err := x.decode(ctx); err != nil {
		return prepared{}, err
	}
	r := x.call.Neutral()
	r.Service, r.Whole = *s, !x.head.Stream
	r.OnNames = x.noteNames(r)
	r.Header, r.Cache = x.listedHeaders(), x.cacheTime()
	x.request.RestoreCalls(ctx, r)
	r.OnDrop = x.noteDrop
	for _, dropped := range r.Dropped {
		if err := x.noteDrop(dropped); err != nil {
			return prepared{}, err
		}
	}
	moved, err := x.dropRepeatedResults(r)
	if err != nil {
		return prepared{}, err
	}
	changes, err := x.settleMedia(ctx, r, refused)
	if err != nil {
		return prepared{}, err
	}
	if d != nil {
		changes = append(changes, x.deferTools(r, d))
	}
	return prepared{request: r, changes: append(moved, changes...), send: func() error { return x.callModel(ctx, r, d) }}, nil
}

// decode reads the request as a neutral one.
func (x *exchange) decode(ctx context.Context) (err error) {
	if x.call == nil && x.keep != nil {
		x.call, err = x.decodeKept(ctx)
	} else if x.call == nil {
		x.call, err = x.d.Decode(ctx, x.extraction.Reader([]byte(x.text)))
	}
	return err
}

// StrictHeader is the header of a request that makes a dropped field an error.
const StrictHeader = "X-Artel-Strict"

// maxDropped is how many dropped fields the log names.
const maxDropped = 200

// lossReasons say to a client why a field is lost.
var lossReasons = map[model.DropReason]string{
	model.DialectLacks:  "the service's API has no such field",
	model.ModelLacks:    "the service's model does not take it",
	model.NotTranslated: "only services of the same API take it",
	model.TooMany:       "it has more values than the service's API takes",
	model.OutOfRange:    "its value is outside the range of the service's API",
	model.NotEnforced:   "the service's API cannot enforce it",
	model.InConflict:    "the service refuses it beside another field of the request",
}

// noteDrop records a field that the service does not get. It returns an error if
// the client does not permit drops.
func (x *exchange) noteDrop(d model.Drop) error {
	if strict, _ := strconv.ParseBool(x.r.Header.Get(StrictHeader)); strict {
		f := provider.InvalidRequest("'%s' would be lost: %s. Leave it out, ask another service than %s, or remove the header %s.", d.Field, lossReasons[d.Reason], x.entry.Service, StrictHeader)
		f.Param = d.Field
		return artel.Errorf(artel.Invalid, "gateway", d.Field, "%w", f)
	}
	c := Change{Did: DidDrop, Reason: artel.Reason(d.Reason), Field: artel.Shorten(d.Field, 200), Service: x.entry.Service}
	x.namedMu.Lock()
	defer x.namedMu.Unlock()
	if len(x.dropped) < maxDropped && !slices.Contains(x.dropped, c) {
		x.dropped = append(x.dropped, c)
	}
	return nil
}

// noteLostCall records a call of the answer, the nth, if the client does not get it.
func (x *exchange) noteLostCall(n int, id artel.CallID) {
	l, ok := x.call.(provider.CallLimiter)
	if !ok {
		return
	}
	x.namedMu.Lock()
	defer x.namedMu.Unlock()
	if most, field := l.MaxCalls(); most > 0 && n > most && len(x.dropped) < maxDropped {
		x.dropped = append(x.dropped, Change{Did: DidDrop, Reason: artel.Reason(model.TooMany), Field: field, Call: id, Service: x.entry.Service})
	}
}

// fetchTime limits the downloads of all addresses of a request.
const fetchTime = time.Minute

// fetchMedia replaces addresses by the bytes behind them, because services of
// other dialects treat addresses differently. An address that cannot be fetched
// stays and becomes text.
func (x *exchange) fetchMedia(ctx context.Context) error {
	if x.fetched {
		return nil
	}
	x.fetched = true
	limited, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	l := x.scan(x.text)
	var edits []provider.Edit
	for _, m := range l.Media {
		if m.ID || !strings.HasPrefix(m.Value, "https://") && !strings.HasPrefix(m.Value, "http://") {
			continue
		}
		found, err := x.request.Fetch(limited, m.Value)
		if clientLeft(ctx) {
			return artel.Errorf(artel.Canceled, "gateway", "", "%w", context.Cause(ctx))
		}
		if err != nil {
			x.gw.o.Log.InfoContext(ctx, "an address in a request could not be fetched", "service", x.entry.Service, "err", err)
			continue
		}
		edits = append(edits, x.replace(m, found))
		x.logChange(Change{Did: DidFetch, Ref: found.Ref, MediaType: found.MediaType, Call: callOf(l, m)})
	}
	if len(edits) > 0 {
		x.text, x.call = provider.ApplyEdits(x.text, edits), nil
	}
	return nil
}

// settleMedia gives the media of a neutral request the forms that the service
// takes.
func (x *exchange) settleMedia(ctx context.Context, r *model.Request, refused map[artel.Digest]bool) ([]Change, error) {
	p := &conformer{x: x, s: &r.Service}
	var all []artel.Media
	for _, m := range r.Messages {
		all = p.describeMedia(ctx, m.Parts, "", all)
	}
	if len(all) == 0 {
		return nil, nil
	}
	settled, err := x.request.PrepareMedia(ctx, r.Service, all, int64(len(x.text)), func(d artel.Digest) bool { return refused[d] })
	if err != nil {
		return nil, err
	}
	for i, m := range r.Messages {
		r.Messages[i].Parts, settled = p.replaceMedia(m.Parts, settled, "")
	}
	return p.changes, nil
}

// describeMedia completes the media in parts and returns them appended to all.
func (p *conformer) describeMedia(ctx context.Context, parts artel.Parts, call artel.CallID, all []artel.Media) []artel.Media {
	for i, part := range parts {
		switch v := part.(type) {
		case artel.Media:
			known, mislabeled := p.x.request.Media(ctx, v.Ref.Digest, v.MediaType, v.Filename)
			if mislabeled {
				p.changes = append(p.changes, relabeled(known, v.MediaType, call, p.s.ID))
			}
			known.Detail = v.Detail
			parts[i] = known
			all = append(all, known)
		case artel.ToolResult:
			all = p.describeMedia(ctx, v.Parts, v.CallID, all)
		}
	}
	return all
}

// ReplaceMedia replaces media by their settled forms and returns the unused
// forms.
func (p *conformer) replaceMedia(parts artel.Parts, forms []pipeline.PreparedMedia, call artel.CallID) (artel.Parts, []pipeline.PreparedMedia) {
	out := make(artel.Parts, 0, len(parts))
	for _, part := range parts {
		switch v := part.(type) {
		case artel.Media:
			f := forms[0]
			forms = forms[1:]
			place := model.InUser
			if call != "" && f.Media != nil {
				place = model.AfterTool
				if p.s.Capabilities.ToolTakes(f.Media.MediaType) {
					place = model.InTool
				} else {
					p.changes = append(p.changes, Change{Did: DidCarry, Ref: f.Media.Ref, MediaType: f.Media.MediaType, Place: place, Call: call, Service: p.s.ID})
				}
			}
			p.noteChange(f, v, place, call)
			if f.Media != nil {
				f.Media.Detail = v.Detail
				out = append(out, *f.Media)
			} else {
				out = append(out, artel.Text{Text: f.Text})
			}
		case artel.ToolResult:
			v.Parts, forms = p.replaceMedia(v.Parts, forms, v.CallID)
			out = append(out, flatten(v))
		default:
			out = append(out, part)
		}
	}
	return out, forms
}

// flatten moves the text of a result's parts into its content if no media are
// left: every API takes that.
func flatten(r artel.ToolResult) artel.ToolResult {
	for _, p := range r.Parts {
		if _, ok := p.(artel.Media); ok {
			return r
		}
	}
	var texts []string
	for _, s := range []string{r.Content, artel.TextOf(r.Parts)} {
		if s != "" {
			texts = append(texts, s)
		}
	}
	r.Content, r.Parts = strings.Join(texts, "\n\n"), nil
	return r
}

// callModel makes the call and writes the answer in the client's dialect.
func (x *exchange) callModel(ctx context.Context, r *model.Request, deferred *toolindex.Deferral) error {
	if x.keep != nil {
		x.keep.said = backend.Said{} // of an attempt before
	}
	r.OnTry = func() { x.entry.Tries++ }
	next, stop := iter.Pull2(x.restoreDeltas(r.Service.ID, x.deltas(ctx, r, deferred)))
	defer stop()
	first, err, ok := next()
	switch {
	case err != nil:
		return err
	case !ok:
		return artel.Errorf(artel.Unavailable, "gateway", string(r.Service.ID), "the service sent an empty answer")
	}
	answered := first
	if _, is := first.(model.TextDelta); is && r.Service.Dialect == model.Anthropic && len(r.Service.ForFilter) > 0 {
		d, err, ok := next() // the text may be the reason that Anthropic gives for a refusal
		next = pushBack(d, err, ok, next)
		answered = d
	}
	if end, is := answered.(model.Finish); is {
		if err := x.filteredBy(&r.Service, end.Reason == model.StopRefusal, true); err != nil {
			return err
		}
	}
	var failed error
	thoughts := thoughtsOf{service: r.Service, carried: x.d.Dialect() == model.OpenAIResponses || x.d.Dialect() == model.Anthropic && r.Reasoning.Show}
	calls := 0
	deltas := func(yield func(model.Delta, error) bool) {
		d, err, ok := first, error(nil), true
		for ok {
			if err != nil {
				failed = err
				yield(nil, clientError(err))
				return
			}
			thoughts.add(d)
			if err := x.note(ctx, d); err != nil {
				failed = err
				yield(nil, clientError(err))
				return
			}
			switch d := d.(type) {
			case model.CallDelta:
				x.request.RememberCall(ctx, r.Service.ID, artel.ToolCall(d), thoughts.take()...)
				calls++
				x.noteLostCall(calls, d.ID)
			case model.Finish:
				x.entry.Usage = d.Usage
				_ = x.filteredBy(&r.Service, d.Reason == model.StopRefusal, false) // logs it
			}
			if !hidden(d, r.Reasoning, x.d.Dialect()) && !yield(d, nil) {
				return
			}
			d, err, ok = next()
		}
	}
	if x.head.Stream {
		return x.streamAnswer(deltas, &failed)
	}
	body, err := x.call.Body(x.head.Model, r.Service.ID, deltas)
	if failed != nil {
		return failed
	}
	if err != nil {
		return artel.Errorf(artel.Unavailable, "gateway", string(r.Service.ID), "%w", err)
	}
	return x.writeBody(body)
}

// pushBack returns next with a result of it put back.
func pushBack(d model.Delta, err error, ok bool, next func() (model.Delta, error, bool)) func() (model.Delta, error, bool) {
	back := true
	return func() (model.Delta, error, bool) {
		if back {
			back = false
			return d, err, ok
		}
		return next()
	}
}

// thoughtsOf collects the signed reasoning of an answer. Models that reason between
// calls would have to reason again without it.
type thoughtsOf struct {
	service model.Service
	carried bool // the client returns it
	text    strings.Builder
	all     artel.Parts
}

func (t *thoughtsOf) add(d model.Delta) {
	// Gemini signs calls.
	if t.carried || t.service.Dialect == model.Gemini {
		return
	}
	switch d := d.(type) {
	case model.ReasoningDelta:
		t.text.WriteString(string(d))
	case model.ReasoningDone:
		if len(d.Opaque) > 0 {
			t.all = append(t.all, artel.Reasoning{Text: t.text.String(), Opaque: d.Opaque, Service: t.service.ID})
		}
		t.text.Reset()
	}
}

// take returns what was collected since the last call.
func (t *thoughtsOf) take() artel.Parts {
	all := t.all
	t.all = nil
	return all
}

// hidden reports whether reasoning is kept from a client that did not ask to read it:
// its first block must be the answer. Responses has an item for reasoning without
// text.
func hidden(d model.Delta, r model.Reasoning, client model.Dialect) bool {
	switch d.(type) {
	case model.ReasoningDelta:
		return !r.Show
	case model.ReasoningDone:
		return !r.Show && client != model.OpenAIResponses
	}
	return false
}

// clientError returns an error without what only the log may have. It keeps the
// class that a service reported, which the client's dialect has a word for.
func clientError(err error) error {
	if c, ok := errors.AsType[*model.CallError](err); ok {
		return c
	}
	return errors.New(faultOf(err).Message)
}

// streamAnswer writes the answer as a stream.
func (x *exchange) streamAnswer(deltas iter.Seq2[model.Delta, error], failed *error) error {
	x.w.begin(http.StatusOK, x.streamHeader)
	err := x.call.Stream(x.head.Model, x.entry.Service, x.events(), x.w.FlushError, deltas)
	switch unwritten := x.w.failure(); {
	case *failed != nil:
		return *failed
	case err != nil && unwritten != nil:
		return writeError(unwritten)
	case err != nil:
		// The Stream ended without its last event.
		return x.endWithError(artel.Errorf(artel.Unavailable, "gateway", string(x.entry.Service), "%w", err), nil, nil)
	}
	return nil
}
