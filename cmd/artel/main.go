// SPDX-License-Identifier: Apache-2.0

// Command artel runs the Artel server and is its command line client.
//
// Only this package reads flags, the environment and the configuration file,
// lists the implementations (databases, dialects), and connects the packages.
// Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no server answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	_ "time/tzdata" // for machines without a time zone database

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/httpapi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(execute(ctx, os.Args[1:]))
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	at, _ := root.PersistentFlags().GetString("server") // it exists, and has the server that was asked
	fmt.Fprintln(os.Stderr, "artel: "+withLogin(err, at).Error())
	return exitCode(err)
}

// withLogin says how to get a login that may do what that at a server may not.
func withLogin(err error, server string) error {
	p, ok := errors.AsType[*httpapi.Problem](err)
	switch {
	case !ok || p.Code != access.CodeTokenScope:
		return err
	case os.Getenv("ARTEL_TOKEN") != "":
		return fmt.Errorf("%s; ARTEL_TOKEN has that token: put one with the scope in its place", p.Detail)
	}
	return fmt.Errorf("%s; run: artel login %s --scope gateway,admin", strings.Replace(p.Detail, "this token", "this login", 1), server)
}

// The exit codes other than 0.
const (
	exitRefused     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// usageError is an invalid command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if artel.CodeOf(err) == httpapi.CodeUnreachable {
		return exitUnreachable
	}
	return exitRefused
}

// globals are the flags of every verb.
type globals struct {
	server string
	json   bool
	config string
}

func newRoot() *cobra.Command {
	var g globals
	root := &cobra.Command{
		Use:           "artel",
		Short:         "Gives every model exactly the content it can take, and keeps everything agents make",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&g.server, "server", envOr("ARTEL_URL", os.Getenv("ARTEL_SERVER")), "address of the server (default: that of the last artel login, else the only one of this user that runs, else "+localServer+")")
	flags.BoolVar(&g.json, "json", false, "print JSON")
	flags.StringVar(&g.config, "config", os.Getenv("ARTEL_CONFIG"), "configuration file (default ./artel.yaml if it exists and is trusted)")
	root.AddCommand(
		serveCommand(&g), chatCommand(&g), branchesCommand(&g), compactCommand(&g),
		putCommand(&g), getCommand(&g), lsCommand(&g), catCommand(&g), rmCommand(&g),
		versionsCommand(&g), diffCommand(&g), restoreCommand(&g), editCommand(&g), exportCommand(&g), importCommand(&g),
		detectCommand(&g), routeCommand(&g), tokensCommand(&g), regexCommand(&g), macrosCommand(&g), modelsCommand(&g), servicesCommand(&g),
		agentsCommand(&g), booksCommand(&g), skillsCommand(&g), contextCommand(&g), replayCommand(&g), settingsCommand(&g), gatewayCommand(&g), toolsCommand(&g), mcpCommand(&g), httpToolsCommand(&g),
		loginCommand(&g), logoutCommand(&g), usersCommand(&g), tokenCommand(&g), keyCommand(&g), webhooksCommand(&g), schedulesCommand(&g), usageCommand(&g), gcCommand(&g), backupCommand(&g), migrateCommand(&g), fsckCommand(&g), doctorCommand(&g), healthCommand(&g), trustCommand(&g), demoCommand(&g), fakeCommand(), versionCommand(&g),
	)
	addExamples(root)
	return root
}

// usage turns the errors of an argument check into usage errors that show what to write.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; write: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

func envOr(key, fallback string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return fallback
}

// client returns a client of the server of commands, with the token for it.
func (g *globals) client() *httpapi.Client {
	at, err := g.address()
	if err != nil {
		return httpapi.NewClient(localServer, &http.Client{Transport: refusing{err}})
	}
	g.server = at
	return httpapi.NewClient(at, nil).WithToken(tokenFor(at))
}

// print prints v as JSON with --json, otherwise with people.
func (g *globals) print(cmd *cobra.Command, v any, people func(printer)) error {
	out := cmd.OutOrStdout()
	if g.json {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	people(printer{tw})
	return tw.Flush()
}

// A printer writes lines; tabs align columns.
type printer struct{ w io.Writer }

func (p printer) line(s string)               { fmt.Fprintln(p.w, s) }
func (p printer) linef(f string, args ...any) { fmt.Fprintf(p.w, f+"\n", args...) }

func itoa(n int) string { return strconv.Itoa(n) }
