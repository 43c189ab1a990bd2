// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel"
)

func agentURL(name artel.AgentName) string { return "/agents/" + url.PathEscape(string(name)) }

// Agents lists the agents.
func (c *Client) Agents(ctx context.Context) (out List[AgentView], err error) {
	return out, c.json(ctx, http.MethodGet, "/agents", nil, &out)
}

// Agent reads an agent.
func (c *Client) Agent(ctx context.Context, name artel.AgentName) (out AgentView, err error) {
	return out, c.json(ctx, http.MethodGet, agentURL(name), nil, &out)
}

// CreateAgent creates an agent.
func (c *Client) CreateAgent(ctx context.Context, d AgentFields) (out AgentView, err error) {
	return out, c.json(ctx, http.MethodPost, "/agents", d, &out)
}

// SaveAgent replaces an agent, whatever its revision.
func (c *Client) SaveAgent(ctx context.Context, d AgentFields) (out AgentView, err error) {
	return out, c.json(ctx, http.MethodPut, agentURL(d.Name), d, &out)
}

// DeleteAgent deletes an agent.
func (c *Client) DeleteAgent(ctx context.Context, name artel.AgentName) error {
	return c.json(ctx, http.MethodDelete, agentURL(name), nil, nil)
}

// CheckAgent returns the mistakes in an agent.
func (c *Client) CheckAgent(ctx context.Context, d AgentFields) (out AgentCheck, err error) {
	return out, c.json(ctx, http.MethodPost, "/agents/check", d, &out)
}

// ExportAgent returns an agent as a Markdown file, which the caller closes.
func (c *Client) ExportAgent(ctx context.Context, name artel.AgentName) (Download, error) {
	return c.download(ctx, agentURL(name)+"/markdown")
}

// ImportAgent creates an agent from a Markdown file. name is used if the file
// has none; replace allows an existing agent of that name.
func (c *Client) ImportAgent(ctx context.Context, name string, src []byte, replace bool) (out AgentView, err error) {
	q := url.Values{"name": {name}, "replace": {strconv.FormatBool(replace)}}
	req, err := c.request(ctx, http.MethodPost, "/agents/import?"+q.Encode(), bytes.NewReader(src))
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "text/markdown")
	return out, c.do(req, &out)
}
