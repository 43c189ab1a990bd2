// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
)

// fetchTime is how long the bytes of an address may take to come.
const fetchTime = 2 * time.Minute

// fetch takes in the bytes behind an address that a model named, as an upload
// is taken in. Failures are for the model to mend: another address, or none.
func (k *core) fetch(ctx context.Context, address string) (artifact.Staged, error) {
	const op = "app.fetch"
	subject := artel.Shorten(address, 200)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return artifact.Staged{}, artel.Errorf(artel.Invalid, op, subject, "not an address: want https://host/path")
	}
	if u.User != nil {
		return artifact.Staged{}, artel.Errorf(artel.Denied, op, u.Host, "addresses with a name and password in them are not fetched")
	}
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return artifact.Staged{}, artel.Errorf(artel.Invalid, op, subject, "not an address: %w", err)
	}
	resp, err := k.web.Do(req)
	if errors.Is(err, artel.Denied) {
		return artifact.Staged{}, artel.Errorf(artel.Denied, op, subject, "%w", err)
	}
	if err != nil {
		return artifact.Staged{}, artel.Errorf(artel.NotFound, op, subject, "no answer came: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return artifact.Staged{}, artel.Errorf(artel.NotFound, op, subject, "the answer was %s", artel.Shorten(resp.Status, 100))
	}
	_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	name := path.Base(cmp.Or(params["filename"], resp.Request.URL.Path, "/"))
	if name == "/" || name == "." {
		name = u.Hostname()
	}
	return k.artifacts.Uploads.Stage(ctx, fetched{resp.Body, subject}, media.Hint{DeclaredType: resp.Header.Get("Content-Type"), Filename: name})
}

// fetched tells an answer that breaks off from a store that fails.
type fetched struct {
	io.Reader
	subject string
}

func (f fetched) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = artel.Errorf(artel.NotFound, "app.fetch", f.subject, "the answer broke off: %w", err)
	}
	return n, err
}
