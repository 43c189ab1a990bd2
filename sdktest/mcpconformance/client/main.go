// SPDX-License-Identifier: Apache-2.0

// Command client is Artel as the client of one MCP server, for the conformance suite: it
// connects, lists the tools, and calls each once, by the same packages as the agents. A
// server that wants an account is connected with one, as in a browser that agrees to
// everything.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func main() {
	if err := run(os.Args[len(os.Args)-1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const owner artel.Owner = "usr_conformance"

// run plays a scenario with the server at an address.
func run(address, scenario string) error {
	ctx := access.With(context.Background(), access.Actor{Owner: owner, Role: store.Member})
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c := mcp.Config{Name: "server", URL: address}
	if strings.HasPrefix(scenario, "auth/") {
		c.Auth = "oauth"
		var given struct {
			ClientID     string `json:"client_id"`
			ClientSecret string `json:"client_secret"`
		}
		_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) // most have none
		c.ClientID, c.ClientSecret = given.ClientID, given.ClientSecret
	}
	server, err := c.Server(nil)
	if err != nil {
		return err
	}
	pool, err := mcp.NewPool([]mcp.Server{server}, log)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	db, err := sqlite.Open(ctx, filepath.Join(dir, "artel.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it is removed
	box, err := secret.New("", filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	all := accounts.New(db, box, []accounts.Servers{pool}, accounts.Options{Log: log})
	defer all.Close()
	pool.Use(all)
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); pool.Run(running) }()
	defer func() { stop(); <-done }()
	if c.Auth == "" {
		pool.Await(ctx, "")
		_, err := call(ctx, pool)
		return err
	}
	for range maxConnects {
		if err := connect(ctx, all, scenario); err != nil {
			return err
		}
		pool.Await(ctx, owner)
		if again, err := call(ctx, pool); !again || err != nil {
			return err
		}
	}
	return errors.New("the server wants another account after each call")
}

// maxConnects is how often a person would connect the server again.
const maxConnects = 3

// connect connects the server with an account. The authorization server of the suite agrees
// at once and leads back.
func connect(ctx context.Context, all *accounts.Accounts, scenario string) error {
	site := accounts.SiteAt("http://localhost:3000")
	if scenario == "auth/basic-cimd" { // a deployment with a public address
		site.Document = "https://conformance-test.local/client-metadata.json"
	}
	location, err := all.Start(ctx, "server", site)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return err
	}
	_, err = all.Finish(ctx, back.Query())
	return err
}

// arguments are those of tools that need some.
var arguments = map[string]string{"server_add_numbers": `{"a":5,"b":3}`}

// call calls all tools. again reports that the server wants more access.
func call(ctx context.Context, pool *mcp.Pool) (again bool, err error) {
	set, err := tool.NewSet(pool.Tools(owner)...)
	if err != nil {
		return false, err
	}
	if len(set.Names()) == 0 {
		return false, errors.New("there are no tools")
	}
	for _, name := range set.Names() {
		args := arguments[name]
		if args == "" {
			args = `{}`
		}
		r, err := set.Call(ctx, &tool.Env{Owner: owner, Host: person{}}, name, json.RawMessage(args))
		if err != nil {
			return false, err
		}
		fmt.Fprintln(os.Stderr, name, r.Content)
		if r.Metadata["connect"] != nil {
			return true, nil
		}
	}
	return false, nil
}

// person is a [tool.Host] who sends each form as it is shown.
type person struct{}

func (person) Elicit(_ context.Context, _ artel.CallID, asked []tool.Elicitation) (out []tool.ElicitResult, _ error) {
	for range asked {
		out = append(out, tool.ElicitResult{Action: "accept", Content: map[string]any{}})
	}
	return out, nil
}

func (person) Keep(context.Context, artel.CallID, json.RawMessage) error { return nil }
func (person) Kept(artel.CallID) json.RawMessage                         { return nil }
func (person) Ends(context.Context) bool                                 { return true }
func (person) Report(artel.CallID, tool.Progress)                        {}
