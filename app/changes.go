// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel/store"
)

// Watch keeps what this process remembers of users, credentials, services and tools as other
// processes with the same database change them, until ctx ends.
func (a *App) Watch(ctx context.Context) {
	err := a.Answers.core.store.Watch(ctx, func(c store.Change) {
		a.Access.Changed(ctx, c)
		if c.Of != store.ChangedEntry && c.Of != store.Anything {
			return
		}
		for what, load := range map[string]func() error{
			"services": func() error { return a.Services.Reload(ctx, c.ID) },
			"tools":    func() error { return a.Toolbox.Load(ctx) },
		} {
			if err := load(); err != nil && ctx.Err() == nil {
				a.Answers.core.logger.WarnContext(ctx, "what another server has changed could not be read; it is read with the next change", "what", what, "err", err)
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		a.Answers.core.logger.ErrorContext(ctx, "changes of other servers are not heard any more", "err", err)
	}
}
