// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// A headRow is an artifact at its newest visible version, over all
// branches. The artifact's row keeps it in one column, so that a list of many artifacts
// reads one short row for each and none of their contents.
type headRow struct {
	artel.Artifact // without Conversation and the fields derived from it
	visibility
}

// visibility determines on which branches a headRow is the head.
type visibility struct {
	message artel.MessageID // of the version
	mixed   bool            // the versions have more than one message
}

// A headCodec encodes or decodes the fields of a headRow in sequence. A text is
// its length in bytes, "," and its bytes; a number ends with ",". Decoded texts
// are substrings of the input.
type headCodec struct {
	out  []byte
	in   string
	at   int // position in it
	read bool
	bad  bool // in is malformed
}

// each visits the fields in order. The order is part of the stored format.
func (p *headCodec) each(n *artel.Artifact, b *visibility) {
	text(p, &n.ID)
	number(p, &n.Version)
	text(p, &b.message)
	flag(p, &b.mixed)
	text(p, &n.Title)
	text(p, &n.Filename)
	text(p, &n.MediaType)
	text(p, &n.DeclaredType)
	text(p, &n.Kind)
	text(p, &n.Charset)
	text(p, &n.DetectedBy)
	measure(p, &n.Confidence)
	number(p, &n.Size)
	number(p, &n.Width)
	number(p, &n.Height)
	number(p, &n.Pages)
	measure(p, &n.Duration)
	text(p, &n.Digest)
	flag(p, &n.InBlob)
	text(p, &n.Source)
	text(p, &n.LastEditor)
	flag(p, &n.Deleted)
	instant(p, &n.CreatedAt)
	instant(p, &n.UpdatedAt)
	text(p, &n.Preview)
}

func encodeHead(n headRow) string {
	p := headCodec{out: make([]byte, 0, 512+len(n.Preview))}
	p.each(&n.Artifact, &n.visibility)
	return string(p.out)
}

func decodeHead(c artel.ConversationID, s string) (n headRow, err error) {
	err = decodeHeadInto(&n.Artifact, &n.visibility, c, s)
	return n, err
}

func decodeHeadInto(a *artel.Artifact, b *visibility, c artel.ConversationID, s string) error {
	p := headCodec{in: s, read: true}
	p.each(a, b)
	if p.bad || p.at != len(p.in) {
		return artel.Errorf(artel.Internal, "store.Artifacts", string(c), "the stored head of an artifact is malformed: %q", artel.Shorten(s, 80))
	}
	a.Conversation = c
	a.Ref = artel.Ref{Conversation: c, Artifact: a.ID}
	a.Binary = a.IsBinary()
	return nil
}

func text[T ~string](p *headCodec, v *T) {
	n := len(*v)
	if number(p, &n); !p.read {
		p.out = append(p.out, *v...)
		return
	}
	if n < 0 || n > len(p.in)-p.at {
		p.bad, n = true, 0
	}
	*v = T(p.in[p.at : p.at+n])
	p.at += n
}

func number[T ~int | ~int64](p *headCodec, v *T) {
	if !p.read {
		p.out = append(strconv.AppendInt(p.out, int64(*v), 10), ',')
		return
	}
	*v = T(p.integer())
}

func measure(p *headCodec, v *float64) {
	if !p.read {
		p.out = append(strconv.AppendFloat(p.out, *v, 'g', -1, 64), ',')
		return
	}
	word, _, ok := strings.Cut(p.in[p.at:], ",")
	p.at, p.bad = min(p.at+len(word)+1, len(p.in)), p.bad || !ok
	switch word {
	case "0", "1": // the usual values
		*v = float64(word[0] - '0')
	default:
		n, err := strconv.ParseFloat(word, 64)
		*v, p.bad = n, p.bad || err != nil
	}
}

func flag(p *headCodec, v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(p, &n)
	*v = n == 1
}

func instant(p *headCodec, v *time.Time) {
	us := int64(0)
	if !p.read {
		us = micros(*v)
	}
	if number(p, &us); p.read {
		*v = fromMicros(us)
	}
}

// integer decodes a number. Lists decode so many that strconv is too slow.
func (p *headCodec) integer() int64 {
	n, i := int64(0), p.at
	negative := i < len(p.in) && p.in[i] == '-'
	if negative {
		i++
	}
	begin := i
	for i < len(p.in) && '0' <= p.in[i] && p.in[i] <= '9' {
		n = 10*n + int64(p.in[i]-'0')
		i++
	}
	if i == begin || i-begin > maxDigits || i == len(p.in) || p.in[i] != ',' {
		p.bad = true
		return 0
	}
	p.at = i + 1
	if negative {
		return -n
	}
	return n
}

// maxDigits is the number of decimal digits that always fit into an int64.
const maxDigits = 18

// headRows returns every artifact with a visible version, sorted by id, and
// their visibilities.
func (t artifacts) headRows(op string, c artel.ConversationID) ([]artel.Artifact, []visibility, error) {
	var packed []string
	err := t.rows(op, string(c), "SELECT newest FROM artifacts WHERE owner = ? AND conversation = ? ORDER BY id", []any{t.owner, c},
		func(rows Row) error {
			var s string
			err := rows.Scan(&s)
			if s != "" { // it has a visible version
				packed = append(packed, s)
			}
			return err
		})
	if err != nil {
		return nil, nil, err
	}
	all, of := make([]artel.Artifact, len(packed)), make([]visibility, len(packed))
	for i, s := range packed {
		if err := decodeHeadInto(&all[i], &of[i], c, s); err != nil {
			return nil, nil, t.fail(op, string(c), err)
		}
	}
	return all, of, nil
}

// foldHead updates the headRow of an artifact for the new visible version v.
func (t artifacts) foldHead(op string, c artel.ConversationID, id artel.ArtifactID, v artel.Version) error {
	before, created, err := t.readHead(op, c, id)
	if err != nil {
		return err
	}
	n := headRow{v.Artifact(c, id, created), visibility{message: v.Message}}
	if before != "" {
		old, err := decodeHead(c, before)
		if err != nil {
			return t.fail(op, string(id), err)
		}
		n.mixed = old.mixed || old.message != v.Message
		if old.Version > v.Number {
			old.mixed = n.mixed
			n = old
		}
	}
	return t.writeHead(op, c, n)
}

// claimHead assigns the newest version to m if it has no message.
func (t artifacts) claimHead(op string, c artel.ConversationID, id artel.ArtifactID, m artel.MessageID) error {
	s, _, err := t.readHead(op, c, id)
	if err != nil || s == "" {
		return err
	}
	n, err := decodeHead(c, s)
	if err != nil {
		return t.fail(op, string(id), err)
	}
	if n.message != "" {
		return nil
	}
	n.message = m
	return t.writeHead(op, c, n)
}

func (t artifacts) readHead(op string, c artel.ConversationID, id artel.ArtifactID) (newest string, created time.Time, err error) {
	var us int64
	_, err = t.row(op, string(id), "SELECT newest, created_at FROM artifacts WHERE owner = ? AND conversation = ? AND id = ?", []any{t.owner, c, id}, &newest, &us)
	return newest, fromMicros(us), err
}

func (t artifacts) writeHead(op string, c artel.ConversationID, n headRow) error {
	_, err := t.change(op, string(n.ID), "UPDATE artifacts SET newest = ? WHERE owner = ? AND conversation = ? AND id = ?", encodeHead(n), t.owner, c, n.ID)
	return err
}
