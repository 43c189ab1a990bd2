// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// eventStream is the type of a stream of Bedrock.
const eventStream = "application/vnd.amazon.eventstream"

// Adapt gives an answer of Bedrock the form of Anthropic's API: the events in it are
// those of the Messages API, each in a binary frame with a checksum
// (InvokeModelWithResponseStream). Other answers stay.
func (*Signer) Adapt(resp *http.Response) {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != eventStream {
		return
	}
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = &frameReader{Closer: resp.Body, in: resp.Body, decoder: eventstream.NewDecoder()}
}

// A frameReader reads frames as server-sent events.
type frameReader struct {
	io.Closer
	in      io.Reader
	decoder *eventstream.Decoder
	buf     []byte // of the decoder
	rest    bytes.Buffer
	err     error
}

// Read implements [io.Reader].
func (f *frameReader) Read(p []byte) (int, error) {
	for f.rest.Len() == 0 && f.err == nil {
		var m eventstream.Message
		if m, f.err = f.decoder.Decode(f.in, f.buf[:0]); f.err == nil {
			f.event(m)
			f.buf = m.Payload
		}
	}
	if f.rest.Len() > 0 {
		return f.rest.Read(p)
	}
	return 0, f.err
}

// event writes the event of a frame.
func (f *frameReader) event(m eventstream.Message) {
	header := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	var payload struct {
		Bytes   []byte `json:"bytes"` // base64 in JSON
		Message string `json:"message"`
	}
	if err := json.Unmarshal(m.Payload, &payload); err != nil {
		f.err = errors.New("a frame of Bedrock has no JSON: " + err.Error())
		return
	}
	if header(":message-type") != "event" {
		f.failure(header(":exception-type"), payload.Message)
		return
	}
	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(payload.Bytes, &event); err != nil || event.Type == "" {
		f.err = errors.New("an event of Bedrock is not one of the Messages API")
		return
	}
	f.write(event.Type, payload.Bytes)
}

// failure writes an exception as an error of the Messages API.
func (f *frameReader) failure(exception, message string) {
	kind := "api_error"
	switch exception {
	case "throttlingException":
		kind = "rate_limit_error"
	case "validationException":
		kind = "invalid_request_error"
	case "serviceUnavailableException", "modelStreamErrorException", "modelTimeoutException":
		kind = "overloaded_error"
	}
	data, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": exception + ": " + message}}) // strings
	f.write("error", data)
}

func (f *frameReader) write(name string, data []byte) {
	f.rest.WriteString("event: " + name + "\ndata: ")
	f.rest.Write(data)
	f.rest.WriteString("\n\n")
}
