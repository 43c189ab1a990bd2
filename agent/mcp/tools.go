// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/media"
)

// prefix returns the prefix of the names of the server's tools.
func (s Server) prefix() string { return s.Name + "_" }

// ToolName returns the name of a server's tool for models: characters that some
// model API refuses become "_", and if the name was changed or cut, it ends
// with a hash of the original.
func (s Server) ToolName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || !notInName(r) {
			return r
		}
		return '_'
	}, name)
	full := s.prefix() + clean
	if clean == name && len(full) <= tool.MaxName {
		return full
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	end := fmt.Sprintf("_%08x", h.Sum32())
	return full[:min(len(full), tool.MaxName-len(end))] + end
}

// maxDoc is how many bytes of a tool's description are sent to a model.
const maxDoc = 8000

// tool makes a tool from one of the server's.
func (c *connection) tool(t *sdk.Tool, asTask bool) (tool.Tool, error) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return tool.Tool{}, err
	}
	made := tool.Tool{Deferrable: true, Name: c.server.ToolName(t.Name), Doc: artel.Shorten(strings.TrimSpace(t.Description), maxDoc), Schema: schema}
	if a := t.Annotations; a != nil {
		made.Parallel = a.ReadOnlyHint
		if a.ReadOnlyHint || a.IdempotentHint {
			made.Repeat = tool.RepeatAlways
		}
		if made.Doc == "" {
			made.Doc = artel.Shorten(a.Title, maxDoc)
		}
	}
	name, shown := t.Name, appToolOf(t, made.Name)
	made.Call = func(ctx context.Context, e *tool.Env, args json.RawMessage) (tool.Result, error) {
		return c.call(ctx, e, made.Name, func(ctx context.Context, k *inCall) (tool.Result, error) {
			r, err := k.callTool(ctx, name, args, asTask)
			if err != nil && ctx.Err() == nil && !c.offers(made.Name, e.Owner) {
				return tool.Failed("%s: the MCP server %s does not offer this tool any more; use another one", made.Name, c.server.Name), nil
			}
			if err != nil {
				return tool.Result{}, err
			}
			out, err := c.result(ctx, e, r)
			if err == nil {
				c.withApp(ctx, k, shown, name, r, &out)
			}
			return out, err
		})
	}
	_, err = tool.NewSet(made)
	return made, err
}

// callTool calls a tool of the server. One that an earlier process began continues.
func (k *inCall) callTool(ctx context.Context, name string, args json.RawMessage, asTask bool) (r *sdk.CallToolResult, err error) {
	if t := k.kept().Task; t != nil {
		return k.await(ctx, *t)
	}
	err = k.rounds(ctx, func(ctx context.Context, answers sdk.InputResponseMap, state string) (o outcome, err error) {
		params := &sdk.CallToolParams{Name: name, Arguments: args, InputResponses: answers, RequestState: state}
		params.SetProgressToken(k.token)
		if asTask {
			params.Meta[metaTask] = taskTTL.Milliseconds()
		}
		if r, err = k.session.CallTool(ctx, params); err == nil {
			o = outcome{r.InputRequests, r.RequestState, r.NeedsInput()}
		}
		return o, err
	})
	if err != nil {
		return nil, err
	}
	if t, err := startedTask(r); t != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return k.await(ctx, *t)
	}
	return r, nil
}

// offers reports whether the server has a tool at this moment.
func (c *connection) offers(name string, owner artel.Owner) bool {
	tools := c.currentTools()
	if c.of != nil {
		tools = c.of.tools(owner)
	}
	return len(tools) == 0 || slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name == name })
}

// progressFactor is how many times longer a call with progress notifications
// may take.
const progressFactor = 10

// call runs an exchange with the server within its limits. Failures are
// results, unless ctx ended or storing media failed.
func (c *connection) call(ctx context.Context, e *tool.Env, name string, do func(context.Context, *inCall) (tool.Result, error)) (tool.Result, error) {
	c, session, ended, err := c.forCall(ctx, e)
	if err != nil {
		return c.withoutAccess(ctx, name, err)
	}
	if ended == nil {
		return tool.Failed("%s: the MCP server %s was changed or removed; the next message of the user gets the tools that there are now", name, c.server.Name), nil
	}
	defer ended()
	if session == nil && e.Host != nil && e.Host.Kept(e.Call) != nil { // it continues after a restart
		session = c.awaitSession(ctx)
	}
	if session == nil {
		return tool.Failed("%s: the MCP server %s is not connected now (%s); it is tried again by itself", name, c.server.Name, c.health().Error), nil
	}
	turn, err := c.takeTurn(ctx)
	if err != nil {
		return tool.Result{}, artel.Errorf(artel.Canceled, "tool.Call", name, "%w", err)
	}
	turn = sync.OnceFunc(turn)
	defer turn()
	limit := c.server.Limits.Call
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := &inCall{c: c, env: e, name: name, session: session, asked: map[string]int{}, endTurn: turn, clock: newCallClock(limit, func() { cancel(errSlow) })}
	defer k.clock.stop()
	defer c.track(k)()
	limited = context.WithValue(limited, callKey{}, k.token)
	k.ctx = limited
	r, err := do(limited, k)
	if err == nil {
		return r, nil
	}
	if why := c.refused(); why != nil && ctx.Err() == nil {
		return c.withoutAccess(ctx, name, why)
	}
	if kept, ok := errors.AsType[*artel.Error](err); ok {
		return r, kept
	}
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, artel.Errorf(artel.Canceled, "tool.Call", name, "%w", ctx.Err())
	case errors.Is(context.Cause(limited), errSlow):
		return tool.Failed("%s: no result came within %v, and the call was cancelled; it may have done a part of its work", name, limit), nil
	}
	if failed, ok := errors.AsType[*callError](err); ok {
		return tool.Failed("%s: %s", name, c.hide(artel.Shorten(failed.why, 2000))), nil
	}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return tool.Failed("%s: %s", name, c.hide(artel.Shorten(said.Message, 2000))), nil
	}
	return tool.Failed("%s: the connection to the MCP server %s was lost, outcome unknown: %s", name, c.server.Name, c.hide(artel.Shorten(err.Error(), 500))), nil
}

// forCall begins a call of the user at the connection of the user, if users have
// connections of their own. ended is nil if the server is not of the pool any more.
func (c *connection) forCall(ctx context.Context, e *tool.Env) (at *connection, session *sdk.ClientSession, ended func(), err error) {
	if c.of == nil {
		session, ended, _ = c.begin()
		return c, session, ended, nil
	}
	for range 3 { // an idle one may be closed just now
		at, err = c.of.open(ctx, e.Owner)
		if err != nil {
			return c, nil, nil, err
		}
		if session, ended, ok := at.begin(); ok {
			return at, session, ended, nil
		}
	}
	return c, nil, nil, nil
}

// A callError is the reason of a failed call, as the model reads it. The connection works.
type callError struct{ why string }

// Error implements error.
func (e *callError) Error() string { return e.why }

func callFailed(format string, args ...any) error { return &callError{fmt.Sprintf(format, args...)} }

var errSlow = errors.New("no sign of progress")

// result makes the result for the model from the server's.
func (c *connection) result(ctx context.Context, e *tool.Env, r *sdk.CallToolResult) (tool.Result, error) {
	w := writer{c: c, env: e}
	for _, content := range r.Content {
		if err := w.add(ctx, content); err != nil {
			return tool.Result{}, err
		}
	}
	linked := slices.ContainsFunc(r.Content, func(x sdk.Content) bool { _, ok := x.(*sdk.ResourceLink); return ok })
	if reads := c.server.ToolName("read_resource"); linked && c.offers(reads, e.Owner) {
		w.texts = append(w.texts, "(read linked resources with "+reads+")")
	}
	if len(w.texts) == 0 && r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return tool.Result{}, err
		}
		w.texts = append(w.texts, c.hide(string(b)))
	}
	out := w.result()
	out.IsError = r.IsError
	return out, nil
}

// A writer assembles a result.
type writer struct {
	c     *connection
	env   *tool.Env
	texts []string
	parts artel.Parts
}

func (w *writer) add(ctx context.Context, content sdk.Content) error {
	switch x := content.(type) {
	case *sdk.TextContent:
		w.texts = append(w.texts, w.c.hide(x.Text))
	case *sdk.ImageContent:
		return w.bytes(ctx, x.Data, x.MIMEType, "")
	case *sdk.AudioContent:
		return w.bytes(ctx, x.Data, x.MIMEType, "")
	case *sdk.ResourceLink:
		w.texts = append(w.texts, w.c.hide(describe(x.URI, x.Name, x.Title, x.Description, x.MIMEType, x.Size)))
	case *sdk.EmbeddedResource:
		return w.resource(ctx, x.Resource)
	}
	return nil
}

// resource adds the content of a resource.
func (w *writer) resource(ctx context.Context, r *sdk.ResourceContents) error {
	if r == nil {
		return nil
	}
	if r.Blob != nil {
		return w.bytes(ctx, r.Blob, r.MIMEType, path.Base(r.URI))
	}
	w.texts = append(w.texts, w.c.hide(r.URI)+":\n"+w.c.hide(r.Text))
	return nil
}

// bytes stores binary content as an artifact, and adds its ref.
func (w *writer) bytes(ctx context.Context, b []byte, mediaType, filename string) error {
	if w.env.Artifacts == nil || w.env.Workspace == nil {
		info := media.Detect(b, media.Hint{DeclaredType: mediaType, Filename: filename})
		w.texts = append(w.texts, fmt.Sprintf("[%s, %d bytes]", info.MediaType, len(b)))
		return nil
	}
	staged, err := w.env.Artifacts.Uploads.Stage(ctx, bytes.NewReader(b), media.Hint{DeclaredType: mediaType, Filename: filename})
	if err != nil {
		return err
	}
	a, err := tool.NewKeeper(w.env).Add(ctx, staged)
	if err != nil {
		return err
	}
	part := a.MediaPart()
	w.texts = append(w.texts, fmt.Sprintf("[%s, %d bytes: %s]", a.MediaType, a.Size, part.Ref))
	if a.Binary {
		w.parts = append(w.parts, part)
	}
	return nil
}

func (w *writer) result() tool.Result {
	r := tool.Result{Content: strings.Join(w.texts, "\n\n"), Parts: w.parts}
	if r.Content == "" {
		r.Content = "done, without a result"
	}
	return r
}

func describe(uri, name, title, description, mediaType string, size *int64) string {
	if title == "" {
		title = name
	}
	line := "- " + uri
	if title != "" {
		line += " " + title
	}
	if mediaType != "" {
		line += " (" + mediaType
		if size != nil {
			line += fmt.Sprintf(", %d bytes", *size)
		}
		line += ")"
	}
	if description != "" {
		line += ": " + artel.Shorten(description, 500)
	}
	return line
}

// maxResources bounds the resources in one list.
const maxResources = 500

// listResources is a tool that lists the resources of the server.
func (c *connection) listResources() tool.Tool {
	t := tool.Func(c.server.ToolName("list_resources"), "Lists what there is to read on the MCP server "+c.server.Name+": addresses for "+c.server.ToolName("read_resource")+".",
		func(ctx context.Context, e *tool.Env, _ struct{}) (tool.Result, error) {
			return c.call(ctx, e, c.server.ToolName("list_resources"), func(ctx context.Context, k *inCall) (tool.Result, error) {
				var found []string
				for r, err := range k.session.Resources(ctx, nil) {
					if err != nil {
						return tool.Result{}, err
					}
					if strings.HasPrefix(r.URI, appScheme) {
						continue // a page for people
					}
					if len(found) == maxResources {
						found = append(found, "… and more")
						break
					}
					var size *int64
					if r.Size > 0 {
						size = &r.Size
					}
					found = append(found, c.hide(describe(r.URI, r.Name, r.Title, r.Description, r.MIMEType, size)))
				}
				if len(found) == 0 {
					found = []string{"there are none"}
				}
				return tool.Result{Content: strings.Join(found, "\n")}, nil
			})
		})
	t.Repeat, t.Parallel, t.Deferrable = tool.RepeatAlways, true, true
	return t
}

type resourceArgs struct {
	URI string `json:"uri" jsonschema:"the address of the resource"`
}

// readResource is a tool that reads a resource: text unchanged, bytes as an
// artifact.
func (c *connection) readResource() tool.Tool {
	name := c.server.ToolName("read_resource")
	t := tool.Func(name, "Reads a resource of the MCP server "+c.server.Name+"; what is no text becomes an artifact.",
		func(ctx context.Context, e *tool.Env, in resourceArgs) (tool.Result, error) {
			if strings.HasPrefix(in.URI, appScheme) {
				return tool.Failed("%s: %s is the page of an app, which is shown to the user; call the tool that it belongs to", name, artel.Shorten(in.URI, 200)), nil
			}
			return c.call(ctx, e, name, func(ctx context.Context, k *inCall) (tool.Result, error) {
				r, err := k.read(ctx, in.URI)
				if err != nil {
					return tool.Result{}, err
				}
				w := writer{c: c, env: e}
				for _, contents := range r.Contents {
					if err := w.resource(ctx, contents); err != nil {
						return tool.Result{}, err
					}
				}
				return w.result(), nil
			})
		})
	t.Repeat, t.Parallel, t.Deferrable = tool.RepeatAlways, true, true
	return t
}

// read reads a resource.
func (k *inCall) read(ctx context.Context, uri string) (r *sdk.ReadResourceResult, err error) {
	err = k.rounds(ctx, func(ctx context.Context, answers sdk.InputResponseMap, state string) (o outcome, err error) {
		if r, err = k.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri, InputResponses: answers, RequestState: state}); err == nil {
			o = outcome{r.InputRequests, r.RequestState, r.NeedsInput()}
		}
		return o, err
	})
	return r, err
}
