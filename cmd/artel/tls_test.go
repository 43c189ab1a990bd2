// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair writes a new certificate and its key into a folder, with a time of
// change of its own, and returns the certificate.
func writePair(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "artel.example"}, DNSNames: []string{"artel.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour).Add(time.Duration(serial) * time.Minute)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// servingTLS starts a server with a certificate and logins, until the end of the test. It
// returns its address with that of the set-up, and the authority of the certificate.
func servingTLS(t *testing.T) (addresses [2]string, roots *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	roots = x509.NewCertPool()
	roots.AddCert(writePair(t, dir, 1))
	c := config{path: filepath.Join(dir, "artel.yaml"), Hosts: []string{"artel.example"}}
	c.TLS.Cert, c.TLS.Key = "cert.pem", "key.pem"
	c.Auth.Mode = "required"
	who, err := c.Auth.options()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	at, served := make(chan [2]string, 1), make(chan error, 1)
	go func() {
		served <- serve(ctx, "127.0.0.1:0", serverOptions{data: filepath.Join(dir, "data"), config: c, log: slog.New(slog.DiscardHandler), access: who},
			func(s started) { at <- [2]string{s.url, s.setup} })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case err := <-served:
		served <- err
		t.Fatal(err)
	case addresses = <-at:
	}
	return addresses, roots
}

// TestServeTLS: a server with a certificate speaks HTTP/2 over TLS alone, marks its
// cookies Secure, and makes browsers remember it.
func TestServeTLS(t *testing.T) {
	addresses, roots := servingTLS(t)
	url := addresses[0]
	if !strings.HasPrefix(url, "https://127.0.0.1:") || !strings.HasPrefix(addresses[1], url+"/setup?code=") {
		t.Fatalf("got %q", addresses)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	ask := func(host, method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if r.Host = host; host == "" {
			r.Host = strings.TrimPrefix(url, "https://")
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := ask("artel.example", "GET", "/readyz", ""); resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("got %s %s %v", resp.Proto, resp.Status, resp.Header)
	}
	if resp := ask("", "GET", "/readyz", ""); resp.Header.Get("Strict-Transport-Security") != "" {
		t.Error("a loopback address is remembered, for all programs of the machine")
	}
	_, code, _ := strings.Cut(addresses[1], "code=")
	resp := ask("", "POST", "/api/v1/setup", `{"code":"`+code+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`)
	if resp.StatusCode != http.StatusCreated || !resp.Cookies()[0].Secure {
		t.Errorf("set-up: %s, %v", resp.Status, resp.Cookies())
	}
	plain, err := http.Get("http" + strings.TrimPrefix(url, "https") + "/readyz")
	if err == nil {
		plain.Body.Close()
	}
	if err == nil && plain.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", plain.Status)
	}
}

// TestKeyPairIsReplaced: new files are used without a restart, wrong ones are not.
func TestKeyPairIsReplaced(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	var log bytes.Buffer
	first := writePair(t, dir, 1)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	p, err := newKeyPair(cert, key, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want *x509.Certificate, lines int) {
		t.Helper()
		for range 3 {
			now = now.Add(2 * time.Second)
			if got, err := p.certificate(nil); err != nil || !got.Leaf.Equal(want) {
				t.Errorf("%s: got the certificate %v, %v", what, got.Leaf.SerialNumber, err)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != lines {
			t.Errorf("%s: %d lines in the log, want %d: %s", what, n, lines, log.String())
		}
	}
	expect("the first", first, 0)
	second := writePair(t, dir, 2)
	expect("replaced", second, 1)
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	third := writePair(t, dir, 3)
	fresh, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(src []byte) {
		if err := os.WriteFile(key, src, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	expect("a key of another certificate", second, 2)
	if !strings.Contains(log.String(), "key.pem") || !strings.Contains(log.String(), "private key does not match") {
		t.Errorf("the log does not say what is wrong: %s", log.String())
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	expect("no key", second, 3)
	write(fresh)
	expect("mended", third, 4)
	if _, err := newKeyPair(cert, filepath.Join(dir, "none"), slog.New(slog.DiscardHandler), time.Now); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no file: %v", err)
	}
}

func TestTLSIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"tls: {cert: a.pem}": "belong together", "tls: {key: a.pem}": "belong together", "tls: {cert: a, key: b, domains: [a.example]}": "not both",
		"tls: {email: a@b.example}": "tls.domains is missing", "tls: {domains: [localhost]}": "no domain", "tls: {domains: [192.0.2.1]}": "no domain",
		"tls: {domains: ['*.a.example']}": "no domain", "tls: {http: ':80'}": "want cert and key", "tls: {domains: [a.example], http: '80'}": "such as :80",
		"tls: {domains: [a.example], directory: 'http://x'}": "begins with https", "tls: {certs: x}": `nearest is "tls.cert"`,
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestToTLS(t *testing.T) {
	w := httptest.NewRecorder()
	toTLS(w, httptest.NewRequest(http.MethodGet, "http://artel.example:80/c/1?x=y", nil))
	if w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "https://artel.example/c/1?x=y" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	if toTLS(w, httptest.NewRequest(http.MethodPost, "http://artel.example/login", nil)); w.Code != http.StatusForbidden {
		t.Errorf("a form: got %d", w.Code)
	}
}

// TestHandshakeErrorsAreQuiet: what a scanner of ports causes is no warning, and other
// complaints of net/http are.
func TestHandshakeErrorsAreQuiet(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h := httptest.NewUnstartedServer(http.NotFoundHandler())
	h.Config = httpServer(http.NotFoundHandler(), log)
	h.StartTLS()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Read(make([]byte, 1024)) // until the server has refused
	_ = c.Close()
	h.Close()
	if said.Len() > 0 {
		t.Errorf("logged: %s", said.String())
	}
	h.Config.ErrorLog.Print("http: superfluous response.WriteHeader call")
	if !strings.Contains(said.String(), "level=WARN") || !strings.Contains(said.String(), "superfluous") {
		t.Errorf("logged: %q", said.String())
	}
}
