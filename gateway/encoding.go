// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

const (
	// maxDecoded limits the decoded size of a compressed request, media included, in
	// bytes: more is taken for a decompression bomb.
	maxDecoded = 512 << 20
	// maxZstdWindow is the largest window of a zstd frame, in bytes, which decoders
	// are to support (RFC 8878, section 3.1.1.1.2).
	maxZstdWindow = 8 << 20
)

// supportedEncodings is the Accept-Encoding of a refusal (RFC 9110, section 12.5.3).
const supportedEncodings = "gzip, deflate, zstd"

// A bodyDecoder reads a compressed body. It fails with a *provider.Fault of status 413 after
// maxDecoded bytes.
type bodyDecoder struct {
	r    io.Reader
	left int64
}

func (d *bodyDecoder) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, &provider.Fault{Status: http.StatusRequestEntityTooLarge, Message: "The decoded body of the request is larger than 512 MiB."}
	}
	n, err := d.r.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	return n, err
}

// decodeBody replaces a body with a Content-Encoding by its content, and returns a
// function to call after reading. The error is a *provider.Fault of status 415 for an encoding
// that is not supported.
func (x *exchange) decodeBody() (done func(), err error) {
	done = func() {}
	if len(x.r.Header["Content-Encoding"]) == 0 {
		return done, nil
	}
	body := x.r.Body
	d := &bodyDecoder{left: maxDecoded}
	switch encoding := strings.ToLower(strings.TrimSpace(strings.Join(x.r.Header["Content-Encoding"], ", "))); encoding {
	case "", "identity":
		return done, nil
	case "gzip", "x-gzip":
		d.r, err = gzip.NewReader(body)
	case "deflate": // in zlib's format; some clients send the bare stream
		in := bufio.NewReader(body)
		if head, _ := in.Peek(2); len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			d.r, err = zlib.NewReader(in)
		} else {
			d.r = flate.NewReader(in)
		}
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err == nil {
			d.r, done = z, z.Close
		}
	default:
		x.w.Header().Set("Accept-Encoding", supportedEncodings)
		return done, &provider.Fault{Status: http.StatusUnsupportedMediaType, Message: "Unsupported Content-Encoding '" + artel.Shorten(encoding, 100) + "'. Supported are: " + supportedEncodings + "."}
	}
	if err != nil {
		return done, unread(err)
	}
	x.r.Body, x.r.ContentLength = io.NopCloser(d), -1 // the server closes the original
	return done, nil
}
