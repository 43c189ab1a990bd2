// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/card"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/store"
)

// Characters are the use cases of files of other programs that become agents,
// with their world books and pictures.
type Characters struct{ config *Config }

// pictures is the prefix of the settings in which pictures of agents are stored.
const pictures = "picture/"

// A Picture is a picture of an agent.
type Picture struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Bounds of the pictures of agents; larger ones are made smaller.
const (
	pictureSide  = 512
	pictureBytes = 256 << 10
)

// ImportOptions say what becomes of a file. The zero value makes new agents and
// books, under other names if theirs are taken.
type ImportOptions struct {
	Name    string          // of the file
	Into    artel.AgentName // the agent that a preset changes; "": a new one
	Replace bool            // the user's agent and book of the same names are replaced
}

// An ImportedFile says what a file has become.
type ImportedFile struct {
	Kind    card.Kind
	Format  string
	Agent   artel.AgentName // "": none
	Book    string          // "": none
	Picture bool
	Rules   *rule.Config // of regex scripts, which are not stored
	Losses  []card.Loss
}

// Import stores what a file holds: a character as an agent with its book and
// picture, a book, or a preset as an agent or in an agent. See [card.Read] for
// the errors.
func (cs *Characters) Import(ctx context.Context, raw []byte, o ImportOptions) (out ImportedFile, err error) {
	c, err := card.Read(raw, o.Name)
	if err != nil {
		return out, err
	}
	out = ImportedFile{Kind: c.Kind, Format: c.Format, Rules: c.Rules, Losses: c.Losses}
	if c.Book != nil {
		if out.Book, err = cs.keepBook(ctx, &c, o.Replace); err != nil {
			return out, err
		}
	}
	switch c.Kind {
	case card.Character:
		if out.Book != "" {
			if err := card.UseBook(&c.Agent, out.Book); err != nil {
				return out, err
			}
		}
		if out.Agent, err = cs.keepAgent(ctx, c.Agent, o.Replace); err == nil && c.Picture != nil {
			err = cs.SetPicture(ctx, out.Agent, c.Picture)
			if out.Picture = err == nil; err != nil && ctx.Err() == nil {
				out.Losses = append(out.Losses, card.Loss{Field: "picture", Message: artel.Shorten(err.Error(), 300)})
				err = nil
			}
		}
	case card.Preset:
		if o.Into == "" {
			out.Agent, err = cs.keepAgent(ctx, c.Agent, o.Replace)
			break
		}
		var now Agent
		if now, err = (&Agents{cs.config}).Find(ctx, o.Into); err == nil {
			now, err = (&Agents{cs.config}).Save(ctx, card.Merge(now.Definition, c.Agent), max(now.Revision, 1))
			out.Agent = now.Name
		}
	}
	return out, err
}

// keepBook stores a book under a free name.
func (cs *Characters) keepBook(ctx context.Context, c *card.Content, replace bool) (string, error) {
	bs, b, base := &Books{cs.config}, *c.Book, c.Book.Name
	revision := 0
	if replace {
		revision = AnyRevision
	}
	for n := 2; ; n++ {
		saved, err := bs.Save(ctx, b, revision)
		if artel.CodeOf(err) != CodeBookExists || n > 100 {
			return saved.Name, err
		}
		b.Name = fmt.Sprintf("%s (%d)", artel.Shorten(base, 190), n)
	}
}

// keepAgent stores an agent under a free name.
func (cs *Characters) keepAgent(ctx context.Context, d agent.Definition, replace bool) (artel.AgentName, error) {
	as, base := &Agents{cs.config}, d.Name
	for n := 2; ; n++ {
		a, err := as.Create(ctx, d)
		if artel.CodeOf(err) == CodeAgentExists && replace {
			if a, err = as.Save(ctx, d, AnyRevision); err == nil || artel.CodeOf(err) != CodeAgentReadOnly {
				return a.Name, err
			}
			replace = false
		}
		if c := artel.CodeOf(err); c != CodeAgentExists && c != CodeAgentReadOnly || n > 100 {
			return a.Name, err
		}
		d.Name = artel.AgentName(fmt.Sprintf("%s_%d", base, n))
	}
}

// SetPicture stores a picture of an agent, made smaller if it is large. Bytes that
// are no picture are of kind Invalid or Unsupported.
func (cs *Characters) SetPicture(ctx context.Context, name artel.AgentName, raw []byte) error {
	p, err := picture.Convert(ctx, bytes.NewReader(raw), int64(len(raw)), picture.Form{Side: pictureSide, Bytes: pictureBytes})
	if err != nil {
		return err
	}
	_, err = cs.config.put(ctx, pictures+string(name), Picture{p.MediaType, p.Data}, AnyRevision)
	return err
}

// Picture returns the picture of an agent; kind NotFound if it has none.
func (cs *Characters) Picture(ctx context.Context, name artel.AgentName) (p Picture, err error) {
	err = cs.config.view(ctx, func(tx store.Tx) error {
		s, err := tx.Settings.Get(pictures + string(name))
		if errors.Is(err, artel.NotFound) {
			return artel.Errorf(artel.NotFound, "settings.Characters", artel.Shorten(string(name), 80), "the agent has no picture")
		}
		if err != nil {
			return err
		}
		p, err = decoded[Picture](s)
		return err
	})
	return p, err
}

// Pictured returns which of these agents have a picture.
func (cs *Characters) Pictured(ctx context.Context, names []artel.AgentName) (out []artel.AgentName, err error) {
	err = cs.config.view(ctx, func(tx store.Tx) error {
		list, err := tx.Settings.List(pictures)
		for _, s := range list {
			if name := artel.AgentName(s.Name[len(pictures):]); slices.Contains(names, name) {
				out = append(out, name)
			}
		}
		return err
	})
	return out, err
}
