// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// prepareTranslation prepares a request for a service of another dialect.
func (x *exchange) prepareTranslation(ctx context.Context, s model.Service, refused map[artel.Digest]bool) (prepared, error) {
	if err := x.fetchMedia(ctx); err != nil {
		return prepared{}, err
	}
	if x.call == nil {
		var err error
		if x.call, err = x.d.decode(ctx, x.extraction.Reader([]byte(x.text))); err != nil {
			return prepared{}, err
		}
	}
	r := x.call.neutral()
	r.Service = s
	r.OnNames = x.noteNames(r)
	x.request.RestoreCalls(ctx, r)
	changes, err := x.settleMedia(ctx, r, refused)
	if err != nil {
		return prepared{}, err
	}
	return prepared{request: r, changes: changes, send: func() error { return x.callModel(ctx, r) }}, nil
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
	var edits []edit
	for _, m := range l.media {
		if m.id || !strings.HasPrefix(m.value, "https://") && !strings.HasPrefix(m.value, "http://") {
			continue
		}
		found, err := x.request.Fetch(limited, m.value)
		if clientLeft(ctx) {
			return artel.Errorf(artel.Canceled, "gateway", "", "%w", context.Cause(ctx))
		}
		if err != nil {
			x.gw.o.Log.Info("an address in a request could not be fetched", "service", x.entry.Service, "err", err)
			continue
		}
		edits = append(edits, x.replace(m, found))
		x.logChange(Change{Did: DidFetch, Ref: found.Ref, MediaType: found.MediaType, Call: callOf(l, m)})
	}
	if len(edits) > 0 {
		x.text, x.call = apply(x.text, edits), nil
	}
	return nil
}

// settleMedia gives the media of a neutral request the forms that the service
// takes.
func (x *exchange) settleMedia(ctx context.Context, r *model.Request, refused map[artel.Digest]bool) ([]Change, error) {
	var all []artel.Media
	for _, m := range r.Messages {
		all = x.describeMedia(ctx, m.Parts, all)
	}
	if len(all) == 0 {
		return nil, nil
	}
	settled, err := x.request.PrepareMedia(ctx, r.Service, all, int64(len(x.text)), func(d artel.Digest) bool { return refused[d] })
	if err != nil {
		return nil, err
	}
	p := &conformer{s: r.Service}
	for i, m := range r.Messages {
		r.Messages[i].Parts, settled = p.replaceMedia(m.Parts, settled, "")
	}
	return p.changes, nil
}

// describeMedia completes the media in parts and returns them appended to all.
func (x *exchange) describeMedia(ctx context.Context, parts artel.Parts, all []artel.Media) []artel.Media {
	for i, part := range parts {
		switch v := part.(type) {
		case artel.Media:
			known := x.request.Media(ctx, v.Ref.Digest, v.MediaType, v.Filename)
			parts[i] = known
			all = append(all, known)
		case artel.ToolResult:
			all = x.describeMedia(ctx, v.Parts, all)
		}
	}
	return all
}

// replaceMedia replaces media by their settled forms and returns the unused
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
func (x *exchange) callModel(ctx context.Context, r *model.Request) error {
	r.OnTry = func() { x.entry.Tries++ }
	next, stop := iter.Pull2(x.gw.backend.Caller().Call(ctx, r))
	defer stop()
	first, err, ok := next()
	switch {
	case err != nil:
		return err
	case !ok:
		return artel.Errorf(artel.Unavailable, "gateway", string(r.Service.ID), "the service sent an empty answer")
	}
	var failed error
	deltas := func(yield func(model.Delta, error) bool) {
		d, err, ok := first, error(nil), true
		for ok {
			if err != nil {
				failed = err
				yield(nil, errors.New(faultOf(err).message))
				return
			}
			switch d := d.(type) {
			case model.CallDelta:
				x.request.RememberCall(ctx, r.Service.ID, artel.ToolCall(d))
			case model.Finish:
				x.entry.Usage = d.Usage
			}
			if !yield(d, nil) {
				return
			}
			d, err, ok = next()
		}
	}
	if x.head.stream {
		return x.streamAnswer(deltas, &failed)
	}
	body, err := x.call.body(x.head.model, r.Service.ID, deltas)
	if failed != nil {
		return failed
	}
	if err != nil {
		return artel.Errorf(artel.Unavailable, "gateway", string(r.Service.ID), "%w", err)
	}
	return x.writeBody(body)
}

// streamAnswer writes the answer as a stream.
func (x *exchange) streamAnswer(deltas iter.Seq2[model.Delta, error], failed *error) error {
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if x.head.asList {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	x.started = true
	rc := http.NewResponseController(x.w)
	out := &deadlineWriter{w: x.w, rc: rc, n: &x.entry.BytesOut}
	var err error
	if p, ok := x.call.(listStreamer); ok && x.head.asList {
		err = p.streamList(x.head.model, out, rc.Flush, deltas)
	} else {
		err = x.call.stream(x.head.model, x.entry.Service, out, rc.Flush, deltas)
	}
	switch {
	case *failed != nil:
		return *failed
	case err != nil && out.err != nil:
		return writeError(out.err)
	case err != nil:
		// The stream ended without its last event.
		return x.endWithError(artel.Errorf(artel.Unavailable, "gateway", string(x.entry.Service), "%w", err), rc, nil, nil)
	}
	return nil
}
