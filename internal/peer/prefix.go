// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// ParsePrefix reads the path below which a server is reached, such as /artel. It
// returns "" for none.
func ParsePrefix(s string) (string, error) {
	p := strings.TrimSuffix(s, "/")
	u, err := url.Parse(p)
	if p != "" && (err != nil || u.Path != p || u.EscapedPath() != p || !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsAny(p, `"'<>&;,`)) {
		return "", errors.New("want a path such as /artel, of letters, digits, - and _")
	}
	return p, nil
}

// Strip returns r without the prefix of its path. Requests without it are returned
// unchanged: proxies may remove it themselves.
func Strip(r *http.Request, prefix string) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok || prefix == "" || !strings.HasPrefix(rest, "/") {
		return r
	}
	u := *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, prefix), strings.TrimPrefix(u.RawPath, prefix)
	out := *r
	out.URL = &u
	return &out
}
