// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// Schedule of condensing edit journals; the first run waits until the server
// has started up.
const (
	firstCondensing = 15 * time.Minute
	condensingEvery = 6 * time.Hour
)

// condense periodically deletes edits older than keep.
func (s *server) condense(ctx context.Context, keep time.Duration) {
	next := time.NewTimer(firstCondensing)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		n, err := s.app.Condense(ctx, keep)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("old edits could not be removed", "err", err)
		}
		if n > 0 {
			s.log.Info("old edits were removed", "edits", n, "older_than", keep.String())
		}
		next.Reset(condensingEvery)
	}
}
