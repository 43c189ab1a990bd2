// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// ServiceHeader is the header of a request that names the service to which it is
// passed on, by its id. The names of models in it are then those of the service.
const ServiceHeader = "X-Artel-Service"

// maxPassedText is the size of a JSON body, or of a field of a form, that is passed on.
const maxPassedText = 32 << 20

// isPassed reports whether requests for a path are passed on: byModel to the service
// of the model that the request names.
func isPassed(p string, h http.Header) (byModel, ok bool) {
	switch {
	case p == "/v1/embeddings", p == "/v1/completions", p == "/v1/moderations", p == "/v1/rerank",
		p == "/v1/audio/speech", p == "/v1/audio/transcriptions", p == "/v1/audio/translations",
		p == "/v1/images/generations", p == "/v1/images/edits", p == "/v1/images/variations":
		return true, true
	case below(p, "/v1/batches"), below(p, "/v1/messages/batches"), below(p, "/v1/files") && h.Get(ServiceHeader) != "":
		return false, path.Clean(p) == p
	}
	return false, false
}

func below(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// pass serves a request that is passed on unchanged, except for the name of the
// model.
func (s *server) pass(w http.ResponseWriter, r *http.Request, d provider.Editor, path string, byModel bool) {
	x := s.newExchange(w, r, d)
	if byModel && r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.passOn(path, byModel))
}

func (x *exchange) passOn(path string, byModel bool) error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	if !byModel && !backend.IsAdministrator(ctx) {
		return &provider.Fault{Status: http.StatusForbidden, Message: "Batches, and files that a service keeps, are those of all its users: only administrators may use them. Send the requests one by one; files go to /v1/files without the header " + ServiceHeader + "."}
	}
	var p passed
	if x.r.Method == http.MethodPost {
		if p, err = x.readPassed(ctx); err != nil {
			return err
		}
	}
	if byModel {
		x.entry.Model = artel.Shorten(p.model, 200)
	}
	targets, keepModel, err := x.passTargets(ctx, p.model, byModel)
	if err != nil {
		return err
	}
	once := !byModel && x.r.Method != http.MethodGet // a batch is not begun twice
	ask := x.askTargets
	if !byModel { // batches and files belong to the account of one service
		ask = func(ctx context.Context, targets []*model.Service, ask askFunc) error {
			return x.askOne(ctx, targets[0], ask)
		}
	}
	return ask(ctx, targets, func(ctx context.Context, s *model.Service) error {
		x.setService(s)
		name := s.Model
		if keepModel || !byModel {
			name = p.model
		}
		return x.passTo(ctx, s, path, p, name, once)
	})
}

// passTargets returns the services that a request may be passed on to. keepModel says
// that the name of the model is the service's own.
func (x *exchange) passTargets(ctx context.Context, name string, byModel bool) (all []*model.Service, keepModel bool, err error) {
	routes := x.gw.backend.Routes
	if id := x.r.Header.Get(ServiceHeader); id != "" {
		if all, err = routes.Targets(ctx, id, x.key, noSeed); err != nil {
			return nil, false, modelNotFound(id)
		}
		return all, true, nil
	}
	if byModel && name != "" {
		if all, err = routes.Targets(ctx, name, x.key, noSeed); err == nil {
			return all, false, nil
		}
		if s, ok := routes.Other(ctx, name, x.key); ok {
			return []*model.Service{s}, true, nil
		}
		return nil, false, modelNotFound(name)
	}
	for _, s := range x.gw.backend.Services(ctx, x.key) {
		if x.passes(&s) {
			return []*model.Service{&s}, true, nil
		}
	}
	return nil, false, &provider.Fault{Status: http.StatusNotFound, Code: "unknown_url", Message: "No service that this key may use has " + artel.Shorten(x.r.URL.Path, 100) + "."}
}

func noSeed() string { return "" }

// passes reports whether a service has the API of the request's path.
func (x *exchange) passes(s *model.Service) bool {
	if x.d.Dialect() == model.Anthropic {
		return s.Dialect == model.Anthropic
	}
	return s.Dialect == model.OpenAI || s.Dialect == model.OpenAIResponses
}

// A passed is the body of a request that is passed on: text, or the parts of a
// form.
type passed struct {
	kind  string // the content type of a text
	text  []byte
	model string
	parts []passedPart // of a form
	form  bool
}

// A passedPart is a field of a form, or a file, whose bytes are in the blob store.
type passedPart struct {
	form.Part
	text []byte
	file *backend.Upload
}

// readPassed reads the body of a request. Files go to the blob store.
func (x *exchange) readPassed(ctx context.Context) (passed, error) {
	p := passed{kind: x.r.Header.Get("Content-Type")}
	decoded, err := x.decodeBody()
	if err != nil {
		return p, err
	}
	defer decoded()
	kind, _, _ := mime.ParseMediaType(p.kind)
	if kind != "multipart/form-data" {
		text, err := x.readText(x.r.Body)
		if err != nil {
			return p, err
		}
		p.text = text
		x.entry.BytesIn = int64(len(text))
		if len(text) > 0 && !gjson.ValidBytes(text) {
			return p, provider.InvalidRequest("We could not parse the JSON body of your request. The API expects a JSON payload, but what was sent was not valid JSON.")
		}
		h, _ := provider.ReadHead(string(text))
		p.model = h.Model
		return p, nil
	}
	p.form = true
	for part, err := range form.Parts(x.r.Body, p.kind) {
		if err != nil {
			return p, err
		}
		one := passedPart{Part: part}
		if part.Filename != "" {
			b, err := x.gw.backend.Uploads.Stage(ctx, part, part.Filename, part.ContentType)
			if err != nil {
				return p, err
			}
			one.file = &b
			x.entry.BytesIn += b.Info.Size
		} else {
			if one.text, err = x.readText(part); err != nil {
				return p, err
			}
			x.entry.BytesIn += int64(len(one.text))
			if part.Name == "model" {
				p.model = string(one.text)
			}
		}
		p.parts = append(p.parts, one)
	}
	return p, nil
}

func (x *exchange) readText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPassedText+1))
	if err != nil {
		return nil, unread(err)
	}
	if len(text) > maxPassedText {
		return nil, &provider.Fault{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The request is larger than %d MB.", maxPassedText>>20)}
	}
	return text, nil
}

// Body returns the body with another name of the model, and its content type.
func (p passed) body(x *exchange, name string) (*provider.Body, string) {
	out := provider.NewBody(x.gw.backend.Blobs())
	if !p.form {
		text := string(p.text)
		var edits []provider.Edit
		if h, ok := provider.ReadHead(text); ok && p.model != "" {
			for _, m := range h.Models {
				edits = append(edits, provider.Edit{Span: m, With: provider.QuoteJSON(name)})
			}
		}
		out.WriteString(provider.ApplyEdits(text, edits))
		return out, cmp.Or(p.kind, "application/json")
	}
	boundary := "artel-" + strings.ToLower(rand.Text())
	for _, part := range p.parts {
		fields := map[string]string{"name": part.Name}
		if part.file != nil {
			fields["filename"] = part.Filename
		}
		out.WriteString("--" + boundary + "\r\nContent-Disposition: " + mime.FormatMediaType("form-data", fields) + "\r\n")
		if part.ContentType != "" {
			out.WriteString("Content-Type: " + textproto.TrimString(part.ContentType) + "\r\n")
		}
		out.WriteString("\r\n")
		switch {
		case part.file != nil:
			out.WriteRaw(part.file.Digest, part.file.Info.Size)
		case part.Name == "model":
			out.WriteString(name)
		default:
			_, _ = out.Write(part.text) // to memory
		}
		out.WriteString("\r\n")
	}
	out.WriteString("--" + boundary + "--\r\n")
	return out, "multipart/form-data; boundary=" + boundary
}

// passTo passes the request on to a service, and its answer back.
func (x *exchange) passTo(ctx context.Context, s *model.Service, path string, p passed, name string, once bool) error {
	to, ok := x.gw.o.Forwarders[s.Dialect].(provider.Passer)
	if !ok || !x.passes(s) {
		return &provider.Fault{
			Status: http.StatusNotFound, Code: "unknown_url",
			Message: fmt.Sprintf("The service %s has no %s: its API is that of the dialect %s.", s.ID, artel.Shorten(x.r.URL.Path, 100), s.Dialect),
		}
	}
	caller := x.caller()
	if once {
		caller = x.gw.backend.Routes.CallerOnce()
	}
	query := x.r.URL.Query()
	query.Del("key") // the client's
	below := (&url.URL{Path: strings.TrimPrefix(path, "/v1")}).EscapedPath()
	if q := query.Encode(); q != "" {
		below += "?" + q
	}
	if x.r.Method == http.MethodPost {
		text, err := x.charge(s, string(p.text), nil, boundOf(path))
		if err != nil {
			return err
		}
		p.text = []byte(text)
		defer x.settle()
	}
	var a *response
	leave, tries, err := caller.Try(ctx, *s, func() error {
		header := x.forwardedHeaders()
		var body *provider.Body
		if x.r.Method == http.MethodPost {
			var kind string
			body, kind = p.body(x, name)
			header.Set("Content-Type", kind)
		}
		call, cancel := context.WithCancelCause(ctx)
		a = &response{failures: provider.Failures{Op: "gateway.Pass", Service: s}, silence: newSilenceTimer(silenceLimitsOf(caller, s), cancel)}
		resp, err := to.Pass(call, s, x.r.Method, below, body, header)
		if err != nil {
			err = a.silence.cause(ctx, a.failures, err)
			a.silence.stop()
			return err
		}
		a.resp = resp
		return nil
	})
	x.entry.Tries += tries
	if err != nil {
		return err
	}
	x.started = true
	defer leave()
	defer a.close()
	return x.passBack(a)
}

// boundOf says how the cost of a request that is passed on is bounded.
func boundOf(path string) bound {
	switch path {
	case "/v1/completions":
		return byLimit
	case "/v1/batches", "/v1/messages/batches":
		return byNothing
	}
	return byRequest
}

// passBack passes an answer on as it arrives, and reads its usage.
func (x *exchange) passBack(a *response) error {
	kind, _, _ := mime.ParseMediaType(a.resp.Header.Get("Content-Type"))
	stream := kind == "text/event-stream"
	x.entry.Stream = stream
	if kind == "text/html" {
		return a.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	x.w.begin(a.resp.StatusCode, func(h http.Header) {
		copyHeader(h, a, "application/octet-stream")
		if d := a.resp.Header.Get("Content-Disposition"); d != "" {
			h.Set("Content-Disposition", d)
		}
		if stream {
			h.Set("Cache-Control", "no-cache")
			h.Set("X-Accel-Buffering", "no")
		} else if n := a.resp.ContentLength; n >= 0 {
			h.Set("Content-Length", fmt.Sprint(n))
		}
	})
	usage := memberScanner{names: usageMembers}
	reads := stream || kind == "application/json"
	in := a.silence.reader(a.resp.Body)
	buf := x.gw.buffers.get()
	defer x.gw.buffers.put(buf)
	for {
		n, err := in.Read(buf[:])
		if reads {
			_, _ = usage.Write(buf[:n]) // never fails
		}
		if n > 0 {
			if _, failed := x.w.Write(buf[:n]); failed != nil {
				return writeError(failed)
			}
			if err == nil {
				_ = x.w.FlushError() // a failure shows at the next write
			}
		}
		if err == nil {
			continue
		}
		x.entry.Usage = passedUsage(&usage)
		if errors.Is(err, io.EOF) {
			return nil
		}
		x.aborted = true
		return x.readError(x.r.Context(), a, err)
	}
}

// passedUsage reads the usage of an answer, which OpenAI's newer endpoints write as
// the Responses API does.
func passedUsage(s *memberScanner) artel.Usage {
	if bytes.Contains(s.value, []byte(`"input_tokens"`)) {
		return s.usageIn(responses.Editor())
	}
	return s.usageIn(openai.Editor())
}
