// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// Parts are what an App is made of, for a package above it that has use cases
// of its own: the gateway.
type Parts struct {
	Store         store.Store
	Blobs         blob.Store
	Artifacts     *artifact.Collection
	Renditions    *rendition.Maker
	Contexts      *pipeline.Registry
	Services      *model.Registry
	Caller        *model.Caller
	CallerOptions model.CallerOptions // of Caller
	ServiceFiles  ServiceFiles
	Locale        phrase.Locale
	Log           *slog.Logger
	Now           func() time.Time

	// Fetch downloads the bytes behind a public address and stages them. The
	// error is of kind NotFound, Invalid or Denied if there are none.
	Fetch func(ctx context.Context, address string) (artifact.Staged, error)
}

// Parts returns the parts of a.
func (a *App) Parts() Parts {
	k := a.Conversations.core
	fetch := k.fetch
	if k.web == nil {
		fetch = func(context.Context, string) (artifact.Staged, error) {
			return artifact.Staged{}, artel.Errorf(artel.Denied, "app.fetch", "", "nothing is fetched here")
		}
	}
	return Parts{
		Store: k.store, Blobs: k.blobs, Artifacts: k.artifacts, Renditions: k.renditions, Contexts: k.contexts, Services: k.services,
		Caller: k.caller, CallerOptions: k.callerOptions, ServiceFiles: k.serviceFiles, Locale: k.locale, Log: k.logger, Now: k.now, Fetch: fetch,
	}
}

// open returns the content that a ref points to: an artifact or blob of the
// owner, or bytes that a request to the gateway stored.
func (k *core) open(ctx context.Context, r artel.Ref, at artel.MessageID) (artifact.Content, error) {
	c, err := k.artifacts.Open(ctx, artel.OwnerOf(ctx), r, at)
	if err != nil && r.IsBlob() && artel.KindOf(err) == artel.NotFound {
		if c, e := k.openGatewayFile(ctx, r.Digest); e == nil {
			return c, nil
		}
	}
	return c, err
}

func (k *core) openGatewayFile(ctx context.Context, d artel.Digest) (artifact.Content, error) {
	var row store.Rendition
	err := k.view(ctx, func(tx store.Tx) (err error) {
		row, err = gatewaylog.File(tx, d)
		return err
	})
	if err != nil {
		return artifact.Content{}, err
	}
	b, err := k.blobs.Open(ctx, d)
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Reader: b, Version: artel.Version{Digest: d, MediaInfo: row.MediaInfo, InBlob: true, CreatedAt: row.CreatedAt}, Visible: true}, nil
}
