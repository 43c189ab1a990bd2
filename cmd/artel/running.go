// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// A server that "artel serve" starts names itself in the configuration directory of its user,
// from its start to its end, so that commands in any folder find it. The file has a secret:
// who answers at the address proves that it knows it before it gets a token, because when a
// server was killed, another account of the machine may listen on its port.

// A runningServer is the content of such a file.
type runningServer struct {
	URL    string `json:"url"` // with the path below which it is served
	Data   string `json:"data"`
	PID    int    `json:"pid"`
	Secret string `json:"secret"`
}

// runningServers returns the folder with the files of the servers of this user.
func runningServers() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "artel", "servers"), err
}

// The headers of the proof: a random text, and its authentication code under the secret.
const (
	challengeHeader = "Artel-Challenge"
	proofHeader     = "Artel-Proof"
	maxChallenge    = 128
)

// proof returns the answer to a challenge.
func proof(secret, challenge string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("artel serve " + challenge))
	return hex.EncodeToString(mac.Sum(nil))
}

// proving answers challenges to /healthz. Without a secret it is next.
func proving(secret string, next http.Handler) http.Handler {
	if secret == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := r.Header.Get(challengeHeader); c != "" && len(c) <= maxChallenge && r.URL.Path == "/healthz" {
			w.Header().Set(proofHeader, proof(secret, c))
		}
		next.ServeHTTP(w, r)
	})
}

// publishRunning writes the file of this server, which is removed when it closes.
func (s *server) publishRunning(folder, data, url, secret string) {
	data, err := filepath.Abs(data)
	sum := sha256.Sum256([]byte(data))
	path := filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
	text, wrong := json.Marshal(runningServer{URL: url, Data: data, PID: os.Getpid(), Secret: secret})
	if err == nil {
		err = wrong
	}
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = keepFile(path, append(text, '\n'))
	}
	if err != nil {
		s.log.Warn("commands in other folders cannot find this server without --server: its file cannot be written", "path", path, "err", err)
		return
	}
	s.close = append(s.close, func() error { return removeFile(path) })
}

// How running servers are looked for.
const (
	proofWithin = 2 * time.Second // for all of them
	maxRunning  = 100             // files
)

// liveServers returns the servers of this user that run, by address.
func liveServers(ctx context.Context) (found []runningServer) {
	folder, err := runningServers()
	if err != nil {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.json")) // the pattern is valid
	ctx, enough := context.WithTimeout(ctx, proofWithin)
	defer enough()
	answers := make(chan *runningServer)
	files = files[:min(len(files), maxRunning)]
	for _, path := range files {
		go func() {
			if s, err := readRunning(path); err == nil && s.lives(ctx) {
				answers <- &s
				return
			}
			answers <- nil
		}()
	}
	for range files {
		if s := <-answers; s != nil {
			found = append(found, *s)
		}
	}
	slices.SortFunc(found, func(a, b runningServer) int { return strings.Compare(a.URL, b.URL) })
	return found
}

// readRunning reads a file. One that other accounts can use is refused.
func readRunning(path string) (s runningServer, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		err := artel.Errorf(artel.Denied, "running", path, "other accounts can use this file (mode %s), so the server that it names is not used; remove it, and start the server again", info.Mode().Perm())
		fmt.Fprintln(os.Stderr, "artel: "+err.Error())
		return s, err
	}
	text, err := readRegular(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && (s.Secret == "" || s.Data == "") {
		err = artel.Errorf(artel.Invalid, "running", path, "there is no secret in it")
	}
	return s, err
}

// lives reports whether the server that has written the file answers at its address.
func (s runningServer) lives(ctx context.Context) bool {
	if free, err := (&follower{data: s.Data}).free(); free || err != nil {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/healthz", nil)
	if err != nil {
		return false
	}
	challenge := rand.Text()
	r.Header.Set(challengeHeader, challenge)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK && hmac.Equal([]byte(resp.Header.Get(proofHeader)), []byte(proof(s.Secret, challenge)))
}

// errSeveral is the error of a command without --server if several servers run.
func errSeveral(found []runningServer) error {
	var lines []string
	for _, s := range found {
		lines = append(lines, fmt.Sprintf("%s (%s)", s.URL, s.Data))
	}
	return artel.Errorf(artel.Conflict, "attach", "", "%d servers of this user run: %s; say which with --server or ARTEL_URL, or, for artel mcp, with --data", len(found), strings.Join(lines, ", "))
}

// A refusing transport fails every request.
type refusing struct{ err error }

// RoundTrip implements [http.RoundTripper].
func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, f.err
}
