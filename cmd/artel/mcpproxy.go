// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/mcpproxy"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/pipeline/token"
)

// proxyFlags describe a proxy on the command line.
type proxyFlags struct {
	name, url, deferred string
	limit               int
	headers             []string
}

func proxyCommand(g *globals) *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use: "proxy [flags] -- COMMAND [ARGUMENTS]", Short: "Stand between an MCP host and a server, and keep what floods the context",
		Long: `Wraps an MCP server: the host starts this command in the place of the server's. Tools, names and
order stay. Results over the limit become a preview with a ref, bytes become refs, pictures are
shown once, and artel_read reads what is kept. Beyond 2,000 tokens of schemas, tools are found and
called with artel_find_tools and artel_call.

What is kept is in a conversation named "MCP" and the name of the server, on the server given by
--server or ARTEL_URL, or in the data directory.`,
		Example: `  claude mcp add browser -- artel mcp proxy -- npx -y @playwright/mcp@latest
  artel mcp proxy --url https://tracker.example/mcp --header 'Authorization: Bearer ${TRACKER_TOKEN}'`,
		Args: cobra.ArbitraryArgs,
	}
	attach := attachFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name of the server, for the conversation and for errors (default: from the command or the address)")
	flags.IntVar(&f.limit, "limit", mcpproxy.DefaultLimit, "bytes of text in a result")
	flags.StringVar(&f.deferred, "defer", string(mcpproxy.DeferAuto), "list tools that find and call the others: auto (beyond 2,000 tokens of schemas), on or off")
	flags.StringVar(&f.url, "url", "", "address of a server that speaks streamable HTTP, in the place of a command")
	flags.StringArrayVar(&f.headers, "header", nil, "field of the header of every request to --url, as NAME: VALUE; ${VARIABLE} stands for a variable of the environment; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// Memory is returned early: a host runs one proxy for each of its servers.
		debug.SetMemoryLimit(proxyMemory)
		debug.SetGCPercent(proxyGarbage)
		o, up, err := f.options(args, cmd.ErrOrStderr())
		if err != nil {
			return usageError{err}
		}
		kept := &keptFiles{title: "MCP " + o.Name, attach: func(ctx context.Context) (*attachment, error) { return g.attach(ctx, attach()) }}
		calls := &reporter{log: o.Log, server: func(ctx context.Context) *httpapi.Client { return g.existing(ctx, attach()) }}
		o.OnCall = func(ctx context.Context, e gatewaylog.GatewayEntry) {
			e.MCP.Conversation = kept.known()
			calls.add(ctx, e)
		}
		ctx, stop := context.WithCancel(cmd.Context())
		var background sync.WaitGroup
		unmapProgram() // what every start runs
		background.Go(func() { releasePages(ctx) })
		err = mcpproxy.New(up, kept, o).ServeLines(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
		stop()
		background.Wait()
		calls.close(attach().explicit)
		return errors.Join(err, kept.close())
	}
	return cmd
}

// How a proxy collects garbage: at so many percent of what is in use, and more often from so
// many bytes.
const (
	proxyGarbage = 30
	proxyMemory  = 32 << 20
)

// options returns what the flags say.
func (f proxyFlags) options(args []string, errs io.Writer) (mcpproxy.Options, mcpproxy.Upstream, error) {
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutMedia}))
	o := mcpproxy.Options{Name: cmp.Or(f.name, serverName(args, f.url)), Limit: f.limit, Log: log}
	say := func(s string) { log.Warn("the server: "+s, "server", o.Name) }
	var err error
	if o.Defer, err = mcpproxy.ParseDefer(f.deferred); err != nil {
		return o, nil, fmt.Errorf("--defer %s: want auto, on or off", f.deferred)
	}
	if f.limit < mcpproxy.SmallestLimit || f.limit > mcpproxy.LargestLimit {
		return o, nil, fmt.Errorf("--limit %d: want %d to %d bytes", f.limit, mcpproxy.SmallestLimit, mcpproxy.LargestLimit)
	}
	counter := token.NewCounter()
	o.Count = func(s string) int {
		n, err := counter.Count(token.O200k, s)
		if err != nil {
			return len(s) // more than any vocabulary
		}
		return n
	}
	switch {
	case f.url == "" && len(args) == 0:
		return o, nil, errors.New("give the command of the server after --, or its address with --url")
	case f.url != "" && len(args) > 0:
		return o, nil, errors.New("give a command or --url, not both")
	case f.url == "" && len(f.headers) > 0:
		return o, nil, errors.New("--header is for --url")
	case f.url == "":
		return o, mcpproxy.Command{Args: args, Stderr: errs, Say: say}, nil
	}
	if u, err := url.Parse(f.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, nil, fmt.Errorf("--url %s: want an http or https address", artel.Shorten(f.url, 200))
	}
	values := map[string]string{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return o, nil, fmt.Errorf("--header %s: want NAME: VALUE", artel.Shorten(name, 60))
		}
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if values, err = expanded("--header", values, os.Getenv); err != nil {
		return o, nil, err
	}
	header := http.Header{}
	for name, value := range values {
		header.Set(name, value)
	}
	// The user chose the address, so it may be on this machine.
	client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
	return o, mcpproxy.Remote{URL: f.url, Header: header, Client: client, Say: say}, nil
}

// serverName returns a name for a server: that of the package of a package runner, of the
// program, or of the host.
func serverName(args []string, address string) string {
	if len(args) == 0 {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			return u.Hostname()
		}
		return "server"
	}
	name := filepath.Base(args[0])
	name = strings.TrimSuffix(name, ".exe")
	if slices.Contains([]string{"npx", "bunx", "uvx", "pnpx", "pipx", "node", "python", "python3", "deno", "bun", "uv", "docker"}, name) {
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") && !slices.Contains([]string{"run", "exec", "dlx", "tool"}, a) {
				return artel.Shorten(a, 80)
			}
		}
	}
	return artel.Shorten(name, 80)
}

// keptFiles keeps what a proxy keeps, in a conversation of the server that it attaches to at
// the first use.
type keptFiles struct {
	title  string
	attach func(context.Context) (*attachment, error)

	mu   sync.Mutex
	to   *attachment
	into artel.ConversationID // "": to be found
}

// server returns the server.
func (k *keptFiles) server(ctx context.Context) (*httpapi.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == nil {
		to, err := k.attach(ctx)
		if err != nil {
			return nil, err
		}
		k.to = to
	}
	return k.to.client, nil
}

// conversation returns the conversation, the one of k.title that exists or a new one.
func (k *keptFiles) conversation(ctx context.Context, c *httpapi.Client) (artel.ConversationID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.into != "" {
		return k.into, nil
	}
	for cursor, pages := "", 0; pages < maxSearchedPages; pages++ {
		list, err := c.Conversations(ctx, cursor, 200)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list.Items, func(x artel.Conversation) bool { return x.Title == k.title }); i >= 0 {
			k.into = list.Items[i].ID
			return k.into, nil
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	made, err := c.CreateConversation(ctx, httpapi.NewConversation{Title: k.title})
	k.into = made.ID
	return made.ID, err
}

// maxSearchedPages is how many pages of conversations are searched for a title.
const maxSearchedPages = 10

// Keep implements [mcpproxy.Store].
func (k *keptFiles) Keep(ctx context.Context, r io.Reader, f mcpproxy.File) error {
	c, err := k.server(ctx)
	if err != nil {
		return err
	}
	if there, err := c.Open(ctx, artel.BlobRef(f.Digest)); err == nil {
		return there.Close()
	}
	into, err := k.conversation(ctx, c)
	if err != nil {
		return err
	}
	name := f.Name
	if filepath.Ext(name) == "" {
		name = "result_" + strings.TrimPrefix(string(f.Digest), "sha256-")[:8] + media.Extension(f.MediaType)
	}
	a, err := c.Upload(ctx, into, name, f.MediaType, r, f.Size)
	if errors.Is(err, artel.NotFound) { // the conversation was deleted: the next result makes another
		k.mu.Lock()
		k.into = ""
		k.mu.Unlock()
	}
	if err == nil && a.Digest != f.Digest {
		err = artel.Errorf(artel.Internal, "mcp proxy", string(f.Digest), "the server kept %s instead", a.Digest)
	}
	return err
}

// Open implements [mcpproxy.Store].
func (k *keptFiles) Open(ctx context.Context, d artel.Digest) (io.ReadCloser, error) {
	c, err := k.server(ctx)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, artel.BlobRef(d))
}

// known returns the conversation if one is used; otherwise "".
func (k *keptFiles) known() artel.ConversationID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.into
}

func (k *keptFiles) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == nil {
		return nil
	}
	return k.to.close()
}
