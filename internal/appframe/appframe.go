// SPDX-License-Identifier: Apache-2.0

// Package appframe makes a page that a stranger wrote safe to run in a frame: the page
// of an MCP app, whose scripts have to run and must reach nothing but the page around
// them by messages.
//
// Three walls stand around it. The frame has an opaque origin (sandbox without
// allow-same-origin, in [Policy] and as the attribute of the frame), so it has no
// cookies, no storage and no access to the page around it. [Policy] allows no load from
// anywhere; the policy of the page around it keeps the frame from leaving its address.
// [Document] puts a script before the page that takes away what no policy forbids:
// connections in advance, fresh windows, WebRTC.
package appframe

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"
)

//go:embed guard.js
var guard string

// Sandbox is the attribute of the frame, and a part of [Policy].
const Sandbox = "allow-scripts"

// Policy is the content security policy of a [Document].
const Policy = "sandbox " + Sandbox + "; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
	"img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; frame-src 'none'; worker-src 'none'; object-src 'none'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types default"

// refusedFeatures are those that a frame of another origin would have, or might get.
const refusedFeatures = "accelerometer=(), autoplay=(), browsing-topics=(), camera=(), clipboard-read=(), display-capture=(), encrypted-media=(), fullscreen=(), " +
	"geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), idle-detection=(), magnetometer=(), microphone=(), midi=(), payment=(), " +
	"picture-in-picture=(), private-state-token-issuance=(), private-state-token-redemption=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), " +
	"storage-access=(), usb=(), xr-spatial-tracking=()"

// SetHeader sets the headers of an answer that is a [Document].
func SetHeader(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", Policy)
	h.Set("Permissions-Policy", refusedFeatures)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-DNS-Prefetch-Control", "off") // an element of the page cannot switch it on again
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Document wraps a page. refused is shown in browsers that cannot hold it.
func Document(page, refused string) ([]byte, error) {
	source, err := json.Marshal(strings.ToValidUTF8(page, "\uFFFD")) // escapes <, > and &
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "<!doctype html>\n<html><head><meta charset=\"utf-8\"></head><body><script type=\"application/json\" id=\"app-source\" data-refused=\"%s\">%s</script><script>%s</script></body></html>\n",
		html.EscapeString(refused), source, guard), nil
}
