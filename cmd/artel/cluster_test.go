// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob/s3/s3test"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// A cluster is several replicas with one database and one bucket, behind a proxy that sends
// each request to the next of them.
type cluster struct {
	t     *testing.T
	dir   string
	env   []string
	args  []string
	pg    *postgrestest.Server
	proxy *httptest.Server

	mu       sync.Mutex
	replicas []*process // nil: not running
	next     int
}

// newCluster starts n replicas.
func newCluster(t *testing.T, n int, scenario string, args ...string) *cluster {
	t.Helper()
	pg, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	bucket := s3test.Start(t)
	bucket.Bucket(t, "files")
	c := &cluster{t: t, dir: t.TempDir(), pg: pg, args: args, replicas: make([]*process, n)}
	if scenario != "" {
		writeFiles(t, c.dir, map[string]string{"scenario.txtar": scenario})
		c.args = append(c.args, "--scenario", filepath.Join(c.dir, "scenario.txtar"))
	}
	c.env = with(bareEnvironment(c.dir), databaseVariable+"="+pg.Schema(t), blobsVariable+"="+s3test.Address(bucket.Endpoint, "files"),
		secret.Variable+"="+strings.Repeat("ab", 32))
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { c.start(i) })
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for i := range n {
			c.kill(i)
		}
	})
	c.proxy = httptest.NewServer(c.roundRobin())
	t.Cleanup(c.proxy.Close)
	return c
}

// start starts a replica that does not run.
func (c *cluster) start(i int) {
	name := "replica" + strconv.Itoa(i)
	p, err := launch(c.dir, c.env, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(c.dir, name), "--replica", name}, c.args...)...)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replicas[i] = p
}

// kill ends a replica without a word.
func (c *cluster) kill(i int) {
	c.mu.Lock()
	p := c.replicas[i]
	c.replicas[i] = nil
	c.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// freeze stops a replica for a while, without ending it.
func (c *cluster) freeze(i int, d time.Duration) {
	c.mu.Lock()
	p := c.replicas[i]
	c.mu.Unlock()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Error(err)
	}
	time.Sleep(d)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Error(err)
	}
}

// clusterRounds is how often something is tried, once in CI: ARTEL_CLUSTER_ROUNDS.
func clusterRounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ARTEL_CLUSTER_ROUNDS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// url returns the address of a replica that runs.
func (c *cluster) url(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replicas[i].url
}

// at returns a client of a replica that runs.
func (c *cluster) at(i int) *httpapi.Client { return httpapi.NewClient(c.url(i), nil) }

// roundRobin sends each request to the next replica that runs.
func (c *cluster) roundRobin() http.Handler {
	target := func() *url.URL {
		c.mu.Lock()
		defer c.mu.Unlock()
		for range c.replicas {
			c.next = (c.next + 1) % len(c.replicas)
			if p := c.replicas[c.next]; p != nil {
				u, err := url.Parse(p.url)
				if err == nil {
					return u
				}
			}
		}
		return nil
	}
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport:     &http.Transport{DisableKeepAlives: true}, // which would end with their replica, in the middle of a request
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "127.0.0.1:1"
			if u := target(); u != nil {
				r.Out.URL.Host = u.Host
			}
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}

// often calls do until it succeeds, since replicas are killed. What it does must be the same
// if it is done twice.
func often(ctx context.Context, do func() error) error {
	for {
		err := do()
		var network net.Error
		p, isProblem := errors.AsType[*httpapi.Problem](err)
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case isProblem && p.Status < http.StatusInternalServerError:
			return err
		case !isProblem && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
			// The proxy answers in words when a replica is gone.
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// slowScenario has a run of several calls that takes some seconds.
const slowScenario = `
-- turn 1 --
@delay 200ms
@call create_artifact {"id": "report", "title": "Report", "content": "one"}
-- turn 2 --
@delay 200ms
Half of it is written.
@call update_artifact {"id": "report", "edits": [{"old": "one", "new": "one, two"}]}
-- turn 3 --
@delay 200ms
@call update_artifact {"id": "report", "edits": [{"old": "one, two", "new": "one, two, three"}]}
-- turn 4 --
@delay 200ms
The report is written.
`

// TestReplicas: clients work with three replicas as with one, whichever gets a request, and
// while one after the other is killed.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, slowScenario)
	ctx := t.Context()
	client := httpapi.NewClient(c.proxy.URL, nil)
	conversation, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := client.Upload(ctx, conversation.ID, "tide.txt", "text/plain", strings.NewReader("High at noon."), 13)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := client.Sign(ctx, artel.Ref{Conversation: conversation.ID, Artifact: file.ID}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		u, err := url.Parse(signed.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, c.url(i)+u.RequestURI()); got != "High at noon." {
			t.Errorf("replica %d: the signed address gives %q", i, got)
		}
	}

	rounds, faults := clusterRounds(t), 0
	for round := range rounds {
		began := time.Now()
		faults += c.killedWhileWorking(ctx, client, rounds > 1)
		if t.Failed() || rounds > 1 {
			t.Logf("round %d: %d faults so far, %s", round+1, faults, time.Since(began).Round(time.Millisecond))
		}
		if t.Failed() {
			return
		}
	}
}

// maxFaults is the number of faults in a run of killedWhileWorking.
const maxFaults = 4

// killedWhileWorking has a run write a report while replicas are killed and started again, one
// after the other, and with more also the connections of the database and the database itself.
// A follower, whose connections are cut, gets each event once; what was acknowledged is there.
// It returns the number of faults: at most maxFaults, since a run that crashes more often than
// that without a step between ends as interrupted.
func (c *cluster) killedWhileWorking(ctx context.Context, client *httpapi.Client, more bool) (faults int) {
	t := c.t
	t.Helper()
	var conversation artel.Conversation
	if err := often(ctx, func() (err error) {
		conversation, err = client.CreateConversation(ctx, httpapi.NewConversation{})
		return err
	}); err != nil {
		t.Error(err)
		return 0
	}
	var sent httpapi.Sent
	// The same key each time: sent again after a lost answer, it is one message.
	sender := httpapi.NewClient(c.proxy.URL, &http.Client{Transport: headers{"Idempotency-Key": string(conversation.ID)}})
	if err := often(ctx, func() (err error) {
		sent, err = sender.Send(ctx, conversation.ID, httpapi.NewMessage{Text: "Write the report."})
		return err
	}); err != nil {
		t.Error(err)
		return 0
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for i := rand.IntN(len(c.replicas)); faults < maxFaults; i = (i + 1) % len(c.replicas) {
			select {
			case <-ended:
				return
			case <-time.After(time.Duration(200+rand.IntN(600)) * time.Millisecond):
			}
			faults++
			switch dice := rand.IntN(10); {
			case more && dice == 0:
				if _, err := c.pg.Restart(func() {}); err != nil {
					t.Error(err)
				}
			case more && dice == 1: // its leases end while it does nothing, and then it goes on
				c.freeze(i, 12*time.Second)
			case more && dice <= 4:
				// One that is restarting has none.
				_ = c.pg.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'artel%'")
			default:
				c.kill(i)
				c.start(i)
			}
		}
	})
	var last artel.Seq
	for finished := false; !finished && ctx.Err() == nil; {
		// Each connection of the follower is cut after a while, but not before an event has come,
		// as it would learn nothing on a slow machine.
		due := time.Now().Add(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		for e, err := range client.Events(ctx, conversation.ID, last, patience) {
			if err != nil {
				break
			}
			if e.Seq == 0 { // text that is being written
				continue
			}
			if e.Seq != last+1 {
				t.Errorf("event %d comes after %d", e.Seq, last)
			}
			last = e.Seq
			finished = e.Type == artel.EventRunFinished && e.Run == sent.RunID
			if finished || time.Now().After(due) {
				break
			}
		}
	}
	close(ended)
	killer.Wait()
	var run artel.Run
	if err := often(ctx, func() (err error) { run, err = client.Run(ctx, sent.RunID); return err }); err != nil || run.State != artel.RunDone {
		t.Errorf("the run is %+v, %v", run, err)
		return faults
	}
	for i := range c.replicas {
		var a httpapi.ArtifactView
		err := often(ctx, func() (err error) {
			a, err = c.at(i).Artifact(ctx, artel.Ref{Conversation: conversation.ID, Artifact: "report"})
			return err
		})
		if err != nil || a.Content == nil || *a.Content != "one, two, three" {
			t.Errorf("replica %d has the report %+v, %v", i, a, err)
		}
	}
	var list httpapi.List[artel.Message]
	if err := often(ctx, func() (err error) { list, err = client.Messages(ctx, conversation.ID, "", 100); return err }); err != nil {
		t.Error(err)
	}
	said := 0
	for _, m := range list.Items {
		if m.Role == artel.RoleUser {
			said++
		}
	}
	if said != 1 || len(list.Items) < 5 {
		t.Errorf("%d messages, %d of the user", len(list.Items), said)
	}
	return faults
}

// TestReplicasOfPeople: what one replica changes of users, tokens, services and runs is in
// force in the others, and sessions of MCP need no fixed replica.
func TestReplicasOfPeople(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": "auth: {mode: required}\n"})
	c := newCluster(t, 2, "-- turn 1 --\nI wait.\n@hang\n", "--config", filepath.Join(dir, "artel.yaml"))
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	// The code of one replica is good at the other.
	code := ""
	c.mu.Lock()
	for _, p := range c.replicas {
		u, err := url.Parse(p.url)
		if err != nil || u.Query().Get("code") == "" {
			t.Fatalf("%q, %v", p.url, err)
		}
		if code != "" && code != u.Query().Get("code") {
			t.Error("the replicas have different set-up codes")
		}
		code, p.url = u.Query().Get("code"), "http://"+u.Host
	}
	c.mu.Unlock()
	ann := &loginBench{t: t, base: c.proxy.URL}
	ann.cookie = sessionOf(t, ann.post("/api/v1/setup", `{"code":"`+code+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`, nil))
	var invited struct {
		InviteURL string `json:"invite_url"`
	}
	ann.post("/api/v1/users", `{"name":"Bob","email":"bob@example.org","role":"member"}`, &invited)
	at, err := url.Parse(invited.InviteURL)
	if err != nil {
		t.Fatal(err)
	}
	bob := &loginBench{t: t, base: c.proxy.URL}
	bob.cookie = sessionOf(t, bob.post("/api/v1/invite", `{"code":"`+at.Query().Get("code")+`","password":"`+testPassword+`"}`, nil))
	var token struct{ Token, ID string }
	bob.post("/api/v1/tokens", `{"name":"laptop","scopes":["read","write","gateway"]}`, &token)
	both := []*httpapi.Client{c.at(0).WithToken(token.Token), c.at(1).WithToken(token.Token)}
	for i, client := range both {
		if me, err := client.Me(ctx); err != nil || me.Email != "bob@example.org" {
			t.Fatalf("replica %d: %+v, %v", i, me, err)
		}
	}

	// One key to both replicas at once makes one conversation.
	first, err := c.once(ctx, token.Token)
	if err != nil {
		t.Fatal(err)
	}
	// A run of one replica is cancelled through the other.
	sent, err := both[0].Send(ctx, first, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := both[1].Cancel(ctx, sent.RunID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("cancelled through the other replica: %+v, %v", r, err)
	}

	// A session of MCP, of a version that has sessions, through the proxy.
	mcp := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	transport := &sdk.StreamableClientTransport{Endpoint: c.proxy.URL + "/mcp", HTTPClient: &http.Client{Transport: headers{"Authorization": "Bearer " + token.Token}}}
	session, err := mcp.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) == 0 {
			t.Errorf("tools over MCP: %v", err)
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}

	// A service that is added at one replica answers at the other.
	vendor := faking(t, c.dir, "openai", "sk-1")
	ann.post("/api/v1/services", `{"id":"added","dialect":"openai","baseURL":"`+vendor.url+`/v1","apiKey":"sk-1","model":"gpt-4o"}`, nil)
	for i, client := range both {
		for found := false; !found && ctx.Err() == nil; {
			list, err := client.Services(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list.Items {
				found = found || strings.HasPrefix(string(s.ID), "added")
			}
			if !found {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if ctx.Err() != nil {
			t.Errorf("replica %d does not know the service", i)
		}
	}

	// A follower at one replica ends when the token is revoked at the other, and both refuse it.
	following, end := make(chan error, 1), time.Minute
	go func() {
		for _, err := range both[1].Events(ctx, first, 0, end) {
			if err != nil {
				following <- err
				return
			}
		}
		following <- nil
	}()
	request, err := http.NewRequestWithContext(ctx, "DELETE", c.url(0)+"/api/v1/tokens/"+token.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cookie", bob.cookie)
	request.Header.Set("Origin", c.url(0))
	resp, err := http.DefaultClient.Do(request)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if p, ok := errors.AsType[*httpapi.Problem](<-following); !ok || p.Status != http.StatusUnauthorized {
		t.Errorf("the follower ended with %+v", p)
	}
	for i, client := range both {
		for {
			_, err := client.Me(ctx)
			if p, ok := errors.AsType[*httpapi.Problem](err); ok && p.Status == http.StatusUnauthorized {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("replica %d: the revoked token is taken: %v", i, err)
			}
		}
	}
}

// once makes a conversation at all replicas at once with one idempotency key, again and again
// with other keys, and returns the last one.
func (c *cluster) once(ctx context.Context, token string) (last artel.ConversationID, err error) {
	for round := range 10 * clusterRounds(c.t) {
		ids, errs := make([]artel.ConversationID, len(c.replicas)), make([]error, len(c.replicas))
		var wg sync.WaitGroup
		for i := range c.replicas {
			client := httpapi.NewClient(c.url(i), &http.Client{Transport: headers{"Authorization": "Bearer " + token, "Idempotency-Key": "key" + strconv.Itoa(round)}})
			wg.Go(func() {
				var made artel.Conversation
				made, errs[i] = client.CreateConversation(ctx, httpapi.NewConversation{})
				ids[i] = made.ID
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return "", err
		}
		for _, id := range ids {
			if id != ids[0] {
				return "", fmt.Errorf("one key made %s and %s", ids[0], id)
			}
		}
		last = ids[0]
	}
	return last, nil
}

// headers is a transport that adds headers.
type headers map[string]string

// RoundTrip implements [http.RoundTripper].
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestReplicasOfWebhooks: of two servers with one database, one delivers each event, once.
func TestReplicasOfWebhooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": privateWebhooks})
	c := newCluster(t, 2, "-- turn 1 --\nDone.\n", "--config", filepath.Join(dir, "artel.yaml"))
	rc := newHookReceiver(t, nil)
	if _, err := c.at(0).MakeWebhook(ctx, httpapi.NewWebhook{Name: "x", URL: rc.URL, Events: []artel.EventType{artel.EventRunFinished}}); err != nil {
		t.Fatal(err)
	}
	const runs = 12
	for i := range runs {
		answered(ctx, t, c.at(i%2))
	}
	waitingFor(t, "all deliveries", func() bool { return len(rc.ids()) >= runs })
	seen := map[string]int{}
	for _, id := range rc.ids() {
		seen[id]++
	}
	if len(seen) != runs {
		t.Errorf("of %d runs, %d are delivered: %v", runs, len(seen), seen)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

// TestReplicasOfSchedules: of two servers with one database, one starts the run of each
// time, also if it is killed meanwhile.
func TestReplicasOfSchedules(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newCluster(t, 2, "-- turn 1 --\nDone.\n")
	var made []string
	for range 8 {
		s, err := c.at(0).MakeSchedule(ctx, httpapi.NewSchedule{Name: "News", Cron: "* * * * *", Text: "Go."})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, s.ID)
	}
	for _, id := range made {
		waitingFor(t, "the first time", func() bool {
			all, err := c.at(1).Starts(ctx, id, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(all.Items) > 0
		})
	}
	c.kill(0)
	for _, id := range made {
		planned := map[time.Time]bool{}
		for _, st := range startsOver(ctx, t, c.at(1), id, 1) {
			if planned[st.PlannedAt] || st.State != store.StartDone {
				t.Errorf("a time has two starts, or none that was made: %+v", st)
			}
			planned[st.PlannedAt] = true
			waitForEnd(ctx, t, c.at(1), st.Conversation, st.Run)
			messages, err := c.at(1).Messages(ctx, st.Conversation, "", 10)
			if err != nil || len(messages.Items) != 2 {
				t.Errorf("%d messages, %v", len(messages.Items), err)
			}
		}
	}
}
