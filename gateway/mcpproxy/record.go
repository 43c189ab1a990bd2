// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
)

// What an entry of the log says about a part of a result, beside what it says about those of
// the gateway's requests.
const (
	didOffload = "offloaded" // a long text became a preview
	didScrub   = "scrubbed"  // bytes became a ref
	didRepeat  = "repeated"  // a picture that was shown before became a ref
	didUnshown = "unshown"   // a picture is not shown
	didConvert = "converted" // a picture was made smaller
	didTrim    = "trimmed"   // structured content became shorter
	didLeave   = "left_out"  // structured content or another member was left out
	didRestore = "restored"  // a ref in an argument became bytes
)

// maxRecorded is how many changes an entry lists.
const maxRecorded = 200

// A record collects what the log says about one call, in the goroutine that answers it. All
// methods of nil do nothing.
type record struct{ entry gatewaylog.GatewayEntry }

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

// did notes what was done to a part of the call.
func (r *record) did(what, field string, f File) {
	switch {
	case r == nil:
	case len(r.entry.Changes) >= maxRecorded:
		r.entry.Unlisted++
	default:
		c := gatewaylog.GatewayChange{Did: what, Field: field, MediaType: f.MediaType, Size: f.Size}
		if f.Digest != "" {
			c.Ref = artel.BlobRef(f.Digest)
		}
		r.entry.Changes = append(r.entry.Changes, c)
	}
}

// called notes the tool that is asked.
func (r *record) called(tool string) {
	if r != nil {
		r.entry.MCP.Tool = artel.Shorten(tool, 200)
	}
}

// returned notes how many bytes the server has returned.
func (r *record) returned(size int64) {
	if r != nil {
		r.entry.BytesIn += size
	}
}

// recorded answers a request with answer, and gives [Options.OnCall] an entry about it.
func (p *Proxy) recorded(ctx context.Context, m *message, tool string, answer func(context.Context) (*message, error)) (*message, error) {
	if p.options.OnCall == nil {
		return answer(ctx)
	}
	host := p.hostOf(m)
	r := &record{gatewaylog.GatewayEntry{
		Time: time.Now(), Inbound: gatewaylog.MCP, Endpoint: m.method, Status: http.StatusOK,
		MCP: &gatewaylog.MCPCall{Server: p.options.Name, Host: host.name, HostVersion: host.version},
	}}
	r.called(tool)
	out, err := answer(context.WithValue(ctx, recordKey{}, r))
	e := &r.entry
	e.Millis = float64(time.Since(e.Time).Microseconds()) / 1000
	switch {
	case err != nil:
		e.Status, e.Error = http.StatusBadGateway, cut(err.Error(), maxSaid)
	case out == nil:
		e.Status, e.Error = gatewaylog.StatusLeft, "the host cancelled the call"
	case out.failed:
		e.Status, e.Error = http.StatusBadGateway, out.said(out.member(out.member(out.all(), "error"), "message"))
	default:
		at := out.member(out.result, "isError")
		if b, err := out.bytes(at, 8); err == nil && strings.TrimSpace(string(b)) == "true" {
			e.Status, e.Error = http.StatusUnprocessableEntity, "the tool reported an error"
			_ = out.elements(out.member(out.result, "content"), func(_ int, v span) error {
				if text := out.said(out.member(v, "text")); text != "" {
					e.Error = text
					return errEnough
				}
				return nil
			})
		}
	}
	if out != nil {
		e.BytesOut = out.size
	}
	p.options.OnCall(ctx, *e)
	return out, err
}

// maxSaid is the most bytes of the text of an error in the log.
const maxSaid = 400

// said returns the beginning of a text.
func (m *message) said(at span) string {
	if m.kind(at) != '"' {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(m.unescaped(inner(at)), maxSaid+1)) // the rest is not JSON
	return cut(string(text), maxSaid)
}

// A client is what a host says that it is.
type client struct{ name, version string }

// hostOf returns the host that has sent a message: it says who it is in the handshake, or
// since 2026-07-28 in each request.
func (p *Proxy) hostOf(m *message) client {
	at := m.member(m.member(m.params, "_meta"), "io.modelcontextprotocol/clientInfo")
	if at.empty() {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.host
	}
	return m.client(at)
}

func (m *message) client(at span) client {
	return client{cut(m.said(m.member(at, "name")), 100), cut(m.said(m.member(at, "version")), 60)}
}
