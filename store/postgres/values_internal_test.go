// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Escaped text has no zero byte, and comes back as it was.
func TestEscape(t *testing.T) {
	text := rapid.StringOf(rapid.RuneFrom([]rune("\x00\x01\x0201ab中")))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if s := escape(a); strings.IndexByte(s, 0) >= 0 || unescape(s) != a {
			t.Fatalf("%q is %q, and then %q", a, s, unescape(s))
		}
		if (escape(a) == escape(b)) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

func TestTranslate(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		insert   bool
	}{
		{"SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2", false},
		{"SELECT ?2 WHERE a = ?1 LIMIT ?", "SELECT $2 WHERE a = $1 LIMIT $3", false},
		{`SELECT '?' || "a?" WHERE b = ?`, `SELECT '?' || "a?" WHERE b = $1`, false},
		{"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING", true},
		{"INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET b = 1", "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = 1", false},
		{"SELECT 'open", "SELECT 'open", false},
	} {
		if got := translate(tt.in); got.text != tt.want || got.insert != tt.insert {
			t.Errorf("%s: got %+v, want %s", tt.in, got, tt.want)
		}
	}
}
