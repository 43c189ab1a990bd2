// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// Options are what every wing works with.
type Options struct {
	// Client sends the requests; nil: [http.DefaultClient]. It should have no
	// total time limit, which would cut long answers.
	Client *http.Client
	// Blobs holds the media of the requests; nil: requests with media fail.
	Blobs blob.Store
	// Uploads knows the files that services hold; nil: media go inside requests.
	Uploads *Uploads
}

// HTTP returns the client that sends the requests.
func (o Options) HTTP() *http.Client {
	if o.Client == nil {
		return http.DefaultClient
	}
	return o.Client
}

// An Exchange is one call, as a wing makes it.
type Exchange struct {
	Failures Failures
	Files    FileAPI
	// Post writes the request and sends it; Uploads in it are the files that the
	// service holds.
	Post func(ctx context.Context, r *model.Request) (*http.Response, error)
	// Read reads the answer. Errors that are not [*artel.Error] are those of the
	// connection, or sentinels of the wing that Own names.
	Read func(body io.Reader) error
	Own  error // nil: none but [ErrStopped]
}

// Call makes a call of r and reads its answer. Leaving it ends the call, even in
// the middle of a body. The error is [ErrStopped] when the reader wants no more,
// the wing's own, or an [*artel.Error].
func (o Options) Call(ctx context.Context, r *model.Request, x Exchange) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := o.Uploads.Send(ctx, r, x.Files, func(r *model.Request) (*http.Response, error) { return x.Post(ctx, r) })
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = x.Read(resp.Body)
	if err == nil || errors.Is(err, ErrStopped) || x.Own != nil && errors.Is(err, x.Own) {
		return err
	}
	if _, ok := errors.AsType[*artel.Error](err); ok && ctx.Err() == nil {
		return err
	}
	return x.Failures.Transport(ctx, err)
}
