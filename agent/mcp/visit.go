// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
)

// A Visit is a connection to a server that is only looked at. Close it.
type Visit struct {
	Name     string // that the server gives itself
	Version  string
	Protocol string // the version of the protocol that both speak
	server   Server
	session  *sdk.ClientSession
	end      func()
}

// An Offer is a tool of a server.
type Offer struct {
	Name  string `json:"name" doc:"for agents"`
	Own   string `json:"server_name" doc:"the server's own name, as in tools of the entry"`
	About string `json:"description"`
}

// Look connects to a server, within ctx and its limit.
func Look(ctx context.Context, s Server) (*Visit, error) {
	s.Limits = s.Limits.orDefault()
	limited, stop := context.WithTimeout(ctx, s.Limits.Connect)
	defer stop()
	transport, end := (&connection{server: s}).transport(ctx)
	session, err := newClient(nil).Connect(limited, transport, nil)
	if err != nil {
		end()
		return nil, err
	}
	v := &Visit{server: s, session: session, end: end}
	r := session.InitializeResult()
	v.Protocol = artel.Shorten(r.ProtocolVersion, 40)
	if r.ServerInfo != nil {
		v.Name, v.Version = artel.Shorten(r.ServerInfo.Name, 100), artel.Shorten(r.ServerInfo.Version, 40)
	}
	return v, nil
}

// Offers returns the tools that the server lists, also those that the entry leaves out.
func (v *Visit) Offers(ctx context.Context) ([]Offer, error) {
	limited, stop := context.WithTimeout(ctx, v.server.Limits.Connect)
	defer stop()
	out := []Offer{}
	if c := v.session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return out, nil
	}
	for t, err := range v.session.Tools(limited, nil) {
		if err != nil {
			return nil, err
		}
		if len(out) == maxTools {
			return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
		}
		about := t.Description
		if about == "" && t.Annotations != nil {
			about = t.Annotations.Title
		}
		out = append(out, Offer{v.server.ToolName(t.Name), artel.Shorten(t.Name, 200), v.server.Secrets.Hide(artel.Shorten(about, 1000))})
	}
	return out, nil
}

// Close ends the connection.
func (v *Visit) Close() {
	_ = v.session.Close() // the error is of no use
	v.end()
	if r := v.server.Remote; r != nil {
		r.Client.CloseIdleConnections()
	}
}

// newClient returns a client with options, which shows apps; nil: it offers nothing else.
func newClient(o *sdk.ClientOptions) *sdk.Client {
	if o == nil {
		o = &sdk.ClientOptions{}
	}
	if o.Capabilities == nil {
		o.Capabilities = &sdk.ClientCapabilities{}
	}
	o.Capabilities.AddExtension(AppExtension, map[string]any{"mimeTypes": []string{AppMediaType}})
	return sdk.NewClient(&sdk.Implementation{Name: "artel", Version: "1"}, o)
}
