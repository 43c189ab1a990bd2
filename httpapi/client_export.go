// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A Download is a file from the server. The caller closes it.
type Download struct {
	io.ReadCloser
	Filename  string // the server's name for it; may be empty
	MediaType string // without parameters
	Version   int    // of the exported artifact; 0: a conversation
}

// Export returns a text artifact as a document: the version of ref, or the
// newest visible one. format is "docx", "html" or "md".
func (c *Client) Export(ctx context.Context, ref artel.Ref, format string) (Download, error) {
	q := url.Values{"format": {format}}
	if ref.Version > 0 {
		q.Set("version", strconv.Itoa(ref.Version))
	}
	return c.download(ctx, pathOf(ref)+"/export?"+q.Encode())
}

// ExportConversation returns a conversation as a ZIP.
func (c *Client) ExportConversation(ctx context.Context, id artel.ConversationID) (Download, error) {
	return c.download(ctx, "/conversations/"+string(id)+"/export?format=zip")
}

func (c *Client) download(ctx context.Context, path string) (Download, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return Download{}, err
	}
	resp, err := c.send(req)
	if err != nil {
		return Download{}, err
	}
	d := Download{ReadCloser: resp.Body}
	d.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		d.Filename = params["filename"]
	}
	d.Version, _ = strconv.Atoi(resp.Header.Get(versionHeader))
	return d, nil
}

// Import creates a conversation from an exported ZIP. size is -1 if unknown.
func (c *Client) Import(ctx context.Context, r io.Reader, size int64) (out app.Imported, err error) {
	req, err := c.request(ctx, http.MethodPost, "/conversations/import", r)
	if err != nil {
		return out, err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/zip")
	return out, c.do(req, &out)
}
