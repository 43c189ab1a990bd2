// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A GatewayEntry is what the log keeps of one request of the gateway. It holds
// no content.
type GatewayEntry struct {
	Number   int64           `json:"n" doc:"above that of every entry before it"`
	Time     time.Time       `json:"time"`
	Key      string          `json:"key,omitempty" doc:"the name of the client's key"`
	Inbound  model.Dialect   `json:"inbound"`
	Endpoint string          `json:"endpoint"`
	Model    string          `json:"model,omitempty" doc:"as the client named it"`
	Service  artel.ServiceID `json:"service,omitempty" doc:"that was asked last"`
	Outbound model.Dialect   `json:"outbound,omitempty"`
	Stream   bool            `json:"stream,omitempty"`
	Status   int             `json:"status" doc:"499: the client did not wait"`
	Millis   float64         `json:"ms"`
	BytesIn  int64           `json:"bytes_in" doc:"of the request's body, without its media"`
	BytesOut int64           `json:"bytes_out" doc:"of the answer's"`
	Usage    artel.Usage     `json:"usage"`
	Changes  []GatewayChange `json:"changes,omitempty" doc:"in the order of the request"`
	Unlisted int             `json:"unlisted,omitempty" doc:"changes beyond those that are listed"`
	Tries    int             `json:"tries,omitempty" doc:"calls that were made, of all services"`
	Relents  int             `json:"relents,omitempty" doc:"of them, with less than the client sent, after a refusal"`
	Error    string          `json:"error,omitempty"`
}

// A GatewayChange is what the gateway did to one part of a request, and why.
type GatewayChange struct {
	Did       string          `json:"did" doc:"a step of the ladder, or what else was done"`
	Reason    artel.Reason    `json:"reason,omitempty"`
	Ref       artel.Ref       `json:"ref"`
	MediaType string          `json:"media_type,omitempty"`
	Place     model.Place     `json:"place,omitempty" doc:"where it goes"`
	Call      artel.CallID    `json:"call_id,omitempty" doc:"of the tool whose result it is"`
	Service   artel.ServiceID `json:"service,omitempty" doc:"for which it was done; absent: for all"`
}

// Bounds of the log.
const (
	GatewayLogKept = 10_000                 // entries of an owner
	loggedChanges  = 200                    // listed changes of an entry
	logWaiting     = 10_000                 // entries that wait to be written; more are lost
	logGather      = 100 * time.Millisecond // for how long entries gather to be written together
	logPrune       = 500                    // entries that may be above GatewayLogKept
)

// A GatewayLog keeps the newest [GatewayLogKept] entries of the gateway. What
// [GatewayLog.Add] is told is written by one goroutine, which works as long as
// there is something to write, many entries together.
type GatewayLog struct {
	*core
	mu      sync.Mutex
	waiting map[artel.Owner][]GatewayEntry
	count   int           // of all that wait
	lost    int           // since it was last said
	idle    chan struct{} // closed when the writer ends; nil: none is at work
	changed chan struct{} // closed when something was written
	hurry   chan struct{} // has an element where somebody waits for the writer

	grown int // entries since the last pruning; the writer's
}

func newGatewayLog(k *core) *GatewayLog {
	return &GatewayLog{core: k, waiting: map[artel.Owner][]GatewayEntry{}, changed: make(chan struct{}), hurry: make(chan struct{}, 1), grown: logPrune}
}

// Add takes an entry of whoever acts, and does not wait until it is written.
func (l *GatewayLog) Add(ctx context.Context, e GatewayEntry) {
	if n := len(e.Changes); n > loggedChanges {
		e.Changes, e.Unlisted = e.Changes[:loggedChanges], n-loggedChanges
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= logWaiting {
		l.lost++
		return
	}
	owner := ownerOf(ctx)
	l.waiting[owner] = append(l.waiting[owner], e)
	l.count++
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.write(l.idle)
	}
}

// Flush waits until what was told before is written.
func (l *GatewayLog) Flush(ctx context.Context) error {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case l.hurry <- struct{}{}:
	default: // somebody else waits too
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return artel.Errorf(artel.Canceled, "app.GatewayLog.Flush", "", "the log is not written: %w", ctx.Err())
	}
}

// Changed returns a channel that is closed when something is written from now
// on.
func (l *GatewayLog) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// write writes what waits, until nothing does.
func (l *GatewayLog) write(idle chan struct{}) {
	defer close(idle)
	for {
		gather := time.NewTimer(logGather)
		select {
		case <-gather.C:
		case <-l.hurry:
			gather.Stop()
		}
		l.mu.Lock()
		batch, lost := l.waiting, l.lost
		if l.lost = 0; l.count == 0 {
			l.idle = nil
			l.mu.Unlock()
			return
		}
		l.waiting, l.count = map[artel.Owner][]GatewayEntry{}, 0
		l.mu.Unlock()
		if lost > 0 {
			l.logger.Warn("more requests came to the gateway than its log could take", "lost", lost)
		}
		for owner, entries := range batch {
			if err := l.keep(context.Background(), owner, entries); err != nil {
				l.logger.Error("the gateway's log could not be written", "entries", len(entries), "err", err)
			}
		}
		l.mu.Lock()
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// keep writes entries of one owner, and makes the bytes that they name readable.
func (l *GatewayLog) keep(ctx context.Context, owner artel.Owner, entries []GatewayEntry) error {
	rows := make([]store.GatewayEntry, len(entries))
	named := map[artel.Digest]string{} // their types
	for i, e := range entries {
		for _, c := range e.Changes {
			if c.Ref.IsBlob() {
				named[c.Ref.Digest] = c.MediaType
			}
		}
		body, err := json.Marshal(e)
		if err != nil {
			return artel.Errorf(artel.Internal, "app.GatewayLog", "", "%w", err)
		}
		rows[i] = store.GatewayEntry{Key: e.Key, Service: e.Service, Status: e.Status, Changed: len(e.Changes) > 0, Body: body}
	}
	lend, err := l.unlent(ctx, owner, named)
	if err != nil {
		return err
	}
	l.grown += len(rows)
	prune := l.grown >= logPrune
	err = l.store.Update(ctx, owner, func(tx store.Tx) error {
		for d, info := range lend {
			if err := tx.Renditions.Put(store.Rendition{Source: d, Form: lentForm, Digest: d, MediaInfo: info, CreatedAt: l.now()}); err != nil {
				return err
			}
		}
		if err := tx.GatewayLog.Add(rows...); err != nil || !prune {
			return err
		}
		return tx.GatewayLog.Keep(GatewayLogKept)
	})
	if err == nil && prune {
		l.grown = 0
	}
	return err
}

// unlent returns what is known of those bytes that are there and cannot be read
// by their refs. It takes the types of all.
func (l *GatewayLog) unlent(ctx context.Context, owner artel.Owner, named map[artel.Digest]string) (map[artel.Digest]artel.MediaInfo, error) {
	if len(named) == 0 {
		return nil, nil
	}
	err := l.store.View(ctx, owner, func(tx store.Tx) error {
		for d := range named {
			_, err := tx.Renditions.Get(d, lentForm)
			if err == nil {
				delete(named, d)
			} else if artel.KindOf(err) != artel.NotFound {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	lend := map[artel.Digest]artel.MediaInfo{}
	for d, mediaType := range named {
		b, err := l.blobs.Open(ctx, d)
		if err != nil {
			continue // it is gone
		}
		head, err := io.ReadAll(io.LimitReader(b, MaxHead))
		if err == nil {
			info := media.Detect(head, media.Hint{DeclaredType: mediaType})
			info.Size = b.Size()
			lend[d] = info
		}
		_ = b.Close() // it was read
	}
	return lend, nil
}

// A GatewayQuery selects entries of the log; zero fields select all.
type GatewayQuery struct {
	Key     string
	Service artel.ServiceID
	Status  string // "ok", "failed", a class as "4xx", or one as "429"
	Changed bool   // those alone of which something was changed
	Page
}

// List returns the newest entries first. The next cursor is "" at the end.
func (l *GatewayLog) List(ctx context.Context, q GatewayQuery) (items []GatewayEntry, next string, err error) {
	low, high, err := statuses(q.Status)
	if err != nil {
		return nil, "", err
	}
	var rows []store.GatewayEntry
	err = l.view(ctx, func(tx store.Tx) (err error) {
		rows, next, err = tx.GatewayLog.List(store.GatewayQuery{Key: q.Key, Service: q.Service, MinStatus: low, MaxStatus: high, Changed: q.Changed, Page: q.Page})
		return err
	})
	if err != nil {
		return nil, "", err
	}
	items = make([]GatewayEntry, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Body, &items[i]); err != nil {
			return nil, "", artel.Errorf(artel.Internal, "app.GatewayLog.List", strconv.FormatInt(r.Number, 10), "the row is damaged: %w", err)
		}
		items[i].Number = r.Number
	}
	return items, next, nil
}

// statuses returns the range that a text means; 0: no bound.
func statuses(s string) (low, high int, err error) {
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
		return 0, 0, artel.Errorf(artel.Invalid, "app.GatewayLog.List", "status", "%q is no status: want ok, failed, a class as 4xx, or a number as 429", artel.Shorten(s, 80))
	}
	return low, low, nil
}

// Keys returns the names of the keys that clients may have.
func (g *Gateway) Keys(context.Context) []string {
	var out []string
	for _, k := range g.keys.keys {
		out = append(out, k.Name)
	}
	return out
}
