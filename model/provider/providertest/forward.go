// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// forward: the request of a client is sent unchanged, with the service's key in
// place of the client's, and the answer is returned unchanged.
func forward(c *check) {
	answer := []byte("data: an answer, relayed\n\n")
	s := c.open(play(answer))
	payload := picture(3)
	m := s.media("image/png", artel.KindImage, "a.png", payload)
	body := provider.NewBody(s.blobs)
	body.WriteString(`{ "model":"kit-1", "unknown" : [1.0,"é"], "data":"`)
	body.WriteBlob(m.Ref.Digest, m.Size)
	body.WriteString(`"}`)
	want, err := io.ReadAll(body.Open(c.Context()))
	c.Must("read the body", err)
	f, ok := s.provider.(provider.Forwarder)
	c.Want(ok, "the provider is no provider.Forwarder")
	header := http.Header{"X-Kit-Beta": {"one", "two"}, "Authorization": {"Bearer of-the-client"}, "X-Api-Key": {"of-the-client"}, "X-Goog-Api-Key": {"of-the-client"}}
	resp, err := f.Forward(c.Context(), &s.service, body, true, header)
	c.Must("Forward", err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	c.Must("read the answer", err)
	c.Want(bytes.Equal(got, answer), "the answer is %q, want it unchanged: %q", got, answer)
	if sent := s.requests(); len(sent) != 1 || !bytes.Equal(sent[0], want) {
		c.Stopf("%d requests came, and the body is not as it was written", len(sent))
	}
	h := s.heads[0].Header
	if n := s.heads[0].ContentLength; n != int64(len(want)) {
		c.Stopf("the Content-Length is %d, want %d", n, len(want))
	}
	var all strings.Builder
	c.Must("write the header", h.Write(&all))
	switch {
	case len(h.Values("X-Kit-Beta")) != 2:
		c.Stopf("the header of the client did not go with the request")
	case !strings.Contains(all.String(), Key) || strings.Contains(all.String(), "of-the-client"):
		c.Stopf("the request does not carry the service's key in the place of the client's")
	case header.Get("Authorization") != "Bearer of-the-client":
		c.Stopf("the caller's header was changed")
	}
}

// forwardRefused: a refusal of the service is an error with its status and message,
// not an answer.
func forwardRefused(c *check) {
	s := c.open(send(http.StatusTooManyRequests, "application/json", c.Failure(http.StatusTooManyRequests, "slow down"), "Retry-After", "7"))
	body := provider.NewBody(nil)
	body.WriteString(`{}`)
	f, ok := s.provider.(provider.Forwarder)
	c.Want(ok, "the provider is no provider.Forwarder")
	resp, err := f.Forward(c.Context(), &s.service, body, false, nil)
	if err == nil {
		_ = resp.Body.Close()
		c.Stopf("a refusal came back as an answer")
	}
	c.Must("the error", checkError(err))
	s.failed(answer{err: err}, artel.Unavailable, true)
	e, _ := errors.AsType[*model.CallError](err)
	c.Want(e.Status == http.StatusTooManyRequests && e.RetryAfter == 7*time.Second && e.Message == "slow down",
		"the error has status %d, wait %s and message %q", e.Status, e.RetryAfter, e.Message)
}
