// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/webui"
)

// screens is where the tests leave pictures of the page; "": nowhere.
var screens = os.Getenv("ARTEL_SCREENS")

// A site is a whole server with the page and the API, as artel serve wires it.
type site struct {
	*httptest.Server
	app   *app.App
	store store.Store
	close func() // stops it in good order; the second time it does nothing
}

// A setup is what a site is made of. Its zero value is a site in memory where
// the built-in demo answers.
type setup struct {
	demo     demo.Options
	model    model.Provider                  // answers in the place of the demo; nil: the demo
	wait     func(context.Context)           // before each answer; nil: none waits
	sees     bool                            // the demo sees what package probe sends
	services []model.Service                 // besides the demo
	standard artel.ServiceID                 // that answers where none is named; "": the first
	findings []model.Finding                 // where they were looked for
	storage  int64                           // bytes that a user may store; 0: any number
	dir      string                          // of database and blobs; "": in memory
	reload   func(*model.Registry) error     // reads the services again; nil: they cannot be
	context  app.Context                     // how contexts are built
	agents   []agent.Definition              // nil: those that are shipped
	servers  tool.Servers                    // where more tools come from; nil: nowhere
	caller   model.CallerOptions             // how models are called
	ask      agent.Permissions               // which tools are asked about
	openai   func(blob.Store) model.Provider // calls services of the dialect; nil: the demo answers
	content  httpapi.ContentHost             // where files are shown; "": on the same host
	login    bool                            // who asks has to be known
	listener net.Listener                    // nil: on any port
	wrap     func(http.Handler) http.Handler // around the whole server; nil: nothing
	now      func() time.Time                // the clock of the page; nil: time.Now
}

func newSite(t testing.TB, o demo.Options) *site {
	t.Helper()
	return newSiteOf(t, setup{demo: o})
}

// openSite makes a site and opens the page of its new conversation in a tab.
func openSite(t *testing.T, c setup, width, height int64) (*site, *tab) {
	t.Helper()
	s := newSiteOf(t, c)
	b := openTab(t, width, height)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	return s, b
}

func newSiteOf(t testing.TB, c setup) *site {
	t.Helper()
	path, blobs := ":memory:", blob.Store(blob.NewMemory())
	closeBlobs := func() error { return nil }
	if c.dir != "" {
		path = filepath.Join(c.dir, "artel.db")
		folder, err := blob.OpenDir(filepath.Join(c.dir, "blobs"))
		if err != nil {
			t.Fatal(err)
		}
		blobs, closeBlobs = folder, folder.Close
	}
	db, err := sqlite.Open(apptest.Context(t), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	services := model.NewRegistry(nil, "")
	services.Replace(c.services, c.findings, c.standard)
	if c.model == nil {
		c.model = demo.New(blobs, c.demo)
	}
	if answer := c.model; c.wait != nil {
		c.model = responder(func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
			c.wait(ctx)
			return answer.Generate(ctx, r)
		})
	}
	if c.sees {
		c.model = responder(fake.Sees(blobs, c.model.Generate))
	}
	config := app.Config{
		Store: db, Blobs: blobs, Notifier: event.NewNotifier(), Services: services, Servers: c.servers, Agents: c.agents,
		Providers:   map[model.Dialect]model.Provider{model.Demo: c.model, model.OpenAI: c.model},
		Permissions: c.ask,
		Options:     app.Options{SpoolDir: t.TempDir(), Context: c.context, Caller: c.caller, Artifacts: artifact.Options{Quota: c.storage}},
	}
	if c.openai != nil {
		config.Providers[model.OpenAI] = c.openai(blobs)
	}
	box, err := secret.New("", filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	client := fetch.NewClient(fetch.Options{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	config.Stored = app.Stored{Secrets: box, HTTP: client}
	if c.reload != nil {
		config.Reload = func(context.Context) error { return c.reload(services) }
	}
	a, err := app.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(httpapi.Base+"/", httpapi.New(a, httpapi.Options{ContentHost: c.content}))
	page := webui.At(webui.Place{Content: c.content.Sources()}, a, webui.Options{API: func() ([]byte, error) { return httpapi.Document(a, "dev") }, Samples: os.DirFS("../cmd/artel/samples"), Now: c.now})
	mux.Handle(httpapi.DocsPath, page)
	mux.Handle("/", page)
	handler := apptest.As(httpapi.Guard(mux))
	if c.login {
		handler = httpapi.Guard(httpapi.Authenticate(mux, httpapi.Authentication{Access: a.Access, Gateway: func(*http.Request) bool { return false }}))
	}
	handler = c.content.Handler(handler)
	if c.wrap != nil {
		handler = c.wrap(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	if c.listener != nil {
		_ = server.Listener.Close()
		server.Listener = c.listener
	}
	server.Start()
	s := &site{Server: server, app: a, store: db}
	s.close = sync.OnceFunc(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(apptest.Context(t)), 5*time.Minute)
		defer stop()
		err := a.Close(ctx)
		s.CloseClientConnections()
		s.Server.Close()
		if err := errors.Join(err, db.Close(), closeBlobs()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.close)
	return s
}

// A responder answers in the place of a model.
type responder fake.Responder

// Generate implements [model.Provider].
func (f responder) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return f(ctx, r)
}

// A speech is a model whose answers a test writes: say returns false once
// nobody listens any more.
type speech func(ctx context.Context, r *model.Request, say func(model.Delta) bool)

// Generate implements [model.Provider].
func (f speech) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		listens := true
		say := func(d model.Delta) bool {
			listens = listens && yield(d, nil)
			return listens
		}
		f(ctx, r, say)
		switch {
		case !listens:
		case ctx.Err() != nil:
			yield(nil, artel.Errorf(artel.Canceled, "webui_test", "", "%w", ctx.Err()))
		default:
			yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}
}

// script parses a scenario, in the format of package demo.
func script(t *testing.T, scenario string) demo.Options {
	t.Helper()
	s, err := demo.ParseScenario([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	return demo.Options{Scenario: s}
}

// seed puts a conversation into the store as if it had happened at a time:
// texts of a person and the agent by turns.
func (s *site) seed(t testing.TB, title string, at time.Time, texts ...string) artel.ConversationID {
	t.Helper()
	c := artel.Conversation{ID: artel.NewConversationID(at), Title: title, CreatedAt: at, UpdatedAt: at}
	err := s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		c.Leaf = ""
		if err := tx.Conversations.Create(c); err != nil {
			return err
		}
		for i, text := range texts {
			m := artel.Message{
				ID: artel.NewMessageID(at), Conversation: c.ID, Parent: c.Leaf, Role: artel.RoleUser,
				Parts: artel.Parts{artel.Text{Text: text}}, CreatedAt: at.Add(time.Duration(i) * time.Millisecond),
			}
			if i%2 == 1 {
				m.Role = artel.RoleAssistant
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			c.Leaf = m.ID
		}
		return tx.Conversations.Update(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// all lists the conversations, the newest first.
func (s *site) all(t *testing.T) []store.Listed {
	t.Helper()
	list, _, err := s.app.Conversations.List(apptest.Context(t), store.ConversationQuery{Page: store.Page{Limit: 500}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sample is the path of a file of testdata/files.
func sample(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func waitFinal(t *testing.T, s *site, c artel.ConversationID) {
	t.Helper()
	for e, err := range s.app.Events.Follow(apptest.Context(t), c, 0, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished {
			return
		}
	}
	t.Fatal("the run never finished")
}
