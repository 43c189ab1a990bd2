// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/health"
	"github.com/artelhq/artel/app/metrics"
	"github.com/artelhq/artel/app/telemetry"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/gateway/mcpserver"
	"github.com/artelhq/artel/gateway/mcpwrapped"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/logctx"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/webui"
)

// A server is a whole Artel over one data directory.
type server struct {
	app       *app.App
	handler   http.Handler
	watch     func(context.Context) error // returns why the database is no longer this server's; nil when the context ends
	purged    atomic.Bool                 // deletions were made final since the last garbage collection
	services  *model.Registry
	blobs     blob.Store
	user      string // of the folder of blobs, see [usersFile]
	public    string // origin of presigned URLs of blobs; "": there are none
	health    *health.Checker
	metrics   *metrics.Metrics
	telemetry *telemetry.Telemetry                                                // nil: off
	onRun     func(context.Context, artel.Run) (context.Context, func(artel.Run)) // nil: not called
	looking   sync.Mutex                                                          // guards found, findings and the configuration
	found     []model.Service                                                     // configured and from the environment
	named     map[artel.ServiceID][]model.Service                                 // what each of found stood for when it answered last
	findings  []model.Finding                                                     // results of discovery
	config    config
	http      *http.Client  // to model services
	peers     *sessionPeers // nil: there are no other replicas
	tls       *encryption   // nil: none
	secret    string        // that proves to commands that this server is the one in its file; "": none
	log       *slog.Logger
	reap      func(context.Context) // deletes uploaded files at services after they are deleted here, until the context ends
	close     []func() error        // in opening order
}

// serverOptions are the differences between serve and demo.
type serverOptions struct {
	data      string
	config    config
	demoDelay time.Duration
	scenario  *demo.Scenario
	standby   bool // wait for the lock of the data directory
	access    access.Options
	log       *slog.Logger
}

// openServer opens the data directory and connects all packages. The caller
// closes the server.
func openServer(ctx context.Context, o serverOptions) (*server, error) {
	s := &server{config: o.config, log: o.log}
	if err := s.open(ctx, o); err != nil {
		s.shut()
		return nil, err
	}
	return s, nil
}

func (s *server) open(ctx context.Context, o serverOptions) error {
	// Report configuration errors before anything is created.
	if err := s.findServices(); err != nil {
		return err
	}
	folders, err := o.config.skillFolders()
	if err != nil {
		return err
	}
	agents, err := o.config.agents()
	if err != nil {
		return err
	}
	if s.tls, err = o.config.encryption(o.data, s.log); err != nil {
		return err
	}
	tools, agents, err := o.config.tools(agents, os.Getenv)
	if err != nil {
		return err
	}
	pool, agents, err := o.config.mcpServers(agents, os.Getenv, func(all []mcp.Server) (*mcp.Pool, error) { return mcp.NewPool(all, s.log) })
	if err != nil {
		return err
	}
	var servers tool.Servers
	if pool != nil {
		servers = pool
	}
	building, err := o.config.context()
	if err != nil {
		return err
	}
	gatewayOptions, err := o.config.gateway()
	if err != nil {
		return err
	}
	db, blobs, err := s.openData(ctx, o)
	if err != nil {
		return err
	}
	s.blobs = blobs
	s.health = health.New(s.log, health.Database(db), health.Blobs(blobs), health.Disk(o.data))
	s.metrics = metrics.New(version)
	if err := s.openTelemetry(ctx); err != nil {
		return err
	}
	engine := pdf.New(pdf.Options{CacheDir: o.pdfDir()})
	s.close = append(s.close, engine.Close)
	s.services.Learned().Use(openMarks(o.data, true, s.log))
	key, err := o.signingKey(ctx, db)
	if err != nil {
		return err
	}
	secrets, err := secret.New(os.Getenv(secret.Variable), filepath.Join(o.data, secretFile))
	if err != nil {
		return err
	}
	s.http = modelClient()
	s.http.Transport = s.telemetry.Transport(s.http.Transport)
	s.nameModels(ctx)
	address, cdn := app.MediaAddress(key, o.config.Files.PublicBase, nil), o.config.Files.PublicBase
	if address == nil && s.public != "" {
		address, cdn = app.PresignedAddress(blobs, s.log, nil), s.public
	}
	uploads := openUploads(o.data, address, s.log)
	providers := networkProviders(s.http, blobs, uploads)
	s.reap = func(ctx context.Context) { uploads.RunDeletions(ctx, s.services.All, fileDeleters(providers)) }
	providers[model.Demo] = demo.New(blobs, demo.Options{Delay: o.demoDelay, Scenario: o.scenario})
	notifier, err := s.openNotifier()
	if err != nil {
		return err
	}
	if o.config.replica.shares() {
		o.access.SetupKey = string(key)
	}
	s.app, err = app.New(app.Config{
		Store: s.metrics.Store(db), Blobs: blobs, Notifier: s.metrics.Notifier(notifier), Services: s.services, Agents: agents, Skills: folders, Permissions: o.config.Permissions, Tools: tools, Servers: servers, Providers: s.telemetry.Providers(providers),
		Reload: s.reload, FileKeys: fileKeys(gatewayOptions.Keys), Background: o.config.smallCalls(),
		Access: o.access, UserLimits: o.config.Limits.userLimits(), UserRuns: o.config.Limits.User.Runs, OnUsage: metrics.Usage(s.metrics), OnRun: s.onRun,
		Stored: app.Stored{Secrets: secrets, HTTP: s.http, Files: o.config.fileTools(), OnSecrets: func(err error) { s.health.Set(health.Secrets, err) }},
		Files: app.FileOptions{
			Key: key, PublicBase: o.config.Files.PublicBase, Presign: s.public != "", Retention: o.config.retention(), Alone: func() error { return s.checkAlone(o) }, ServiceFiles: uploads,
			Shown: tool.Shown{Bytes: o.config.Files.InlineLimit, Characters: o.config.Files.ModelLimit},
		},
		Webhooks: webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate},
		Web:      fetch.NewClient(fetch.Options{ResponseTimeout: 30 * time.Second}), // public addresses alone
		Options: app.Options{
			Artifacts: artifact.Options{MaxBytes: o.config.Artifacts.UploadLimit, Limits: o.config.limits(), PDF: engine, Quota: int64(o.config.Limits.User.Storage)},
			Caller:    model.CallerOptions{Log: s.log, OnAttempt: s.telemetry.Call(s.metrics.Call)},
			Context:   building,
			Locale:    phrase.ParseLocale(o.config.Locale),
			SpoolDir:  o.spoolDir(),
			Log:       s.log,
		},
	})
	if err != nil {
		return err
	}
	if err := s.app.Services.Load(ctx, false); err != nil {
		return err
	}
	if err := s.app.Toolbox.Load(ctx); err != nil {
		return err
	}
	metrics.CountStored(s.metrics, int64(o.config.Limits.User.Storage), s.app.Storage.Load)
	s.metrics.CountRuns(func(ctx context.Context) (run.Load, error) { return run.LoadOf(ctx, s.app.Runs) })
	if pool != nil {
		s.connect(ctx, pool)
	}
	if n, err := s.app.Recover(ctx, o.alone()); err != nil {
		return err
	} else if n > 0 {
		s.log.Info("runs of a stopped server were resumed", "runs", n)
	}
	files, err := fs.Sub(samples, "samples")
	if err != nil {
		return artel.Errorf(artel.Internal, "serve", "samples", "%w", err)
	}
	provider, err := o.config.Auth.provider(key, os.Getenv)
	if err != nil {
		return err
	}
	var content httpapi.ContentHost
	if name := o.config.ContentHost; name != "" {
		if content, err = httpapi.ParseContentHost(name); err != nil {
			return artel.Errorf(artel.Invalid, "config", o.config.path, "content_host: %w", err)
		}
	}
	origins := gateway.Origins(o.config.Gateway.Origins)
	mcpServer := mcpserver.New(s.app, mcpserver.Options{Version: version, Log: s.log})
	s.close = append(s.close, func() error { mcpServer.Close(); return nil })
	wrapped := mcpwrapped.New(s.app, mcpwrapped.Options{Pools: pools(pool, s.app.Toolbox.Pool()), Log: s.log})
	s.close = append(s.close, func() error { wrapped.Close(); return nil })
	if o.config.replica.shares() {
		s.peers = newSessionPeers(secrets, s.log)
	}
	f := faces{
		mcp:     s.ofPeers("mcp", httpapi.Inert(mcpServer)),
		wrapped: s.ofPeers("mcp proxy", httpapi.Inert(wrapped)),
		gateway: httpapi.Inert(gateway.New(s.app, gateway.Options{Forwarders: forwarders(providers), OnRequest: s.logRequest, Log: s.log, Backend: gatewayOptions, Origins: origins, Unstored: o.config.Gateway.Store != nil && !*o.config.Gateway.Store})),
		api:     httpapi.New(s.app, httpapi.Options{Version: version, Log: s.log, Ready: s.health.Causes, ContentHost: content}),
		metrics: httpapi.Inert(httpapi.Operators(s.metrics.Handler())),
		page:    webui.At(webui.Place{Prefix: o.config.prefix(), OIDC: provider, Content: content.Sources()}, s.app, webui.Options{Version: version, Command: startedAs(os.Args), Samples: files, Log: s.log, CDN: cdn, API: func() ([]byte, error) { return httpapi.Document(s.app, version) }}),
	}
	admitted := gatewayOptions.Keys
	if !o.config.admits() {
		admitted = nil
	}
	known := httpapi.Authenticate(f, httpapi.Authentication{
		Access: s.app.Access, Gateway: gateway.Serves, GatewaySecret: gateway.Secret, GatewayKey: backend.Knows(admitted),
		MCP: mcpserver.Serves, RefuseMCP: mcpserver.WriteRefusal,
	})
	proxies, prefix, err := o.config.proxies()
	if err != nil {
		return err
	}
	if s.tls != nil {
		known = remembered(known)
	}
	if o.config.running != "" {
		s.secret = rand.Text()
	}
	s.handler = httpapi.FromProxies(s.metrics.HTTP(content.Handler(httpapi.GuardAllowing(httpapi.Paced(withID(proving(s.secret, known))), origins.Allow, o.config.Hosts...)), faceOf), proxies, prefix)
	return nil
}

// withID gives the lines of the log about a request its id.
func withID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(logctx.WithRequest(r.Context())))
	})
}

// withAddress gives the acts of a connection the address of its client. It costs
// requests nothing.
func withAddress(ctx context.Context, c net.Conn) context.Context {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
	}
	return audit.WithAddress(ctx, host)
}

// logRequest records a request of the gateway.
func (s *server) logRequest(ctx context.Context, e gateway.Entry) {
	s.app.GatewayLog.Add(ctx, e)
	s.metrics.Gateway(e)
	s.telemetry.Gateway(ctx, e)
}

// serve serves on l until ctx ends, then shuts down gracefully: no new
// requests, runs ended with all acknowledged state stored, streams closed.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	streams, stopStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStreams()
	h := httpServer(s.handler, s.log)
	h.BaseContext = func(net.Listener) context.Context { return streams }
	h.ConnContext = withAddress
	l = httpapi.PacedListener(l)
	defer raiseHeap()()
	background, stopBackground := context.WithCancel(ctx)
	defer stopBackground()
	var wg sync.WaitGroup
	wg.Go(func() { releasePages(background) })
	wg.Go(func() { s.purgeDeleted(background) })
	wg.Go(func() { s.resumeRuns(background) })
	wg.Go(func() { s.app.Watch(background) })
	wg.Go(func() { s.collect(background) })
	wg.Go(func() { s.app.Webhooks.Run(background) })
	wg.Go(func() { s.app.Schedules.Run(background) })
	if keep, err := parseAge(s.config.Artifacts.EditRetention); err == nil && keep > 0 { // otherwise edits are kept
		wg.Go(func() { s.condense(background, keep) })
	}
	wg.Go(func() { s.keepServices(background) })
	wg.Go(func() { s.reap(background) })
	wg.Go(func() { s.metrics.CountBlobs(background, s.blobs, s.log) })
	gone := make(chan error, 1)
	wg.Go(func() { gone <- s.watch(background) })
	failed := make(chan error, 2)
	if s.tls == nil {
		wg.Go(func() { failed <- h.Serve(l) })
	} else {
		h.TLSConfig = s.tls.config
		wg.Go(func() { failed <- h.ServeTLS(l, "", "") })
		if s.tls.http != "" {
			wg.Go(func() {
				if err := s.tls.serveHTTP(background, s.log); err != nil {
					failed <- err
				}
			})
		}
	}
	var err error
	select {
	case err = <-failed:
	case err = <-gone:
	case <-ctx.Done():
	}
	s.health.Set(health.Stopping, context.Canceled)
	stopBackground()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer stop()
	err = errors.Join(err, s.app.Close(grace))
	stopStreams()
	if e := h.Shutdown(grace); e != nil {
		err = errors.Join(err, h.Close())
	}
	err = errors.Join(err, s.app.GatewayLog.Flush(grace), s.app.Usage.Flush(grace)) // requests up to now
	wg.Wait()
	return err
}

// maxStreams are the requests that one connection of HTTP/2 may have at once, each with a
// goroutine. Requests that a client takes back count until their handlers have ended.
const maxStreams = 100

// httpServer returns a server with limits for headers, idle connections and streams.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second, // TLS too
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// A client that is gone without a word is noticed by a ping without an answer, also
		// while a stream of events is open.
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: time.Minute, PingTimeout: 30 * time.Second, WriteByteTimeout: time.Minute},
		ErrorLog: stdlog.New(httpErrors{log}, "", 0),
	}
}

// httpErrors logs what net/http complains of: failed handshakes, which every scanner of
// ports causes, at the level debug, and the rest as warnings.
type httpErrors struct{ log *slog.Logger }

// Write implements [io.Writer]. net/http writes one message at a time.
func (w httpErrors) Write(p []byte) (int, error) {
	level, text := slog.LevelWarn, strings.TrimSpace(string(p))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, text)
	return len(p), nil
}

// watchFile returns an error if the database file is no longer the one that was opened:
// writes to it would be lost. It returns nil when ctx ends.
func watchFile(ctx context.Context, path string, opened os.FileInfo) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now, err := os.Stat(path); err != nil && !errors.Is(err, os.ErrPermission) || err == nil && !os.SameFile(opened, now) {
			return artel.Errorf(artel.Unavailable, "serve", path, "the database was moved or removed while it was open; the server stops, because writes would be lost")
		}
	}
}

// alone reports that no other server can work on the runs of the database. A server that has lost
// one of PostgreSQL may not have noticed it yet; its leases end.
func (o serverOptions) alone() bool { return o.config.database == "" }

// recoverEvery is how often abandoned runs are resumed.
const recoverEvery = 2 * time.Second

// resumeRuns resumes runs whose end could not be stored, so that their
// conversations are unlocked.
func (s *server) resumeRuns(ctx context.Context) {
	alone := serverOptions{config: s.config}.alone()
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := s.app.Recover(ctx, alone)
		if ctx.Err() != nil {
			return
		}
		if s.health.Set(health.Recovery, err); err != nil {
			s.log.Warn("unfinished runs could not be listed", "err", err)
		}
	}
}

// purgeDeleted periodically makes old deletions final.
func (s *server) purgeDeleted(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		n, err := s.app.Purge(ctx)
		if n > 0 {
			s.purged.Store(true)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("deleted conversations could not be removed", "err", err)
		}
		if _, err := s.app.Audit.Prune(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("old entries of the audit log could not be removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Schedule of garbage collection: soon after the start, because short-lived
// servers have garbage too; then daily, and within an hour after deletions were
// made final. The rate of a few hundred blobs per second leaves capacity for
// requests.
const (
	firstCollection = 10 * time.Minute
	collectionTick  = time.Hour
	collectionEvery = 24 * time.Hour
	collectionPace  = 200
)

// collect periodically removes unreferenced bytes, for the operator.
func (s *server) collect(ctx context.Context) {
	ctx = access.With(ctx, access.Operator())
	next := time.NewTimer(firstCollection)
	defer next.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		next.Reset(collectionTick)
		if purged := s.purged.Swap(false); !purged && time.Since(last) < collectionEvery {
			continue
		}
		last = time.Now()
		r, err := s.app.Storage.Collect(ctx, app.CollectOptions{Grace: app.DefaultGrace, Pace: collectionPace})
		if err != nil && ctx.Err() == nil {
			s.log.Warn("garbage could not be collected", "err", err)
		}
		if r.Results.Count > 0 {
			s.purged.Store(true)
		}
		if r.Removed.Count+r.Staged.Count+r.Results.Count > 0 {
			s.log.Info("unreferenced bytes were removed", "blobs", r.Removed.Count, "bytes", r.Removed.Bytes, "staged", r.Staged.Count, "results", r.Results.Count)
		}
	}
}

// shut closes everything that was opened, last first.
func (s *server) shut() {
	for i := len(s.close) - 1; i >= 0; i-- {
		if err := s.close[i](); err != nil {
			s.log.Error("closing", "err", err)
		}
	}
	s.close = nil
}
