// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// packed is what is made of a context as the store has it. Nearly all messages
// of a long one are sent as they are stored, in the order in which they were
// loaded, and nearly all of them were in the call before, too. So what was
// loaded is written in blocks of columns, and most of these are segments, which
// calls share: what a call adds is short also where the conversation is long.
type packed struct {
	pipeline.Record                // what the loader has added is in the pieces
	Manifest        packedManifest `json:"recipe"`
}

type packedManifest struct {
	Head      pipeline.Head              `json:"head"`
	Tools     artel.Digest               `json:"tools,omitempty"`
	ToolBytes int                        `json:"tool_bytes,omitempty"`
	Messages  []pipeline.ManifestMessage `json:"messages"` // that are in no piece
	Pieces    []piece                    `json:"pieces,omitempty"`
}

// A piece is a run of the messages that were loaded.
type piece struct {
	At     int          `json:"at"`               // the place of the first in the request, in which they follow each other; or notInColumns
	Digest artel.Digest `json:"digest,omitempty"` // of the segment that has the block; empty: it is here
	Block  *columns     `json:"block,omitempty"`
}

// notInColumns is the place of those that are not sent as they are stored: not at
// all, or as one of the messages in full.
const notInColumns = -1

// columns are those of a block of messages. Those other than the ids are set only
// if the messages are sent as they are stored.
type columns struct {
	IDs    []string `json:"ids"`
	Roles  string   `json:"roles,omitempty"` // a letter of roleLetters each
	Bytes  []int    `json:"bytes,omitempty"`
	Tokens []int    `json:"tokens,omitempty"`
}

// begin reports whether the messages that were loaded begin with those of the
// block, and stand in the request as it says.
func (b *columns) begin(ids []string, at []int, all []pipeline.ManifestMessage) bool {
	n := len(b.IDs)
	if n > len(ids) || !slices.Equal(b.IDs, ids[:n]) || (b.Roles == "") != (at[0] == notInColumns) {
		return false
	}
	for k := range n {
		if k > 0 && !follows(at, k) {
			return false
		}
		if b.Roles == "" {
			continue
		}
		if x := &all[at[k]]; x.Bytes != b.Bytes[k] || x.Tokens != b.Tokens[k] || roleLetter(x.Role) != b.Roles[k] {
			return false
		}
	}
	return true
}

// A keptBlock is one that is a segment.
type keptBlock struct {
	columns
	segment store.Segment
}

const (
	shortRun   = 4   // messages that are not worth columns
	shortBlock = 32  // messages that are not worth a segment
	blockMask  = 127 // a block ends behind one of 128 messages, once it is worth a segment
)

// endsBlock says behind which messages blocks end, whatever stands before them:
// a history whose beginning is dropped soon has the same blocks again.
func endsBlock(id string) bool {
	h := uint32(2166136261) // FNV-1a, which makes no copy of the id
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	return h>>16&blockMask == 0
}

// packedRoles has the letters of roleLetters in their order.
var packedRoles = [...]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}

const roleLetters = "suat"

func roleLetter(r artel.Role) byte { return roleLetters[slices.Index(packedRoles[:], r)] }

// loader is the step that has loaded the history; nil: there was none.
func loader(steps []pipeline.Step) *pipeline.Step {
	if i := slices.IndexFunc(steps, func(s pipeline.Step) bool { return s.ID == pipeline.SessionLoader }); i >= 0 {
		return &steps[i]
	}
	return nil
}

func inColumns(x *pipeline.ManifestMessage) bool {
	return x.Stored && x.Origin == pipeline.OriginHistory && x.Stability == pipeline.Session &&
		len(x.MergedFrom) == 0 && x.Digest == "" && slices.Contains(packedRoles[:], x.Role)
}

// Pack returns the row of c, which is compared with before; nil: there is none.
func (c *Call) Pack(before *Call) (row []byte, err error) {
	var known map[string]*keptBlock
	if before != nil {
		known = before.blocks
	}
	row, c.blocks, err = pack(c.Content, known)
	return row, err
}

// Segments returns those of a request and of the row that c was packed into.
func (c *Call) Segments(request []pipeline.Segment) []store.Segment {
	out := make([]store.Segment, 0, len(request)+len(c.blocks))
	for _, s := range request {
		out = append(out, store.Segment(s))
	}
	for _, b := range c.blocks {
		out = append(out, b.segment)
	}
	return out
}

// pack returns the row of m and the blocks that are its segments, by the ids
// that they begin with. Known ones that have not changed are not made anew.
func pack(m Content, known map[string]*keptBlock) (row []byte, blocks map[string]*keptBlock, err error) {
	p := packed{m.Record, packedManifest{Head: m.Manifest.Head, Tools: m.Manifest.Tools, ToolBytes: m.Manifest.ToolBytes}}
	p.Processors = slices.Clone(p.Processors)
	var ids []string
	if l := loader(p.Processors); l != nil {
		ids, l.Added = l.Added, nil
	}
	var at []int
	p.Manifest.Messages, at = inPieces(m.Manifest.Messages, ids)
	blocks = map[string]*keptBlock{}
	for from, to := 0, 0; from < len(ids); from = to {
		k, ok := known[ids[from]]
		if ok && k.begin(ids[from:], at[from:], m.Manifest.Messages) {
			to = from + len(k.IDs)
		} else {
			ends := func() bool { return to-from >= shortBlock && endsBlock(ids[to-1]) }
			for to = from + 1; to < len(ids) && !ends() && follows(at, to); {
				to++
			}
			b := columnsOf(ids[from:to], at[from], m.Manifest.Messages)
			if !ends() {
				p.Manifest.Pieces = append(p.Manifest.Pieces, piece{At: at[from], Block: &b})
				continue
			}
			body, err := json.Marshal(b)
			if err != nil {
				return nil, nil, err
			}
			k = &keptBlock{b, store.Segment{Digest: artel.NewDigest(sha256.Sum256(body)), Body: body}}
		}
		blocks[ids[from]] = k
		p.Manifest.Pieces = append(p.Manifest.Pieces, piece{At: at[from], Digest: k.segment.Digest})
	}
	row, err = json.Marshal(p)
	return row, blocks, err
}

// follows reports whether the k-th message belongs to the piece of the one before.
func follows(at []int, k int) bool {
	if at[k-1] == notInColumns {
		return at[k] == notInColumns
	}
	return at[k] == at[k-1]+1
}

// inPieces returns the messages of a request that are not in columns, and the
// places of the others by the places of their ids; notInColumns of the rest.
func inPieces(all []pipeline.ManifestMessage, ids []string) (single []pipeline.ManifestMessage, at []int) {
	single, at = []pipeline.ManifestMessage{}, make([]int, len(ids))
	for k := range at {
		at[k] = notInColumns
	}
	for i, next := 0, 0; i < len(all); {
		n := 0
		if inColumns(&all[i]) {
			if k := slices.Index(ids[next:], all[i].ID); k >= 0 {
				for next += k; i+n < len(all) && next+n < len(ids) && all[i+n].ID == ids[next+n] && inColumns(&all[i+n]); {
					n++
				}
			}
		}
		if n < shortRun {
			n = max(n, 1)
			single = append(single, all[i:i+n]...)
			i += n
			continue
		}
		for k := range n {
			at[next+k] = i + k
		}
		i, next = i+n, next+n
	}
	return single, at
}

// columnsOf returns the columns of messages that stand at a place of the request.
func columnsOf(ids []string, at int, all []pipeline.ManifestMessage) columns {
	b := columns{IDs: ids}
	if at == notInColumns {
		return b
	}
	roles := make([]byte, len(ids))
	b.Bytes, b.Tokens = make([]int, len(ids)), make([]int, len(ids))
	for k := range ids {
		x := &all[at+k]
		b.Bytes[k], b.Tokens[k] = x.Bytes, x.Tokens
		roles[k] = roleLetter(x.Role)
	}
	b.Roles = string(roles)
	return b
}

// unpack reads what pack has written. segments is asked for the blocks.
func unpack(row []byte, segments func([]artel.Digest) (map[artel.Digest][]byte, error)) (Content, error) {
	var p packed
	if err := json.Unmarshal(row, &p); err != nil {
		return Content{}, err
	}
	m := Content{p.Record, pipeline.Manifest{Head: p.Manifest.Head, Tools: p.Manifest.Tools, ToolBytes: p.Manifest.ToolBytes}}
	var want []artel.Digest
	for _, x := range p.Manifest.Pieces {
		if x.Digest != "" {
			want = append(want, x.Digest)
		}
	}
	bodies, err := segments(want)
	if err != nil {
		return m, err
	}
	var ids []string
	all, single := []pipeline.ManifestMessage{}, p.Manifest.Messages
	for i := range p.Manifest.Pieces {
		x := &p.Manifest.Pieces[i]
		if x.Block == nil {
			x.Block = &columns{}
			if err := json.Unmarshal(bodies[x.Digest], x.Block); err != nil {
				return m, fmt.Errorf("a block of messages: %w", err)
			}
		}
		ids = append(ids, x.Block.IDs...)
		if x.At == notInColumns {
			continue
		}
		before := x.At - len(all)
		if before < 0 || before > len(single) {
			return m, fmt.Errorf("a block of %d messages at %d has no place", len(x.Block.IDs), x.At)
		}
		all = append(all, single[:before]...)
		single = single[before:]
		if all, err = x.Block.appendTo(all); err != nil {
			return m, err
		}
	}
	m.Manifest.Messages = append(all, single...)
	if l := loader(m.Processors); l != nil {
		l.Added = ids
	}
	return m, nil
}

// appendTo adds the messages of a block to those of a request.
func (b *columns) appendTo(all []pipeline.ManifestMessage) ([]pipeline.ManifestMessage, error) {
	n := len(b.IDs)
	if len(b.Roles) != n || len(b.Bytes) != n || len(b.Tokens) != n {
		return nil, fmt.Errorf("a block of %d messages has columns of another length", n)
	}
	for k, id := range b.IDs {
		role := strings.IndexByte(roleLetters, b.Roles[k])
		if role < 0 {
			return nil, fmt.Errorf("a block has the role %q", b.Roles[k])
		}
		all = append(all, pipeline.ManifestMessage{
			ID: id, Role: packedRoles[role], Origin: pipeline.OriginHistory, Stability: pipeline.Session,
			Stored: true, Bytes: b.Bytes[k], Tokens: b.Tokens[k],
		})
	}
	return all, nil
}
