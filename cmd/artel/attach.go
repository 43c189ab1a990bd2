// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// A command that speaks a protocol on standard input and output, as "artel mcp"
// does, is started by other programs, often several at once, on a machine where
// perhaps no server runs. [globals.attach] gives all of them one server:
//
//  1. the server given by --server, ARTEL_URL or ARTEL_SERVER;
//  2. otherwise the server that uses the data directory, on this machine, which is
//     found by its address file; without --data, ARTEL_DATA and ./artel-data it is that of
//     the only "artel serve" of this user that runs (running.go), else the user's own;
//  3. otherwise one inside this process, on a loopback port, which other commands
//     then find in the same way. When it ends, one of them opens the data directory.

// addressFile names the server that uses a data directory, from its start to its
// end. Only the lock of the directory says whether that server still runs.
const addressFile = "address.json"

// An address is the content of an address file.
type address struct {
	URL     string `json:"url"` // with the path below which it is served
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// publishAddress writes the address file, which is removed when the server closes.
func (s *server) publishAddress(data, scheme string, at net.Addr) {
	path := filepath.Join(data, addressFile)
	text, err := json.Marshal(address{URL: s.addressFor(scheme, at), PID: os.Getpid(), Version: version})
	if err == nil {
		err = keepFile(path, append(text, '\n'))
	}
	if err != nil {
		s.log.Warn("commands such as artel mcp cannot find this server by its data directory: the address file cannot be written", "path", path, "err", err)
		return
	}
	s.close = append(s.close, func() error { return removeFile(path) })
}

// addressFor returns the address of this server for commands on this machine.
func (s *server) addressFor(scheme string, at net.Addr) string {
	host := s.config.setupHost(at)
	if a, ok := at.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		host = fmt.Sprintf("127.0.0.1:%d", a.Port)
	}
	return scheme + host + s.config.prefix()
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readAddress reads an address file. One that other accounts can write is refused:
// the token of the user is sent to the address.
func readAddress(data string) (a address, err error) {
	path := filepath.Join(data, addressFile)
	info, err := os.Stat(path)
	if err != nil {
		return a, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return a, artel.Errorf(artel.Denied, "attach", path, "other accounts can use this file (mode %s); remove it, and start the server again", info.Mode().Perm())
	}
	text, err := readRegular(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, err
	}
	_, err = url.Parse(a.URL)
	return a, err
}

// attachOptions say which server to use.
type attachOptions struct {
	explicit bool   // the server of globals is used, and no other
	data     string // data directory; "": see dataDirectory
	errs     io.Writer
}

// attachFlags declares the flags of a command that attaches. Call the function in
// RunE.
func attachFlags(cmd *cobra.Command) func() attachOptions {
	var data string
	cmd.Flags().StringVar(&data, "data", os.Getenv("ARTEL_DATA"), "data directory, if no --server is given (default ./"+defaultData+" if it exists, else the user's own)")
	return func() attachOptions {
		explicit := cmd.Flags().Changed("server") || envOr("ARTEL_URL", os.Getenv("ARTEL_SERVER")) != "" // a login elsewhere is not meant
		return attachOptions{explicit: explicit, data: data, errs: cmd.ErrOrStderr()}
	}
}

// An attachment is the server that a command uses. All its parts send the token in
// ARTEL_TOKEN, else that of the login at the server. If the server ends, they use the one that takes over its data
// directory. A request that may have reached the server that ended is repeated only
// if it reads, or if its context is from [repeatable].
type attachment struct {
	client *httpapi.Client // of the API
	http   *http.Client    // for other requests below url
	url    string          // of the server when it was found; http replaces it if another took over
	close  func() error    // ends the server if it is inside this process; call it once
}

// attach returns the server of a command. It writes nothing to standard output.
func (g *globals) attach(ctx context.Context, o attachOptions) (*attachment, error) {
	f := &follower{next: http.DefaultTransport, token: os.Getenv("ARTEL_TOKEN"), errs: o.errs, global: g}
	if o.explicit {
		f.at = strings.TrimRight(g.server, "/")
		f.fixed = true
	} else {
		// A request on an idle connection to a server that has ended might have arrived;
		// one on a new connection is refused.
		alone := http.DefaultTransport.(*http.Transport).Clone()
		alone.DisableKeepAlives = true
		f.next = alone
		if err := f.choose(ctx, o); err != nil {
			return nil, err
		}
	}
	at, err := f.server(ctx)
	if err != nil {
		return nil, errors.Join(err, f.stop())
	}
	f.token = tokenFor(at)
	if base, err := url.Parse(at); err == nil {
		f.prefix = base.Path
	}
	client := &http.Client{Transport: f}
	return &attachment{client: httpapi.NewClient(at, client).WithToken(f.token), http: client, url: at, close: f.stop}, nil
}

// choose finds the data directory.
func (f *follower) choose(ctx context.Context, o attachOptions) (err error) {
	if f.data, err = dataDirectory(o.data); err != nil {
		return err
	}
	if _, missing := os.Stat(defaultData); o.data == "" && missing != nil {
		found := liveServers(ctx)
		own := slices.ContainsFunc(found, func(s runningServer) bool { return s.Data == f.data })
		switch {
		case len(found) > 1 && !own:
			return errSeveral(found)
		case len(found) == 1 && !own:
			f.data, f.served = found[0].Data, true
			fmt.Fprintf(f.errs, "artel: using the server of this user at %s; its data directory is %s\n", found[0].URL, f.data)
			return nil
		}
	}
	fmt.Fprintf(f.errs, "artel: the data directory is %s\n", f.data)
	return nil
}

// dataDirectory returns the absolute path of the data directory: the given one, else
// that in the current folder, else the user's own.
func dataDirectory(given string) (string, error) {
	if given == "" {
		given = defaultData
		if _, err := os.Stat(given); err != nil {
			if given, err = userDataDirectory(); err != nil {
				return "", artel.Errorf(artel.Invalid, "attach", "", "there is no folder for the data of this user: %w; set --data or ARTEL_DATA", err)
			}
		}
	}
	return filepath.Abs(given)
}

// userDataDirectory returns the folder of a user's data by the rules of the platform.
func userDataDirectory() (string, error) {
	home, err := os.UserHomeDir()
	var in string
	switch runtime.GOOS {
	case "windows":
		in, err = os.UserCacheDir() // %LocalAppData%
	case "darwin", "ios":
		in = filepath.Join(home, "Library", "Application Support")
	default:
		in = filepath.Join(home, ".local", "share")
		if given := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(given) {
			in, err = given, nil
		}
	}
	return filepath.Join(in, "artel"), err
}

// Times of a command that waits for the server of a data directory.
const (
	attachEvery = 50 * time.Millisecond // between two looks
	attachWait  = time.Minute           // for a server that starts or ends, or another process that uses the directory
	attachTries = 4                     // of one request
)

// A follower sends requests to the server of a data directory, and finds or opens
// that server.
type follower struct {
	next   http.RoundTripper
	token  string
	data   string
	prefix string // of the paths of requests: that of the first server
	fixed  bool   // the server is never replaced
	served bool   // the data directory is that of an "artel serve", and is not opened here
	errs   io.Writer
	global *globals

	mu   sync.Mutex   // held while a server is looked for
	at   string       // address of the server; "": to be found
	ends func() error // of the server inside this process; nil: there is none
	shut bool
}

type repeatableKey struct{}

// repeatable marks requests that may be sent twice.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// RoundTrip implements [http.RoundTripper].
func (f *follower) RoundTrip(r *http.Request) (*http.Response, error) {
	repeat := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Context().Value(repeatableKey{}) != nil
	for tried := 1; ; tried++ {
		at, err := f.server(r.Context())
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		send, err := f.readdressed(r, at, tried > 1)
		if err != nil {
			return nil, err
		}
		resp, err := f.next.RoundTrip(send)
		if err == nil || r.Context().Err() != nil || f.fixed {
			return resp, err
		}
		f.lost(at)
		if tried == attachTries || !repeat && !unsent(err) || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return nil, fmt.Errorf("the server ended during this request, and what it did is unknown: %w", err)
		}
	}
}

// unsent reports whether no byte of a request can have reached the server.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// readdressed returns r for the server at an address.
func (f *follower) readdressed(r *http.Request, at string, again bool) (*http.Request, error) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	send := r.Clone(r.Context())
	send.URL.Scheme, send.URL.Host, send.Host = base.Scheme, base.Host, ""
	if f.prefix != base.Path {
		send.URL.Path, send.URL.RawPath = base.Path+strings.TrimPrefix(send.URL.Path, f.prefix), ""
		if raw := r.URL.RawPath; raw != "" {
			send.URL.RawPath = base.EscapedPath() + strings.TrimPrefix(raw, f.prefix)
		}
	}
	if f.token != "" && send.Header.Get("Authorization") == "" {
		send.Header.Set("Authorization", "Bearer "+f.token)
	}
	if again && r.GetBody != nil {
		send.Body, err = r.GetBody()
	}
	return send, err
}

// lost forgets a server that does not answer.
func (f *follower) lost(at string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == at {
		f.at = ""
	}
}

// server returns the address of the server, which it finds or opens.
func (f *follower) server(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != "" {
		return f.at, nil
	}
	if f.shut {
		return "", artel.Errorf(artel.Unavailable, "attach", f.data, "the command ends")
	}
	if f.ends != nil { // its server failed
		err := f.ends()
		f.ends = nil
		if err != nil {
			return "", err
		}
	}
	late := artel.Errorf(artel.Conflict, "attach", f.data,
		"another process uses this data directory and is no server that can be reached (an artel gc, a server of an earlier version, or one whose certificate does not name this machine); wait for it, or give --server or ARTEL_URL")
	if f.served {
		late = artel.Errorf(artel.Unavailable, "attach", f.data, "the server of this data directory has ended; start it again, or restart this command to use another")
	}
	ctx, enough := context.WithTimeoutCause(ctx, attachWait, late)
	defer enough()
	for {
		at, err := f.find(ctx)
		if err == nil && at == "" && !f.served {
			at, err = f.open(ctx)
		}
		if err != nil || at != "" {
			f.at = at
			return at, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(attachEvery):
		}
	}
}

// find returns the address of the server that uses the data directory, or "" if it
// cannot be reached.
func (f *follower) find(ctx context.Context) (string, error) {
	if free, err := f.free(); free || err != nil {
		return "", err
	}
	a, err := readAddress(f.data)
	if err != nil {
		if artel.KindOf(err) == artel.Denied {
			return "", err
		}
		return "", nil //nolint:nilerr // it is being written, or its server starts or ends
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"/healthz", nil)
	if err != nil {
		return "", nil //nolint:nilerr // the file of another program
	}
	resp, err := f.next.RoundTrip(r)
	if err != nil {
		return "", nil //nolint:nilerr // its server ends
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", nil
	}
	return a.URL, nil
}

// free reports whether no process uses the data directory.
func (f *follower) free() (bool, error) {
	path := filepath.Join(f.data, lockFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	lock := flock.New(path)
	held, err := lock.TryLock()
	if err != nil {
		return false, artel.Errorf(artel.Unavailable, "attach", path, "the data directory cannot be locked: %w", err)
	}
	if held {
		err = lock.Unlock()
	}
	return held, err
}

// open serves the data directory in this process, and returns the address; "" if
// another process is first.
func (f *follower) open(ctx context.Context) (string, error) {
	if a, err := readAddress(f.data); err == nil {
		if free, _ := f.free(); !free {
			return "", nil
		}
		fmt.Fprintf(f.errs, "artel: the server with the process id %d ended without removing its address file\n", a.PID)
	}
	conf, err := loadConfig(f.global.config)
	if err != nil {
		return "", err
	}
	conf.blobs = os.Getenv(blobsVariable)
	// How others reach a server of this configuration is not how this process does.
	conf.TLS, conf.Hosts, conf.BasePath, conf.TrustedProxies = tlsSettings{}, nil, "", nil
	who, err := binding{addr: "127.0.0.1:0"}.access(conf.Auth, nil)
	if err != nil {
		return "", err
	}
	log := slog.New(slog.NewTextHandler(f.errs, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutMedia}))
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ready, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- serve(running, "127.0.0.1:0", serverOptions{data: f.data, config: conf, demoDelay: demoDelay, log: log, access: who}, func(s started) { ready <- s.url })
	}()
	select {
	case err := <-served:
		end()
		if errors.Is(err, errInUse) {
			return "", nil
		}
		return "", err
	case at := <-ready:
		f.ends = func() error { end(); return <-served }
		return at, nil
	case <-ctx.Done():
		end()
		return "", errors.Join(context.Cause(ctx), <-served)
	}
}

// stop ends the server of this process.
func (f *follower) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut, f.at = true, ""
	if f.ends == nil {
		return nil
	}
	err := f.ends()
	f.ends = nil
	return err
}
