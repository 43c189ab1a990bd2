// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/lore"
)

func bookURL(name string) string { return "/books/" + url.PathEscape(name) }

// Books lists the world books.
func (c *Client) Books(ctx context.Context) (out List[BookSummary], err error) {
	return out, c.json(ctx, http.MethodGet, "/books", nil, &out)
}

// Book reads a world book.
func (c *Client) Book(ctx context.Context, name string) (out lore.Book, err error) {
	return out, c.json(ctx, http.MethodGet, bookURL(name), nil, &out)
}

// SaveBook makes or replaces a world book.
func (c *Client) SaveBook(ctx context.Context, b lore.Book) (out lore.Book, err error) {
	return out, c.json(ctx, http.MethodPut, bookURL(b.Name), b, &out)
}

// DeleteBook deletes a world book.
func (c *Client) DeleteBook(ctx context.Context, name string) error {
	return c.json(ctx, http.MethodDelete, bookURL(name), nil, nil)
}

// UseBook lets an agent use a world book, or no longer.
func (c *Client) UseBook(ctx context.Context, name string, agent artel.AgentName, on bool) error {
	method := http.MethodPut
	if !on {
		method = http.MethodDelete
	}
	return c.json(ctx, method, bookURL(name)+agentURL(agent), nil, nil)
}

// TryBook says which entries of a world book fire for a conversation.
func (c *Client) TryBook(ctx context.Context, t BookTrial) (out BookResult, err error) {
	return out, c.json(ctx, http.MethodPost, "/books/try", t, &out)
}

// ImportFile imports a file of another program. name is that of the file; into
// is the agent that a preset changes, or empty.
func (c *Client) ImportFile(ctx context.Context, name string, into artel.AgentName, replace bool, file io.Reader) (out ImportedFile, err error) {
	q := url.Values{"name": {name}, "replace": {strconv.FormatBool(replace)}}
	if into != "" {
		q.Set("into", string(into))
	}
	req, err := c.request(ctx, http.MethodPost, "/import?"+q.Encode(), file)
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	return out, c.do(req, &out)
}
