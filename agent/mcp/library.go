// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// A Library has the resources and prompts of servers, for people. The owner of the
// context of a call is the user, whose account is used where a server needs one.
type Library struct{ pools []*Pool }

// NewLibrary returns the library of the servers of pools.
func NewLibrary(pools ...*Pool) *Library { return &Library{pools} }

// A ServerOffer says what a server has for people. Of one that needs an account and is not
// connected now, it is not known.
type ServerOffer struct {
	Name      string           `json:"name"`
	State     tool.ServerState `json:"state"`
	Resources bool             `json:"resources"`
	Prompts   bool             `json:"prompts"`
}

// A Resource is something that a server lets people read. Of a template, URI is one by
// RFC 6570.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MediaType   string `json:"media_type,omitempty"`
	Size        int64  `json:"size,omitempty"`
}

// A Prompt is a text that a server makes of arguments.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// A PromptArgument is an argument of a [Prompt].
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// A Content is a part of a resource or of a message of a prompt.
type Content struct {
	Role      string `json:"role,omitempty"` // of a message: user or assistant
	URI       string `json:"uri,omitempty"`  // of a resource
	MediaType string `json:"media_type,omitempty"`
	Text      string `json:"text,omitempty"`
	Bytes     []byte `json:"bytes,omitempty"` // in the place of Text
}

// Bounds of what people get of a server.
const (
	maxListed  = 1000     // entries of a page
	maxContent = 32 << 20 // bytes of a resource or a prompt
	maxCursor  = 4000     // bytes
	maxArgs    = 50       // arguments of a prompt
)

// Offers returns what each server has for the owner of ctx, in the order of the servers.
// A server of which only some tools are offered has nothing else.
func (l *Library) Offers(ctx context.Context) []ServerOffer {
	out := []ServerOffer{}
	for _, c := range l.all() {
		if c.server.Only != nil {
			continue
		}
		o := ServerOffer{Name: c.server.Name, State: c.health().State}
		session := c.connected(artel.OwnerOf(ctx))
		if session == nil {
			o.Resources, o.Prompts = c.users != nil, c.users != nil
		} else if has := session.InitializeResult().Capabilities; has != nil {
			o.Resources, o.Prompts = has.Resources != nil, has.Prompts != nil
		}
		if o.Resources || o.Prompts {
			out = append(out, o)
		}
	}
	return out
}

// connected returns the session that serves a user at this moment; nil: none.
func (c *connection) connected(owner artel.Owner) *sdk.ClientSession {
	if c.users != nil {
		c.users.mu.Lock()
		u := c.users.users[owner]
		var own *connection
		if u != nil {
			own = u.conn
		}
		c.users.mu.Unlock()
		if own == nil {
			return nil
		}
		c = own
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (l *Library) all() (all []*connection) {
	for _, p := range l.pools {
		all = append(all, p.all()...)
	}
	return all
}

// call runs an exchange with a server that has something for people. Its error says why
// the server gave nothing.
func (l *Library) call(ctx context.Context, server string, do func(ctx context.Context, k *inCall) error) error {
	all := l.all()
	at := slices.IndexFunc(all, func(c *connection) bool { return c.server.Name == server && c.server.Only == nil })
	if at < 0 {
		return artel.Errorf(artel.NotFound, "mcp.Library", artel.Shorten(server, 80), "there is no tool server of this name with resources and prompts")
	}
	r, err := all[at].call(ctx, &tool.Env{Owner: artel.OwnerOf(ctx)}, server, func(ctx context.Context, k *inCall) (tool.Result, error) {
		return tool.Result{}, do(ctx, k)
	})
	if err == nil && r.IsError {
		err = artel.Errorf(artel.Unavailable, "mcp.Library", server, "%s", r.Content)
	}
	return err
}

// checkPage refuses pages that are no pages.
func checkPage(n int, next string) error {
	switch {
	case n > maxListed:
		return callFailed("the server lists %d entries in one page; at most %d are taken", n, maxListed)
	case len(next) > maxCursor:
		return callFailed("the server names the next page with %d bytes; at most %d are taken", len(next), maxCursor)
	}
	return nil
}

// Resources returns a page of the resources of a server, and the cursor of the next one.
func (l *Library) Resources(ctx context.Context, server, cursor string) (found []Resource, next string, err error) {
	err = l.call(ctx, server, func(ctx context.Context, k *inCall) error {
		r, err := k.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, x := range r.Resources {
			found = append(found, k.resource(Resource{x.URI, x.Name, x.Title, x.Description, x.MIMEType, x.Size}))
		}
		next = r.NextCursor
		return checkPage(len(found), next)
	})
	return found, next, err
}

// Templates returns a page of the templates of addresses of a server.
func (l *Library) Templates(ctx context.Context, server, cursor string) (found []Resource, next string, err error) {
	err = l.call(ctx, server, func(ctx context.Context, k *inCall) error {
		r, err := k.session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, x := range r.ResourceTemplates {
			found = append(found, k.resource(Resource{x.URITemplate, x.Name, x.Title, x.Description, x.MIMEType, 0}))
		}
		next = r.NextCursor
		return checkPage(len(found), next)
	})
	return found, next, err
}

func (k *inCall) resource(r Resource) Resource {
	return Resource{k.c.hide(r.URI), k.c.hide(artel.Shorten(r.Name, 200)), k.c.hide(artel.Shorten(r.Title, 200)), k.c.hide(artel.Shorten(r.Description, 1000)), artel.Shorten(r.MediaType, 100), max(r.Size, 0)}
}

// Prompts returns a page of the prompts of a server.
func (l *Library) Prompts(ctx context.Context, server, cursor string) (found []Prompt, next string, err error) {
	err = l.call(ctx, server, func(ctx context.Context, k *inCall) error {
		r, err := k.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, x := range r.Prompts {
			p := Prompt{Name: x.Name, Title: k.c.hide(artel.Shorten(x.Title, 200)), Description: k.c.hide(artel.Shorten(x.Description, 1000))}
			if len(x.Arguments) > maxArgs {
				continue // it cannot be used
			}
			for _, a := range x.Arguments {
				p.Arguments = append(p.Arguments, PromptArgument{a.Name, artel.Shorten(a.Title, 200), k.c.hide(artel.Shorten(a.Description, 1000)), a.Required})
			}
			found = append(found, p)
		}
		next = r.NextCursor
		return checkPage(len(found), next)
	})
	return found, next, err
}

// Read reads a resource.
func (l *Library) Read(ctx context.Context, server, uri string) (found []Content, err error) {
	err = l.call(ctx, server, func(ctx context.Context, k *inCall) error {
		r, err := k.read(ctx, uri)
		if err != nil {
			return err
		}
		for _, x := range r.Contents {
			found = append(found, k.content("", x))
		}
		return checkContent(found)
	})
	return found, err
}

func (k *inCall) content(role string, x *sdk.ResourceContents) Content {
	return Content{role, k.c.hide(x.URI), artel.Shorten(x.MIMEType, 100), k.c.hide(x.Text), x.Blob}
}

func checkContent(found []Content) error {
	size := 0
	for _, c := range found {
		size += len(c.Text) + len(c.Bytes)
	}
	if size > maxContent {
		return callFailed("the server sends %d bytes; at most %d are taken", size, maxContent)
	}
	return nil
}

// Prompt returns the messages of a prompt with arguments.
func (l *Library) Prompt(ctx context.Context, server, name string, arguments map[string]string) (found []Content, err error) {
	err = l.call(ctx, server, func(ctx context.Context, k *inCall) error {
		var r *sdk.GetPromptResult
		err := k.rounds(ctx, func(ctx context.Context, answers sdk.InputResponseMap, state string) (o outcome, err error) {
			r, err = k.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments, InputResponses: answers, RequestState: state})
			if err == nil {
				o = outcome{r.InputRequests, r.RequestState, r.NeedsInput()}
			}
			return o, err
		})
		if err != nil {
			return err
		}
		for _, m := range r.Messages {
			switch x := m.Content.(type) {
			case *sdk.TextContent:
				found = append(found, Content{Role: string(m.Role), Text: k.c.hide(x.Text)})
			case *sdk.ImageContent:
				found = append(found, Content{Role: string(m.Role), MediaType: artel.Shorten(x.MIMEType, 100), Bytes: x.Data})
			case *sdk.AudioContent:
				found = append(found, Content{Role: string(m.Role), MediaType: artel.Shorten(x.MIMEType, 100), Bytes: x.Data})
			case *sdk.ResourceLink:
				found = append(found, Content{Role: string(m.Role), URI: k.c.hide(x.URI), MediaType: artel.Shorten(x.MIMEType, 100)})
			case *sdk.EmbeddedResource:
				if x.Resource != nil {
					found = append(found, k.content(string(m.Role), x.Resource))
				}
			}
		}
		return checkContent(found)
	})
	return found, err
}
