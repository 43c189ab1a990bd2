// SPDX-License-Identifier: Apache-2.0

// Package probe tests what media a model really accepts. It sends canaries, which
// are pictures and documents with random letters, in each place of a request and
// asks for the letters.
//
// Only an answer with the letters counts as success, because some APIs accept
// media silently without passing them to the model.
//
// Begin with [Run]; [Report.Marks] returns the results for the registry. [Picture]
// and [Document] make canaries; [ReadPicture] and [ReadDocument] read them in
// tests and fake servers.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// MostCalls limits the model calls of one probe, each of a few hundred tokens.
const MostCalls = 6

// A Caller makes model calls; [model.Caller] is one.
type Caller interface {
	Call(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error]
}

// A Report is the result of a probe.
type Report struct {
	Service artel.ServiceID `json:"service"`
	Model   string          `json:"model"`
	Calls   int             `json:"calls"` // model calls that were made
	Results []Result        `json:"results"`
}

// A Result is the result for one canary.
type Result struct {
	Place        model.Place `json:"place"`
	MediaType    string      `json:"media_type"`
	Outcome      Outcome     `json:"outcome"`
	Evidence     string      `json:"evidence,omitempty"` // the model's answer or the API's error, shortened
	Millis       int64       `json:"ms"`
	orderRefused bool        // refused because of the order of messages
}

// An Outcome classifies a [Result].
type Outcome string

// The outcomes.
const (
	Seen    Outcome = "seen"    // the model named the letters
	Blind   Outcome = "blind"   // the model answered without them
	Refused Outcome = "refused" // the API refused the request because of its content
	Unclear Outcome = "unclear" // no usable answer
	Failed  Outcome = "failed"  // the call failed for another reason
	Skipped Outcome = "skipped" // pointless after an earlier result
)

// Run probes s: a picture and a PDF in a user message and in a tool result, and a
// picture in a user message after a tool result. It makes at most [MostCalls]
// sequential calls and skips those that earlier results make pointless. The
// canaries are stored in blobs and removed afterwards. The error is that of blobs
// or ctx; failed calls are in the report.
func Run(ctx context.Context, c Caller, blobs blob.Store, s model.Service) (Report, error) {
	p := prober{caller: c, blobs: blobs, service: s, report: Report{Service: s.ID, Model: s.Model}}
	image, err := p.try(ctx, model.InUser, picture, false)
	if err != nil {
		return p.report, err
	}
	for _, place := range []model.Place{model.InTool, model.AfterTool} {
		if _, err := p.try(ctx, place, picture, image.Outcome != Seen); err != nil {
			return p.report, err
		}
	}
	file, err := p.try(ctx, model.InUser, document, image.Outcome == Failed)
	if err == nil {
		_, err = p.try(ctx, model.InTool, document, file.Outcome != Seen)
	}
	return p.report, err
}

// Sees sends s a picture in a user message: one call, and another one if the first
// fails without a clear reason.
func Sees(ctx context.Context, c Caller, blobs blob.Store, s model.Service) (Report, error) {
	p := prober{caller: c, blobs: blobs, service: s, report: Report{Service: s.ID, Model: s.Model}}
	_, err := p.try(ctx, model.InUser, picture, false)
	return p.report, err
}

// Marks returns the marks that follow from r. Unclear, failed and skipped results
// have none.
func (r Report) Marks(s model.Service) []model.Mark {
	var out []model.Mark
	for _, t := range r.Results {
		m := model.Mark{
			Endpoint: s.BaseURL, Model: s.Model, Dialect: s.Dialect, Place: t.Place, MediaType: t.MediaType, Source: model.FromProbe,
			OK: t.Outcome == Seen, Evidence: string(t.Outcome) + ": " + t.Evidence,
		}
		if t.MediaType == typePNG {
			m.MediaType = "image/*" // other image types work if PNG does
		}
		switch t.Outcome {
		case Seen, Refused, Blind:
		default:
			continue
		}
		if t.Place == model.AfterTool {
			// Only a refusal because of the order is about the place.
			if !m.OK && !t.orderRefused {
				continue
			}
			m.MediaType = ""
		}
		out = append(out, m)
	}
	return out
}

const (
	typePNG = "image/png"
	typePDF = "application/pdf"
)

// A canary is a file with random letters.
type canary struct {
	letters, mediaType, filename string
	kind                         artel.MediaKind
	data                         []byte
}

func picture() canary {
	c := canary{letters: Letters(), mediaType: typePNG, filename: "letters.png", kind: artel.KindImage}
	c.data, _ = Picture(c.letters) // encoding to memory does not fail
	return c
}

func document() canary {
	c := canary{letters: Letters(), mediaType: typePDF, filename: "letters.pdf", kind: artel.KindDocument}
	c.data = Document(c.letters)
	return c
}

type prober struct {
	caller  Caller
	blobs   blob.Store
	service model.Service
	report  Report
	works   *bool // it answers without a canary; nil: not tested yet
}

// try sends one canary to a place and adds its result to the report.
func (p *prober) try(ctx context.Context, place model.Place, fresh func() canary, skip bool) (r Result, err error) {
	c := fresh()
	r = Result{Place: place, MediaType: c.mediaType, Outcome: Skipped}
	if !skip {
		r, err = p.send(ctx, place, c)
	}
	if err == nil {
		p.report.Results = append(p.report.Results, r)
	}
	return r, err
}

func (p *prober) send(ctx context.Context, place model.Place, c canary) (r Result, err error) {
	info, err := p.blobs.Put(ctx, bytes.NewReader(c.data), 0)
	if err != nil {
		return r, err
	}
	defer func() {
		// The letters are random, so no one else refers to the blob.
		_, e := p.blobs.Delete(context.WithoutCancel(ctx), info.Digest, time.Now().Add(time.Hour))
		err = errors.Join(err, e)
	}()
	media := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: c.mediaType, Kind: c.kind, Filename: c.filename, Size: info.Size}
	request := p.request(place, media)
	began := time.Now()
	text, called, failure := p.ask(ctx, request)
	if ctx.Err() != nil {
		return r, artel.Errorf(artel.Canceled, "probe.Run", string(p.service.ID), "%w", context.Cause(ctx))
	}
	r = Result{Place: place, MediaType: c.mediaType, Millis: time.Since(began).Milliseconds(), Evidence: artel.Shorten(strings.TrimSpace(text), 200)}
	switch {
	case failure != nil:
		r.Outcome, r.orderRefused = p.judge(ctx, request, failure)
		r.Evidence = artel.Shorten(failure.Error(), 200)
	case named(text, c.letters):
		r.Outcome = Seen
	case called || strings.TrimSpace(text) == "":
		r.Outcome = Unclear
	default:
		r.Outcome = Blind
	}
	return r, nil
}

// judge classifies a failed call. orderRefused is set if the order of the messages
// was the reason.
func (p *prober) judge(ctx context.Context, r *model.Request, failure error) (o Outcome, orderRefused bool) {
	call, ok := errors.AsType[*model.CallError](failure)
	switch {
	case !ok:
		if errors.Is(failure, artel.Unsupported) {
			return Refused, false // the dialect cannot carry it
		}
		return Failed, false
	case call.Refusal.Class == model.RefusedAfter:
		return Refused, true
	case call.Refusal.Class != "" && call.Refusal.Class != model.RefusedContext && call.Refusal.Class != model.RefusedThought && call.Refusal.Class != model.RefusedFilter:
		return Refused, false
	case call.Status != http.StatusBadRequest && call.Status != http.StatusUnprocessableEntity:
		return Failed, false
	}
	// Unknown error: if the endpoint answers without the canary, the canary was the
	// cause.
	if p.works == nil {
		_, _, err := p.ask(ctx, p.plain(r))
		works := err == nil
		p.works = &works
	}
	if *p.works {
		return Refused, false
	}
	return Failed, false
}

// ask makes one call and returns the text and whether the model called a tool.
func (p *prober) ask(ctx context.Context, r *model.Request) (text string, called bool, err error) {
	p.report.Calls++
	var b strings.Builder
	for d, err := range p.caller.Call(ctx, r) {
		if err != nil {
			return "", false, err
		}
		switch d := d.(type) {
		case model.TextDelta:
			b.WriteString(string(d))
		case model.CallDelta:
			called = true
		}
	}
	return b.String(), called, nil
}

// maxOutput leaves room for reasoning.
const maxOutput = 2000

const question = "Which letters does the file show? Answer with the letters alone, and with \"none\" if you see no file."

// request returns a request with media in a place.
func (p *prober) request(place model.Place, media artel.Media) *model.Request {
	say := func(role artel.Role, parts ...artel.Part) model.Message {
		return model.Message{Role: role, Parts: parts}
	}
	r := &model.Request{Service: p.service, MaxOutput: maxOutput}
	if place == model.InUser {
		r.Messages = []model.Message{say(artel.RoleUser, artel.Text{Text: question}, media)}
		return r
	}
	inTool := model.Fact[bool]{Value: place == model.InTool, Source: model.FromProbe}
	r.Service.Capabilities.ToolImage, r.Service.Capabilities.ToolFile = inTool, inTool
	r.Service.Capabilities.UserAfterTool = model.Fact[bool]{Value: true, Source: model.FromProbe}
	r.Tools = []model.ToolSpec{{Name: "open_file", Description: "Opens the file.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
	r.Messages = []model.Message{
		say(artel.RoleUser, artel.Text{Text: "Open the file. " + question}),
		say(artel.RoleAssistant, artel.ToolCall{ID: "call_canary", Name: "open_file", Arguments: json.RawMessage(`{}`)}),
		say(artel.RoleTool, artel.ToolResult{CallID: "call_canary", Content: "This is the file.", Parts: artel.Parts{media}}),
	}
	return r
}

// plain is a request without its media.
func (p *prober) plain(r *model.Request) *model.Request {
	out := *r
	out.Tools = nil
	out.Messages = []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "Answer with the word yes."}}}}
	return &out
}
