// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/picture"
)

// maxText is the most bytes of the text of a result, except of read_artifact.
const maxText = 4096

// shown are the limits of results that keep them within maxText: a longer result of a
// tool becomes an artifact, and lists and diffs have pages.
func shown() tool.Shown { return tool.Shown{Bytes: maxText, Characters: maxText, Page: 2500} }

// Limits of pictures that common hosts pass on to their models.
const (
	maxPictureSide  = 1568    // pixels; models scale larger ones down
	maxPictureBytes = 1 << 20 // before they are encoded
	maxPictures     = 20      // in one result
)

// outputSchema describes the structured results. They hold the text as well, because some
// hosts give models nothing else.
const outputSchema = `{
"type":"object",
"properties":{
"text":{"type":"string","description":"what the tool says"},
"conversation":{"type":"string"},
"id":{"type":"string","description":"of the artifact"},
"version":{"type":"integer"},
"ref":{"type":"string","description":"artifact:conversation/id@version"},
"uri":{"type":"string","description":"address of the resource"},
"title":{"type":"string"},
"media_type":{"type":"string"},
"size":{"type":"integer","description":"bytes"},
"digest":{"type":"string"},
"deleted":{"type":"boolean"},
"count":{"type":"integer","description":"of what is listed"},
"complete":{"type":"boolean","description":"nothing was left out"},
"merged":{"type":"boolean","description":"joined with changes that others had made meanwhile"}
},
"required":["text","conversation"]
}`

// answer makes the result of a call for a client.
func (h *Handler) answer(ctx context.Context, c artel.ConversationID, name string, r tool.Result) (*mcp.CallToolResult, error) {
	recordOf(ctx).returned(c, name, r)
	text := r.Content
	if r.Help != "" {
		text += "\n\n" + r.Help
	}
	out := &mcp.CallToolResult{IsError: r.IsError, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	if name != "read_artifact" && len(text) > maxText {
		text = shorten(text)
		recordOf(ctx).did("shortened", artel.Ref{}, "", int64(len(r.Content)))
		out.Content[0] = &mcp.TextContent{Text: text}
	}
	links := linksOf(c, r)
	if name == "get_artifact" && len(r.Parts) > 0 {
		pictures, err := h.pictures(ctx, r.Parts)
		if err != nil {
			return h.refused(ctx, err)
		}
		out.Content = append(out.Content, pictures...)
	}
	for _, l := range links {
		out.Content = append(out.Content, l)
	}
	if !r.IsError && !h.showsContent(name) {
		out.StructuredContent = facts(c, text, r)
	}
	return out, nil
}

// shorten returns the beginning and the end of a text. Nothing of it is kept elsewhere;
// the tools whose texts can be so long are those of other servers, whose results are
// artifacts, and failures.
func shorten(text string) string {
	x := tool.Shown{Bytes: maxText, Characters: maxText}.Excerpt(text, "")
	return x.String(fmt.Sprintf("[The text has %d characters; its beginning and end are below.]", x.Characters), phrase.English)
}

// linksOf returns links to the artifacts that a result names.
func linksOf(c artel.ConversationID, r tool.Result) []*mcp.ResourceLink {
	var links []*mcp.ResourceLink
	add := func(ref artel.Ref, name, title, mediaType string, size int64) {
		if ref.IsBlob() || ref.Artifact == "" {
			return
		}
		if ref.Conversation == "" {
			ref.Conversation = c
		}
		uri := uriOf(ref)
		if slices.ContainsFunc(links, func(l *mcp.ResourceLink) bool { return l.URI == uri }) {
			return
		}
		links = append(links, &mcp.ResourceLink{URI: uri, Name: name, Title: title, MIMEType: mediaType, Size: &size})
	}
	if a, ok := artifactOf(r); ok && !a.Deleted {
		add(a.Ref, string(a.ID), a.Title, a.MediaType, a.Size)
	}
	for _, p := range r.Parts {
		if m, ok := p.(artel.Media); ok {
			add(m.Ref, m.Filename, "", m.MediaType, m.Size)
		}
	}
	return links
}

// A snapshot is what the metadata of a result say about an artifact.
type snapshot struct {
	Ref       artel.Ref
	ID        artel.ArtifactID `json:"id"`
	Version   int              `json:"version"`
	Title     string           `json:"title"`
	MediaType string           `json:"media_type"`
	Size      int64            `json:"size"`
	Digest    string           `json:"digest"`
	Deleted   bool             `json:"deleted"`
}

// artifactOf returns the artifact that a result is about: the one that a tool changed or
// showed, or the one that keeps a long result.
func artifactOf(r tool.Result) (s snapshot, ok bool) {
	b, err := json.Marshal(r.Metadata["artifact_snapshot"])
	if err != nil || json.Unmarshal(b, &s) != nil {
		return s, false
	}
	ref, _ := r.Metadata["ref"].(string)
	if s.Ref, err = artel.ParseRef(ref); err != nil || s.Ref.IsBlob() {
		return s, false
	}
	if s.ID == "" { // a result that is kept
		s.ID, s.Version = s.Ref.Artifact, s.Ref.Version
		s.MediaType, _ = r.Metadata["media_type"].(string)
		s.Size, _ = r.Metadata["size"].(int64)
		s.Title, _ = r.Metadata["filename"].(string)
	}
	return s, true
}

// facts returns the structured result.
func facts(c artel.ConversationID, text string, r tool.Result) map[string]any {
	out := map[string]any{"text": text, "conversation": c}
	if a, ok := artifactOf(r); ok {
		if a.Ref.Conversation == "" {
			a.Ref.Conversation = c
		}
		maps.Copy(out, map[string]any{"id": a.ID, "version": a.Version, "ref": a.Ref.String(), "uri": uriOf(a.Ref), "title": a.Title, "media_type": a.MediaType, "size": a.Size})
		if a.Digest != "" {
			out["digest"] = a.Digest
		}
		if a.Deleted {
			out["deleted"] = true
		}
	}
	for _, key := range []string{"count", "complete", "merged"} {
		if v, ok := r.Metadata[key]; ok {
			out[key] = v
		}
	}
	return out
}

// pictures returns the content of a result with pictures, each after its label. What
// cannot be shown is said.
func (h *Handler) pictures(ctx context.Context, parts artel.Parts) ([]mcp.Content, error) {
	var out []mcp.Content
	say := func(text string) { out = append(out, &mcp.TextContent{Text: text}) }
	shown := 0
	for _, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			say(p.Text)
		case artel.Media:
			if shown == maxPictures {
				recordOf(ctx).did("unshown", p.Ref, p.MediaType, p.Size)
				say(fmt.Sprintf("[%s is not shown: a result has at most %d pictures.]", p.Filename, maxPictures))
				continue
			}
			image, err := h.picture(ctx, p)
			if errors.Is(err, artel.Unsupported) || errors.Is(err, artel.TooLarge) || errors.Is(err, artel.NotFound) {
				recordOf(ctx).did("unshown", p.Ref, p.MediaType, p.Size)
				say(fmt.Sprintf("[%s cannot be shown: %v]", p.Filename, err))
				continue
			}
			if err != nil {
				return nil, err
			}
			if shown++; image.MIMEType != p.MediaType || int64(len(image.Data)) != p.Size {
				recordOf(ctx).did("converted", p.Ref, p.MediaType, p.Size)
			}
			out = append(out, image)
		}
	}
	return out, nil
}

// picture returns a picture that common hosts take.
func (h *Handler) picture(ctx context.Context, m artel.Media) (*mcp.ImageContent, error) {
	f, err := h.app.Files.Open(ctx, m.Ref.String())
	if err != nil {
		return nil, err
	}
	f, err = app.Fitted(ctx, h.app.Files, f, picture.Form{Side: maxPictureSide, Bytes: maxPictureBytes})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f.Content)
	if err = errors.Join(err, f.Content.Close()); err != nil {
		return nil, artel.Errorf(artel.Unavailable, "mcp", m.Filename, "%w", err)
	}
	return &mcp.ImageContent{Data: data, MIMEType: f.Info.MediaType}, nil
}

// uriOf returns the address of an artifact as a resource.
func uriOf(ref artel.Ref) string {
	return "artel://" + strings.TrimPrefix(escaped(ref).String(), "artifact:")
}
