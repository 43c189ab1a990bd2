// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/appframe"
)

// AppPath names the app of a call.
type AppPath struct {
	ConversationPath
	Message string `path:"mid" doc:"the message that has the result of the call"`
	Call    string `path:"call" doc:"the id of the call"`
}

func (p AppPath) place() (at app.AppPlace, err error) {
	if at.Conversation, err = p.id(); err != nil {
		return at, err
	}
	at.Message, err = artel.ParseMessageID(p.Message)
	at.Call = artel.CallID(p.Call)
	return at, err
}

// AppState is an app and what its page gets.
type AppState struct {
	mcp.App
	Arguments json.RawMessage `json:"arguments" doc:"of the call"`
	Answer    json.RawMessage `json:"answer,omitempty" doc:"the result as the MCP server gave it; left out if it was too long to be kept"`
}

// AppResource names a resource that an app reads.
type AppResource struct {
	URI string `json:"uri"`
}

const appsPath = "/conversations/{cid}/messages/{mid}/apps/{call}"

func (f *server) apps() {
	register(f, f.op(http.MethodGet, appsPath, "read-app", "Read the app (MCP Apps) that an MCP server has for a call of a tool", http.StatusOK),
		func(ctx context.Context, in *AppPath) (*body[AppState], error) {
			return answerFor(ctx, in.place, func(ctx context.Context, at app.AppPlace) (AppState, error) {
				a, err := f.app.Apps.Find(ctx, at)
				return AppState{a.App, a.Arguments, a.Answer}, err
			})
		})

	page := f.op(http.MethodGet, appsPath+"/page", "read-app-page", "Read the page of an app, for a frame with sandbox=\""+appframe.Sandbox+"\"", http.StatusOK)
	page.Responses["200"] = &huma.Response{
		Description: "HTML that may load nothing and has an origin of its own",
		Content:     map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	register(f, page, func(ctx context.Context, in *struct {
		RequestHeader
		AppPath
	},
	) (*huma.StreamResponse, error) {
		at, err := in.place()
		if err != nil {
			return nil, err
		}
		if dest := in.request.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "iframe" { // what keeps a frame at its address is the page around it
			return nil, artel.Errorf(artel.Denied, "httpapi", dest, "the page of an app is served for frames alone")
		}
		html, err := f.app.Apps.Page(ctx, at)
		if err != nil {
			return nil, err
		}
		document, err := appframe.Document(html, "This browser cannot hold apps: it has no Trusted Types.")
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			_, w := humago.Unwrap(hc)
			appframe.SetHeader(w.Header())
			w.Header().Set("Cache-Control", "private, no-cache")
			_, _ = w.Write(document)
		}}, nil
	})

	register(f, f.op(http.MethodPost, appsPath+"/tools/{name}", "call-app-tool", "Call a tool of the MCP server of an app, which it has for apps, and return its result", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct {
			AppPath
			Name    string `path:"name" doc:"the server's own name of the tool"`
			Confirm bool   `query:"confirm" doc:"a user has agreed to this call, which permissions set to ask"`
			Body    *json.RawMessage
		},
		) (*body[json.RawMessage], error) {
			at, err := in.place()
			if err != nil {
				return nil, err
			}
			var args json.RawMessage // none are an empty object
			if in.Body != nil {
				args = *in.Body
			}
			return answer(f.app.Apps.Call(ctx, at, in.Name, args, in.Confirm))
		})

	register(f, f.op(http.MethodPost, appsPath+"/resources", "read-app-resource", "Read a resource of the MCP server of an app", http.StatusOK),
		func(ctx context.Context, in *struct {
			AppPath
			Body AppResource
		},
		) (*body[json.RawMessage], error) {
			at, err := in.place()
			if err != nil {
				return nil, err
			}
			return answer(f.app.Apps.Read(ctx, at, in.Body.URI))
		})
}

// isAppPage reports whether the page of an app is read at path.
func isAppPage(path string) bool {
	return strings.Contains(path, "/apps/") && strings.HasSuffix(path, "/page")
}
