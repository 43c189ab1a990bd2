// SPDX-License-Identifier: Apache-2.0

package mcpwrapped

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/gateway/mcpproxy"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// kept keeps what results leave behind in a conversation of who asks. The context of each
// request says who that is.
type kept struct {
	app   *app.App
	title string
}

// Keep implements [mcpproxy.Store].
func (k *kept) Keep(ctx context.Context, r io.Reader, f mcpproxy.File) error {
	if there, err := k.Open(ctx, f.Digest); err == nil {
		return there.Close()
	}
	if err := access.Require(ctx, store.ScopeWrite); err != nil {
		return artel.Errorf(artel.Denied, "mcpwrapped", k.title, "what is too long for the context is kept as an artifact, which is not allowed: %w", err)
	}
	c, err := k.app.Conversations.Named(ctx, k.title, true)
	if err != nil {
		return err
	}
	name := f.Name
	if path.Ext(name) == "" {
		name = "result_" + strings.TrimPrefix(string(f.Digest), "sha256-")[:8] + media.Extension(f.MediaType)
	}
	staged, err := k.app.Artifacts.Stage(ctx, c.ID, app.Upload{Body: r, Filename: name, DeclaredType: f.MediaType})
	if err != nil {
		return err
	}
	made, err := k.app.Artifacts.Add(ctx, c.ID, []artifact.Staged{staged})
	if err == nil && made[0].Digest != f.Digest {
		err = artel.Errorf(artel.Internal, "mcpwrapped", string(f.Digest), "%s was kept instead", made[0].Digest)
	}
	return err
}

// Open implements [mcpproxy.Store].
func (k *kept) Open(ctx context.Context, d artel.Digest) (io.ReadCloser, error) {
	f, err := k.app.Files.Open(ctx, artel.BlobRef(d).String())
	if err != nil {
		return nil, err
	}
	return f.Content, nil
}
