// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/oidc"
	"github.com/artelhq/artel/internal/peer"
)

// authConfig is the section auth of the configuration.
type authConfig struct {
	Mode    access.Mode `yaml:"mode"` // required or open; default: required as soon as there are users, beyond loopback, and with hosts
	Session struct {
		Idle     string `yaml:"idle"`     // without a request, after which a login ends, as 7d or 36h; default 7d
		Absolute string `yaml:"absolute"` // after which it ends in any case; default 30d
	} `yaml:"session"`
	OIDC struct { // an OpenID provider at which people can log in
		Issuer         string   `yaml:"issuer"` // its address, such as https://id.example
		ClientID       string   `yaml:"client_id"`
		ClientSecret   string   `yaml:"client_secret"`   // or ${NAME} of an environment variable; may be empty for public clients
		Scopes         []string `yaml:"scopes"`          // besides openid; default: email and profile
		AllowedDomains []string `yaml:"allowed_domains"` // of verified addresses, with which people become members without an invitation
		AdminGroup     string   `yaml:"admin_group"`     // whose members are administrators; default: the provider does not decide that
	} `yaml:"oidc"`
}

// provider returns the OpenID provider, or nil if none is configured.
func (a authConfig) provider(key []byte, getenv func(string) string) (*oidc.Provider, error) {
	c := a.OIDC
	if c.Issuer == "" && c.ClientID == "" {
		return nil, nil
	}
	values, err := expanded("auth.oidc", map[string]string{"client_secret": c.ClientSecret}, getenv)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "config", "", "%w", err)
	}
	return oidc.New(oidc.Options{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: values["client_secret"], Scopes: c.Scopes, AllowedDomains: c.AllowedDomains, AdminGroup: c.AdminGroup, Key: key,
	}, time.Now)
}

// check rejects settings of the provider that cannot work.
func (a authConfig) check() error {
	c := a.OIDC
	if c.Issuer == "" && c.ClientID+c.ClientSecret+c.AdminGroup == "" && len(c.AllowedDomains) == 0 {
		return nil
	}
	if err := (oidc.Options{Issuer: c.Issuer, ClientID: c.ClientID, AllowedDomains: c.AllowedDomains}).Check(); err != nil {
		return fmt.Errorf("auth.oidc.%w", err)
	}
	return nil
}

// options returns the settings without those of the command line.
func (a authConfig) options() (o access.Options, err error) {
	if !slices.Contains([]access.Mode{access.Auto, access.OpenMode, access.Required}, a.Mode) {
		return o, fmt.Errorf("auth.mode is %q: want required or open", artel.Shorten(string(a.Mode), 40))
	}
	o.Mode = a.Mode
	for _, f := range []struct {
		name, text string
		d          *time.Duration
	}{{"idle", a.Session.Idle, &o.Idle}, {"absolute", a.Session.Absolute, &o.Absolute}} {
		if f.text == "" {
			continue
		}
		if *f.d, err = parseAge(f.text); err != nil || *f.d <= 0 {
			return o, fmt.Errorf("auth.session.%s is %q: want a time such as 7d or 36h", f.name, artel.Shorten(f.text, 40))
		}
	}
	return o, nil
}

// A binding is what the flags of serve say of the address and of who may use it.
type binding struct {
	addr   string
	noAuth bool // everyone who reaches the server is its operator
	know   bool // that this is so beyond loopback too
}

// access returns who may use a server with this address. One with hosts can be
// reached by those names, through a proxy on this machine.
func (b binding) access(c authConfig, hosts []string) (access.Options, error) {
	host, _, err := net.SplitHostPort(b.addr)
	if err != nil {
		return access.Options{}, usageError{fmt.Errorf("--addr %q: want host:port", b.addr)}
	}
	o, err := c.options()
	if err != nil {
		return o, err
	}
	proxied := slices.ContainsFunc(hosts, func(h string) bool { return !access.IsLoopback(h) })
	o.Exposed = !access.IsLoopback(host) || proxied
	if b.noAuth && o.Mode == access.Required {
		return o, usageError{errors.New("--no-auth: auth.mode of the configuration is required")}
	}
	if b.noAuth {
		o.Mode = access.OpenMode
	}
	if o.Exposed && o.Mode == access.OpenMode && !b.know {
		at := fmt.Sprintf("--addr %q", b.addr)
		if proxied {
			at = "a server with hosts"
		}
		return o, usageError{fmt.Errorf("%s can be reached from other machines, where without a login everyone can read and write everything and use the configured keys: leave --no-auth and auth.mode open out, or add --i-know-that-anyone-can-read-and-write", at)}
	}
	return o, nil
}

// hosts are the names of the server beside loopback: those of the configuration, the
// address that it listens on, and the name of the machine.
func (b binding) hosts(configured []string) []string {
	host, _, _ := net.SplitHostPort(b.addr)
	if access.IsLoopback(host) {
		return configured
	}
	if host == "" {
		host = "0.0.0.0"
	}
	hosts := append(slices.Clone(configured), host)
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	return hosts
}

// proxies returns the proxies that are believed, and the path below which they serve
// this server.
func (c config) proxies() (peer.Trusted, string, error) {
	trusted, err := peer.ParseTrusted(c.TrustedProxies)
	if err != nil {
		return nil, "", artel.Errorf(artel.Invalid, "config", c.path, "trusted_proxies: %w", err)
	}
	prefix, err := peer.ParsePrefix(c.BasePath)
	if err != nil {
		return nil, "", artel.Errorf(artel.Invalid, "config", c.path, "base_path: %w", err)
	}
	return trusted, prefix, nil
}

// prefix is the path below which the server is reached, which was checked.
func (c config) prefix() string { return strings.TrimSuffix(c.BasePath, "/") }

// setupHost is where the first administrator is made: the first domain of a
// certificate, or an address of this machine.
func (c config) setupHost(l net.Addr) string {
	if len(c.TLS.Domains) == 0 {
		return reachable(l)
	}
	if _, port, err := net.SplitHostPort(l.String()); err == nil && port != "443" {
		return net.JoinHostPort(c.TLS.Domains[0], port)
	}
	return c.TLS.Domains[0]
}

func setupPath(code string) string { return "/setup?" + url.Values{"code": {code}}.Encode() }

// reachable returns an address of this machine for a listener on all of them.
func reachable(l net.Addr) string {
	at, err := netip.ParseAddrPort(l.String())
	if err != nil || !at.Addr().IsUnspecified() {
		return l.String()
	}
	addrs, _ := net.InterfaceAddrs() // none: loopback
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return net.JoinHostPort(n.IP.String(), fmt.Sprint(at.Port()))
		}
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port()))
}
