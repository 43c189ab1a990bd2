// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
)

// tlsSettings is the section tls of the configuration: certificates in files, or of an
// authority that speaks ACME.
type tlsSettings struct {
	Cert string `yaml:"cert"` // a PEM file with the certificate and its chain, relative to this file
	Key  string `yaml:"key"`  // a PEM file with its key

	Domains   []string `yaml:"domains"`   // for which certificates are ordered
	Email     string   `yaml:"email"`     // to which the authority writes; may be empty
	Directory string   `yaml:"directory"` // the address of the authority; default: Let's Encrypt
	HTTP      string   `yaml:"http"`      // an address such as :80, where HTTP challenges are answered and other requests redirected; default: none
}

func (t tlsSettings) used() bool { return t.Cert != "" || t.Key != "" || len(t.Domains) > 0 }

func (t tlsSettings) check() error {
	files := t.Cert != "" || t.Key != ""
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("tls: cert and key belong together; one of them is missing")
	case files && len(t.Domains) > 0:
		return errors.New("tls: want cert and key, or domains, not both")
	case len(t.Domains) == 0 && t.Email+t.Directory != "":
		return errors.New("tls.domains is missing: it names the domains for which certificates are ordered")
	case !t.used() && t.HTTP != "":
		return errors.New("tls.http redirects to an address with TLS: want cert and key, or domains")
	case t.HTTP != "":
		if _, _, err := net.SplitHostPort(t.HTTP); err != nil {
			return fmt.Errorf("tls.http is %q: want an address such as :80", artel.Shorten(t.HTTP, 80))
		}
	}
	for _, d := range t.Domains {
		if net.ParseIP(d) != nil || !strings.Contains(d, ".") || strings.Trim(strings.ToLower(d), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			return fmt.Errorf("tls.domains: %q is no domain such as artel.example; those with other letters are written with xn--", artel.Shorten(d, 80))
		}
	}
	if u, err := url.Parse(t.Directory); t.Directory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return errors.New("tls.directory: want an address that begins with https")
	}
	return nil
}

// An encryption has what a server with TLS needs.
type encryption struct {
	config    *tls.Config
	challenge http.Handler // at the address for HTTP
	http      string
}

// encryption returns nil if the server does not encrypt.
func (c config) encryption(data string, log *slog.Logger) (*encryption, error) {
	t := c.TLS
	switch {
	case !t.used():
		return nil, nil
	case t.Cert != "":
		pair, err := newKeyPair(c.relative(t.Cert), c.relative(t.Key), log, time.Now)
		if err != nil {
			return nil, err
		}
		return &encryption{&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.certificate}, http.HandlerFunc(toTLS), t.HTTP}, nil
	}
	m := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(data, "acme")), HostPolicy: autocert.HostWhitelist(t.Domains...), Email: t.Email,
		Client: &acme.Client{DirectoryURL: cmp.Or(t.Directory, autocert.DefaultACMEDirectory), UserAgent: "artel"},
	}
	e := &encryption{m.TLSConfig(), m.HTTPHandler(http.HandlerFunc(toTLS)), t.HTTP}
	e.config.MinVersion = tls.VersionTLS12
	e.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := m.GetCertificate(hello)
		if err != nil && slices.Contains(t.Domains, strings.TrimSuffix(strings.ToLower(hello.ServerName), ".")) { // others ask for any name
			log.Warn("there is no certificate; the authority must reach this server at port 443 of the domain, or at port 80 with tls.http", "domain", hello.ServerName, "err", err)
		}
		return cert, err
	}
	return e, nil
}

// toTLS redirects a request to the same address with TLS.
func toTLS(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "use https", http.StatusForbidden) // what it sent was readable; a redirect would hide that
		return
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
}

// remembered makes browsers use TLS only for this host, for a year. Loopback names are
// left out, since they belong to all programs of a machine.
func remembered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := peer.Of(r); r.TLS != nil && !access.IsLoopback(p.Host) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// serveHTTP serves the address for HTTP until ctx ends.
func (e *encryption) serveHTTP(ctx context.Context, log *slog.Logger) error {
	l, err := listen(ctx, e.http)
	if err != nil {
		return err
	}
	h := httpServer(e.challenge, log)
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A keyPair is a certificate in files, read again when they change.
type keyPair struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	looked time.Time
	seen   [2]os.FileInfo
	pair   *tls.Certificate
}

// pairEvery is how often the files are looked at.
const pairEvery = time.Second

// newKeyPair reads a certificate and its key.
func newKeyPair(cert, key string, log *slog.Logger, now func() time.Time) (*keyPair, error) {
	p := &keyPair{cert: cert, key: key, log: log, now: now}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads the files if they have changed.
func (p *keyPair) read() error {
	p.looked = p.now()
	var found [2]os.FileInfo
	for i, name := range []string{p.cert, p.key} {
		info, err := os.Stat(name)
		if err != nil {
			p.seen = [2]os.FileInfo{}
			return artel.Errorf(artel.Invalid, "serve", name, "the file of tls cannot be read: %w", err)
		}
		found[i] = info
	}
	same := func(a, b os.FileInfo) bool {
		return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
	}
	if same(p.seen[0], found[0]) && same(p.seen[1], found[1]) {
		return nil
	}
	p.seen = found
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return artel.Errorf(artel.Invalid, "serve", p.cert, "the certificate cannot be used with the key in %s: %w", p.key, err)
	}
	if p.now().After(pair.Leaf.NotAfter) {
		p.log.Warn("the certificate has expired", "file", p.cert, "expired", pair.Leaf.NotAfter)
	}
	p.pair = &pair
	return nil
}

// certificate implements [tls.Config.GetCertificate]. While the files are wrong, the
// last certificate stays in use; the log says so once for each change.
func (p *keyPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Sub(p.looked) < pairEvery {
		return p.pair, nil
	}
	before, last := p.seen, p.pair
	err := p.read()
	switch {
	case err != nil && p.seen != before:
		p.log.Error("the new certificate is not used", "err", err)
	case p.pair != last:
		p.log.Info("the certificate was replaced", "file", p.cert, "until", p.pair.Leaf.NotAfter)
	}
	return p.pair, nil
}
