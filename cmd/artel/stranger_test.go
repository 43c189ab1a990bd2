// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestUntrustedBeyondLoopback: a server that other machines reach does not start
// without the certificates, logins and names of a file that is not trusted.
func TestUntrustedBeyondLoopback(t *testing.T) {
	t.Parallel()
	for key, text := range map[string]string{
		"tls": "tls: {cert: cert.pem, key: key.pem}\n", "auth": "auth: {session: {idle: 1h}}\n", "hosts": "hosts: [artel.example]\n",
	} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"artel.yaml": text})
		writePair(t, dir, 1)
		env := with(bareEnvironment(dir), "ARTEL_CONFIG=")
		_, err := launch(dir, env, "serve", "--addr", "0.0.0.0:0", "--data", "data")
		if err == nil {
			t.Fatalf("%s: it serves", key)
		}
		if !strings.Contains(err.Error(), key+" in it is not used") || !strings.Contains(err.Error(), "0.0.0.0:0") || !strings.Contains(err.Error(), "artel trust") {
			t.Errorf("%s: %v", key, err)
		}
		p := serving(t, dir, env) // on loopback, where it warns
		if log := p.errs.String(); !strings.Contains(log, "are not used: "+key) {
			t.Errorf("%s: %s", key, log)
		}
		p.kill()
	}
}

// TestListeningAddress: a server on all addresses prints one that can be opened.
func TestListeningAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := launch(dir, bareEnvironment(dir), "serve", "--addr", "0.0.0.0:0", "--data", "data", "--no-auth", "--i-know-that-anyone-can-read-and-write")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if u, err := url.Parse(p.url); err != nil || u.Hostname() == "::" || u.Hostname() == "0.0.0.0" {
		t.Errorf("it prints %s, %v", p.url, err)
	}
	body(t, p.url+"/healthz")
}

// TestEmptyList: the first list says what to do, and JSON stays a list.
func TestEmptyList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := bareEnvironment(dir)
	p := serving(t, dir, env)
	out, _, err := verb(t.Context(), dir, env, "ls", "--server", p.url)
	if err != nil || out != "No conversations yet; artel put FILE makes one\n" {
		t.Errorf("got %q, %v", out, err)
	}
	var list struct{ Items []any }
	verbJSON(t.Context(), t, dir, env, &list, "ls", "--json", "--server", p.url)
	if list.Items == nil || len(list.Items) != 0 {
		t.Errorf("as JSON: %v", list)
	}
}

// TestLoginLacksScope: commands of an administrator say which login is needed, and that
// login works.
func TestLoginLacksScope(t *testing.T) {
	t.Parallel()
	b := newLoginBench(t)
	typed := testPassword + "\n"
	b.wants(0, "logged in", typed, nil, "login", b.base, "--email", "ann@example.org")
	again := "; run: artel login " + b.base + " --scope gateway,admin"
	b.wants(1, "this login may not make tokens of the scope admin, which it does not have itself"+again, "", nil, "token", "create", "prometheus", "--scope", "admin")
	b.wants(1, "this login does not have the scope admin"+again, "", nil, "users", "ls")
	_, l := b.one()
	b.wants(1, "ARTEL_TOKEN has that token", "", []string{"ARTEL_TOKEN=" + l.Token}, "users", "ls")
	b.wants(0, "logged in", typed, nil, "login", b.base, "--email", "ann@example.org", "--scope", "gateway,admin")
	b.wants(0, "ann@example.org", "", nil, "users", "ls")
	b.wants(0, "artel_", "", nil, "token", "create", "prometheus", "--scope", "admin")
}

// TestUntrustedCertificate: the cause is named, and the way out works.
func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePair(t, dir, 1)
	writeFiles(t, dir, map[string]string{"tls.yaml": "tls: {cert: cert.pem, key: key.pem}\n"})
	env := bareEnvironment(dir)
	at := serving(t, dir, env, "--config", "tls.yaml").url
	_, code, err := verb(t.Context(), dir, env, "ls", "--server", at)
	if code != exitUnreachable || !strings.Contains(err.Error(), "the certificate of "+at+" is not trusted: x509") || !strings.Contains(err.Error(), "SSL_CERT_FILE") || strings.Contains(err.Error(), "no server answers") {
		t.Errorf("exit code %d: %v", code, err)
	}
	if out, _, err := verb(t.Context(), dir, with(env, "SSL_CERT_FILE="+filepath.Join(dir, "cert.pem")), "ls", "--json", "--server", at); err != nil {
		t.Errorf("with its CA: %s, %v", out, err)
	}
}

// TestReloadNamesKeys: the log names the changed keys that a reload does not apply, and
// only those.
func TestReloadNamesKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": "services: []\n"})
	p := serving(t, dir, bareEnvironment(dir))
	writeFiles(t, dir, map[string]string{"artel.yaml": "services: []\ndefault_service: auto\nlimits: {user: {storage: 5GB}}\nlocale: en\n"})
	p.reload(t, http.StatusOK)
	if log := p.errs.String(); !strings.Contains(log, `take effect at the next start","keys":"limits, locale"`) && !strings.Contains(log, `take effect at the next start","keys":"locale, limits"`) {
		t.Errorf("the log: %s", log)
	}
}

// TestDoctorTLS: files of tls that a server could not use are found, and a server is
// asked at its own address.
func TestDoctorTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := bareEnvironment(dir)
	writePair(t, dir, 1)
	writeFiles(t, dir, map[string]string{"good.yaml": "tls: {cert: cert.pem, key: key.pem}\n", "bad.yaml": "tls: {cert: nope.pem, key: nope.key}\n", "mixed.yaml": "tls: {cert: cert.pem, key: cert.pem}\n"})
	for file, says := range map[string]string{"bad.yaml": "nope.pem: the file of tls cannot be read", "mixed.yaml": "cannot be used with the key"} {
		out, code, err := verb(t.Context(), dir, env, "doctor", "--config", file, "--data", "none", "--addr", "127.0.0.1:0")
		if code != exitRefused || !strings.Contains(out, says) {
			t.Errorf("%s: %s, %v", file, out, err)
		}
	}
	p := serving(t, dir, env, "--config", "good.yaml")
	out, code, err := verb(t.Context(), dir, env, "doctor", "--config", "good.yaml", "--data", "data", "--addr", "127.0.0.1:0")
	if code != 0 || !strings.Contains(out, "cert.pem is valid until ") || !strings.Contains(out, p.url+" is ready") {
		t.Errorf("a sound server: %s, %v", out, err)
	}
}
