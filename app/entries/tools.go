// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"context"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// ToolEntries are the entries of MCP servers or of HTTP tools. They are safe for
// concurrent use, and only for administrators.
type ToolEntries struct {
	box  *Toolbox
	kind toolKind
}

// A ToolEntry is an MCP server or an HTTP tool as a client reads it.
type ToolEntry struct {
	ID       string
	Fields   map[string]any // of the entry; secrets are {"set": true, "ends_with"?: …}
	Disabled bool
	ReadOnly bool             // it is of a file
	Origin   string           // the file, or [Origin]
	State    tool.ServerState // of an MCP server; "": it is off
	Tools    []model.ToolSpec // that agents can have now
	Problem  model.Problem    // why it is off; may be empty
	Detail   string           // of Problem, or why the server is not connected
}

// List returns the entries of the configuration, then the stored ones in order of
// creation.
func (s *ToolEntries) List(ctx context.Context) ([]ToolEntry, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	all, err := s.box.list(ctx, s.kind.kind)
	if err != nil {
		return nil, err
	}
	out := []ToolEntry{}
	for _, f := range s.box.c.Files {
		if f.Kind == s.kind.kind {
			out = append(out, s.ofFile(artel.OwnerOf(ctx), f))
		}
	}
	for _, e := range all {
		v, err := s.view(artel.OwnerOf(ctx), e)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Get returns one; kind NotFound if there is none of the name.
func (s *ToolEntries) Get(ctx context.Context, id string) (ToolEntry, error) {
	if err := admin(ctx); err != nil {
		return ToolEntry{}, err
	}
	for _, f := range s.box.c.Files {
		if f.Kind == s.kind.kind && f.Name == id {
			return s.ofFile(artel.OwnerOf(ctx), f), nil
		}
	}
	e, err := s.get(ctx, id)
	if err != nil {
		return ToolEntry{}, err
	}
	return s.view(artel.OwnerOf(ctx), e)
}

// get reads a stored entry.
func (s *ToolEntries) get(ctx context.Context, id string) (store.Entry, error) {
	const op = "entries.ToolEntries"
	for _, f := range s.box.c.Files {
		if f.Kind == s.kind.kind && f.Name == id {
			return store.Entry{}, &artel.Error{
				Op: op, Subject: artel.Shorten(id, 60), Kind: artel.Denied, Code: CodeToolReadOnly,
				Err: fmt.Errorf("it can only be changed where it comes from: %s", f.Origin),
			}
		}
	}
	e, err := s.box.entry(ctx, s.kind.kind, id)
	if artel.KindOf(err) == artel.NotFound {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(id, 60), "no %s of this name was added", s.kind.noun)
	}
	return e, err
}

func (s *ToolEntries) view(owner artel.Owner, e store.Entry) (ToolEntry, error) {
	fields, err := fieldsOf(e)
	v := ToolEntry{ID: e.ID, Fields: fields, Disabled: e.Disabled, Origin: Origin}
	if p := s.box.state.Load().problems[entryKey{e.Kind, e.ID}]; p.problem != "" {
		v.Problem, v.Detail = p.problem, p.detail
		return v, err
	}
	s.fill(&v, s.box, owner)
	return v, err
}

func (s *ToolEntries) ofFile(owner artel.Owner, f FileTool) ToolEntry {
	v := ToolEntry{ID: f.Name, Fields: f.Fields, ReadOnly: true, Origin: f.Origin}
	if s.kind.kind == store.HTTPToolEntry {
		v.Tools = s.box.c.Fixed.BuiltIn.Specs(f.Name)
	} else if s.box.c.Fixed.Servers != nil {
		s.fill(&v, s.box.c.Fixed.Servers, owner)
	}
	return v
}

// fill adds what servers know of an entry.
func (s *ToolEntries) fill(v *ToolEntry, servers tool.Servers, owner artel.Owner) {
	for _, t := range servers.Tools(owner) {
		if t.Name == v.ID || s.kind.kind == store.MCPServerEntry && strings.HasPrefix(t.Name, v.ID+"_") {
			v.Tools = append(v.Tools, model.ToolSpec{Name: t.Name, Description: t.Doc, Schema: t.Schema})
		}
	}
	if s.kind.kind != store.MCPServerEntry {
		return
	}
	for _, h := range servers.Health() {
		if h.Name == v.ID {
			v.State, v.Detail = h.State, h.Error
		}
	}
}

// maxTools is how many entries of a kind can be stored.
const maxTools = 200

// Create stores an entry with the fields of the configuration file, and disabled. Agents
// can use its tools when it returns, unless the server does not answer. It is of kind
// Invalid for the fields, with [model.Flaws] where single ones are wrong, and Conflict if
// the name is taken.
func (s *ToolEntries) Create(ctx context.Context, fields map[string]any) (ToolEntry, error) {
	if err := admin(ctx); err != nil {
		return ToolEntry{}, err
	}
	d, p, err := s.kind.read(fields, secrets{})
	if err == nil {
		err = s.box.checkAgents(p)
	}
	if err != nil {
		return ToolEntry{}, err
	}
	s.box.changing.Lock()
	defer s.box.changing.Unlock()
	now := s.box.now()
	e := store.Entry{Kind: s.kind.kind, ID: p.name, Disabled: d.disabled, CreatedAt: now, UpdatedAt: now}
	if err := s.free(ctx, p.name); err != nil {
		return ToolEntry{}, err
	}
	if err := s.box.sealed(ctx, &e, d); err != nil {
		return ToolEntry{}, err
	}
	err = s.box.change(ctx, audit.Act{Action: s.kind.acts.added, Target: e.ID, Detail: p.url}, func(tx store.PeopleTx) error { return tx.Entries.Create(e) })
	if err != nil {
		return ToolEntry{}, err
	}
	return s.applied(ctx, e.ID)
}

// free refuses a name that is taken, and an entry too many.
func (s *ToolEntries) free(ctx context.Context, name string) error {
	var stored []entryKey
	for _, kind := range []store.EntryKind{store.MCPServerEntry, store.HTTPToolEntry} {
		all, err := s.box.list(ctx, kind)
		if err != nil {
			return err
		}
		if kind == s.kind.kind && len(all) >= maxTools {
			return artel.Errorf(artel.TooLarge, "entries.ToolEntries.Create", artel.Shorten(name, 60), "there are %d entries of %ss; at most %d are stored", len(all), s.kind.noun, maxTools)
		}
		for _, e := range all {
			stored = append(stored, entryKey{kind, e.ID})
		}
	}
	return s.box.collides(s.kind.kind, name, stored)
}

// Update replaces the fields of a stored entry. Its name stays, and values of headers
// stay if they are sent as they were read; they have to be sent again if the address is
// of another server. Calls that run end as they would have.
func (s *ToolEntries) Update(ctx context.Context, id string, fields map[string]any) (ToolEntry, error) {
	if err := admin(ctx); err != nil {
		return ToolEntry{}, err
	}
	s.box.changing.Lock()
	defer s.box.changing.Unlock()
	e, err := s.get(ctx, id)
	if err != nil {
		return ToolEntry{}, err
	}
	d, p, err := s.revise(e, fields)
	if err == nil {
		err = s.box.checkAgents(p)
	}
	if err != nil {
		return ToolEntry{}, err
	}
	e.Disabled, e.UpdatedAt = d.disabled, s.box.now()
	if err := s.box.sealed(ctx, &e, d); err != nil {
		return ToolEntry{}, err
	}
	err = s.box.change(ctx, audit.Act{Action: s.kind.acts.changed, Target: id, Detail: p.url}, func(tx store.PeopleTx) error { return tx.Entries.Update(e) })
	if err != nil {
		return ToolEntry{}, err
	}
	return s.applied(ctx, id)
}

// revise returns a draft of an entry with other fields.
func (s *ToolEntries) revise(e store.Entry, fields map[string]any) (draft, parsedTool, error) {
	before, lost := open(s.box.secrets, e)
	d, p, err := s.kind.read(named(fields, e.ID), before)
	if lost != nil && err != nil { // they can be entered again; what is sent back as it was read cannot be kept
		return d, p, lost
	}
	if err != nil {
		return d, p, err
	}
	if p.name != e.ID {
		return d, p, artel.Errorf(artel.Invalid, "entries.ToolEntries.Update", e.ID, "the name cannot be changed; add another %s", s.kind.noun)
	}
	was, err := fieldsOf(e)
	if err != nil || !d.kept {
		return d, p, err
	}
	if old, _ := was["url"].(string); !model.SameOrigin(old, p.url) {
		return d, p, artel.Errorf(artel.Invalid, "entries.ToolEntries.Update", e.ID, "send the values of headers again: they are not sent to another server than the one that they were given for")
	}
	return d, p, nil
}

// named returns fields with a name, if they have none.
func named(fields map[string]any, name string) map[string]any {
	out := map[string]any{"name": name}
	for k, v := range fields {
		out[k] = v
	}
	return out
}

// Delete removes a stored entry. Its tools are gone at once; calls that run end as they
// would have.
func (s *ToolEntries) Delete(ctx context.Context, id string) error {
	if err := admin(ctx); err != nil {
		return err
	}
	s.box.changing.Lock()
	defer s.box.changing.Unlock()
	e, err := s.get(ctx, id)
	if err != nil {
		return err
	}
	fields, err := fieldsOf(e)
	if err != nil {
		return err
	}
	address, _ := fields["url"].(string)
	err = s.box.change(ctx, audit.Act{Action: s.kind.acts.deleted, Target: id, Detail: address}, func(tx store.PeopleTx) error { return tx.Entries.Delete(s.kind.kind, id) })
	if err != nil {
		return err
	}
	return s.box.apply(context.WithoutCancel(ctx), 0) // the entry is gone, also if the client is
}

// applied applies a change of an entry and returns it.
func (s *ToolEntries) applied(ctx context.Context, id string) (ToolEntry, error) {
	ctx = context.WithoutCancel(ctx) // the entry is changed, also if the client is gone
	if err := s.box.apply(ctx, changeWait); err != nil {
		return ToolEntry{}, err
	}
	e, err := s.get(ctx, id)
	if err != nil {
		return ToolEntry{}, err
	}
	return s.view(artel.OwnerOf(ctx), e)
}
