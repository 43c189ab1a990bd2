// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/artelhq/artel"
)

// Scheme begins the address of a bucket.
const Scheme = "s3"

// amazon is the endpoint of an address without one.
const amazon = "https://s3.amazonaws.com"

// An Address names a bucket and how to use it. See [ParseAddress].
type Address struct {
	Bucket string
	Prefix string // of the keys; empty, or ending with a slash

	endpoint   *url.URL
	region     string
	pathStyle  string // "", "true", "false"
	encryption encrypt.ServerSide
	presign    *url.URL // endpoint of presigned URLs; nil: there are none
	user       *url.Userinfo
	redacted   string
}

// ParseAddress reads the address of a bucket:
//
//	s3://[KEY:SECRET@]BUCKET[/PREFIX][?endpoint=URL&region=…&path_style=…&encryption=…&presign=…]
//
// Without an endpoint the bucket is at Amazon. path_style is true or false; by
// default, it is false for Amazon only. encryption is AES256 (keys of the server),
// aws:kms, or aws:kms:KEY. presign is true, or the endpoint as clients reach it.
// Without a key the usual variables and files of AWS, and the role of the machine,
// give the credentials.
func ParseAddress(text string) (Address, error) {
	const op = "s3.ParseAddress"
	wrong := func(format string, args ...any) (Address, error) {
		return Address{}, artel.Errorf(artel.Invalid, op, "", "the address of the bucket: "+format, args...)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != Scheme || u.Opaque != "" || u.Fragment != "" { // the error would quote the secret
		return wrong("want s3://BUCKET?endpoint=https://…&region=…")
	}
	if u.Host == "" || u.Port() != "" {
		return wrong("want the name of the bucket after s3://, and the server in endpoint=https://…")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("its options cannot be read; want name=value&name=value, with %% escaped as %%25")
	}
	a := Address{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), region: q.Get("region"), pathStyle: q.Get("path_style"), user: u.User, redacted: u.Redacted()}
	if a.Prefix != "" {
		a.Prefix += "/"
	}
	known := map[string]bool{"endpoint": true, "region": true, "path_style": true, "encryption": true, "presign": true}
	for name, values := range q {
		if !known[name] {
			return wrong("there is no option %q (there are: %s)", artel.Shorten(name, 40), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if len(values) > 1 {
			return wrong("%s is there %d times", name, len(values))
		}
	}
	if a.endpoint, err = parseEndpoint(q.Get("endpoint"), amazon); err != nil {
		return wrong("endpoint: %w", err)
	}
	if !slices.Contains([]string{"", "true", "false"}, a.pathStyle) {
		return wrong("path_style is %q, want true or false", artel.Shorten(a.pathStyle, 40))
	}
	switch p := q.Get("presign"); p {
	case "", "false":
	case "true":
		a.presign = a.endpoint
	default:
		if a.presign, err = parseEndpoint(p, ""); err != nil {
			return wrong("presign: want true, or the endpoint as clients reach it: %w", err)
		}
	}
	switch name, key, _ := strings.Cut(strings.TrimPrefix(q.Get("encryption"), "aws:"), ":"); {
	case name == "":
	case name == "AES256" && key == "":
		a.encryption = encrypt.NewSSE()
	case name == "kms":
		if a.encryption, err = encrypt.NewSSEKMS(key, nil); err != nil {
			return wrong("encryption: %w", err)
		}
	default:
		return wrong("encryption is %q, want AES256, aws:kms or aws:kms:KEY", artel.Shorten(q.Get("encryption"), 40))
	}
	if a.user != nil {
		if secret, ok := a.user.Password(); !ok || secret == "" || a.user.Username() == "" {
			return wrong("want both key and secret before the @, each escaped as in a URL")
		}
	}
	return a, nil
}

// parseEndpoint reads the address of a server.
func parseEndpoint(text, usual string) (*url.URL, error) {
	if text == "" {
		text = usual
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, artel.Errorf(artel.Invalid, "", "", "want https://HOST or http://HOST:PORT")
	}
	return u, nil
}

// String returns the address without the secret.
func (a Address) String() string { return a.redacted }
