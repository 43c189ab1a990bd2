// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strconv"

	"github.com/tidwall/gjson"
)

// Merged returns b with a JSON object merged into it as a JSON merge patch (RFC 7396):
// a member of patch replaces that of b, or is added at the end; objects are merged;
// null removes a member. Other bytes of b stay. b must be a JSON object, and patch
// must not replace a member that holds blobs.
func (b *Body) Merged(patch []byte) *Body {
	if len(patch) == 0 {
		return b
	}
	// Blobs are inside of JSON strings: a mark there stands for them.
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	mark := "blob-" + hex.EncodeToString(nonce[:]) + "-"
	var text []byte
	for i, s := range b.segments {
		if s.digest != "" {
			text = append(text, mark+strconv.Itoa(i)+";"...)
			continue
		}
		text = append(text, s.json...)
	}
	text = mergePatch(gjson.ParseBytes(text), gjson.ParseBytes(patch))
	out := NewBody(b.blobs)
	for {
		head, rest, found := bytes.Cut(text, []byte(mark))
		out.keep(head)
		if !found {
			return out
		}
		number, after, _ := bytes.Cut(rest, []byte(";"))
		i, _ := strconv.Atoi(string(number)) // written above
		out.segments = append(out.segments, b.segments[i])
		out.length += b.segments[i].length()
		text = after
	}
}

// length returns how many bytes of a body a segment is.
func (s segment) length() int64 {
	switch {
	case s.digest == "":
		return int64(len(s.json))
	case s.raw:
		return s.size
	}
	return (s.size + 2) / 3 * 4
}

// mergePatch merges patch into target. A target that is no object counts as empty.
func mergePatch(target, patch gjson.Result) []byte {
	members := patch.Map()
	out := []byte("{")
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	seen := map[string]bool{}
	if target.IsObject() {
		target.ForEach(func(key, value gjson.Result) bool {
			p, changed := members[key.String()]
			seen[key.String()] = true
			switch {
			case !changed:
				add(key.Raw, []byte(value.Raw))
			case p.Type == gjson.Null:
			case p.IsObject():
				add(key.Raw, mergePatch(value, p))
			default:
				add(key.Raw, []byte(p.Raw))
			}
			return true
		})
	}
	patch.ForEach(func(key, value gjson.Result) bool {
		switch {
		case seen[key.String()] || value.Type == gjson.Null:
		case value.IsObject():
			add(key.Raw, mergePatch(gjson.Result{}, value))
		default:
			add(key.Raw, []byte(value.Raw))
		}
		return true
	})
	return append(out, '}')
}
