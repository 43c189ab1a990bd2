// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
)

const (
	pageSize    = 500     // resources of one page
	maxResource = 8 << 20 // bytes of a resource that is read
)

// escaped returns a ref with an id for an address.
func escaped(r artel.Ref) artel.Ref {
	r.Artifact = artel.ArtifactID(url.PathEscape(string(r.Artifact)))
	return r
}

// refOf parses the address of a resource.
func refOf(uri string) (artel.Ref, error) {
	rest, ok := strings.CutPrefix(uri, "artel://")
	if !ok {
		return artel.Ref{}, artel.Errorf(artel.NotFound, "mcp", artel.Shorten(uri, 120), "no resource: want artel://{conversation}/{id}")
	}
	plain, err := url.PathUnescape(rest)
	if err != nil {
		return artel.Ref{}, artel.Errorf(artel.NotFound, "mcp", artel.Shorten(uri, 120), "no resource: want artel://{conversation}/{id}")
	}
	return artel.ParseRef("artel://" + plain)
}

// listResources lists the artifacts of the client's conversation, in pages.
func (h *Handler) listResources(ctx context.Context, r *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	after := ""
	if r.Params != nil && r.Params.Cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(r.Params.Cursor)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none of this server; begin without one"}
		}
		after = string(b)
	}
	out := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	cached(ctx, r, &out.Cacheable)
	c, err := h.conversation(ctx, "")
	if err != nil {
		return nil, err
	}
	all, err := h.app.Artifacts.List(ctx, c.ID, "")
	if err != nil {
		return nil, err
	}
	begin, found := slices.BinarySearchFunc(all, artel.ArtifactID(after), func(a artel.Artifact, id artel.ArtifactID) int { return strings.Compare(string(a.ID), string(id)) })
	if found {
		begin++
	}
	end := min(begin+pageSize, len(all))
	for _, a := range all[begin:end] {
		out.Resources = append(out.Resources, &mcp.Resource{
			URI: uriOf(artel.Ref{Conversation: c.ID, Artifact: a.ID}), Name: string(a.ID), Title: a.Title, MIMEType: a.MediaType, Size: a.Size,
			Annotations: &mcp.Annotations{LastModified: a.UpdatedAt.UTC().Format(time.RFC3339)},
		})
	}
	if end < len(all) {
		out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(all[end-1].ID))
	}
	return out, nil
}

// addResources registers the addresses of artifacts and of versions.
func (s *server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "artel://{conversation}/{id}@{version}", Name: "version", Title: "Version of an artifact",
		Description: "An artifact as it was at a version, which never changes.",
	}, s.h.readResource)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "artel://{conversation}/{id}", Name: "artifact", Title: "Artifact",
		Description: "An artifact of a conversation as it is now.",
	}, s.h.readResource)
}

// readResource reads an artifact: a text as text, everything else as bytes.
func (h *Handler) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	ref, err := refOf(r.Params.URI)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	content, err := h.contents(ctx, ref)
	if errors.Is(err, artel.NotFound) {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	if err != nil {
		return nil, err
	}
	content.URI = r.Params.URI
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
}

// contents reads an artifact.
func (h *Handler) contents(ctx context.Context, ref artel.Ref) (*mcp.ResourceContents, error) {
	f, err := h.app.Artifacts.OpenLive(ctx, ref.Conversation, ref.Artifact, ref.Version, "")
	if err != nil {
		return nil, err
	}
	defer f.Content.Close()
	if f.Info.Size > maxResource {
		return nil, artel.Errorf(artel.TooLarge, "mcp", string(ref.Artifact), "it has %s, and a resource is read whole up to %s: read_artifact reads a text page by page, and %s serves the bytes", phrase.Size(f.Info.Size), phrase.Size(maxResource), app.FileURL(ref))
	}
	data, err := io.ReadAll(f.Content)
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "mcp", string(ref.Artifact), "%w", err)
	}
	out := &mcp.ResourceContents{URI: uriOf(ref), MIMEType: f.Info.MediaType}
	if text, ok := textOf(f.Info, data); ok {
		out.Text = text
	} else {
		out.Blob = data
	}
	return out, nil
}

// textOf returns the text of bytes that are text.
func textOf(info artel.MediaInfo, data []byte) (string, bool) {
	if info.IsBinary() {
		return "", false
	}
	text, err := media.DecodeText(bytes.NewReader(data), info.Charset)
	return text, err == nil
}
