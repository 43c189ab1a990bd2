// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
func forward(ctx context.Context, d Dialect) error {
	answer := []byte("data: an answer, relayed\n\n")
	s := open(d, play(answer))
	defer s.close()
	payload := picture(3)
	m, err := s.media(ctx, "image/png", artel.KindImage, "a.png", payload)
	if err != nil {
		return err
	}
	body := provider.NewBody(s.blobs)
	body.WriteString(`{ "model":"kit-1", "unknown" : [1.0,"é"], "data":"`)
	body.WriteBlob(m.Ref.Digest, m.Size)
	body.WriteString(`"}`)
	want, err := io.ReadAll(body.Open(ctx))
	if err != nil {
		return err
	}
	f, ok := s.provider.(provider.Forwarder)
	if !ok {
		return errors.New("the provider is no provider.Forwarder")
	}
	header := http.Header{"X-Kit-Beta": {"one", "two"}, "Authorization": {"Bearer of-the-client"}, "X-Api-Key": {"of-the-client"}, "X-Goog-Api-Key": {"of-the-client"}}
	resp, err := f.Forward(ctx, s.service, body, true, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, answer) {
		return fmt.Errorf("the answer is %q, want it unchanged: %q", got, answer)
	}
	if sent := s.requests(); len(sent) != 1 || !bytes.Equal(sent[0], want) {
		return fmt.Errorf("%d requests came, and the body is not as it was written", len(sent))
	}
	h := s.heads[0].Header
	if n := s.heads[0].ContentLength; n != int64(len(want)) {
		return fmt.Errorf("the Content-Length is %d, want %d", n, len(want))
	}
	var all strings.Builder
	if err := h.Write(&all); err != nil {
		return err
	}
	switch {
	case len(h.Values("X-Kit-Beta")) != 2:
		return errors.New("the header of the client did not go with the request")
	case !strings.Contains(all.String(), Key) || strings.Contains(all.String(), "of-the-client"):
		return errors.New("the request does not carry the service's key in the place of the client's")
	case header.Get("Authorization") != "Bearer of-the-client":
		return errors.New("the caller's header was changed")
	}
	return nil
}

// forwardRefused: a refusal of the service is an error with its status and message,
// not an answer.
func forwardRefused(ctx context.Context, d Dialect) error {
	s := open(d, send(http.StatusTooManyRequests, "application/json", d.Failure(http.StatusTooManyRequests, "slow down"), "Retry-After", "7"))
	defer s.close()
	body := provider.NewBody(nil)
	body.WriteString(`{}`)
	f, ok := s.provider.(provider.Forwarder)
	if !ok {
		return errors.New("the provider is no provider.Forwarder")
	}
	resp, err := f.Forward(ctx, s.service, body, false, nil)
	if err == nil {
		_ = resp.Body.Close()
		return errors.New("a refusal came back as an answer")
	}
	if err := errors.Join(checkError(err), wantFailure(answer{err: err}, artel.Unavailable, true)); err != nil {
		return err
	}
	if c, _ := errors.AsType[*model.CallError](err); c.Status != http.StatusTooManyRequests || c.RetryAfter != 7*time.Second || c.Message != "slow down" {
		return fmt.Errorf("the error has status %d, wait %s and message %q", c.Status, c.RetryAfter, c.Message)
	}
	return nil
}
