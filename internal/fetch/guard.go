// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/artelhq/artel"
)

// A guard decides which addresses may be connected to. It checks each address
// after names are resolved.
type guard struct{ private bool }

func (g guard) control(network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return artel.Errorf(artel.Denied, "fetch.Dial", address, "not an internet address")
	}
	if why := g.refuse(ap.Addr()); why != "" {
		return artel.Errorf(artel.Denied, "fetch.Dial", ap.Addr().String(), "connecting to %s is not allowed", why)
	}
	return nil
}

// Inner reports whether the host of an address is this machine or in a private network:
// it is such an address, or its name stands for one. A host that is unknown is not.
func Inner(ctx context.Context, r *net.Resolver, host string) bool {
	private := func(a netip.Addr) bool { return guard{}.refuse(a) != "" && guard{true}.refuse(a) == "" }
	if a, err := netip.ParseAddr(host); err == nil {
		return private(a)
	}
	if r == nil {
		r = net.DefaultResolver
	}
	all, err := r.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(all, private)
}

// refuse returns the class of a forbidden address; "" if it is allowed.
func (g guard) refuse(a netip.Addr) string {
	a = inner(a.WithZone("").Unmap())
	switch {
	case a.IsLoopback():
		return g.unless("a loopback address")
	case a.IsUnspecified(): // the system takes it for loopback
		return g.unless("the unspecified address")
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "a reserved address"
	case a.IsPrivate(), cgnat.Contains(a):
		return g.unless("a private address")
	}
	return ""
}

func (g guard) unless(class string) string {
	if g.private {
		return ""
	}
	return class
}

// inner returns the IPv4 address behind a translating or tunnelling IPv6
// address, otherwise a.
func inner(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// From the IANA special-purpose address registries (RFC 6890 and its updates).
var (
	cgnat     = netip.MustParsePrefix("100.64.0.0/10")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	reserved  = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),          // this network
		netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba's, inside the shared range
		netip.MustParsePrefix("168.63.129.16/32"),   // metadata of Azure's hosts, a public address
		netip.MustParsePrefix("192.0.0.0/24"),       // IETF protocols; a metadata service of Oracle's is in here
		netip.MustParsePrefix("192.0.2.0/24"),       // documentation
		netip.MustParsePrefix("198.18.0.0/15"),      // benchmarks
		netip.MustParsePrefix("198.51.100.0/24"),    // documentation
		netip.MustParsePrefix("203.0.113.0/24"),     // documentation
		netip.MustParsePrefix("240.0.0.0/4"),        // reserved, and broadcast
		netip.MustParsePrefix("::/96"),              // IPv4-compatible, deprecated
		netip.MustParsePrefix("64:ff9b:1::/48"),     // local translation
		netip.MustParsePrefix("100::/64"),           // discard
		netip.MustParsePrefix("2001::/32"),          // Teredo
		netip.MustParsePrefix("2001:db8::/32"),      // documentation
		netip.MustParsePrefix("fec0::/10"),          // site-local, deprecated
		netip.MustParsePrefix("fd00:ec2::/32"),      // metadata of Amazon's, inside the private range
		netip.MustParsePrefix("fd20:ce::/32"),       // of Google's
		netip.MustParsePrefix("fd00:c1::/32"),       // of Oracle's
	}
)
