// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Requests is a page of the gateway's log.
type Requests struct {
	Query    url.Values // the filter
	Items    []Request
	Newest   string // URL of the newest; "": these are
	Older    string // URL of older ones; "": none
	Keys     []string
	Services []model.Service
}

// Request is an entry of the log.
type Request struct {
	gatewaylog.GatewayEntry
	Parts  []RequestPart
	Asked  string // display name of the requested service, or server and tool
	Host   string // that called a tool of MCP, with its version; "": unknown
	About  string // URL of the conversation of a call of MCP; "": none
	OfMCP  string // URL of the calls of the same server; "": a request of the gateway
	Took   string
	Tokens string // "": unknown
	Money  string // "": unknown
	In     string
	Out    string
}

// RequestPart is a change to one part of a request.
type RequestPart struct {
	Text    string
	Why     string // "": none
	Name    string // display name of the media type
	URL     string // of the bytes; "": none
	Size    string // "": unknown
	Call    artel.CallID
	Field   string // of the request; "": none
	Service string // if another service answered, the one it was made for; otherwise ""
}

// Failed reports whether the client received an error.
func (r Request) Failed() bool { return r.Status >= http.StatusBadRequest }

// Count is the number of changes.
func (r Request) Count() int { return len(r.Changes) + r.Unlisted }

// Statuses are the further options of the status filter.
func (Requests) Statuses() []string { return []string{"400", "401", "404", "429", "4xx", "5xx"} }

// Selected reports whether a filter has a value.
func (q Requests) Selected(name, value string) bool { return q.Query.Get(name) == value }

// Live is the URL of the live list; "" for older pages, which do not change.
func (q Requests) Live() string {
	if q.Newest != "" {
		return ""
	}
	return "/gateway/live?" + q.Query.Encode()
}

func (ui *handler) requests(ctx context.Context, l phrase.Locale, in url.Values) (Requests, error) {
	q := Requests{Query: url.Values{}, Keys: ui.app.GatewayLog.Keys()}
	for _, name := range []string{"of", "server", "key", "service", "status", "changed"} {
		if v := in.Get(name); v != "" {
			q.Query.Set(name, v)
		}
	}
	names := map[artel.ServiceID]string{}
	for _, s := range ui.app.Models.Services(ctx) {
		if s.Callable() {
			q.Services = append(q.Services, s)
		}
		names[s.ID] = s.Name
	}
	items, next, err := ui.app.GatewayLog.List(ctx, gatewaylog.Query{
		Of: store.LogOf(in.Get("of")), Server: in.Get("server"), Key: in.Get("key"), Service: artel.ServiceID(in.Get("service")), Status: in.Get("status"), Changed: in.Get("changed") != "",
		Page: store.Page{Cursor: in.Get("cursor")},
	})
	if err != nil {
		return q, err
	}
	for _, e := range items {
		q.Items = append(q.Items, requestOf(e, names, l))
	}
	if in.Get("cursor") != "" {
		q.Newest = "/gateway?" + q.Query.Encode()
	}
	if next != "" {
		older := url.Values{"cursor": {next}}
		for name, values := range q.Query {
			older[name] = values
		}
		q.Older = "/gateway?" + older.Encode()
	}
	return q, nil
}

func requestOf(e gatewaylog.GatewayEntry, names map[artel.ServiceID]string, l phrase.Locale) Request {
	name := func(id artel.ServiceID) string { return cmp.Or(names[id], string(id)) }
	r := Request{GatewayEntry: e, Asked: name(e.Service), In: phrase.Size(e.BytesIn), Out: phrase.Size(e.BytesOut)}
	r.Took = strconv.FormatFloat(e.Millis/1000, 'f', 2, 64) + " s"
	if e.Millis < 1000 {
		r.Took = strconv.FormatFloat(e.Millis, 'f', 0, 64) + " ms"
	}
	if c := e.MCP; c != nil {
		r.Asked = c.Server + " · " + c.Tool
		r.Host = strings.TrimSpace(c.Host + " " + c.HostVersion)
		r.OfMCP = "/gateway?" + url.Values{"server": {c.Server}}.Encode()
		if c.Conversation != "" {
			r.About = "/c/" + url.PathEscape(string(c.Conversation))
		}
	}
	if n := e.Usage.InputTokens + e.Usage.OutputTokens; n > 0 {
		r.Tokens = thousands(int(e.Usage.InputTokens)) + " → " + thousands(int(e.Usage.OutputTokens))
		r.Money = Usage{Usage: e.Usage}.Money()
	}
	for _, c := range e.Changes {
		p := RequestPart{Text: l.Say(phrase.Key("page.did_"+c.Did), nil), Call: c.Call, Field: c.Field}
		if c.Service != e.Service {
			p.Service = name(c.Service)
		}
		p.Why = whyChanged(c, cmp.Or(name(c.Service), r.Asked), l)
		if c.Ref.IsBlob() || c.Ref.Artifact != "" {
			p.URL, p.Name = app.FileURL(c.Ref), cmp.Or(typeName(l, c.MediaType), c.Ref.String())
		}
		if c.Size > 0 {
			p.Size = phrase.Size(c.Size)
		}
		r.Parts = append(r.Parts, p)
	}
	return r
}

// whyChanged describes the reason of a change; "" if it needs none.
func whyChanged(c gatewaylog.GatewayChange, model string, l phrase.Locale) string {
	k := phrase.Key("page.reason_" + string(c.Reason))
	if c.Reason == artel.ReasonCapabilityMissing {
		need := artel.CanFile
		switch kind, _, _ := strings.Cut(c.MediaType, "/"); kind {
		case "image":
			need = artel.CanVision
		case "audio":
			need = artel.CanAudio
		case "video":
			need = artel.CanVideo
		}
		k = phrase.Key("page.need_" + string(need))
	}
	text := l.Say(k, map[string]any{"Model": model})
	if text == string(k) {
		return ""
	}
	return text
}

// gateway shows the gateway's log and the snippets that connect programs.
func (ui *handler) gateway(w http.ResponseWriter, r *http.Request) {
	q, err := ui.requests(r.Context(), locale(r), r.URL.Query())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageGateway, nil)
	key := ""
	if len(q.Keys) > 0 || !ui.app.Access.Open() {
		key = "YOUR_KEY"
	}
	ui.show(w, r, http.StatusOK, "gateway.html", struct {
		frame
		Requests Requests
		Clients  []Client
		Keyed    bool // programs need a key
		Hosts    []Client
		Token    bool // hosts need a token
		Wrapped  []wrappedServer
	}{f, q, clients(peer.Of(r).URL(), string(f.Models.Chosen().ID), key), key != "", hosts(peer.Of(r).URL(), !ui.app.Access.Open()), !ui.app.Access.Open(), ui.wrapped(r)})
}

// A wrappedServer is an MCP server of the deployment, which hosts reach behind the proxy.
type wrappedServer struct{ Name, URL string }

// wrapped returns the MCP servers that hosts reach behind the proxy.
func (ui *handler) wrapped(r *http.Request) (out []wrappedServer) {
	for _, prefix := range ui.app.Tools.Prefixes(r.Context()) {
		name := strings.TrimSuffix(prefix, "_")
		out = append(out, wrappedServer{name, peer.Of(r).URL() + "/mcp/proxy/" + name})
	}
	return out
}

// logPause is the minimum time between two updates of the live list.
const logPause = 500 * time.Millisecond

// gatewayLive streams the newest requests whenever they change.
func (ui *handler) gatewayLive(w http.ResponseWriter, r *http.Request) {
	in := r.URL.Query()
	in.Del("cursor")
	ctx, l := r.Context(), locale(r)
	out, err := sse.NewWriter(w)
	if err != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := ui.app.GatewayLog.Changed()
		q, err := ui.requests(ctx, l, in)
		var buf bytes.Buffer
		if err == nil {
			err = ui.render(&buf, l, "requests", q)
		}
		if err == nil {
			err = out.Send(sse.Event{Data: buf.String()})
		}
		for waiting := true; err == nil && waiting; {
			select {
			case <-changed:
				waiting = false
			case <-beat.C:
				err = out.KeepAlive()
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				ui.o.Log.WarnContext(ctx, "the gateway's log could not be streamed", "err", err)
			}
			return // the browser reconnects
		}
		pause := time.NewTimer(logPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}
