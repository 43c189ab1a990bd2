// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"slices"

	"github.com/artelhq/artel/model"
)

// A Forwarder sends requests that a client wrote in the dialect. Every client of a
// dialect implements it.
type Forwarder interface {
	// Forward sends body to the endpoint that generates answers, and returns the
	// response after a header with a status of success. The body is not inspected;
	// dialects with the model and the stream in the address take them from
	// service.Model and stream.
	//
	// header is sent as [ForwardHeader] leaves it. The dialect sets the key and
	// Accept, and the content type and the version of the API unless header states them.
	// The caller closes the body of the response; that ends the call, as does ctx.
	//
	// Errors are those of [model.Provider]'s Generate, with the status and the
	// message of the service in a [*model.CallError]. There is no retry.
	Forward(ctx context.Context, service *model.Service, body *Body, stream bool, header http.Header) (*http.Response, error)
}

// A Passer sends requests that are not for answers of a model, such as embeddings, as
// their client wrote them. Every client of a dialect implements it.
type Passer interface {
	// Pass sends body, which may be nil, to path below the API's version, such as
	// "/embeddings?x=1", and returns the response after a header with a status of
	// success; the caller closes its body. header is sent as [ForwardHeader] leaves it,
	// with the key and Accept. Errors are those of [Forwarder]. There is no retry.
	Pass(ctx context.Context, service *model.Service, method, path string, body *Body, header http.Header) (*http.Response, error)
}

// An Uploader uploads the media of requests that were written elsewhere. Every
// client of a dialect implements it.
type Uploader interface {
	// SendWithUploads calls send as [Uploads.Send] does: with the names of uploaded
	// media in r.Names.
	SendWithUploads(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error)
}

// A Counter counts the tokens of requests that a client wrote in the dialect.
type Counter interface {
	// ForwardCount is [Forwarder].Forward for the endpoint that counts tokens.
	ForwardCount(ctx context.Context, service *model.Service, body *Body, header http.Header) (*http.Response, error)
}

// ForwardHeader returns the fields of h that may be sent on to a service: all
// except credentials, fields of the connection, and those determined by the body
// and the client. The result is a copy, never nil.
func ForwardHeader(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		switch http.CanonicalHeaderKey(name) {
		case "Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie",
			"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
			"Host", "Content-Length", "Content-Encoding", "Accept", "Accept-Encoding", "User-Agent", "Expect":
		default:
			out[name] = slices.Clone(values)
		}
	}
	return out
}
