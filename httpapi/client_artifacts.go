// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// The version of a ref is the expected newest version of a write, unless its
// method says otherwise; 0 is any. If it is not the newest, the error is a
// *Problem with status 412.

// pathOf returns the path of an artifact.
func pathOf(ref artel.Ref) string {
	return "/conversations/" + string(ref.Conversation) + "/artifacts/" + url.PathEscape(string(ref.Artifact))
}

// Versions lists the versions of an artifact, oldest first; in a wider scope
// also the edits between them.
func (c *Client) Versions(ctx context.Context, ref artel.Ref, scope artifact.Scope) (out List[artifact.Entry], err error) {
	query := map[artifact.Scope]string{artifact.WithLive: "?live=true", artifact.Journal: "?edits=true"}[scope]
	return out, c.json(ctx, http.MethodGet, pathOf(ref)+"/versions"+query, nil, &out)
}

// Diff compares two versions of a text. to 0 is the newest; from 0 is the
// version that to was made from. live includes what only the journal has.
func (c *Client) Diff(ctx context.Context, ref artel.Ref, from, to int, live bool) (out DiffView, err error) {
	q := url.Values{"limit": {"0"}}
	if from > 0 {
		q.Set("from", strconv.Itoa(from))
	}
	if to > 0 {
		q.Set("to", strconv.Itoa(to))
	}
	if live {
		q.Set("live", "true")
	}
	return out, c.json(ctx, http.MethodGet, pathOf(ref)+"/diff?"+q.Encode(), nil, &out)
}

// Save stores the next version of an artifact, based on the version of ref.
func (c *Client) Save(ctx context.Context, ref artel.Ref, s SavedArtifact) (out artel.Artifact, err error) {
	return out, c.write(ctx, http.MethodPut, pathOf(ref), ref.Version, true, s, &out)
}

// SaveFile stores bytes as the next version of an artifact, based on the version
// of ref. declared is their media type; "": the server detects it. With
// keepMarkers, a text is saved with the marks of unresolved conflicts. size is -1
// if unknown.
func (c *Client) SaveFile(ctx context.Context, ref artel.Ref, declared string, keepMarkers bool, r io.Reader, size int64) (out artel.Artifact, err error) {
	path := pathOf(ref)
	if keepMarkers {
		path += "?conflict_markers=keep"
	}
	req, err := c.request(ctx, http.MethodPut, path, r)
	if err != nil {
		return out, err
	}
	req.ContentLength = size
	if declared != "" && declared != "application/json" { // a JSON body is a change, not a file
		req.Header.Set("Content-Type", declared)
	}
	expect(req, ref.Version, true)
	return out, c.do(req, &out)
}

// Rename changes the title of an artifact.
func (c *Client) Rename(ctx context.Context, ref artel.Ref, title string) (out artel.Artifact, err error) {
	return out, c.write(ctx, http.MethodPatch, pathOf(ref), ref.Version, false, ArtifactChange{title}, &out)
}

// Delete deletes an artifact; Restore undoes it.
func (c *Client) Delete(ctx context.Context, ref artel.Ref) error {
	return c.write(ctx, http.MethodDelete, pathOf(ref), ref.Version, false, nil, nil)
}

// Restore makes a new version from the version of ref; without one, it undoes a
// deletion.
func (c *Client) Restore(ctx context.Context, ref artel.Ref) (out artel.Artifact, err error) {
	return out, c.write(ctx, http.MethodPost, pathOf(ref)+"/restore", 0, false, Restoring{ref.Version}, &out)
}

// write sends a body and If-Match. must means that the server requires the
// header.
func (c *Client) write(ctx context.Context, method, path string, version int, must bool, in, out any) error {
	req, err := c.jsonRequest(ctx, method, path, in)
	if err != nil {
		return err
	}
	expect(req, version, must)
	return c.do(req, out)
}

// expect sets If-Match to a version; 0 is any.
func expect(req *http.Request, version int, must bool) {
	switch {
	case version > 0:
		req.Header.Set("If-Match", `"`+strconv.Itoa(version)+`"`)
	case must:
		req.Header.Set("If-Match", "*")
	}
}
