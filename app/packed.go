// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// packed is what is made of a context as the store has it. Nearly all messages
// of a long one are sent as they are stored, in the order in which they were
// loaded: these stretches are written in columns, and their ids are those that
// the loader names. A row without stretches is one with all messages in full.
type packed struct {
	pipeline.Record
	Recipe packedRecipe `json:"recipe"`
}

type packedRecipe struct {
	Head      pipeline.Head         `json:"head"`
	Tools     artel.Digest          `json:"tools,omitempty"`
	ToolBytes int                   `json:"tool_bytes,omitempty"`
	Messages  []pipeline.Ingredient `json:"messages"` // that are in no stretch
	Stretches []stretch             `json:"stretches,omitempty"`
}

// A stretch is a run of messages of a request.
type stretch struct {
	At     int    `json:"at"`    // the place of the first in the request
	From   int    `json:"from"`  // the place of its id among those that were loaded
	Roles  string `json:"roles"` // a letter of stretchRoles each
	Bytes  []int  `json:"bytes"`
	Tokens []int  `json:"tokens"`
}

// shortStretch is how many messages are not worth columns.
const shortStretch = 4

// stretchRoles has the letters of stretchLetters in their order.
var stretchRoles = [...]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}

const stretchLetters = "suat"

// loaded are the ids of what the loader has found, in their order.
func loaded(r pipeline.Record) []string {
	for _, s := range r.Processors {
		if s.ID == pipeline.SessionLoader {
			return s.Added
		}
	}
	return nil
}

func inStretch(x *pipeline.Ingredient) bool {
	return x.Stored && x.Origin == pipeline.OriginHistory && x.Stability == pipeline.Session &&
		len(x.MergedFrom) == 0 && x.Digest == "" && slices.Contains(stretchRoles[:], x.Role)
}

// MarshalJSON packs m.
func (m made) MarshalJSON() ([]byte, error) {
	p := packed{m.Record, packedRecipe{Head: m.Recipe.Head, Tools: m.Recipe.Tools, ToolBytes: m.Recipe.ToolBytes}}
	p.Recipe.Messages = []pipeline.Ingredient{}
	ids, next := loaded(m.Record), 0
	all := m.Recipe.Messages
	for i := 0; i < len(all); {
		n := 0
		if inStretch(&all[i]) {
			if k := slices.Index(ids[next:], all[i].ID); k >= 0 {
				for next += k; i+n < len(all) && next+n < len(ids) && all[i+n].ID == ids[next+n] && inStretch(&all[i+n]); {
					n++
				}
			}
		}
		if n < shortStretch {
			n = max(n, 1)
			p.Recipe.Messages = append(p.Recipe.Messages, all[i:i+n]...)
			i += n
			continue
		}
		s := stretch{At: i, From: next, Bytes: make([]int, n), Tokens: make([]int, n)}
		roles := make([]byte, n)
		for k := range n {
			x := &all[i+k]
			s.Bytes[k], s.Tokens[k] = x.Bytes, x.Tokens
			roles[k] = stretchLetters[slices.Index(stretchRoles[:], x.Role)]
		}
		s.Roles = string(roles)
		p.Recipe.Stretches = append(p.Recipe.Stretches, s)
		i, next = i+n, next+n
	}
	return json.Marshal(p)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (m *made) UnmarshalJSON(data []byte) error {
	var p packed
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	m.Record = p.Record
	m.Recipe = pipeline.Recipe{Head: p.Recipe.Head, Tools: p.Recipe.Tools, ToolBytes: p.Recipe.ToolBytes, Messages: p.Recipe.Messages}
	if len(p.Recipe.Stretches) == 0 {
		return nil
	}
	var all []pipeline.Ingredient
	ids, single := loaded(p.Record), p.Recipe.Messages
	for _, s := range p.Recipe.Stretches {
		n := len(s.Roles)
		before := s.At - len(all)
		if before < 0 || before > len(single) || s.From < 0 || s.From+n > len(ids) || len(s.Bytes) != n || len(s.Tokens) != n {
			return fmt.Errorf("a stretch of %d messages at %d has no place", n, s.At)
		}
		all = append(all, single[:before]...)
		single = single[before:]
		for k := range n {
			role := strings.IndexByte(stretchLetters, s.Roles[k])
			if role < 0 {
				return fmt.Errorf("a stretch at %d has the role %q", s.At, s.Roles[k])
			}
			all = append(all, pipeline.Ingredient{
				ID: ids[s.From+k], Role: stretchRoles[role], Origin: pipeline.OriginHistory, Stability: pipeline.Session,
				Stored: true, Bytes: s.Bytes[k], Tokens: s.Tokens[k],
			})
		}
	}
	m.Recipe.Messages = append(all, single...)
	return nil
}
