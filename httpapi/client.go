// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/sse"
)

// A Client calls a server. Its zero value is not usable; see [NewClient]. It is
// safe for concurrent use.
//
// Errors are [*Problem] if the server answered with one, and of kind
// [artel.Unavailable] with the code [CodeUnreachable] if no server answered.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// CodeUnreachable is the error code if no server answers, or another program
// than Artel does.
const CodeUnreachable = "unreachable"

// unreachable returns an error with [CodeUnreachable].
func (c *Client) unreachable(format string, args ...any) error {
	err := artel.Errorf(artel.Unavailable, "httpapi.Client", c.base, format, args...)
	err.Code = CodeUnreachable
	return err
}

// NewClient returns a client of the server at base, e.g.
// "http://127.0.0.1:7420". A nil h means http.DefaultClient.
func NewClient(base string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{base: strings.TrimRight(base, "/"), http: h}
}

// WithToken returns a client that sends a token with every request.
func (c *Client) WithToken(token string) *Client {
	with := *c
	with.token = token
	return &with
}

// CreateConversation creates a conversation.
func (c *Client) CreateConversation(ctx context.Context, n NewConversation) (out artel.Conversation, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations", n, &out)
}

// Conversations lists a page of conversations, newest first.
func (c *Client) Conversations(ctx context.Context, cursor string, limit int) (out List[artel.Conversation], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations?"+page(cursor, limit), nil, &out)
}

// Conversation reads a conversation.
func (c *Client) Conversation(ctx context.Context, id artel.ConversationID) (out artel.Conversation, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id), nil, &out)
}

// DeleteConversation deletes a conversation with everything in it.
func (c *Client) DeleteConversation(ctx context.Context, id artel.ConversationID) error {
	return c.json(ctx, http.MethodDelete, "/conversations/"+string(id), nil, nil)
}

// Messages lists a page of a conversation's messages, oldest first.
func (c *Client) Messages(ctx context.Context, id artel.ConversationID, cursor string, limit int) (out List[artel.Message], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/messages?"+page(cursor, limit), nil, &out)
}

// Send sends a message and starts a run.
func (c *Client) Send(ctx context.Context, id artel.ConversationID, m NewMessage) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/messages", m, &out)
}

// Run reads a run.
func (c *Client) Run(ctx context.Context, id artel.RunID) (out artel.Run, err error) {
	return out, c.json(ctx, http.MethodGet, "/runs/"+string(id), nil, &out)
}

// Cancel stops a run.
func (c *Client) Cancel(ctx context.Context, id artel.RunID) (out artel.Run, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/cancel", nil, &out)
}

// Artifacts lists the artifacts of the active branch.
func (c *Client) Artifacts(ctx context.Context, id artel.ConversationID) (out List[artel.Artifact], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/artifacts", nil, &out)
}

// Artifact reads the current state of an artifact, or the version of ref if it
// has one.
func (c *Client) Artifact(ctx context.Context, ref artel.Ref) (out ArtifactView, err error) {
	path := pathOf(ref)
	if ref.Version == 0 {
		return out, c.json(ctx, http.MethodGet, path, nil, &out)
	}
	var v VersionView
	if err := c.json(ctx, http.MethodGet, path+"/versions/"+strconv.Itoa(ref.Version), nil, &v); err != nil {
		return out, err
	}
	return ArtifactView{v.Artifact(ref.Conversation, ref.Artifact, v.CreatedAt), v.Content}, nil
}

// Services lists the services.
func (c *Client) Services(ctx context.Context) (out List[ServiceView], err error) {
	return out, c.json(ctx, http.MethodGet, "/services", nil, &out)
}

// ToolServers returns the health of the tool servers.
func (c *Client) ToolServers(ctx context.Context) (out List[tool.ServerHealth], err error) {
	return out, c.json(ctx, http.MethodGet, "/tools/servers", nil, &out)
}

// Probe tries out what a service accepts.
func (c *Client) Probe(ctx context.Context, id artel.ServiceID) (out ProbeView, err error) {
	return out, c.json(ctx, http.MethodPost, "/services/"+url.PathEscape(string(id))+"/probe", nil, &out)
}

// Forget drops a mark of a service, or with the id "" all of them.
func (c *Client) Forget(ctx context.Context, id artel.ServiceID, mark string) error {
	path := "/services/" + url.PathEscape(string(id)) + "/marks"
	if mark != "" {
		path += "/" + url.PathEscape(mark)
	}
	return c.json(ctx, http.MethodDelete, path, nil, nil)
}

// Upload uploads one file. size is -1 if unknown.
func (c *Client) Upload(ctx context.Context, id artel.ConversationID, name, declared string, r io.Reader, size int64) (out artel.Artifact, err error) {
	req, err := c.request(ctx, http.MethodPost, "/conversations/"+string(id)+"/artifacts", r)
	if err != nil {
		return out, err
	}
	req.ContentLength = size
	req.Header.Set("X-Filename", url.PathEscape(name))
	if declared != "" {
		req.Header.Set("Content-Type", declared)
	}
	return out, c.do(req, &out)
}

// Open returns the bytes that a ref points to; the caller closes them. At their
// end they are compared with the digest that the server named; a difference is
// an error.
func (c *Client) Open(ctx context.Context, ref artel.Ref) (io.ReadCloser, error) {
	return c.openFile(ctx, "/files/"+url.PathEscape(ref.String()))
}

// Thumbnail returns a small picture of what a ref points to, at least width
// pixels wide if the original is; see Open.
func (c *Client) Thumbnail(ctx context.Context, ref artel.Ref, width int) (io.ReadCloser, error) {
	return c.openFile(ctx, "/files/"+url.PathEscape(ref.String())+"?width="+strconv.Itoa(width))
}

func (c *Client) openFile(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	want, err := artel.ParseDigest(strings.Trim(resp.Header.Get("ETag"), `"`))
	if err != nil {
		_ = resp.Body.Close()
		return nil, c.unreachable("it sent a file without its digest")
	}
	return &verified{ReadCloser: resp.Body, want: want, sum: sha256.New()}, nil
}

// A verified reader compares what it has read with a digest.
type verified struct {
	io.ReadCloser
	want artel.Digest
	sum  hash.Hash
}

// Read implements [io.Reader].
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.sum.Write(p[:n])
	if err != io.EOF {
		return n, err
	}
	if got := artel.NewDigest([32]byte(v.sum.Sum(nil))); got != v.want {
		return n, artel.Errorf(artel.Unavailable, "httpapi.Client.Open", string(v.want), "other bytes came, with the digest %s; try again", got)
	}
	return n, err
}

// TakeResult sends the result of a tool, {"tool","content"} with any content,
// and returns it with refs instead of media.
func (c *Client) TakeResult(ctx context.Context, id artel.ConversationID, body io.Reader) (out app.ScrubbedResult, err error) {
	req, err := c.request(ctx, http.MethodPost, "/conversations/"+string(id)+"/tool_results", body)
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/json")
	return out, c.do(req, &out)
}

// Sign returns a complete address that opens a file without further rights for
// about d (0: an hour). Its ref is pinned to the current version.
func (c *Client) Sign(ctx context.Context, ref artel.Ref, d time.Duration) (out SignedFile, err error) {
	err = c.json(ctx, http.MethodPost, "/files/"+url.PathEscape(ref.String())+"/sign", Signing{int(d.Seconds())}, &out)
	if err == nil && strings.HasPrefix(out.URL, "/") {
		out.URL = c.base + out.URL
	}
	return out, err
}

// CollectGarbage removes unreferenced bytes older than the grace time; with dry
// it only reports them.
func (c *Client) CollectGarbage(ctx context.Context, dry bool, grace time.Duration) (out app.Collected, err error) {
	return out, c.json(ctx, http.MethodPost, fmt.Sprintf("/gc?dry_run=%t&grace=%d", dry, int(grace.Seconds())), nil, &out)
}

// Collection returns the state of the running garbage collection, or of the
// last one.
func (c *Client) Collection(ctx context.Context) (out app.CollectionState, err error) {
	return out, c.json(ctx, http.MethodGet, "/gc", nil, &out)
}

// Log reads a page of a conversation's log without waiting for new events.
func (c *Client) Log(ctx context.Context, id artel.ConversationID, after artel.Seq) (out List[artel.Event], err error) {
	return out, c.json(ctx, http.MethodGet, fmt.Sprintf("/conversations/%s/events?format=json&after=%d", id, after), nil, &out)
}

// Events follows a conversation's log from after a number until ctx ends or the
// consumer breaks the loop. It reconnects when the connection is lost and
// continues after the last event; if no server answers for giveUp, it yields an
// error and ends.
func (c *Client) Events(ctx context.Context, id artel.ConversationID, after artel.Seq, giveUp time.Duration) iter.Seq2[artel.Event, error] {
	return func(yield func(artel.Event, error) bool) {
		lost := time.Time{}
		for {
			received, err := c.stream(ctx, id, &after, yield)
			switch {
			case errors.Is(err, errBroken):
				return
			case ctx.Err() != nil:
				return
			case received:
				lost = time.Time{}
			}
			if p, ok := errors.AsType[*Problem](err); ok && p.Status < http.StatusInternalServerError {
				yield(artel.Event{}, err)
				return
			}
			if lost.IsZero() {
				lost = time.Now()
			}
			if time.Since(lost) > giveUp {
				if err == nil {
					err = c.unreachable("the event stream keeps ending")
				}
				yield(artel.Event{}, err)
				return
			}
			select {
			case <-time.After(250 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}
}

// maxEvent is the size of the largest event, in bytes: a tool call with a long
// text, escaped.
const maxEvent = 256 << 20

// errBroken means that the consumer broke the loop.
var errBroken = errors.New("the consumer stopped")

// stream yields the events of one connection and records the last number.
func (c *Client) stream(ctx context.Context, id artel.ConversationID, after *artel.Seq, yield func(artel.Event, error) bool) (received bool, err error) {
	req, err := c.request(ctx, http.MethodGet, fmt.Sprintf("/conversations/%s/events?after=%d", id, *after), nil)
	if err != nil {
		return false, err
	}
	resp, err := c.send(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	for frame, err := range sse.Events(resp.Body, maxEvent) {
		if err != nil {
			return received, err
		}
		received = true
		var e artel.Event
		if err := json.Unmarshal([]byte(frame.Data), &e); err != nil {
			return received, c.unreachable("an event is not JSON: %w", err)
		}
		if e.Seq > 0 {
			*after = e.Seq
		}
		if !yield(e, nil) {
			return received, errBroken
		}
	}
	return received, nil
}

func page(cursor string, limit int) string {
	q := url.Values{}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q.Encode()
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+Base+path, body)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "httpapi.Client", c.base, "not an address of a server: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

func (c *Client) json(ctx context.Context, method, path string, in, out any) error {
	req, err := c.jsonRequest(ctx, method, path, in)
	if err != nil {
		return err
	}
	return c.do(req, out)
}

// jsonRequest makes a request with in as its body; nil: without a body.
func (c *Client) jsonRequest(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := c.request(ctx, method, path, body)
	if err == nil && in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// do sends a request and decodes the answer into out; nil: there is none.
func (c *Client) do(req *http.Request, out any) error {
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return c.unreachable("the answer is not JSON: %w", err)
	}
	return nil
}

// send returns a successful response, whose body the caller closes, or an
// error.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return nil, c.unreachable("the certificate of %s is not trusted: %w; install the CA that signed it on this machine, or on Linux set SSL_CERT_FILE to its PEM file", c.base, bad.Err)
		}
		if e, ok := errors.AsType[*artel.Error](err); ok && artel.KindOf(e) == artel.Conflict {
			return nil, e // of a transport that asks no server
		}
		return nil, c.unreachable("no server answers: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var p Problem
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // a 412 holds texts
	if json.Unmarshal(b, &p) != nil || p.Status == 0 {
		return nil, c.unreachable("it answered %s, not as an Artel server does", resp.Status)
	}
	return nil, &p
}
