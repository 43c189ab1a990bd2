// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/artelhq/artel/app"
)

func (f *server) storage() {
	register(f, f.op(http.MethodPost, "/gc", "collect-garbage", "Remove the bytes that nothing refers to", http.StatusOK),
		func(ctx context.Context, in *struct {
			DryRun bool `query:"dry_run" doc:"remove nothing, and say what would be removed"`
			Grace  int  `query:"grace" minimum:"600" maximum:"315360000" default:"86400" doc:"seconds; what was put within them stays"`
		},
		) (*body[app.Collected], error) {
			return answer(f.app.Storage.Collect(ctx, app.CollectOptions{DryRun: in.DryRun, Grace: time.Duration(in.Grace) * time.Second}))
		})
	register(f, f.op(http.MethodGet, "/gc", "read-collection", "Say how far the collection of garbage is, or how the last one ended", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[app.CollectionState], error) {
			return answer(f.app.Storage.Collection(ctx))
		})
}
