// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// The addresses are tested inside the package, because most of them cannot be
// connected to from a test.
func TestGuard(t *testing.T) {
	for _, tt := range []struct {
		address             string
		public, whenAllowed bool
	}{
		{"93.184.216.34", true, true},
		{"2606:2800:220:1::1", true, true},
		{"::ffff:93.184.216.34", true, true},
		{"64:ff9b::5db8:d822", true, true}, // 93.184.216.34 behind NAT64

		{"127.0.0.1", false, true},
		{"127.255.0.9", false, true},
		{"::1", false, true},
		{"::ffff:127.0.0.1", false, true},
		{"10.0.0.1", false, true},
		{"172.16.0.1", false, true},
		{"172.32.0.1", true, true},
		{"192.168.1.1", false, true},
		{"::ffff:192.168.1.1", false, true},
		{"100.64.0.1", false, true},
		{"100.128.0.1", true, true},
		{"fd12::1", false, true},
		{"0.0.0.0", false, true},
		{"::", false, true},
		{"64:ff9b::a00:1", false, true},
		{"2002:7f00:1::", false, true},

		{"169.254.169.254", false, false},
		{"::ffff:169.254.169.254", false, false},
		{"64:ff9b::a9fe:a9fe", false, false},
		{"2002:a9fe:a9fe::", false, false},
		{"fe80::1%eth0", false, false},
		{"fd00:ec2::254", false, false},
		{"192.0.0.192", false, false},
		{"224.0.0.1", false, false},
		{"ff02::1", false, false},
		{"0.1.2.3", false, false},
		{"255.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"::a00:1", false, false},
		{"2001:db8::1", false, false},
	} {
		a := netip.MustParseAddr(tt.address)
		if got := (guard{}).refuse(a) == ""; got != tt.public {
			t.Errorf("%s let through: %v, want %v", a, got, tt.public)
		}
		if got := (guard{private: true}).refuse(a) == ""; got != tt.whenAllowed {
			t.Errorf("%s let through with private ones allowed: %v, want %v", a, got, tt.whenAllowed)
		}
	}
}

// TestMappedIsSame: wrapping an IPv4 address changes no verdict.
func TestMappedIsSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		a := netip.AddrFrom4(b)
		g := guard{rapid.Bool().Draw(t, "private")}
		translated := nat64.Addr().As16()
		copy(translated[12:], b[:])
		tunnelled := [16]byte{0x20, 0x02, b[0], b[1], b[2], b[3]}
		for _, other := range []netip.Addr{netip.AddrFrom16(a.As16()), netip.AddrFrom16(translated), netip.AddrFrom16(tunnelled)} {
			if g.refuse(other) != g.refuse(a) {
				t.Fatalf("%s: %q, but %s: %q", a, g.refuse(a), other, g.refuse(other))
			}
		}
	})
}

func TestGuardNeedsAnAddress(t *testing.T) {
	for _, address := range []string{"example.com:80", "", "/run/docker.sock", net.JoinHostPort("1.2.3.4", "http")} {
		if err := (guard{private: true}).control("tcp", address, nil); !errors.Is(err, artel.Denied) {
			t.Errorf("%q: %v, want kind denied", address, err)
		}
	}
}
