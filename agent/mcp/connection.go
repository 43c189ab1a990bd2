// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/process"
)

// A connection is a server with its current state.
type connection struct {
	server       Server
	log          *slog.Logger
	firstAttempt chan struct{} // closed after the first attempt to connect
	once         sync.Once
	calls        atomic.Int64 // number of calls, for progress tokens

	mu      sync.Mutex
	session *sdk.ClientSession // nil: not connected
	tools   []tool.Tool
	apps    map[string]appTool // what all tools of the server say about apps, by the server's names
	state   tool.ServerState
	since   time.Time
	problem string
	inCalls map[string]*inCall // calls at work, by progress token
	asks    bool               // the server has asked a person
	active  int                // calls
	gone    bool               // not of the pool any more

	idle chan struct{} // closed when gone and without calls
	turn chan struct{} // holds a call of a program that asks people

	users *accounts    // of a server with a [Login], which has no session itself
	root  *slog.Logger // of the pool

	// Of the connection of a user:
	of       *accounts
	owner    artel.Owner
	tokens   Tokens
	ended    bool  // it is not opened again
	noAccess error // why there is no token; nil: there is one
}

func newConnection(s Server, log *slog.Logger) *connection {
	return &connection{
		server: s, log: log.With("mcp_server", s.Name), firstAttempt: make(chan struct{}), root: log,
		state: tool.ServerConnecting, since: time.Now(), inCalls: map[string]*inCall{}, idle: make(chan struct{}), turn: make(chan struct{}, 1),
	}
}

// leave ends the connection after its last call. No further call begins.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.gone = true
		c.closeIdle()
	}
}

// closeIdle closes idle at the right time. c.mu is held.
func (c *connection) closeIdle() {
	if c.gone && c.active == 0 {
		close(c.idle)
	}
}

// begin counts a call, which ends with end; false: the server is not of the pool any
// more.
func (c *connection) begin() (session *sdk.ClientSession, end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, nil, false
	}
	c.active++
	return c.session, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.active--
		c.closeIdle()
	}, true
}

// run connects and reconnects until ctx ends, or the server has left the pool and its
// calls have ended.
func (c *connection) run(ctx context.Context) {
	if r := c.server.Remote; r != nil {
		defer r.Client.CloseIdleConnections()
	}
	if c.users != nil {
		c.users.run(ctx)
		return
	}
	ctx, stop := c.whileUsed(ctx)
	defer stop()
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxPause { // it was connected for a while
			failures = 0
		}
		wait := pause(failures)
		failures++
		why := c.failed(err)
		c.log.Warn("an MCP server is not connected; it is tried again", "err", why, "in", wait.Round(time.Millisecond))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// whileUsed returns a context that ends when the server has left the pool and its calls
// have ended.
func (c *connection) whileUsed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		select {
		case <-c.idle:
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// failed sets the state after an error, and returns its text.
func (c *connection) failed(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok { // its own text repeats the request
		err = u.Err
	}
	why := c.hide(artel.Shorten(err.Error(), 500))
	c.setState(tool.ServerFailed, nil, nil, why)
	return why
}

// connect serves one connection from its start to its end.
func (c *connection) connect(ctx context.Context) error {
	defer c.once.Do(func() { close(c.firstAttempt) })
	changed := make(chan struct{}, 1)
	client := newClient(&sdk.ClientOptions{
		KeepAlive: keepAlive,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.progressed(r.Params.ProgressToken, r.Params.Message)
		},
		ElicitationHandler: c.elicit,
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
			Extensions:  map[string]any{tasksExtension: map[string]any{}},
		},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	if err := addTasks(client); err != nil {
		return err
	}
	connecting, stop := context.WithTimeout(ctx, c.server.Limits.Connect)
	defer stop()
	// Closing the connection stops a program; it is killed only if it stays.
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	transport, end := c.transport(alive)
	defer end()
	session, err := client.Connect(connecting, transport, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	lost := false
	defer func() {
		_ = session.Close() // the error is of no use
		if !lost {
			<-ended
		}
	}()
	if err := c.list(connecting, session); err != nil {
		return err
	}
	c.once.Do(func() { close(c.firstAttempt) })
	for {
		select {
		case <-ctx.Done():
			c.setState(tool.ServerFailed, nil, nil, "stopped")
			return ctx.Err()
		case err := <-ended:
			lost = true
			if err == nil {
				err = errors.New("the server closed the connection")
			}
			return err
		case <-changed:
			listing, stop := context.WithTimeout(ctx, c.server.Limits.Connect)
			err := c.list(listing, session)
			stop()
			if err != nil {
				return err
			}
			select { // combine changes within the interval
			case <-ctx.Done():
			case <-time.After(minListInterval):
			}
		}
	}
}

// maxTools bounds the tools of a server; no model takes as many, and an endless
// list would fill memory.
const maxTools = 2000

// minListInterval is the least time between two lists, regardless of the
// server's change notifications.
const minListInterval = 250 * time.Millisecond

// list loads the tools of the server.
func (c *connection) list(ctx context.Context, session *sdk.ClientSession) error {
	var tools []tool.Tool
	apps := map[string]appTool{}
	listed := 0
	capabilities := session.InitializeResult().Capabilities
	if capabilities != nil && capabilities.Tools != nil {
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if listed++; listed > maxTools {
				return fmt.Errorf("the server lists more than %d tools", maxTools)
			}
			if c.server.Only != nil && !slices.Contains(c.server.Only, t.Name) {
				continue
			}
			made, err := c.tool(t, takesTasks(session, t))
			if err != nil {
				c.log.Warn("a tool of an MCP server cannot be offered", "tool", artel.Shorten(t.Name, 80), "err", err)
				continue
			}
			if slices.ContainsFunc(tools, func(o tool.Tool) bool { return o.Name == made.Name }) {
				c.log.Warn("a tool of an MCP server cannot be offered: its name is taken", "tool", artel.Shorten(t.Name, 80))
				continue
			}
			of := appToolOf(t, made.Name)
			apps[t.Name] = of
			if of.model {
				tools = append(tools, made)
			}
		}
	}
	if capabilities != nil && capabilities.Resources != nil && c.server.Only == nil {
		for _, made := range []tool.Tool{c.listResources(), c.readResource()} {
			if !slices.ContainsFunc(tools, func(o tool.Tool) bool { return o.Name == made.Name }) {
				tools = append(tools, made)
			}
		}
	}
	c.mu.Lock()
	c.apps = apps
	c.mu.Unlock()
	c.setState(tool.ServerReady, session, tools, "")
	if c.of != nil {
		c.of.keep(c, tools)
	}
	c.log.Info("an MCP server is connected", "tools", len(tools))
	return nil
}

// transport returns a new transport to the server. A program is killed when ctx
// ends; end kills what is left of it and of the programs that it started.
func (c *connection) transport(ctx context.Context) (t sdk.Transport, end func()) {
	if p := c.server.Process; p != nil {
		cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
		cmd.Env, cmd.Dir = p.Env, p.Dir
		cmd.Stderr = &stderrLog{c: c}
		cmd.WaitDelay = 2 * time.Second
		group := process.Lead(cmd)
		end = func() { _ = group.Kill() } // usually nothing is left
		return groupTransport{&sdk.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}, group}, end
	}
	r := c.server.Remote
	client := *r.Client
	client.Transport = headerTransport{r.Client.Transport, r.Header}
	remote := &sdk.StreamableClientTransport{Endpoint: r.URL, HTTPClient: &client, MaxRetries: 2}
	if c.tokens != nil {
		remote.OAuthHandler = c
	}
	return remote, func() {}
}

// A groupTransport starts a program as the leader of a group.
type groupTransport struct {
	*sdk.CommandTransport
	group *process.Group
}

func (t groupTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.CommandTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_ = t.group.Started() // without it the program alone is ended
	return markedConn{conn}, nil
}

// A headerTransport adds headers to each request.
type headerTransport struct {
	http.RoundTripper
	header http.Header
}

func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.header {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	if err := sentRequest(r); err != nil {
		return nil, err
	}
	next := h.RoundTripper
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // the SDK limits the size of events
		resp.Body = http.MaxBytesReader(nil, resp.Body, sdk.DefaultMaxLineLength)
	}
	if err == nil {
		markBody(r, resp)
	}
	return resp, err
}

// A stderrLog logs the standard error of a program line by line.
type stderrLog struct {
	c    *connection
	rest []byte
}

// longestLine is how many bytes of a line are logged.
const longestLine = 2000

func (l *stderrLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < longestLine {
			return len(p), nil
		}
		if !ok {
			line, rest = l.rest, nil
		}
		l.rest = bytes.Clone(rest)
		l.c.log.Info("an MCP server says", "line", l.c.hide(artel.Shorten(strings.ToValidUTF8(string(line), "\uFFFD"), longestLine)))
	}
}

func (c *connection) setState(s tool.ServerState, session *sdk.ClientSession, tools []tool.Tool, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != c.state {
		c.since = time.Now()
	}
	c.state, c.session, c.tools, c.problem = s, session, tools, problem
}

func (c *connection) currentTools() []tool.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

func (c *connection) health() tool.ServerHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tool.ServerHealth{Name: c.server.Name, State: c.state, Tools: len(c.tools), Error: c.problem, Since: c.since.UTC()}
}

// track registers a call at work, with its progress token. The caller calls end.
func (c *connection) track(k *inCall) (end func()) {
	k.token = c.server.Name + "-" + strconv.FormatInt(c.calls.Add(1), 10)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inCalls[k.token] = k
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inCalls, k.token)
	}
}

func (c *connection) progressed(token any, message string) {
	name, _ := token.(string)
	c.mu.Lock()
	k := c.inCalls[name]
	c.mu.Unlock()
	if k != nil {
		k.clock.progressed()
		k.report(message)
	}
}

// takeTurn waits until no other call is at work, if the server is a program that asks
// people: it does not say which call a question belongs to. The caller calls end.
func (c *connection) takeTurn(ctx context.Context) (end func(), err error) {
	c.mu.Lock()
	alone := c.asks && c.server.Process != nil
	c.mu.Unlock()
	if !alone {
		return func() {}, nil
	}
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
