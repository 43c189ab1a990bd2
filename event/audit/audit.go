// SPDX-License-Identifier: Apache-2.0

// Package audit records who did what to which thing, when and from where.
//
// Begin with [Record], which writes an act in the transaction of the act itself,
// so that neither is stored without the other. An act without a transaction, such
// as an export or a failed login, is recorded by [Log.Add]. The texts of an act
// are ids and names; they hold no content and no secret.
package audit

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An Action names what was done. The page has a phrase for each.
type Action string

// The actions.
const (
	PermissionDecided      Action = "permission_decided"
	ElicitationAnswered    Action = "elicitation_answered"
	ConversationDeleted    Action = "conversation_deleted"
	ConversationRestored   Action = "conversation_restored"
	ConversationExported   Action = "conversation_exported"
	ArtifactExported       Action = "artifact_exported"
	AgentDeleted           Action = "agent_deleted"
	BookDeleted            Action = "book_deleted"
	SkillImported          Action = "skill_imported"
	SkillOffered           Action = "skill_offered"
	SkillDeleted           Action = "skill_deleted"
	ServicesReloaded       Action = "services_reloaded"
	ServiceAdded           Action = "service_added"
	ServiceChanged         Action = "service_changed"
	ServiceDeleted         Action = "service_deleted"
	MCPServerAdded         Action = "mcp_server_added"
	MCPServerChanged       Action = "mcp_server_changed"
	MCPServerDeleted       Action = "mcp_server_deleted"
	MCPAccountConnected    Action = "mcp_account_connected"
	MCPAccountDisconnected Action = "mcp_account_disconnected"
	HTTPToolAdded          Action = "http_tool_added"
	HTTPToolChanged        Action = "http_tool_changed"
	HTTPToolDeleted        Action = "http_tool_deleted"
	MarksForgotten         Action = "marks_forgotten"
	GarbageCollected       Action = "garbage_collected"
	AuditExported          Action = "audit_exported"
	UserCreated            Action = "user_created"
	UserInvited            Action = "user_invited"
	UserChanged            Action = "user_changed"
	UserDeleted            Action = "user_deleted"
	PasswordSet            Action = "password_set"
	LoggedIn               Action = "logged_in"
	LoginFailed            Action = "login_failed"
	SessionEnded           Action = "session_ended"
	TokenCreated           Action = "token_created"
	TokenRevoked           Action = "token_revoked"
	KeyCreated             Action = "key_created"
	KeyChanged             Action = "key_changed"
	KeyRevoked             Action = "key_revoked"
	WebhookCreated         Action = "webhook_created"
	WebhookChanged         Action = "webhook_changed"
	WebhookRotated         Action = "webhook_rotated"  // its secret
	WebhookDisabled        Action = "webhook_disabled" // by the server
	WebhookDeleted         Action = "webhook_deleted"
	ScheduleCreated        Action = "schedule_created"
	ScheduleChanged        Action = "schedule_changed"
	ScheduleDeleted        Action = "schedule_deleted"
)

// Actions returns all actions.
func Actions() []Action {
	return []Action{
		PermissionDecided, ElicitationAnswered, ConversationDeleted, ConversationRestored, ConversationExported, ArtifactExported,
		AgentDeleted, BookDeleted, SkillImported, SkillOffered, SkillDeleted, ServicesReloaded, ServiceAdded, ServiceChanged, ServiceDeleted,
		MCPServerAdded, MCPServerChanged, MCPServerDeleted, MCPAccountConnected, MCPAccountDisconnected, HTTPToolAdded, HTTPToolChanged, HTTPToolDeleted, MarksForgotten, GarbageCollected, AuditExported,
		UserCreated, UserInvited, UserChanged, UserDeleted, PasswordSet, LoggedIn, LoginFailed, SessionEnded, TokenCreated, TokenRevoked,
		KeyCreated, KeyChanged, KeyRevoked, WebhookCreated, WebhookChanged, WebhookRotated, WebhookDisabled, WebhookDeleted, ScheduleCreated, ScheduleChanged, ScheduleDeleted,
	}
}

// An Act is what someone did.
type Act struct {
	Action Action
	Target string      // an id or a name; may be empty
	Detail string      // such as the decision; may be empty
	Actor  artel.Owner // empty: the owner of the context
}

// maxText is the longest target and detail in code points.
const maxText = 200

type addressKey struct{}

// WithAddress returns a context whose acts come from a client's address.
func WithAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// Address returns the address of [WithAddress], or "".
func Address(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// Record adds an act to the audit log in tx. The context has the actor and the
// address.
func Record(ctx context.Context, tx store.Tx, at time.Time, a Act) error {
	clean := func(s string) string { return artel.Shorten(strings.ToValidUTF8(s, "�"), maxText) }
	return tx.Audit.Add(store.AuditEntry{
		Time: at, Actor: cmp.Or(a.Actor, artel.OwnerOf(ctx)), Action: string(a.Action),
		Target: clean(a.Target), Detail: clean(a.Detail), Address: clean(Address(ctx)),
	})
}

// keeper is the owner of transactions in which only the deployment acts. Entries
// belong to no owner.
const keeper artel.Owner = "audit"

// A Log is the audit log of a deployment. It is safe for concurrent use.
type Log struct {
	store store.Store
	now   func() time.Time
}

// New returns the audit log of s.
func New(s store.Store, now func() time.Time) *Log { return &Log{s, now} }

// Add is [Record] in a transaction of its own.
func (l *Log) Add(ctx context.Context, a Act) error {
	return l.store.Update(ctx, cmp.Or(artel.OwnerOf(ctx), keeper), func(tx store.Tx) error { return Record(ctx, tx, l.now(), a) })
}

// List returns the entries of all owners, newest first. next is "" at the end.
func (l *Log) List(ctx context.Context, q store.AuditQuery) (items []store.AuditEntry, next string, err error) {
	return l.store.Audit().List(ctx, q)
}

// Retention is how long entries are kept.
const Retention = 400 * 24 * time.Hour

// Prune removes the entries that are older than [Retention] and returns their
// number.
func (l *Log) Prune(ctx context.Context) (int, error) {
	return l.store.Audit().Prune(ctx, l.now().Add(-Retention))
}
