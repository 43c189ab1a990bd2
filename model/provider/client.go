// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// Options are the dependencies of a client.
type Options struct {
	// Client sends the requests; nil: [http.DefaultClient]. It should have no
	// total time limit, which would cut long answers.
	Client *http.Client
	// Blobs holds the media of the requests; nil: requests with media fail.
	Blobs blob.Store
	// Uploads records the files uploaded to services; nil: media are sent inside
	// requests.
	Uploads *Uploads
	// Cloud authorises the requests to services of clouds; nil: they fail.
	Cloud Cloud
}

// A Cloud authorises requests with the credentials of the machine for a cloud; see
// package cloud.
type Cloud interface {
	// Sign adds the signature or the token for s to a request that is complete.
	Sign(ctx context.Context, s *model.Service, req *http.Request) error
	// Adapt gives an answer the form of the dialect.
	Adapt(resp *http.Response)
}

// A Dialect is what distinguishes the client of one dialect from the others. The
// functions must be safe for concurrent use.
type Dialect struct {
	// Name begins the operation in errors: "openai" gives "openai.Generate".
	Name string
	// Encode writes the body of a streamed call. No blob is read.
	Encode func(r *model.Request, blobs blob.Store) (*Body, error)
	// Reader returns a function that reads one answer and passes its deltas and the
	// [model.Finish] to w. The function returns an error of w, another [*artel.Error], or
	// the error of body. It is nil if the dialect has a Generate of its own.
	Reader func(w DeltaWriter) func(body io.Reader) error
	// URL returns the address that generates answers.
	URL func(s *model.Service, stream bool) string
	// Patch returns the changes to the body of a call for services of a cloud, as
	// [Body.Merged] takes them; nil: none.
	Patch func(s *model.Service) []byte
	// Header adds the key of s, and what else every request needs, to h.
	Header func(s *model.Service, h http.Header)
	// FilesURL returns the address of the Files API, without a slash at its end.
	FilesURL func(s *model.Service) string
	// ToolNames are the rules on the names of tools, by which Encode fits them.
	ToolNames ToolNames
	// Files describes the Files API of s.
	Files func(c *Client, s *model.Service) FileAPI
}

// A Client calls services of one dialect. It is safe for concurrent use.
type Client struct {
	Options Options // its Client is set

	dialect Dialect
}

var (
	_ model.Provider = (*Client)(nil)
	_ model.Writer   = (*Client)(nil)
	_ Forwarder      = (*Client)(nil)
	_ Uploader       = (*Client)(nil)
	_ Passer         = (*Client)(nil)
	_ FileDeleter    = (*Client)(nil)
)

// NewClient returns a client for d.
func NewClient(o Options, d Dialect) Client {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return Client{o, d}
}

// Generate implements [model.Provider].
func (c *Client) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		f := c.failures("Generate", &r.Service)
		err := c.Call(ctx, f, r, c.dialect.Encode, c.dialect.Reader(DeltaWriter{Failures: f, Yield: c.dialect.ToolNames.Restored(r.Tools, yield)}))
		if err != nil && !errors.Is(err, ErrStopped) {
			yield(nil, err)
		}
	}
}

func (c *Client) failures(operation string, s *model.Service) Failures {
	return Failures{Op: c.dialect.Name + "." + operation, Service: s}
}

// Write implements [model.Writer].
func (c *Client) Write(r *model.Request) (model.Body, error) {
	return c.encode(c.dialect.Encode)(r, c.Options.Blobs)
}

// encode returns an encoder whose bodies have the extra fields of the service.
func (c *Client) encode(encode func(*model.Request, blob.Store) (*Body, error)) func(*model.Request, blob.Store) (*Body, error) {
	return func(r *model.Request, blobs blob.Store) (*Body, error) {
		body, err := encode(r, blobs)
		if err != nil {
			return nil, err
		}
		return c.patched(body, &r.Service), nil
	}
}

// patched returns a body with the changes that s needs.
func (c *Client) patched(body *Body, s *model.Service) *Body {
	if c.dialect.Patch != nil {
		body = body.Merged(c.dialect.Patch(s))
	}
	return body.Merged(s.Extra.Body)
}

// Call sends r, written by encode, and reads the answer with read. Its return
// ends the call, even in the middle of a body. The error is an [*artel.Error] or a
// [Signal] of read; other errors of read are taken for errors of the connection.
func (c *Client) Call(ctx context.Context, f Failures, r *model.Request, encode func(*model.Request, blob.Store) (*Body, error), read func(body io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.Options.Uploads.Send(ctx, r, c.dialect.Files(c, &r.Service), func(r *model.Request) (*http.Response, error) {
		body, err := c.encode(encode)(r, c.Options.Blobs)
		if err != nil {
			return nil, err
		}
		return c.Post(ctx, f, c.dialect.URL(f.Service, true), body, "text/event-stream, application/json", r.Header)
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = read(activeReader{resp.Body, r.OnActivity})
	if _, ok := errors.AsType[Signal](err); ok || err == nil {
		return err
	}
	if _, ok := errors.AsType[*artel.Error](err); ok && ctx.Err() == nil {
		return err
	}
	return f.Transport(ctx, err)
}

// An activeReader calls active whenever bytes arrive.
type activeReader struct {
	r      io.Reader
	active func() // may be nil
}

func (a activeReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if n > 0 && a.active != nil {
		a.active()
	}
	return n, err
}

// Forward implements [Forwarder].
func (c *Client) Forward(ctx context.Context, service *model.Service, body *Body, stream bool, header http.Header) (*http.Response, error) {
	accept := "application/json"
	if stream {
		accept = "text/event-stream"
	}
	return c.Post(ctx, c.failures("Forward", service), c.dialect.URL(service, stream), c.patched(body, service), accept, header)
}

// Post sends body to url with header as [ForwardHeader] leaves it, and returns an
// answer whose status is a success; the caller closes its body. The Content-Type is
// application/json unless header states another one.
func (c *Client) Post(ctx context.Context, f Failures, url string, body *Body, accept string, header http.Header) (*http.Response, error) {
	h := ForwardHeader(header)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Accept", accept)
	c.header(f.Service, h)
	req, err := postRequest(ctx, f, url, body, h)
	if err != nil {
		return nil, err
	}
	return c.do(f, req)
}

// header adds what every request to s needs to h.
func (c *Client) header(s *model.Service, h http.Header) {
	c.dialect.Header(s, h)
	for name, value := range s.Extra.Header {
		h.Set(name, value.Reveal())
	}
}

// PostPlain is [Client.Post] without the header of the dialect, such as the key.
// It sets Content-Length and User-Agent, and takes the rest from header.
func PostPlain(ctx context.Context, client *http.Client, f Failures, url string, body *Body, header http.Header) (*http.Response, error) {
	req, err := postRequest(ctx, f, url, body, header)
	if err != nil {
		return nil, err
	}
	return do(client, f, req)
}

func postRequest(ctx context.Context, f Failures, url string, body *Body, header http.Header) (*http.Request, error) {
	if f.Service.BaseURL == "" || f.Service.Model == "" {
		return nil, f.Refuse(artel.Invalid, "the service has no base URL or no model, so it serves for routing only")
	}
	req, err := body.Request(ctx, http.MethodPost, url)
	if err != nil {
		return nil, f.Refuse(artel.Invalid, "the base URL is not usable")
	}
	req.Header = header
	return req, nil
}

// do sends req, authorised as its service demands.
func (c *Client) do(f Failures, req *http.Request) (*http.Response, error) {
	if f.Service.Auth.Kind == model.AuthKey {
		return do(c.Options.Client, f, req)
	}
	if c.Options.Cloud == nil {
		return nil, f.Refuse(artel.Unsupported, "requests to %s cannot be signed here", f.Service.Auth.Kind)
	}
	if err := c.Options.Cloud.Sign(req.Context(), f.Service, req); err != nil {
		return nil, f.wrap(artel.KindOf(err), err)
	}
	resp, err := do(c.Options.Client, f, req)
	if err == nil {
		c.Options.Cloud.Adapt(resp)
	}
	return resp, err
}

// do sends req and returns an answer whose status is a success.
func do(client *http.Client, f Failures, req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "artel")
	resp, err := client.Do(req)
	if err != nil {
		return nil, f.Transport(req.Context(), err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, f.Response(resp, time.Now())
	}
	return resp, nil
}

// Fetch sends a request without a body, such as GET or DELETE, and returns an
// answer whose status is a success; the caller closes its body.
func (c *Client) Fetch(ctx context.Context, f Failures, method, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, f.Refuse(artel.Invalid, "the base URL is not usable")
	}
	c.header(f.Service, req.Header)
	return c.do(f, req)
}

// Pass implements [Passer].
func (c *Client) Pass(ctx context.Context, service *model.Service, method, path string, body *Body, header http.Header) (*http.Response, error) {
	f := c.failures("Pass", service)
	if body == nil {
		body = NewBody(nil)
	}
	req, err := body.Request(ctx, method, strings.TrimSuffix(c.dialect.FilesURL(service), "/files")+path)
	if err != nil {
		return nil, f.Refuse(artel.Invalid, "the base URL is not usable")
	}
	req.Header = ForwardHeader(header)
	req.Header.Set("Accept", "*/*")
	c.header(service, req.Header)
	return c.do(f, req)
}

// SendWithUploads implements [Uploader].
func (c *Client) SendWithUploads(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	api := c.dialect.Files(c, &r.Service)
	api.Written = true
	return c.Options.Uploads.Send(ctx, r, api, send)
}

// DeleteFile implements [FileDeleter].
func (c *Client) DeleteFile(ctx context.Context, s *model.Service, name string) error {
	resp, err := c.Fetch(ctx, c.failures("DeleteFile", s), http.MethodDelete, c.dialect.FilesURL(s)+"/"+url.PathEscape(name))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A Signal is an error of [Dialect].Reader that is none of the service's:
// [Client.Call] returns it unchanged.
type Signal string

// Error returns the text.
func (s Signal) Error() string { return string(s) }

// ErrStopped ends the reading of an answer after the caller has stopped the
// iteration. It never leaves a dialect package.
const ErrStopped = Signal("the caller has stopped reading")

// BearerKey sets the key of s as a bearer token: the Header of OpenAI's dialects.
func BearerKey(s *model.Service, h http.Header) {
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// Endpoint returns the address of path, which begins with a slash, below the base
// URL of s.
func Endpoint(s *model.Service, path string) string {
	return strings.TrimSuffix(s.BaseURL, "/") + path
}
