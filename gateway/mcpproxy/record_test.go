// SPDX-License-Identifier: Apache-2.0

package mcpproxy_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/mcpproxy"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
)

// TestRecords: every call becomes one entry, which says what was kept back and why, and has
// none of the content.
func TestRecords(t *testing.T) {
	var entries []gatewaylog.GatewayEntry
	h := newHost(t, command(t, "0"), mcpproxy.Options{OnCall: func(_ context.Context, e gatewaylog.GatewayEntry) { entries = append(entries, e) }}, nil)
	h.call("echo", mcpproxytest.Arguments{Text: "here"})
	long := mcpproxytest.Text(h.call("log", mcpproxytest.Arguments{Size: 5000}))
	h.call("pictures", mcpproxytest.Arguments{Size: 2})
	h.call("pictures", mcpproxytest.Arguments{Size: 2})
	h.call("large_picture", mcpproxytest.Arguments{Size: 1600})
	h.call("audio", mcpproxytest.Arguments{Size: 5000})
	h.call("markdown", mcpproxytest.Arguments{Size: 9})
	h.call("structured", mcpproxytest.Arguments{Size: 500})
	h.call("fail", mcpproxytest.Arguments{Size: 2})
	_, _ = h.CallTool(t.Context(), &sdk.CallToolParams{Name: "refuse"})
	ref := regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`).FindString(long)
	h.call("artel_read", map[string]any{"ref": ref})
	h.call("hash", mcpproxytest.Arguments{Text: ref})
	if _, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://long"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		line := fmt.Sprint(e.MCP.Tool, " ", e.Status)
		for _, c := range e.Changes {
			line += " " + c.Did + " " + c.Field + "(" + c.MediaType + ")"
			if !c.Ref.IsBlob() || c.Size == 0 {
				t.Errorf("%s: %+v names no bytes", e.MCP.Tool, c)
			}
		}
		got = append(got, line+" "+e.Error)
		if e.MCP.Server != "hostile" || e.MCP.Host != "host" || e.MCP.HostVersion != "1" || e.Inbound != gatewaylog.MCP || e.Time.IsZero() || e.BytesOut == 0 || e.BytesIn == 0 && e.MCP.Tool != "artel_read" {
			t.Errorf("an entry says %+v of %+v", e, *e.MCP)
		}
	}
	want := []string{
		"echo 200 ",
		"log 200 offloaded (text/plain) ",
		"pictures 200 ",
		"pictures 200 repeated (image/png) repeated (image/png) ",
		"large_picture 200 converted (image/png) ",
		"audio 200 scrubbed (audio/wav) ",
		"markdown 200 scrubbed (image/png) ",
		"structured 200 trimmed structuredContent(application/json) offloaded (application/json) ",
		"fail 422 failed: why why ",
		"refuse 502 offloaded error(application/json) ",
		"artel_read 200 ",
		"hash 200 restored (text/plain) ",
		"test://long 200 offloaded (text/plain) ",
	}
	for i := range got {
		if strings.HasPrefix(got[i], "refuse ") {
			got[i], _, _ = strings.Cut(got[i], "[")
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if in, out := entries[1].BytesIn, entries[1].BytesOut; in < int64(len(mcpproxytest.Log(5000))) || out > 5000 {
		t.Errorf("a log of %d bytes became %d", in, out)
	}
}
