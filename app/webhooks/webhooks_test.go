// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A receiver keeps the requests that it got. Answer answers the nth, from 0.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	rc := &receiver{answer: answer}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rc.mu.Lock()
		n := len(rc.got)
		rc.got = append(rc.got, received{r.Header.Clone(), body})
		rc.mu.Unlock()
		if rc.answer != nil {
			rc.answer(n, w, r)
		}
	}))
	t.Cleanup(func() { rc.CloseClientConnections(); rc.Close() })
	return rc
}

func (rc *receiver) all() []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.got)
}

// verify checks a signature as the specification says, without the package.
func (r received) verify(t *testing.T, key string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(r.header.Get("webhook-id") + "." + r.header.Get("webhook-timestamp") + "." + string(r.body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(r.header.Get("webhook-signature")), want) {
		t.Errorf("the signature of %s is %s, without %s", r.header.Get("webhook-id"), r.header.Get("webhook-signature"), want)
	}
}

const me artel.Owner = "ann"

// bench is a database with a conversation, and what sends from it.
type bench struct {
	t       *testing.T
	ctx     context.Context
	address string
	db      store.Store
	log     *event.Log
	box     *secret.Box
	c       artel.ConversationID
	*webhooks.Webhooks
}

// fast are options with which tests need not wait.
func fast() webhooks.Options {
	return webhooks.Options{AllowPrivate: true, Waits: slices.Repeat([]time.Duration{time.Millisecond}, 50), Timeout: time.Minute, Every: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
}

func newBench(t *testing.T, o webhooks.Options) *bench {
	t.Helper()
	b := &bench{t: t, ctx: artel.WithOwner(t.Context(), me), address: rowstest.Address(t)}
	b.db = rowstest.At(t, b.address)
	b.log = event.NewLog(b.db, event.NewNotifier())
	var err error
	if b.box, err = secret.New("", filepath.Join(t.TempDir(), "key")); err != nil {
		t.Fatal(err)
	}
	b.Webhooks = webhooks.New(b.db, b.box, o)
	now := time.Now().UTC()
	b.c = artel.NewConversationID(now)
	b.must(b.db.Update(b.ctx, me, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: b.c, CreatedAt: now, UpdatedAt: now})
	}))
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// start runs ws until the end of the test, or until stop is called.
func (b *bench) start(ws *webhooks.Webhooks) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() { defer close(done); ws.Run(ctx) }()
	stop = func() { cancel(); <-done }
	b.t.Cleanup(stop)
	return stop
}

// finish appends the end of a run, and returns its number.
func (b *bench) finish() artel.Seq {
	b.t.Helper()
	e, err := artel.NewEvent("run_1", "lead", time.Now().UTC(), artel.RunFinished{State: artel.RunDone})
	b.must(err)
	seq, err := b.log.Append(b.ctx, me, b.c, e)
	b.must(err)
	return seq
}

func (b *bench) hook(url string) (secret string, w store.Webhook) {
	b.t.Helper()
	secret, w, err := b.Create(b.ctx, store.Webhook{Name: "x", URL: url})
	b.must(err)
	return secret, w
}

// until waits until a condition holds.
func (b *bench) until(what string, holds func() bool) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: not within a minute", what)
		}
	}
}

func (b *bench) deliveries(id string) []store.Delivery {
	b.t.Helper()
	all, _, err := b.Deliveries(b.ctx, store.DeliveryQuery{Webhook: id})
	b.must(err)
	return all
}

// ends waits until the newest delivery of a webhook is in a state.
func (b *bench) ends(id string, state store.DeliveryState) (d store.Delivery) {
	b.t.Helper()
	b.until(string(state), func() bool {
		all := b.deliveries(id)
		if len(all) > 0 {
			d = all[0]
		}
		return d.State == state
	})
	return d
}

func (b *bench) get(id string) store.Webhook {
	b.t.Helper()
	all, err := b.List(b.ctx)
	b.must(err)
	for _, w := range all {
		if w.ID == id {
			return w
		}
	}
	b.t.Fatalf("no webhook %s", id)
	return store.Webhook{}
}

// TestRepeats: a delivery is repeated with the same id until it is accepted, however the
// receiver fails; redirects are not followed.
func TestRepeats(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	elsewhere := newReceiver(t, nil)
	rc := newReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 0:
			http.Error(w, strings.Repeat("no\xff", 5000), http.StatusInternalServerError)
		case 1:
			panic(http.ErrAbortHandler) // closes the connection
		case 2:
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, "thanks")
		}
	})
	key, w := b.hook(rc.URL + "/hook?a=b")
	seq := b.finish()
	b.start(b.Webhooks)
	d := b.ends(w.ID, store.DeliveryAccepted)
	if d.Attempts != 4 || d.Last.Status != 200 || d.Last.Answer != "thanks" || d.Last.Error != "" || !d.DueAt.IsZero() {
		t.Errorf("got %+v", d)
	}
	got := rc.all()
	if len(got) != 4 || len(elsewhere.all()) != 0 {
		t.Fatalf("%d requests, and %d followed the redirect", len(got), len(elsewhere.all()))
	}
	for _, r := range got {
		r.verify(t, key)
		if id := r.header.Get("webhook-id"); id != fmt.Sprintf("%s/%d", b.c, seq) || r.header.Get("content-type") != "application/json" {
			t.Errorf("got %v", r.header)
		}
		var body webhooks.Body
		b.must(json.Unmarshal(r.body, &body))
		if body.Type != artel.EventRunFinished || body.Data.Conversation != b.c || body.Data.Event.Seq != seq || body.Data.Webhook != w.ID || !strings.Contains(string(body.Data.Event.Data), `"state":"done"`) {
			t.Errorf("got %s", r.body)
		}
	}
	if b.get(w.ID).DeliveredAt.IsZero() {
		t.Error("the time of the accepted delivery is missing")
	}
}

// TestTold: a webhook gets the events that it wants, and no others.
func TestTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	_, w, err := b.Create(b.ctx, store.Webhook{Name: "x", URL: "http://127.0.0.1:1/", Events: []artel.EventType{artel.EventArtifactUpdated}})
	b.must(err)
	b.finish()
	e, err := artel.NewEvent("run_1", "lead", time.Now().UTC(), artel.ArtifactUpdated{ID: "a", Version: 2})
	b.must(err)
	usage, err := artel.NewEvent("run_1", "lead", time.Now().UTC(), artel.UsageReported{})
	b.must(err)
	last, err := b.log.Append(b.ctx, me, b.c, usage, e, usage)
	b.must(err)
	all := b.deliveries(w.ID)
	if len(all) != 1 || all[0].Type != artel.EventArtifactUpdated || all[0].Event != last-1 {
		t.Errorf("got %+v", all)
	}
}

// TestSlow: an attempt without an answer ends, and another one is made.
func TestSlow(t *testing.T) {
	t.Parallel()
	o := fast()
	o.Timeout = 200 * time.Millisecond
	b := newBench(t, o)
	rc := newReceiver(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 0 {
			<-r.Context().Done()
		}
	})
	_, w := b.hook(rc.URL)
	b.finish()
	b.start(b.Webhooks)
	b.until("the error", func() bool {
		d := b.deliveries(w.ID)[0]
		return d.Last.Error != "" || d.State == store.DeliveryAccepted
	})
	if d := b.ends(w.ID, store.DeliveryAccepted); d.Attempts < 2 {
		t.Errorf("accepted in %d attempts", d.Attempts)
	}
}

// TestGone: after 410 a webhook is disabled, with a reason and an entry of the audit log.
func TestGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			w.WriteHeader(http.StatusGone)
		}
	})
	_, w := b.hook(rc.URL)
	first := b.finish()
	b.start(b.Webhooks)
	d := b.ends(w.ID, store.DeliveryFailed)
	h := b.get(w.ID)
	if !h.Disabled || !strings.Contains(h.Reason, "410") || d.Attempts != 1 {
		t.Errorf("got %+v, %+v", h, d)
	}
	acts, _, err := b.db.Audit().List(b.ctx, store.AuditQuery{})
	b.must(err)
	if acts[0].Action != string(audit.WebhookDisabled) || acts[0].Target != w.ID || acts[0].Actor != me {
		t.Errorf("the audit log has %+v", acts[0])
	}
	b.finish() // is not kept for it
	if _, err := b.Again(b.ctx, w.ID, d.Number); artel.KindOf(err) != artel.Conflict {
		t.Errorf("Again while it is disabled: %v", err)
	}
	if _, err := b.Test(b.ctx, w.ID); artel.KindOf(err) != artel.Conflict {
		t.Errorf("Test while it is disabled: %v", err)
	}
	_, err = b.Update(b.ctx, w.ID, func(w *store.Webhook) { w.Disabled = false })
	b.must(err)
	if h := b.get(w.ID); h.Disabled || h.Reason != "" {
		t.Errorf("enabled: %+v", h)
	}
	_, err = b.Again(b.ctx, w.ID, d.Number)
	b.must(err)
	b.ends(w.ID, store.DeliveryAccepted)
	for _, r := range rc.all() {
		if id := r.header.Get("webhook-id"); id != fmt.Sprintf("%s/%d", b.c, first) {
			t.Errorf("sent again as %s", id)
		}
	}
	if n := len(rc.all()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestGivesUp: after the last attempt a delivery has failed; the webhook is disabled only if
// nothing else was accepted meanwhile.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	o := fast()
	o.Waits = o.Waits[:2]
	b := newBench(t, o)
	var bad sync.Map // ids that are refused
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if _, refused := bad.Load(r.Header.Get("webhook-id")); refused {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	_, w := b.hook(rc.URL)
	poison := b.finish()
	bad.Store(fmt.Sprintf("%s/%d", b.c, poison), true)
	_, err := b.Update(b.ctx, w.ID, func(w *store.Webhook) { w.Events = webhooks.Events() })
	b.must(err)
	stop := b.start(b.Webhooks)
	d := b.ends(w.ID, store.DeliveryFailed)
	h := b.get(w.ID)
	if d.Attempts != 3 || d.Last.Status != http.StatusTeapot || !h.Disabled || !strings.Contains(h.Reason, "in 3 attempts of one; the last: answered 418") {
		t.Errorf("got %+v, %+v", d, h)
	}
	stop()
	_, err = b.Update(b.ctx, w.ID, func(w *store.Webhook) { w.Disabled = false })
	b.must(err)
	second := b.finish()
	bad.Store(fmt.Sprintf("%s/%d", b.c, second), true)
	b.finish() // is accepted
	b.start(b.Webhooks)
	b.until("the failure", func() bool { return b.deliveries(w.ID)[1].State == store.DeliveryFailed })
	b.ends(w.ID, store.DeliveryAccepted)
	if h := b.get(w.ID); h.Disabled || h.DeliveredAt.IsZero() { // both were taken together, so that one was accepted before the other's last attempt
		t.Errorf("got %+v", h)
	}
}

// TestPrivate: addresses of inner networks are refused, when they are entered and when a
// request is made.
func TestPrivate(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	rc := newReceiver(t, nil)
	_, w := b.hook(rc.URL)
	b.finish()
	o := fast()
	o.AllowPrivate = false
	strict := webhooks.New(b.db, b.box, o)
	for _, url := range []string{rc.URL, "http://localhost/", "http://[::1]/", "http://10.0.0.1/", "http://169.254.169.254/latest"} {
		if _, _, err := strict.Create(b.ctx, store.Webhook{Name: "x", URL: url}); artel.KindOf(err) != artel.Denied && url != "http://169.254.169.254/latest" {
			t.Errorf("%s: %v", url, err)
		}
	}
	b.start(strict)
	b.until("the refusal", func() bool { return strings.Contains(b.deliveries(w.ID)[0].Last.Error, "webhooks.allow_private") })
	if n := len(rc.all()); n != 0 {
		t.Errorf("%d requests reached it", n)
	}
}

// TestRotate: for a day both secrets sign, then the new one alone.
func TestRotate(t *testing.T) {
	t.Parallel()
	o := fast()
	var mu sync.Mutex
	var later time.Duration
	o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(later) }
	b := newBench(t, o)
	rc := newReceiver(t, nil)
	old, w := b.hook(rc.URL)
	next, err := b.Rotate(b.ctx, w.ID)
	b.must(err)
	b.start(b.Webhooks)
	_, err = b.Test(b.ctx, w.ID)
	b.must(err)
	b.ends(w.ID, store.DeliveryAccepted)
	r := rc.all()[0]
	r.verify(t, old)
	r.verify(t, next)
	if old == next || !strings.HasPrefix(r.header.Get("webhook-id"), "test/") || !strings.Contains(string(r.body), `"type":"test"`) {
		t.Errorf("got %v %s", r.header, r.body)
	}
	mu.Lock()
	later = webhooks.Overlap + time.Hour
	mu.Unlock()
	_, err = b.Test(b.ctx, w.ID)
	b.must(err)
	b.until("the second", func() bool { return len(rc.all()) == 2 })
	r = rc.all()[1]
	r.verify(t, next)
	if n := len(strings.Fields(r.header.Get("webhook-signature"))); n != 1 {
		t.Errorf("%d signatures after the overlap", n)
	}
}

// TestTogether: of several servers with one database, one makes each attempt.
func TestTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	rc := newReceiver(t, nil)
	_, w := b.hook(rc.URL)
	other := b.db
	if !filepath.IsAbs(b.address) { // a SQLite file has one server
		other = rowstest.At(t, b.address)
	}
	b.start(b.Webhooks)
	b.start(webhooks.New(other, b.box, fast()))
	const n = 60
	for range n {
		b.finish()
	}
	b.until("all", func() bool {
		all := b.deliveries(w.ID)
		return !slices.ContainsFunc(all, func(d store.Delivery) bool { return d.State != store.DeliveryAccepted })
	})
	seen := map[string]int{}
	for _, r := range rc.all() {
		seen[r.header.Get("webhook-id")]++
	}
	total := 0
	for id, times := range seen {
		if total += times; times != 1 {
			t.Errorf("%s was sent %d times", id, times)
		}
	}
	if total != n {
		t.Errorf("%d were sent", total)
	}
}

// TestStopped: an attempt that the end of a server breaks off is made by the next one, and
// is not counted.
func TestStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	came := make(chan struct{}, 1)
	rc := newReceiver(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 0 {
			came <- struct{}{}
			<-r.Context().Done()
		}
	})
	_, w := b.hook(rc.URL)
	b.finish()
	stop := b.start(b.Webhooks)
	<-came
	stop()
	if d := b.deliveries(w.ID)[0]; d.State != store.DeliveryWaiting || d.Attempts != 0 || !d.Last.At.IsZero() {
		t.Errorf("stopped: %+v", d)
	}
	b.start(webhooks.New(b.db, b.box, fast()))
	if d := b.ends(w.ID, store.DeliveryAccepted); d.Attempts != 1 {
		t.Errorf("got %+v", d)
	}
	got := rc.all()
	if got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") {
		t.Errorf("sent under two names")
	}
}

// TestDeleted: the event of a deleted conversation is not sent, which the log says.
func TestDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	rc := newReceiver(t, nil)
	_, w := b.hook(rc.URL)
	b.finish()
	b.must(b.db.Update(b.ctx, me, func(tx store.Tx) error { return tx.Conversations.Delete(b.c, time.Now()) }))
	b.start(b.Webhooks)
	d := b.ends(w.ID, store.DeliveryFailed)
	if !strings.Contains(d.Last.Error, "deleted") || b.get(w.ID).Disabled || len(rc.all()) != 0 {
		t.Errorf("got %+v", d)
	}
}

// TestRefused: what a webhook cannot have, and those of others.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, fast())
	for _, w := range []store.Webhook{
		{Name: "", URL: "https://a.example"},
		{Name: "a\nb", URL: "https://a.example"},
		{Name: "x", URL: "ftp://a.example"},
		{Name: "x", URL: "https://"},
		{Name: "x", URL: "https://u:p@a.example"},
		{Name: "x", URL: "https://a.example#f"},
		{Name: "x", URL: "https://a.example", Events: []artel.EventType{}},
		{Name: "x", URL: "https://a.example", Events: []artel.EventType{artel.EventUsage}},
		{Name: "x", URL: "https://a.example", Events: []artel.EventType{artel.EventRunFinished, artel.EventRunFinished}},
	} {
		if _, _, err := b.Create(b.ctx, w); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%+v: %v", w, err)
		}
	}
	_, w := b.hook("https://a.example/")
	other := artel.WithOwner(t.Context(), "bob")
	for what, err := range map[string]error{
		"Delete": b.Delete(other, w.ID), "Again": second(b.Again(other, w.ID, 1)), "Test": second(b.Test(other, w.ID)), "Rotate": second(b.Rotate(other, w.ID)),
		"Update": second(b.Update(other, w.ID, func(*store.Webhook) {})),
	} {
		if artel.KindOf(err) != artel.NotFound {
			t.Errorf("%s of another user's: %v", what, err)
		}
	}
	if _, _, err := b.Deliveries(other, store.DeliveryQuery{Webhook: w.ID}); artel.KindOf(err) != artel.NotFound {
		t.Errorf("Deliveries of another user's: %v", err)
	}
	if _, err := b.Again(b.ctx, w.ID, 99); artel.KindOf(err) != artel.NotFound {
		t.Errorf("Again of none: %v", err)
	}
	for range webhooks.MaxWebhooks - 1 {
		b.hook("https://a.example/")
	}
	if _, _, err := b.Create(b.ctx, store.Webhook{Name: "x", URL: "https://a.example/"}); artel.KindOf(err) != artel.TooLarge {
		t.Errorf("one more than %d: %v", webhooks.MaxWebhooks, err)
	}
	b.must(b.Delete(b.ctx, w.ID))
	b.hook("https://a.example/")
}

func second[T any](_ T, err error) error { return err }
