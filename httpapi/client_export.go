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

// A Download is a file that comes from the server. The caller closes it.
type Download struct {
	io.ReadCloser
	Filename  string // as the server calls it; may be ""
	MediaType string // without parameters
	Version   int    // of the artifact that it was made of; 0: a conversation
}

// Export makes a document of a text artifact: of the version of ref, or of
// the newest visible one. format is "docx", "html" or "md".
func (c *Client) Export(ctx context.Context, ref artel.Ref, format string) (Download, error) {
	q := url.Values{"format": {format}}
	if ref.Version > 0 {
		q.Set("version", strconv.Itoa(ref.Version))
	}
	return c.download(ctx, pathOf(ref)+"/export?"+q.Encode())
}

// ExportConversation makes a ZIP of a whole conversation.
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

// Import makes a new conversation of a ZIP that was exported. size may be -1
// where it is not known.
func (c *Client) Import(ctx context.Context, r io.Reader, size int64) (out app.Imported, err error) {
	req, err := c.request(ctx, http.MethodPost, "/conversations/import", r)
	if err != nil {
		return out, err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/zip")
	return out, c.do(req, &out)
}
