// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/store"
)

// workspace returns a workspace for a user: each write is a version at once,
// belongs to the message at, and has an event. An active run merges it with its
// next edit.
func (k *core) workspace(ctx context.Context, c artel.ConversationID, at artel.MessageID) *artifact.Workspace {
	return k.artifacts.Workspace(artifact.WorkspaceConfig{
		Owner: artel.OwnerOf(ctx), Conversation: c, Message: at, Author: artifact.AuthorUser,
		OnEdit: func(tx store.Tx, p artel.Payload) error {
			return k.events.Append(tx, c, artel.Event{Agent: artifact.AuthorUser}, p)
		},
	})
}

// writeBase returns the message that ends the branch for a user who writes, and the
// message that the write belongs to: the newest of the branch or, during a run
// there, the message that the run answers. The run does not see its own messages
// as its branch, and must see concurrent writes.
func (k *core) writeBase(ctx context.Context, c artel.ConversationID, at artel.MessageID) (artel.MessageID, error) {
	at, err := k.branch(ctx, c, at)
	if err != nil || at == "" {
		return at, err
	}
	err = k.view(ctx, func(tx store.Tx) error {
		run, err := tx.Runs.Active(c)
		if errors.Is(err, artel.NotFound) {
			return nil
		}
		for id := at; err == nil && id != ""; {
			if id == run.Message {
				at = id
				return nil
			}
			var m artel.Message
			if m, err = tx.Messages.Get(id); m.Run != run.ID {
				return err
			}
			id = m.Parent
		}
		return err
	})
	return at, err
}

// env is the environment of every tool; the fields of a call are not set.
func (k *core) env() tool.Env {
	e := tool.Env{Artifacts: k.artifacts, Renditions: k.renditions, Locale: k.locale, Shown: k.shown}
	if k.web != nil {
		e.Fetch = k.fetch
	}
	return e
}

// envAt is the environment of a tool that a user calls on a branch.
func (k *core) envAt(ctx context.Context, c artel.ConversationID, at artel.MessageID, t Target) tool.Env {
	e := k.env()
	e.Owner, e.Conversation, e.At = artel.OwnerOf(ctx), c, at
	e.Workspace, e.Target = k.workspace(ctx, c, at), k.target(t)
	e.History = func(ctx context.Context) ([]artel.Message, error) { return k.branchOf(ctx, c, at) }
	e.Shown = tool.Shown{
		Bytes: cmp.Or(t.Shown.Bytes, e.Shown.Bytes), Characters: cmp.Or(t.Shown.Characters, e.Shown.Characters), Page: cmp.Or(t.Shown.Page, e.Shown.Page),
	}
	return e
}

// branchOf returns the messages of a branch that models may be sent, oldest first, without
// summaries.
func (k *core) branchOf(ctx context.Context, c artel.ConversationID, at artel.MessageID) (out []artel.Message, err error) {
	err = k.view(ctx, func(tx store.Tx) error {
		out, err = tx.Messages.Path(c, at, 0)
		return err
	})
	return slices.DeleteFunc(out, func(m artel.Message) bool { return m.Muted || m.Summary }), err
}

// Edits are changes of artifacts by users; each is a version at once.
type Edits struct{ core *core }

// An ArtifactAt names an artifact on a branch at a version.
type ArtifactAt struct {
	Conversation artel.ConversationID
	ID           artel.ArtifactID
	At           artel.MessageID // "": the active branch
	IfVersion    int             // 0: any; a version other than the newest is of kind Conflict, code CodeStale
}

// CodeStale is the error code of a write to a version that is not the newest.
const CodeStale = artifact.CodeStale

// write makes one change to an artifact.
func (es *Edits) write(ctx context.Context, p ArtifactAt, do func(*artifact.Workspace) (artel.Artifact, error)) (artel.Artifact, error) {
	at, err := es.core.writeBase(ctx, p.Conversation, p.At)
	if err != nil {
		return artel.Artifact{}, err
	}
	a, err := do(es.core.workspace(ctx, p.Conversation, at))
	if err == nil {
		es.core.log.Notifier().Notify(p.Conversation)
	}
	return a, err
}

// Save makes the next version from a user's changes to version p.IfVersion; see
// [artifact.Editor.Save] for the case that this is not the newest.
func (es *Edits) Save(ctx context.Context, p ArtifactAt, d artifact.Draft) (artel.Artifact, error) {
	if d.Title != nil {
		title := scrub.Line(*d.Title)
		d.Title = &title
	}
	return es.write(ctx, p, func(w *artifact.Workspace) (artel.Artifact, error) { return w.Edit.Save(ctx, p.ID, p.IfVersion, d) })
}

// Stage stores the bytes of a whole new content, as a stream. Properties that
// the upload does not state are those of the artifact.
func (es *Edits) Stage(ctx context.Context, p ArtifactAt, u Upload) (artifact.Staged, error) {
	at, err := es.core.branch(ctx, p.Conversation, p.At)
	if err != nil {
		return artifact.Staged{}, err
	}
	a, err := es.core.artifacts.Get(ctx, artel.OwnerOf(ctx), p.Conversation, p.ID, at)
	if err != nil {
		return artifact.Staged{}, err
	}
	return es.core.artifacts.Uploads.Stage(ctx, u.Body, media.Hint{
		DeclaredType: cmp.Or(u.DeclaredType, a.MediaType), Filename: cmp.Or(u.Filename, a.Filename, string(a.ID)),
	})
}

// Rename gives an artifact another title. An unchanged title makes no version.
func (es *Edits) Rename(ctx context.Context, p ArtifactAt, title string) (artel.Artifact, error) {
	return es.write(ctx, p, func(w *artifact.Workspace) (artel.Artifact, error) {
		return w.Edit.Rename(ctx, p.ID, scrub.Line(title), p.IfVersion)
	})
}

// Delete removes an artifact from its branch; its versions stay. Its uploads at
// model services are deleted, and made again if another branch still sends them.
func (es *Edits) Delete(ctx context.Context, p ArtifactAt) (artel.Artifact, error) {
	a, err := es.write(ctx, p, func(w *artifact.Workspace) (artel.Artifact, error) { return w.Edit.Delete(ctx, p.ID, p.IfVersion) })
	if err != nil {
		return a, err
	}
	versions, err := es.core.artifacts.Versions.History(ctx, artel.OwnerOf(ctx), p.Conversation, p.ID, artifact.Visible)
	if err != nil { // it is deleted; the uploads expire by themselves
		es.core.logger.WarnContext(ctx, "what services hold of a deleted artifact is not known", "artifact", p.ID, "err", err)
		return a, nil
	}
	digests := make([]artel.Digest, len(versions))
	for i, v := range versions {
		digests[i] = v.Digest
	}
	es.core.serviceFiles.Drop(digests...)
	return a, nil
}

// Restore makes a version equal to an older one; 0 is the last one before a
// deletion.
func (es *Edits) Restore(ctx context.Context, p ArtifactAt, version int) (artel.Artifact, error) {
	return es.write(ctx, p, func(w *artifact.Workspace) (artel.Artifact, error) {
		return w.Edit.Restore(ctx, p.ID, version, p.IfVersion)
	})
}

// Deleted returns the artifacts of a branch that are deleted there, by id.
func (as *Artifacts) Deleted(ctx context.Context, c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return nil, err
	}
	return as.core.artifacts.Deleted(ctx, artel.OwnerOf(ctx), c, at)
}

// History returns the versions of an artifact, also of a deleted one, and with
// a wider scope the edits between them.
func (vs *Versions) History(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, scope artifact.Scope) ([]artifact.Entry, error) {
	return vs.core.artifacts.Versions.History(ctx, artel.OwnerOf(ctx), c, id, scope)
}

// State returns one version, with a wider scope than Visible also an unfolded
// one of the journal, and its text if it is text.
func (vs *Versions) State(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int, scope artifact.Scope) (artifact.Entry, *string, error) {
	return vs.core.artifacts.Versions.State(ctx, artel.OwnerOf(ctx), c, id, number, scope)
}

// Diff compares two versions of a text; see [artifact.DiffQuery].
func (vs *Versions) Diff(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, q artifact.DiffQuery) (artifact.Diff, error) {
	at, err := vs.core.branch(ctx, c, q.At)
	if err != nil {
		return artifact.Diff{}, err
	}
	q.At = at
	return vs.core.artifacts.Versions.Diff(ctx, artel.OwnerOf(ctx), c, id, q)
}
