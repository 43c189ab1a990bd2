// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"

	"github.com/artelhq/artel/store"
)

// Watch keeps what this process remembers of users, credentials, services and tools as other
// processes with the same database change them, until ctx ends.
func (a *App) Watch(ctx context.Context) {
	var loading sync.WaitGroup // asking a service or tool server takes seconds, for which a revocation must not wait
	defer loading.Wait()
	err := a.Answers.core.store.Watch(ctx, func(c store.Change) {
		a.Access.Changed(ctx, c)
		if c.Of == store.ChangedEntry || c.Of == store.Anything {
			loading.Go(func() { a.load(ctx, c.ID) })
		}
	})
	if err != nil && ctx.Err() == nil {
		a.Answers.core.logger.ErrorContext(ctx, "changes of other servers are not heard any more", "err", err)
	}
}

// load reads services and tools again of which an entry has changed; "": any.
func (a *App) load(ctx context.Context, id string) {
	for what, load := range map[string]func() error{
		"services": func() error { return a.Services.Reload(ctx, id) },
		"tools":    func() error { return a.Toolbox.Load(ctx) },
	} {
		if err := load(); err != nil && ctx.Err() == nil {
			a.Answers.core.logger.WarnContext(ctx, "what another server has changed could not be read; it is read with the next change", "what", what, "err", err)
		}
	}
}
