// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/app/access"
)

// TestFollowedConversations: a client that subscribes to resources of more conversations than
// are followed is told so, also before it listens.
func TestFollowedConversations(t *testing.T) {
	b := newBench(t, nil)
	ctx := access.With(t.Context(), access.Operator())
	for name, quiet := range map[string]bool{"listening": false, "before it listens": true} {
		c := b.connect(&mcp.StreamableClientTransport{Endpoint: b.http.URL + "/mcp", DisableStandaloneSSE: quiet}, "2025-06-18", nil)
		for i := range 17 {
			conversation, err := b.app.Conversations.Named(ctx, fmt.Sprint("conversation ", i), true)
			if err != nil {
				t.Fatal(err)
			}
			a := b.upload(conversation.ID, "notes.md", []byte("# Notes\n"))
			err = c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("artel://%s/%s", conversation.ID, a.ID)})
			if i < 16 && err != nil {
				t.Fatalf("%s, %d: %v", name, i, err)
			}
			if i == 16 && (err == nil || !strings.Contains(err.Error(), "at most 16 conversations beside its own")) {
				t.Errorf("%s: the 17th conversation gives %v", name, err)
			}
		}
	}
}
