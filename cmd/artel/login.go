// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

// A loginRequest is the command line of artel login.
type loginRequest struct {
	email   string
	scopes  []string
	expires string
	token   bool // from standard input
	browser bool // made on the page and pasted
	plain   bool // without TLS beyond this machine
}

func loginCommand(g *globals) *cobra.Command {
	var r loginRequest
	cmd := &cobra.Command{
		Use: "login URL", Short: "Log in to a server elsewhere", Args: usage(cobra.ExactArgs(1)),
		Long: `Logs in to a server, and keeps a token of its own for it in your configuration
directory, in a file that other accounts cannot read. Later commands use the server
of the last login unless --server, ARTEL_URL or ARTEL_SERVER names another, and send
the token of the server that they use; ARTEL_TOKEN replaces it.

Asks for e-mail address and password. With --token, standard input has a token with
which the new one is made, and with which it ends. With --browser you make a token on
the account page, for servers where people log in elsewhere, and paste it here.`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, g, args[0]) },
	}
	cmd.Flags().StringVar(&r.email, "email", "", "e-mail address (default: asked for)")
	cmd.Flags().StringSliceVar(&r.scopes, "scope", []string{string(store.ScopeRead), string(store.ScopeWrite), string(store.ScopeGateway)}, "what the token may do: read, write, gateway, admin")
	cmd.Flags().StringVar(&r.expires, "expires", "90d", "time from now after which the token ends, such as 90d or 36h")
	cmd.Flags().BoolVar(&r.token, "token", false, "read a token from standard input, in the place of a password")
	cmd.Flags().BoolVar(&r.browser, "browser", false, "make the token on the page, and paste it")
	cmd.Flags().BoolVar(&r.plain, "insecure", false, "send password and token without TLS beyond this machine, readable on the way")
	cmd.MarkFlagsMutuallyExclusive("token", "browser", "email")
	return cmd
}

func (r *loginRequest) run(cmd *cobra.Command, g *globals, at string) error {
	ctx := cmd.Context()
	server, err := serverURL(at)
	if err != nil {
		return err
	}
	if u, err := url.Parse(server); err == nil && u.Scheme == "http" && !access.IsLoopback(u.Host) && !r.plain {
		return usageError{fmt.Errorf("%s has no TLS, so that others could read the password on the way: use https, or --insecure if the network is yours", server)}
	}
	ends, err := parseAge(r.expires)
	if err != nil || ends <= 0 {
		return usageError{fmt.Errorf("--expires %q: want a time from now such as 90d or 36h", r.expires)}
	}
	folder, err := logins()
	if err != nil {
		return artel.Errorf(artel.Unavailable, "login", "", "there is no configuration directory: %w", err)
	}
	before, had, err := folder.find(server)
	if err != nil {
		return err
	}
	answers := &answers{in: cmd.InOrStdin(), errs: cmd.ErrOrStderr()}
	made := login{URL: server}
	switch {
	case r.browser:
		err = r.paste(ctx, server, answers, &made)
	case r.token:
		var given string
		if given, err = answers.secret("Token: "); err == nil {
			err = r.make(ctx, httpapi.NewClient(server, nil).WithToken(given), ends, &made)
		}
	default:
		err = r.password(ctx, server, ends, answers, &made)
	}
	if err != nil {
		return err
	}
	if err := folder.keep(made); err != nil {
		revoked := httpapi.NewClient(server, nil).WithToken(made.Token).RevokeToken(context.WithoutCancel(ctx), made.TokenID)
		return errors.Join(err, revoked)
	}
	if had && before.TokenID != made.TokenID {
		err := httpapi.NewClient(server, nil).WithToken(before.Token).RevokeToken(ctx, before.TokenID)
		if p, ok := errors.AsType[*httpapi.Problem](err); err != nil && (!ok || p.Status != http.StatusUnauthorized && p.Status != http.StatusNotFound) {
			fmt.Fprintf(cmd.ErrOrStderr(), "artel: the token of the login before, %s, could not be revoked: %v\n", before.TokenID, err)
		}
	}
	out := map[string]any{"url": made.URL, "name": made.Name, "email": made.Email, "token_id": made.TokenID, "expires_at": made.ExpiresAt}
	return g.print(cmd, out, func(w printer) {
		w.linef("logged in to %s as %s; the token %s", made.URL, strings.TrimSpace(made.Name+" "+made.Email), whenEnds(made.ExpiresAt))
	})
}

// make makes a token with a client that may, and asks the server who it is for.
func (r *loginRequest) make(ctx context.Context, c *httpapi.Client, ends time.Duration, l *login) error {
	at := time.Now().Add(ends).UTC().Truncate(time.Second)
	n := httpapi.NewToken{Name: tokenName(), ExpiresAt: &at}
	for _, s := range r.scopes {
		n.Scopes = append(n.Scopes, store.Scope(s))
	}
	made, err := c.MakeToken(ctx, n)
	if err != nil {
		return err
	}
	l.Token, l.TokenID, l.ExpiresAt = made.Token, made.ID, made.ExpiresAt
	return l.who(ctx)
}

// who asks the server who the token is for.
func (l *login) who(ctx context.Context) error {
	me, err := httpapi.NewClient(l.URL, nil).WithToken(l.Token).Me(ctx)
	if err == nil {
		l.Name, l.Email, l.TokenID = me.Name, me.Email, cmp.Or(l.TokenID, me.TokenID)
	}
	return err
}

// tokenName names the token after this machine, so that it is known in the list.
func tokenName() string {
	host, err := os.Hostname()
	if err != nil || strings.TrimSpace(host) == "" {
		host = "another machine"
	}
	return "artel login on " + artel.Shorten(artel.Visible(host), 60)
}

// password logs in as a browser does, makes the token and logs out again.
func (r *loginRequest) password(ctx context.Context, server string, ends time.Duration, a *answers, l *login) error {
	email := r.email
	var err error
	if email == "" {
		if email, err = a.line("E-mail: "); err != nil {
			return err
		}
	}
	password, err := a.secret("Password: ")
	if err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	c := httpapi.NewClient(server, &http.Client{Jar: jar, Transport: sameOrigin{http.DefaultTransport}})
	if err := c.LogIn(ctx, httpapi.Credentials{Email: email, Password: password}); err != nil {
		if p, ok := errors.AsType[*httpapi.Problem](err); ok && p.Status == http.StatusUnauthorized {
			return fmt.Errorf("%w; if people log in elsewhere at this server, use artel login --browser", err)
		}
		return err
	}
	err = r.make(ctx, c, ends, l)
	if out := c.LogOut(context.WithoutCancel(ctx)); err == nil && out != nil {
		fmt.Fprintf(a.errs, "artel: the session in which the token was made stays until it ends by itself: %v\n", out)
	}
	return err
}

// sameOrigin marks requests as a page of the server itself does: changes with a cookie
// need that.
type sameOrigin struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (s sameOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	return s.next.RoundTrip(r)
}

// paste takes a token that was made on the page.
func (r *loginRequest) paste(ctx context.Context, server string, a *answers, l *login) (err error) {
	fmt.Fprintf(a.errs, "Open %s/account#tokens, log in, make a token there with what commands need (read, write, gateway), and paste it here.\n", server)
	if l.Token, err = a.secret("Token: "); err != nil {
		return err
	}
	if err := l.who(ctx); err != nil {
		return err
	}
	if l.TokenID == "" {
		return artel.Errorf(artel.Invalid, "login", server, "the server does not say which token this is: it needs no login, or is of an older version")
	}
	all, err := httpapi.NewClient(server, nil).WithToken(l.Token).Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all.Items {
		if t.ID == l.TokenID {
			l.ExpiresAt = t.ExpiresAt
		}
	}
	return nil
}

// answers reads what a person types, or lines of a file.
type answers struct {
	in    io.Reader
	errs  io.Writer
	lines *bufio.Reader
}

// maxAnswer is the longest line that is read, in bytes.
const maxAnswer = 4096

// line asks for a line, which is shown while it is typed.
func (a *answers) line(question string) (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(a.errs, question)
	}
	return a.read(question)
}

// secret asks for a line that is not shown.
func (a *answers) secret(question string) (string, error) {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return a.read(question)
	}
	fmt.Fprint(a.errs, question)
	b, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(a.errs)
	if err != nil {
		return "", artel.Errorf(artel.Canceled, "login", "", "nothing was read: %w", err)
	}
	return required(question, string(b))
}

func (a *answers) read(question string) (string, error) {
	if a.lines == nil {
		a.lines = bufio.NewReaderSize(a.in, maxAnswer)
	}
	b, _, err := a.lines.ReadLine()
	if err != nil && !errors.Is(err, io.EOF) {
		return "", artel.Errorf(artel.Canceled, "login", "", "nothing was read: %w", err)
	}
	return required(question, string(b))
}

func required(question, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", usageError{fmt.Errorf("%s is missing: type it, or pass it as a line on standard input", strings.TrimSuffix(question, ": "))}
	}
	return strings.TrimRight(text, "\r\n"), nil
}

func logoutCommand(g *globals) *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use: "logout [URL]", Short: "Revoke and delete the token of artel login", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Revokes the token that artel login has kept for a server, there and at once, and
deletes it here. Without URL, the server of the last login. Commands then use the
server on this machine.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := logins()
			if err != nil {
				return artel.Errorf(artel.Unavailable, "logout", "", "there is no configuration directory: %w", err)
			}
			at := g.server
			if len(args) > 0 {
				at = args[0]
			} else if at == "" {
				if at, err = folder.current(); err != nil {
					return err
				}
			}
			if at == "" {
				return artel.Errorf(artel.NotFound, "logout", "", "there is no login; artel login URL makes one")
			}
			l, ok, err := folder.find(at)
			if err == nil && !ok {
				err = artel.Errorf(artel.NotFound, "logout", at, "there is no login at this server")
			}
			if err != nil {
				return err
			}
			said := "its token is revoked"
			if forget {
				said = "its token still works at the server until you revoke it on the account page"
			} else {
				err := httpapi.NewClient(l.URL, nil).WithToken(l.Token).RevokeToken(cmd.Context(), l.TokenID)
				if p, ok := errors.AsType[*httpapi.Problem](err); ok && (p.Status == http.StatusUnauthorized || p.Status == http.StatusNotFound) {
					said, err = "its token had ended before", nil
				}
				if err != nil {
					return fmt.Errorf("%w; the login is kept: try again, or delete it alone with --forget", err)
				}
			}
			if err := folder.remove(l.URL); err != nil {
				return err
			}
			return g.print(cmd, map[string]any{"url": l.URL, "token_id": l.TokenID, "revoked": !forget}, func(w printer) {
				w.linef("logged out of %s: %s", l.URL, said)
			})
		},
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "delete the token here without asking the server, which cannot be reached")
	return cmd
}
