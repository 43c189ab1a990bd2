// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"net"
	"strings"
)

// Paths of this program that authorization servers know.
const (
	CallbackPath = "/auth/mcp/callback"
	DocumentPath = "/auth/mcp/client.json"
)

// SiteAt returns the site of this program at an address, such as https://artel.example.
// Only an authorization server that can reach it can read the document of the client, so
// an address of one machine or network has none.
func SiteAt(address string) Site {
	s := Site{Redirect: address + CallbackPath}
	rest, secure := strings.CutPrefix(address, "https://")
	host, _, _ := strings.Cut(rest, "/")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if secure && strings.Contains(host, ".") && net.ParseIP(strings.Trim(host, "[]")) == nil && !strings.HasSuffix(host, ".localhost") && !strings.HasSuffix(host, ".local") && !strings.HasSuffix(host, ".internal") {
		s.Document = address + DocumentPath
	}
	return s
}

// A Document describes this program to authorization servers (OAuth Client ID Metadata
// Document). Its address is the id of the client.
type Document struct {
	ID        string   `json:"client_id"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Method    string   `json:"token_endpoint_auth_method"`
}

// DocumentAt returns the document of the client at an address of this program.
func DocumentAt(address string) Document {
	return Document{
		ID: address + DocumentPath, Name: "Artel", Redirects: []string{address + CallbackPath},
		Grants: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"}, Method: "none",
	}
}
