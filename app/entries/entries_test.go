// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// A bench has services in a database in memory.
type bench struct {
	*entries.Services
	t        *testing.T
	ctx      context.Context
	db       store.Store
	registry *model.Registry
	config   entries.Config
	options  entries.Options
	lost     error // what OnSecrets received last
	log      bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, ctx: access.With(t.Context(), access.Operator()), db: rowstest.Open(t), registry: model.NewRegistry(nil, "")}
	client, blobs := fetch.NewClient(fetch.Options{AllowPrivate: true}), blob.NewMemory()
	t.Cleanup(client.CloseIdleConnections)
	o := provider.Options{Client: client, Blobs: blobs}
	b.options = entries.Options{OnSecrets: func(err error) { b.lost = err }, Log: slog.New(slog.NewTextHandler(&b.log, nil))}
	b.config = entries.Config{
		Vault: entries.NewVault(b.db, b.box(filepath.Join(t.TempDir(), "key")), b.options), Registry: b.registry, Blobs: blobs, HTTP: client,
		Caller: model.NewCaller(map[model.Dialect]model.Provider{model.OpenAI: openai.New(o), model.Anthropic: anthropic.New(o), model.Gemini: gemini.New(o)}, model.CallerOptions{}),
	}
	b.Services = entries.New(b.config)
	return b
}

func (b *bench) box(path string) *secret.Box {
	box, err := secret.New("", path)
	if err != nil {
		b.t.Fatal(err)
	}
	return box
}

// again returns the services as after a restart with another key file; "": the same.
func (b *bench) again(key string) *entries.Services {
	b.t.Helper()
	c := b.config
	if key != "" {
		c.Vault = entries.NewVault(b.db, b.box(key), b.options)
	}
	s := entries.New(c)
	if err := s.Load(b.ctx, false); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) ids() []artel.ServiceID {
	var out []artel.ServiceID
	for _, s := range b.registry.All() {
		out = append(out, s.ID)
	}
	return out
}

func (b *bench) service(id artel.ServiceID) model.Service {
	b.t.Helper()
	s, ok := b.registry.Lookup(id)
	if !ok {
		b.t.Fatalf("there is no service %s, but %v", id, b.ids())
	}
	return s
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// openAI is a strict fake that reads pictures.
func openAI(t *testing.T, key string, models ...string) string {
	blobs := blob.NewMemory()
	return serve(t, fake.OpenAI(fake.Options{Key: key, Models: models, Blobs: blobs, Responder: fake.Sees(blobs, demo.New(blobs, demo.Options{}).Generate)}))
}

const key = "sk-0123456789abcdef"

// TestLife: a service is added, changed, switched off and deleted; each takes effect at
// once, survives a restart, shows no secret, and is in the audit log.
func TestLife(t *testing.T) {
	b := newBench(t)
	url := openAI(t, key, "alpha", "beta")
	fields := map[string]any{"id": "team", "baseURL": url + "/v1", "apiKey": key, "model": "alpha", "models": []any{"beta"}, "headers": map[string]any{"x-team": "blue"}}
	made, err := b.Create(b.ctx, fields)
	if err != nil {
		t.Fatal(err)
	}
	if want := []artel.ServiceID{"team", "team-beta"}; !slices.Equal(made.Services, want) || !slices.Equal(b.ids()[:2], want) {
		t.Errorf("%v in the registry, %v in the answer; want %v", b.ids(), made.Services, want)
	}
	if d := cmp.Diff(map[string]any{"set": true, "ends_with": "cdef"}, made.Fields["apiKey"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]any{"x-team": map[string]any{"set": true}}, made.Fields["headers"]); d != "" {
		t.Error(d) // a short secret shows no end
	}
	if s := b.service("team-beta"); s.APIKey != key || s.Extra.Header["X-Team"] != "blue" || s.Origin != entries.Origin {
		t.Errorf("%+v", s)
	}
	rows := b.rows()
	if len(rows) != 1 || bytes.Contains(rows[0].Secrets, []byte("0123456789")) || bytes.Contains(rows[0].Fields, []byte("0123456789")) {
		t.Errorf("the row holds the key: %s %q", rows[0].Fields, rows[0].Secrets)
	}

	// What is read can be written back: secrets stay.
	changed := made.Fields
	changed["name"] = "The team"
	if _, err := b.Update(b.ctx, "team", changed); err != nil {
		t.Fatal(err)
	}
	if s := b.service("team"); s.APIKey != key || s.Extra.Header["X-Team"] != "blue" || s.Name != "alpha (The team)" {
		t.Errorf("after the change: %s %+v", s.Name, s.Extra)
	}
	b.again("")
	if s := b.service("team"); s.APIKey != key {
		t.Error("after a restart the key is another one")
	}
	changed["disabled"] = true
	if off, err := b.Update(b.ctx, "team", changed); err != nil || !off.Disabled || off.Problem != model.Disabled {
		t.Errorf("%+v, %v", off, err)
	}
	if got := b.ids(); !slices.Equal(got, []artel.ServiceID{model.DemoID}) {
		t.Errorf("a disabled service is in the registry: %v", got)
	}
	if err := b.Delete(b.ctx, "team"); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(b.ctx, "team"); artel.KindOf(err) != artel.NotFound {
		t.Errorf("a second deletion: %v", err)
	}
	acts, _, err := audit.New(b.db, time.Now).List(b.ctx, store.AuditQuery{})
	var done []string
	for _, a := range acts {
		done = append(done, a.Action+" "+a.Target)
	}
	if d := cmp.Diff([]string{"service_deleted team", "service_changed team", "service_changed team", "service_added team"}, done); d != "" || err != nil {
		t.Error(d, err)
	}
	if strings.Contains(b.log.String(), "0123456789") {
		t.Error("the log holds the key")
	}
}

func (b *bench) rows() (all []store.Entry) {
	b.t.Helper()
	err := b.db.People().View(b.ctx, func(tx store.PeopleTx) (err error) {
		all, err = tx.Entries.List(store.ServiceEntry)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// TestRefused: mistakes are refused as in the configuration file, and nothing is kept.
func TestRefused(t *testing.T) {
	b := newBench(t)
	b.registry.Replace([]model.Service{{ID: "file", Dialect: model.OpenAI, BaseURL: "http://x", Model: "m", Origin: "artel.yaml"}}, nil, "")
	for _, c := range []struct {
		fields map[string]any
		kind   artel.Kind
		says   string
	}{
		{map[string]any{"id": "a", "provider": "openai"}, artel.Invalid, `unknown key "provider"; the nearest known one is "dialect"`},
		{map[string]any{"id": "a", "basURL": "http://x"}, artel.Invalid, `the nearest known one is "baseURL"`},
		{map[string]any{"id": "a", "key": "x"}, artel.Invalid, `the nearest known one is "apiKey"`},
		{map[string]any{"id": "a", "command": []any{"sh"}}, artel.Invalid, `unknown key "command"`},
		{map[string]any{"baseURL": "http://x"}, artel.Invalid, "id is not a text"},
		{map[string]any{"id": "a b"}, artel.Invalid, "id"},
		{map[string]any{"id": "a", "dialect": "opnai"}, artel.Invalid, "dialect"},
		{map[string]any{"id": "a", "baseURL": "file:///etc/passwd"}, artel.Invalid, "baseURL is not an address"},
		{map[string]any{"id": "a", "baseURL": "http://user:pass@x"}, artel.Invalid, "baseURL is not an address"},
		{map[string]any{"id": "a", "apiKey": "${HOME}"}, artel.Invalid, "can only be used in artel.yaml"},
		{map[string]any{"id": "a", "headers": map[string]any{"x": "${HOME}"}}, artel.Invalid, "can only be used in artel.yaml"},
		{map[string]any{"id": "a", "auth": "google"}, artel.Invalid, "auth can only be set in artel.yaml"},
		{map[string]any{"id": "a", "disabled": "yes"}, artel.Invalid, "disabled is not true or false"},
		{map[string]any{"id": "file", "baseURL": "http://x"}, artel.Conflict, "another service has this id"},
		{map[string]any{"id": "demo"}, artel.Conflict, "another service has this id"},
		{map[string]any{"id": "auto"}, artel.Invalid, "id"},
	} {
		if _, err := b.Create(b.ctx, c.fields); artel.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.fields, err, c.says)
		}
	}
	if rows := b.rows(); len(rows) > 0 {
		t.Errorf("%v", rows)
	}
	if _, err := b.Update(b.ctx, "file", map[string]any{}); artel.KindOf(err) != artel.Denied || artel.CodeOf(err) != entries.CodeReadOnly {
		t.Errorf("a service of the file: %v", err)
	}
	member := access.With(t.Context(), access.Actor{Owner: "ann", Role: store.Member})
	_, created := b.Create(member, map[string]any{"id": "a"})
	_, checked := b.Check(member, map[string]any{"id": "a"}, nil)
	_, listed := b.List(member)
	for what, err := range map[string]error{"create": created, "check": checked, "list": listed, "delete": b.Delete(member, "a")} {
		if artel.KindOf(err) != artel.Denied {
			t.Errorf("%s as a member: %v", what, err)
		}
	}
}

// TestKeyStaysWithItsServer: a key that was stored is not sent to another server.
func TestKeyStaysWithItsServer(t *testing.T) {
	b := newBench(t)
	if _, err := b.Create(b.ctx, map[string]any{"id": "a", "baseURL": "http://one.invalid/v1", "model": "m", "apiKey": key}); err != nil {
		t.Fatal(err)
	}
	moved := map[string]any{"id": "a", "baseURL": "http://two.invalid/v1", "model": "m"}
	_, changed := b.Update(b.ctx, "a", moved)
	_, checked := b.Check(b.ctx, moved, nil)
	for what, err := range map[string]error{"update": changed, "check": checked} {
		if artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), "send apiKey") {
			t.Errorf("%s: %v", what, err)
		}
	}
	moved["apiKey"] = ""
	if got, err := b.Update(b.ctx, "a", moved); err != nil || got.Fields["apiKey"] != nil || b.service("a").APIKey != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLostKey: with a missing or another key nothing is lost; the key that comes back,
// and a secret that is entered again, restore the service.
func TestLostKey(t *testing.T) {
	b := newBench(t)
	fields := map[string]any{"id": "a", "baseURL": "http://one.invalid/v1", "model": "m", "apiKey": key}
	if _, err := b.Create(b.ctx, fields); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	lost := b.again(other)
	if !errors.Is(b.lost, secret.ErrNoKey) || len(b.ids()) != 1 {
		t.Errorf("%v with %v", b.lost, b.ids())
	}
	if _, err := lost.Create(b.ctx, map[string]any{"id": "b", "baseURL": "http://x.invalid", "apiKey": key}); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("a new key hides the loss: %v", err)
	}
	all, err := lost.List(b.ctx)
	if err != nil || len(all) != 1 || all[0].Problem != model.SecretUnreadable {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := lost.Update(b.ctx, "a", map[string]any{"name": "x", "baseURL": "http://one.invalid/v1", "model": "m"}); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("a change would lose the secret: %v", err)
	}
	b.again("")
	if b.lost != nil || b.service("a").APIKey != key {
		t.Errorf("the key is back: %v", b.lost)
	}
	again := b.again(other)
	if _, err := again.Update(b.ctx, "a", fields); err != nil || b.lost != nil || b.service("a").APIKey != key {
		t.Errorf("entered again: %v, %v", err, b.lost)
	}
}

// TestConfigurationWins: of two services with an id, the one of the file counts, and the
// stored one stays.
func TestConfigurationWins(t *testing.T) {
	b := newBench(t)
	if _, err := b.Create(b.ctx, map[string]any{"id": "a", "baseURL": "http://stored.invalid/v1", "model": "m"}); err != nil {
		t.Fatal(err)
	}
	env := model.Service{ID: "env", Dialect: model.OpenAI, BaseURL: "http://env.invalid", Model: "m"}
	file := model.Service{ID: "file", Dialect: model.OpenAI, BaseURL: "http://file.invalid", Model: "m"}
	found := []model.Finding{{Source: model.InConfiguration, Services: []artel.ServiceID{"file"}}, {Source: model.InEnvironment, Services: []artel.ServiceID{"env"}}}
	b.registry.Replace([]model.Service{file, env}, found, "")
	if want := []artel.ServiceID{"file", "a", "env", "demo"}; !slices.Equal(b.ids(), want) {
		t.Errorf("%v, want %v", b.ids(), want)
	}
	file.ID, found[0].Services = "a", []artel.ServiceID{"a"}
	b.registry.Replace([]model.Service{file, env}, found, "")
	all, err := b.List(b.ctx)
	if err != nil || b.service("a").BaseURL != file.BaseURL || all[0].Problem != model.IDTaken || len(all[0].Services) > 0 {
		t.Errorf("%+v, %v: %s", all, err, b.service("a").BaseURL)
	}
	b.registry.Replace(nil, nil, "")
	if b.service("a").BaseURL != "http://stored.invalid/v1" {
		t.Error("the stored service is not back")
	}
}
