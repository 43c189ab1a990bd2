// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/artelhq/artel/store"
)

type brokenAudit struct {
	store.AuditLog
	list  func(context.Context, store.AuditQuery) ([]store.AuditEntry, string, error)
	prune func(context.Context, time.Time) (int, error)
}

func (b brokenAudit) List(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, string, error) {
	return or(b.list, b.AuditLog.List)(ctx, q)
}

func (b brokenAudit) Prune(ctx context.Context, before time.Time) (int, error) {
	return or(b.prune, b.AuditLog.Prune)(ctx, before)
}

// auditTwins are those of the clauses about the audit log.
func auditTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"audit/list": func(t *twin) { // the end of the time counts
			real := t.Store.Audit()
			t.audit = func() store.AuditLog {
				return brokenAudit{AuditLog: real, list: func(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, string, error) {
					if !q.Until.IsZero() {
						q.Until = q.Until.Add(time.Second)
					}
					return real.List(ctx, q)
				}}
			}
		},
		"audit/prune": func(t *twin) { // one too many is removed
			real := t.Store.Audit()
			t.audit = func() store.AuditLog {
				return brokenAudit{AuditLog: real, prune: func(ctx context.Context, before time.Time) (int, error) {
					return real.Prune(ctx, before.Add(time.Second))
				}}
			}
		},
	}
}
