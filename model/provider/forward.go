// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"slices"

	"github.com/artelhq/artel/model"
)

// A Forwarder sends requests that a client has written in the dialect itself.
// Every wing's provider is one.
type Forwarder interface {
	// Forward sends body to the endpoint that generates answers, and returns
	// the answer once its head has come with a status of success. What the body
	// says is not looked at, except that some dialects name the model and the
	// stream in the address: they take service.Model, and stream.
	//
	// header goes with the request as [ForwardHeader] leaves it, under what the
	// wing sets itself: the key, the content type, what is accepted, and the
	// version of the API where header states none. The caller closes the
	// answer's body, which ends the call, and so does ctx.
	//
	// Errors are those of [model.Provider]'s Generate, with the status and the
	// words of the service in a [*model.CallError]. Nothing is tried twice.
	Forward(ctx context.Context, service model.Service, body *Body, stream bool, header http.Header) (*http.Response, error)
}

// A Uploader can name the files that its service holds in requests that are
// written elsewhere. Every wing's provider is one.
type Uploader interface {
	// SendWithUploads calls send with r, in whose Uploads the media of its messages are that the
	// service holds, as [Uploads.Send] does.
	SendWithUploads(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error)
}

// ForwardHeader returns the fields of h that may go on to a service: all but
// credentials, those of the one connection, and those that the body and the
// client decide. It is never nil, and the caller's own.
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
