// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/gatewaylog"
)

// TestRecords: every call is in the log of its user, with what it returned and what was kept
// back, and in the log of no other.
func TestRecords(t *testing.T) {
	b := newBench(t, nil)
	for _, version := range []string{newest, "2025-06-18"} {
		c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp"}, version, nil)
		call(t, c, "create_artifact", map[string]any{"id": "notes-" + version, "title": "Notes", "content": strings.Repeat("# Part\nwords of it\n", 2000)})
		_, _, long := call(t, c, "get_artifact", map[string]any{"ref": "notes-" + version})
		call(t, c, "list_artifacts", nil)
		refusedCall(t, c, "read_artifact", map[string]any{"id": "nothing"})
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: links(long)[0]}); err != nil {
			t.Fatal(err)
		}
	}
	c := b.client("/mcp", "", nil)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2000, 10))); err != nil {
		t.Fatal(err)
	}
	conversation, err := b.app.Conversations.Named(access.With(t.Context(), access.Operator()), "MCP", false)
	if err != nil {
		t.Fatal(err)
	}
	shot := b.upload(conversation.ID, "shot.png", picture.Bytes())
	call(t, c, "get_artifact", map[string]any{"ref": string(shot.ID)})

	ctx := access.With(t.Context(), access.Operator())
	if err := b.app.GatewayLog.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	items, _, err := b.app.GatewayLog.List(ctx, gatewaylog.Query{Server: "artel"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range items {
		line := fmt.Sprint(e.MCP.Tool, " ", e.Status)
		if strings.HasPrefix(line, "artel://") {
			line = e.Endpoint + fmt.Sprint(" ", e.Status)
		}
		for _, change := range e.Changes {
			line += " " + change.Did
			if change.Ref == (artel.Ref{}) || change.Size == 0 {
				t.Errorf("%s: %+v", line, change)
			}
		}
		got = append(got, line)
		if e.MCP.Host != "test" || e.MCP.HostVersion != "1" || e.BytesOut == 0 || e.BytesIn < e.BytesOut || (e.MCP.Conversation != conversation.ID && e.Status == 200) || (e.Status == 422) != (e.Error != "") {
			t.Errorf("%s: %+v of %+v", line, e, *e.MCP)
		}
	}
	one := []string{"resources/read 200", "read_artifact 422", "list_artifacts 200", "get_artifact 200 excerpted", "create_artifact 200"}
	if d := cmp.Diff(append(append([]string{"get_artifact 200 converted"}, one...), one...), got); d != "" {
		t.Error(d)
	}
	if others, _, err := b.app.GatewayLog.List(access.With(t.Context(), users()["other"]), gatewaylog.Query{}); err != nil || len(others) > 0 {
		t.Errorf("another user sees %d calls, %v", len(others), err)
	}
}
