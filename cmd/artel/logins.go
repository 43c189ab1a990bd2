// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// localServer is the server of commands without another one.
const localServer = "http://" + defaultAddr

// A login is a token for a server, kept by artel login. Each has a file of its own in
// the user's configuration directory, which other accounts of the machine cannot read.
type login struct {
	URL       string     `json:"url"` // as of [serverURL]
	TokenID   string     `json:"token_id"`
	Token     string     `json:"token"`
	Name      string     `json:"name"` // of the user
	Email     string     `json:"email,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// A loginFolder holds the logins of a user.
type loginFolder struct{ dir string }

// currentLogin is the name of the file with the address of the last login.
const currentLogin = "current"

func logins() (loginFolder, error) {
	dir, err := os.UserConfigDir()
	return loginFolder{filepath.Join(dir, "artel", "logins")}, err
}

// serverURL returns the one form of a server's address by which its login is found. A
// login is never used for another scheme, host, port or path.
func serverURL(s string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usageError{fmt.Errorf("%q is no address of a server: write it like https://artel.example", artel.Shorten(s, 200))}
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && (u.Scheme != "http" || p != "80") && (u.Scheme != "https" || p != "443") {
		host += ":" + p
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// path is the file of a login. Its name has the host for people, and a hash because two
// addresses may differ in characters that names of files cannot have.
func (f loginFolder) path(server string) string {
	sum := sha256.Sum256([]byte(server))
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.SplitN(server, "://", 2)[1])
	return filepath.Join(f.dir, artel.Shorten(strings.Trim(host, "."), 60)+"-"+hex.EncodeToString(sum[:6])+".json")
}

// read returns the content of a file; nil if it is missing. A file that other accounts
// can use is refused.
func (f loginFolder) read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, artel.Errorf(artel.Denied, "login", path, "other accounts of this machine can use this file (mode %s): remove it, revoke its token on the account page of the server, and log in again", info.Mode().Perm())
	}
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "login", path, "%w", err)
	}
	b, err := readRegular(path)
	if err != nil {
		err = artel.Errorf(artel.Unavailable, "login", path, "%w", err)
	}
	return b, err
}

// find returns the login for an address; ok is false if there is none.
func (f loginFolder) find(server string) (l login, ok bool, err error) {
	server, err = serverURL(server)
	if err != nil {
		return l, false, err
	}
	path := f.path(server)
	b, err := f.read(path)
	if err != nil || b == nil {
		return l, false, err
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, false, artel.Errorf(artel.Invalid, "login", path, "the file is damaged: %w; remove it and log in again", err)
	}
	return l, l.URL == server && l.Token != "", nil
}

// current returns the server of the last login; "" if there is none.
func (f loginFolder) current() (string, error) {
	b, err := f.read(filepath.Join(f.dir, currentLogin))
	return strings.TrimSpace(string(b)), err
}

// keep stores a login, which becomes the current one.
func (f loginFolder) keep(l login) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err == nil {
		err = keepFile(f.path(l.URL), append(b, '\n'))
	}
	if err == nil {
		err = keepFile(filepath.Join(f.dir, currentLogin), []byte(l.URL+"\n"))
	}
	if err != nil {
		err = artel.Errorf(artel.Unavailable, "login", f.dir, "the login cannot be kept: %w", err)
	}
	return err
}

// remove removes the login for an address.
func (f loginFolder) remove(server string) error {
	err := removeFile(f.path(server))
	if now, e := f.current(); e == nil && now == server {
		err = errors.Join(err, removeFile(filepath.Join(f.dir, currentLogin)))
	}
	return err
}

// address returns the server of a command: that of --server, ARTEL_URL or ARTEL_SERVER,
// else that of the last login, else the one of this user that runs, else the one on this
// machine's usual port. The error is of several that run, none on that port.
func (g *globals) address() (string, error) {
	if g.server != "" {
		return g.server, nil
	}
	if f, err := logins(); err == nil {
		if at, err := f.current(); err == nil && at != "" {
			return at, nil
		} else if err != nil {
			fmt.Fprintln(os.Stderr, "artel: "+err.Error())
		}
	}
	found := liveServers(context.Background())
	if len(found) == 0 || slices.ContainsFunc(found, func(s runningServer) bool { return s.URL == localServer }) {
		return localServer, nil
	}
	if len(found) > 1 {
		return "", errSeveral(found)
	}
	fmt.Fprintf(os.Stderr, "artel: using the server of this user at %s (%s)\n", found[0].URL, found[0].Data)
	return found[0].URL, nil
}

// tokenFor returns the token to send to a server: that of ARTEL_TOKEN, else that of the
// login there; "" if there is none.
func tokenFor(server string) string {
	if t := os.Getenv("ARTEL_TOKEN"); t != "" {
		return t
	}
	f, err := logins()
	if err != nil {
		return ""
	}
	l, ok, err := f.find(server)
	if err != nil || !ok {
		if artel.KindOf(err) == artel.Denied {
			fmt.Fprintln(os.Stderr, "artel: "+err.Error())
		}
		return ""
	}
	return l.Token
}
