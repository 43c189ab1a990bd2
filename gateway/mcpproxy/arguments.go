// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/artelhq/artel"
)

// refPattern matches the refs that the proxy writes.
var refPattern = regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`)

const refStart = "blob:sha256-"

// The bounds of the refs in the arguments of one call.
const (
	maxRefs     = 64
	maxRestored = 128 << 20 // bytes
	maxWithRefs = 4 << 20   // bytes of a text that is searched for refs
)

// restored returns a call whose arguments have bytes in the place of refs; m itself without
// any. problem says to the model what cannot be passed.
func (p *Proxy) restored(ctx context.Context, m *message, name string) (out *message, problem string, err error) {
	at := m.member(m.params, "arguments")
	if m.kind(at) != '{' {
		return m, "", nil
	}
	if found, err := m.contains(at, refStart); !found || err != nil {
		return m, "", err
	}
	var schema json.RawMessage
	p.mu.Lock()
	if p.listed != nil {
		if t, ok := p.listed.index.Get(name); ok {
			schema = t.Schema
		}
	}
	p.mu.Unlock()
	s := &spool{}
	r := restorer{p: p, m: m, out: s, left: maxRestored}
	_, err = io.Copy(s, m.reader(span{0, at.from}))
	if err == nil {
		err = r.value(ctx, at, hint{schema: schema}, 0)
	}
	if err == nil {
		_, err = io.Copy(s, m.reader(span{at.to, m.size}))
	}
	if err != nil {
		_ = s.Close()
		if errors.Is(err, artel.TooLarge) {
			return nil, err.Error(), nil
		}
		return nil, "", err
	}
	out, err = parse(s)
	return out, "", err
}

// contains reports whether the bytes of a span have a word in them.
func (s *spool) contains(at span, word string) (bool, error) {
	buf := make([]byte, scanSize)
	kept := 0
	for r := s.reader(at); ; {
		n, err := r.Read(buf[kept:])
		all := buf[:kept+n]
		if bytes.Contains(all, []byte(word)) {
			return true, nil
		}
		kept = copy(buf, all[max(0, len(all)-len(word)+1):])
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// A hint is what is known about an argument.
type hint struct {
	name   string
	schema json.RawMessage
}

// facts are the parts of a schema that say how bytes are written.
type facts struct {
	Properties       map[string]json.RawMessage
	Items            json.RawMessage
	Description      string
	Format           string
	ContentEncoding  string
	ContentMediaType string
}

func (h hint) facts() facts {
	var f facts
	if json.Unmarshal(h.schema, &f) != nil {
		return facts{}
	}
	return f
}

// A restorer copies arguments with bytes in the place of refs.
type restorer struct {
	p    *Proxy
	m    *message
	out  *spool
	refs int
	left int64
}

func (r *restorer) put(s string) error {
	_, err := r.out.WriteString(s)
	return err
}

func (r *restorer) value(ctx context.Context, at span, h hint, depth int) error {
	kind := r.m.kind(at)
	if depth > maxShrinkDepth {
		kind = 0
	}
	switch kind {
	case '{':
		known, n := h.facts(), 0
		if err := r.put("{"); err != nil {
			return err
		}
		err := r.m.members(at, func(key string, v span) error {
			comma := ","
			if n++; n == 1 {
				comma = ""
			}
			if err := r.put(comma + string(quoted(key)) + ":"); err != nil {
				return err
			}
			return r.value(ctx, v, hint{key, known.Properties[key]}, depth+1)
		})
		return errors.Join(err, r.put("}"))
	case '[':
		known := h.facts()
		if err := r.put("["); err != nil {
			return err
		}
		err := r.m.elements(at, func(i int, v span) error {
			if i > 0 {
				if err := r.put(","); err != nil {
					return err
				}
			}
			return r.value(ctx, v, hint{h.name, known.Items}, depth+1)
		})
		return errors.Join(err, r.put("]"))
	case '"':
		if at.size() <= maxWithRefs {
			text, err := r.m.text(inner(at), maxWithRefs)
			if err != nil {
				return err
			}
			if strings.Contains(text, refStart) {
				return r.text(ctx, text, h)
			}
		}
	}
	_, err := io.Copy(r.out, r.m.reader(at))
	return err
}

// text writes a string with bytes in the place of its refs.
func (r *restorer) text(ctx context.Context, text string, h hint) error {
	w := escaper{r.out}
	if err := r.put(`"`); err != nil {
		return err
	}
	from := 0
	for _, at := range refPattern.FindAllStringIndex(text, -1) {
		if _, err := io.WriteString(w, text[from:at[0]]); err != nil {
			return err
		}
		from = at[1]
		before, ref := text[:at[0]], text[at[0]:at[1]]
		err := r.bytes(ctx, w, before, ref, strings.TrimSpace(text) == ref, h)
		if errors.Is(err, artel.NotFound) || errors.Is(err, artel.Denied) {
			_, err = io.WriteString(w, ref) // of another program
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, text[from:]); err != nil {
		return err
	}
	return r.put(`"`)
}

// bytes writes what a ref stands for, in the form that the argument wants.
func (r *restorer) bytes(ctx context.Context, w io.Writer, before, ref string, whole bool, h hint) error {
	parsed, err := artel.ParseRef(ref)
	if err != nil {
		return err
	}
	f, done, err := r.p.keeper.open(ctx, parsed.Digest)
	if err != nil {
		return err
	}
	defer done()
	if r.refs++; r.refs > maxRefs || f.size > r.left {
		return artel.Errorf(artel.TooLarge, "mcpproxy", ref, "the refs in the arguments stand for more than %d MB, or are more than %d; pass fewer", maxRestored>>20, maxRefs)
	}
	r.left -= f.size
	recordOf(ctx).did(didRestore, "", f.File)
	switch form(before, whole, f.File, h) {
	case asText:
		_, err = io.Copy(w, f.reader(f.all()))
		return err
	case asURI:
		if _, err := fmt.Fprintf(w, "data:%s;base64,", f.MediaType); err != nil {
			return err
		}
	}
	enc := base64.NewEncoder(base64.StdEncoding, w)
	_, err = io.Copy(enc, f.reader(f.all()))
	return errors.Join(err, enc.Close())
}

// The forms of bytes in an argument.
const (
	asText = iota
	asBase64
	asURI
)

// form decides by what stands before the ref, by the schema of the argument, and then by the
// bytes: text is text, other bytes are base64 if they are the whole argument and otherwise a
// data URI.
func form(before string, whole bool, f File, h hint) int {
	known := h.facts()
	about := strings.ToLower(known.Description + " " + known.Format)
	name := strings.ToLower(h.name)
	switch {
	case strings.HasSuffix(before, ";base64,"):
		return asBase64
	case strings.EqualFold(known.ContentEncoding, "base64"):
		return asBase64
	case strings.Contains(about, "data uri") || strings.Contains(about, "data url") || strings.Contains(about, "data:"):
		return asURI
	case strings.Contains(about, "base64") || strings.Contains(name, "base64") || strings.Contains(name, "b64") || known.Format == "byte" || known.Format == "binary":
		return asBase64
	case !f.IsBinary():
		return asText
	case !whole || known.Format == "uri" || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri"):
		return asURI
	}
	return asBase64
}
