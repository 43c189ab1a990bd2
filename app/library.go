// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
)

// A Library is the use cases of resources and prompts of tool servers, for people.
type Library struct {
	*mcp.Library
	core *core
}

// maxURI is the longest address of a resource, in bytes.
const maxURI = 4000

// Stage reads a resource of a server, and stages its contents as uploads whose titles end
// with their addresses. Nothing is visible before [Artifacts.Add].
func (l *Library) Stage(ctx context.Context, server, uri string) ([]artifact.Staged, error) {
	if uri == "" || len(uri) > maxURI {
		return nil, artel.Errorf(artel.Invalid, "app.Library", "uri", "want the address of a resource, of at most %d bytes", maxURI)
	}
	found, err := l.Read(ctx, server, uri)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, artel.Errorf(artel.NotFound, "app.Library", artel.Shorten(uri, 200), "the tool server %s sends nothing for this address", server)
	}
	out := make([]artifact.Staged, len(found))
	for i, c := range found {
		from := cmp.Or(c.URI, uri)
		content := c.Bytes
		if content == nil {
			content = []byte(c.Text)
		}
		name := path.Base(strings.TrimRight(from, "/"))
		s, err := l.core.artifacts.Uploads.Stage(ctx, bytes.NewReader(content), media.Hint{DeclaredType: c.MediaType, Filename: name})
		if err != nil {
			return nil, err
		}
		if s.Title = s.Filename + " (" + from + ")"; s.Filename == "" {
			s.Title = from
		}
		out[i] = s
	}
	return out, nil
}
