// SPDX-License-Identifier: Apache-2.0

// Package gatewaylog keeps what the API and the page show of the gateway: one
// entry for each request, and the files that entries name.
//
// [Log.Add] never waits for the store. A goroutine that lives only while
// entries are waiting writes them in batches. Entries hold no content of
// requests; they name media by ref.
//
// Bytes that only a gateway request refers to are stored as a [store.Rendition]
// of themselves ([PutFile]). Their owner can read them by ref ([File]) until
// garbage collection removes them; the next request with the same bytes stores
// them again.
package gatewaylog

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A GatewayEntry describes one request of the gateway, or one call of a tool of an MCP
// server. It holds no content. The OpenAPI document has a schema of this name.
type GatewayEntry struct {
	Number   int64           `json:"n" doc:"above that of every entry before it"`
	Time     time.Time       `json:"time"`
	Key      string          `json:"key,omitempty" doc:"the name of the client's key"`
	Inbound  model.Dialect   `json:"inbound" doc:"mcp: a call of MCP"`
	Endpoint string          `json:"endpoint" doc:"of a call of MCP: its method"`
	Model    string          `json:"model,omitempty" doc:"as the client named it"`
	Service  artel.ServiceID `json:"service,omitempty" doc:"that was asked last"`
	Outbound model.Dialect   `json:"outbound,omitempty"`
	Stream   bool            `json:"stream,omitempty"`
	Status   int             `json:"status" doc:"499: the client did not wait; of a call of MCP 200, 422 if the tool reported an error, 502 if the server failed"`
	Millis   float64         `json:"ms"`
	BytesIn  int64           `json:"bytes_in" doc:"of the request's body, without its media; of a call of MCP: that the tool returned"`
	BytesOut int64           `json:"bytes_out" doc:"of the answer's; of a call of MCP: that the host got"`
	Usage    artel.Usage     `json:"usage"`
	Changes  []GatewayChange `json:"changes,omitempty" doc:"in the order of the request"`
	Unlisted int             `json:"unlisted,omitempty" doc:"changes beyond those that are listed"`
	Tries    int             `json:"tries,omitempty" doc:"calls that were made, of all services"`
	Relents  int             `json:"relents,omitempty" doc:"of them, with less than the client sent, after a refusal"`
	Error    string          `json:"error,omitempty"`
	MCP      *MCPCall        `json:"mcp,omitempty" doc:"absent: a request of the gateway"`
}

// MCP is the Inbound of calls of MCP.
const MCP model.Dialect = "mcp"

// StatusLeft is the status of an entry whose client did not wait.
const StatusLeft = 499

// An MCPCall is what an entry says about a call of a tool of an MCP server.
type MCPCall struct {
	Server       string               `json:"server" doc:"artel for the artifact tools, otherwise the name of the server behind a proxy"`
	Tool         string               `json:"tool" doc:"or the address of a resource"`
	Host         string               `json:"host,omitempty" doc:"the program that called, as it names itself"`
	HostVersion  string               `json:"host_version,omitempty"`
	Conversation artel.ConversationID `json:"conversation,omitempty" doc:"of the artifacts"`
}

// bounded returns the call with names of a length that a row can have.
func (c *MCPCall) bounded() *MCPCall {
	if c == nil {
		return nil
	}
	short := func(s string) string { return artel.Shorten(strings.ToValidUTF8(s, "\ufffd"), maxName) }
	return &MCPCall{
		Server: cmp.Or(short(c.Server), "mcp"), Tool: short(c.Tool), Host: short(c.Host), HostVersion: short(c.HostVersion), Conversation: c.Conversation,
	}
}

// A GatewayChange describes what the gateway did to one part of a request, and
// why.
type GatewayChange struct {
	Did       string          `json:"did" doc:"a step of the ladder, or what else was done"`
	Reason    artel.Reason    `json:"reason,omitempty"`
	Field     string          `json:"field,omitempty" doc:"of the request, which was dropped; of relabelled media, their declared type"`
	Ref       artel.Ref       `json:"ref"`
	MediaType string          `json:"media_type,omitempty"`
	Size      int64           `json:"size,omitempty" doc:"bytes of what a call of MCP kept back"`
	Place     model.Place     `json:"place,omitempty" doc:"where it goes"`
	Call      artel.CallID    `json:"call_id,omitempty" doc:"of the tool whose result it is"`
	Service   artel.ServiceID `json:"service,omitempty" doc:"for which it was done; absent: for all"`
}

// Kept is how many requests of the gateway, and how many calls of MCP, an owner has; older
// ones are removed.
const Kept = 10_000

const (
	maxChanges  = 200                    // listed changes of an entry
	maxWaiting  = 10_000                 // entries waiting to be written; more are dropped
	batchWindow = 100 * time.Millisecond // how long entries gather before they are written together
	pruneEvery  = 500                    // entries written between two removals of old ones
	headSize    = 64 << 10               // bytes that media.Detect looks at
	maxError    = 2000                   // characters of an error
	maxName     = 200                    // characters of a name in a call of MCP
)

// Config has the parts of a [Log]. All are needed except Keys.
type Config struct {
	Store store.Store
	Blobs blob.Store
	Keys  []string // names of the keys that clients may have
	Log   *slog.Logger
	Now   func() time.Time
}

// A Log keeps the newest [Kept] entries of each owner. It is safe for concurrent
// use.
type Log struct {
	c       Config
	mu      sync.Mutex
	waiting map[artel.Owner][]GatewayEntry
	count   int           // of all waiting entries
	dropped int           // since the last warning
	idle    chan struct{} // closed when the writer ends; nil: no writer
	changed chan struct{} // closed after every write
	flush   chan struct{} // has an element if a caller waits for the writer

	unpruned int // entries since the last pruning; used by the writer alone
}

// New returns a Log.
func New(c Config) *Log {
	return &Log{c: c, waiting: map[artel.Owner][]GatewayEntry{}, changed: make(chan struct{}), flush: make(chan struct{}, 1), unpruned: pruneEvery}
}

// Keys returns the names of the keys that clients may have.
func (l *Log) Keys() []string { return slices.Clone(l.c.Keys) }

// Add queues an entry of the context's owner and returns without waiting for
// the store. An entry without an owner is of a request that was refused; it is dropped.
func (l *Log) Add(ctx context.Context, e GatewayEntry) {
	owner := artel.OwnerOf(ctx)
	if owner == "" {
		return
	}
	if n := len(e.Changes); n > maxChanges {
		e.Changes, e.Unlisted = e.Changes[:maxChanges], e.Unlisted+n-maxChanges
	}
	e.MCP = e.MCP.bounded()
	e.Error = artel.Shorten(e.Error, maxError)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= maxWaiting {
		l.dropped++
		return
	}
	l.waiting[owner] = append(l.waiting[owner], e)
	l.count++
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.write(l.idle)
	}
}

// Flush waits until all entries added before are written.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case l.flush <- struct{}{}:
	default: // another caller waits too
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return artel.Errorf(artel.Canceled, "gatewaylog.Log.Flush", "", "the log is not written: %w", ctx.Err())
	}
}

// Changed returns a channel that is closed at the next write.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// write writes the waiting entries, until none are left.
func (l *Log) write(idle chan struct{}) {
	defer close(idle)
	for {
		window := time.NewTimer(batchWindow)
		select {
		case <-window.C:
		case <-l.flush:
			window.Stop()
		}
		l.mu.Lock()
		batch, dropped := l.waiting, l.dropped
		if l.dropped = 0; l.count == 0 {
			l.idle = nil
			l.mu.Unlock()
			return
		}
		l.waiting, l.count = map[artel.Owner][]GatewayEntry{}, 0
		l.mu.Unlock()
		if dropped > 0 {
			l.c.Log.Warn("the gateway's log was full; entries were dropped", "dropped", dropped)
		}
		for owner, entries := range batch {
			if err := l.store(context.Background(), owner, entries); err != nil {
				l.c.Log.Error("the gateway's log could not be written", "entries", len(entries), "err", err)
			}
		}
		l.mu.Lock()
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// store writes entries of one owner, and makes the bytes that they name readable.
func (l *Log) store(ctx context.Context, owner artel.Owner, entries []GatewayEntry) error {
	rows := make([]store.GatewayEntry, len(entries))
	types := map[artel.Digest]string{} // of the named bytes
	for i, e := range entries {
		server := ""
		if e.MCP != nil {
			server = e.MCP.Server
		}
		for _, c := range e.Changes {
			if c.Ref.IsBlob() && server == "" { // what a call of MCP keeps, its owner has in a conversation
				types[c.Ref.Digest] = c.MediaType
			}
		}
		body, err := json.Marshal(e)
		if err != nil {
			return artel.Errorf(artel.Internal, "gatewaylog.Log", "", "%w", err)
		}
		rows[i] = store.GatewayEntry{Key: e.Key, Service: e.Service, Server: server, Status: e.Status, Changed: len(e.Changes) > 0, Body: body}
	}
	files, err := l.newFiles(ctx, owner, types)
	if err != nil {
		return err
	}
	l.unpruned += len(rows)
	prune := l.unpruned >= pruneEvery
	err = l.c.Store.Update(ctx, owner, func(tx store.Tx) error {
		for d, info := range files {
			if err := PutFile(tx, d, info, l.c.Now()); err != nil {
				return err
			}
		}
		if err := tx.GatewayLog.Add(rows...); err != nil || !prune {
			return err
		}
		return tx.GatewayLog.Trim(Kept)
	})
	if err == nil && prune {
		l.unpruned = 0
	}
	return err
}

// newFiles describes those of the bytes that exist and cannot be read by ref
// yet. It removes the others from types.
func (l *Log) newFiles(ctx context.Context, owner artel.Owner, types map[artel.Digest]string) (map[artel.Digest]artel.MediaInfo, error) {
	if len(types) == 0 {
		return nil, nil
	}
	err := l.c.Store.View(ctx, owner, func(tx store.Tx) error {
		for d := range types {
			_, err := File(tx, d)
			if err == nil {
				delete(types, d)
			} else if artel.KindOf(err) != artel.NotFound {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	files := map[artel.Digest]artel.MediaInfo{}
	for d, mediaType := range types {
		b, err := l.c.Blobs.Open(ctx, d)
		if err != nil {
			continue // it was removed
		}
		head, err := io.ReadAll(io.LimitReader(b, headSize))
		if err == nil {
			info := media.Detect(head, media.Hint{DeclaredType: mediaType})
			info.Size = b.Size()
			files[d] = info
		}
		_ = b.Close() // it was read
	}
	return files, nil
}

// A Query selects entries of the log; zero fields select all.
type Query struct {
	Key     string
	Service artel.ServiceID
	Server  string // that was called by MCP
	Of      store.LogOf
	Status  string // "ok", "failed", a class as "4xx", or one as "429"
	Changed bool   // only requests of which something was changed
	Page    store.Page
}

// List returns the newest entries first. The next cursor is "" at the end. A bad
// Status, Of or cursor is of kind Invalid.
func (l *Log) List(ctx context.Context, q Query) (items []GatewayEntry, next string, err error) {
	low, high, err := statusRange(q.Status)
	if err != nil {
		return nil, "", err
	}
	switch q.Of {
	case store.LogOfAll, store.LogOfGateway, store.LogOfMCP:
	default:
		return nil, "", artel.Errorf(artel.Invalid, "gatewaylog.Log.List", "of", "%q is no kind of entries: want gateway or mcp", artel.Shorten(string(q.Of), 80))
	}
	var rows []store.GatewayEntry
	err = l.c.Store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) (err error) {
		rows, next, err = tx.GatewayLog.List(store.GatewayQuery{Key: q.Key, Service: q.Service, Server: q.Server, Of: q.Of, MinStatus: low, MaxStatus: high, Changed: q.Changed, Page: q.Page})
		return err
	})
	if err != nil {
		return nil, "", err
	}
	items = make([]GatewayEntry, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Body, &items[i]); err != nil {
			return nil, "", artel.Errorf(artel.Internal, "gatewaylog.Log.List", strconv.FormatInt(r.Number, 10), "the row is damaged: %w", err)
		}
		items[i].Number = r.Number
	}
	return items, next, nil
}

// statusRange returns the bounds that a text means; 0: no bound.
func statusRange(s string) (low, high int, err error) {
	switch {
	case s == "":
		return 0, 0, nil
	case s == "ok":
		return 0, 399, nil
	case s == "failed":
		return 400, 0, nil
	case len(s) == 3 && s[0] >= '1' && s[0] <= '5' && s[1:] == "xx":
		low = int(s[0]-'0') * 100
		return low, low + 99, nil
	}
	if low, err = strconv.Atoi(s); err != nil || low < 100 || low > 599 {
		return 0, 0, artel.Errorf(artel.Invalid, "gatewaylog.Log.List", "status", "%q is no status: want ok, failed, a class as 4xx, or a number as 429", artel.Shorten(s, 80))
	}
	return low, low, nil
}

// fileForm is the rendition form of bytes that only a gateway request refers to.
const fileForm = "lent"

// PutFile makes bytes readable for the owner of tx by their ref.
func PutFile(tx store.Tx, d artel.Digest, info artel.MediaInfo, at time.Time) error {
	return tx.Renditions.Put(store.Rendition{Source: d, Form: fileForm, Digest: d, MediaInfo: info, CreatedAt: at})
}

// File returns the row that [PutFile] wrote; of kind NotFound if there is none.
func File(tx store.Tx, d artel.Digest) (store.Rendition, error) {
	return tx.Renditions.Get(d, fileForm)
}
