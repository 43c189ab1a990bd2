// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// firstPieces measures how much later than the server writes it a client reads the
// first piece of a tool call, in streams of its own dialect and of another. The anchor
// is the proxy, which translates nothing.
func firstPieces(ctx context.Context, l *lab, artel, proxy endpoint) (results []result) {
	anchor := func() float64 { return firstPiece(ctx, proxy, chatCall) }
	for _, c := range []struct{ work, path string }{{"forwarded", chatCall}, {"translated", messagesCall}} {
		m := interleave(l.rounds(5), func() float64 { return firstPiece(ctx, artel, c.path) }, anchor)
		results = append(results, result{work: "first piece of a tool call, " + c.work, size: "1 connection", unit: millis(), artel: m[0], anchor: m[1], target: target{limit: 0.005}})
	}
	return results
}

// The paths of requests with a tool.
const (
	chatCall     = "/v1/chat/completions"
	messagesCall = "/v1/messages"
)

// A stamp is the time at which the server wrote a piece, in the arguments of the call.
var stamp = regexp.MustCompile(`t\\":(\d{19})`)

// firstPiece returns the median delay of the first piece of 200 calls, in seconds.
func firstPiece(ctx context.Context, t endpoint, path string) float64 {
	const question = `"stream":true,"messages":[{"role":"user","content":"What time is it?"}],"model":"bench","max_tokens":100,"tools":`
	body := `{` + question + `[{"type":"function","function":{"name":"clock","parameters":{"type":"object"}}}]}`
	if path == messagesCall {
		body = `{` + question + `[{"name":"clock","input_schema":{"type":"object"}}]}`
	}
	var delays []float64
	for range 200 {
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, t.url+path, strings.NewReader(body)))
		r.Header.Set("Content-Type", "application/json")
		resp := must(http.DefaultClient.Do(r))
		delay, err := readStamp(resp.Body)
		_ = resp.Body.Close() // read to its end
		if err != nil {
			fail("%s: %w", t.name, err)
		}
		delays = append(delays, delay.Seconds())
	}
	return median(delays)
}

// readStamp reads a stream to its end and returns the age of the first stamp when it was
// read.
func readStamp(r io.Reader) (age time.Duration, err error) {
	var all []byte
	buf := make([]byte, 4<<10)
	for found := false; ; {
		n, err := r.Read(buf)
		now := time.Now().UnixNano()
		all = append(all, buf[:n]...)
		if m := stamp.FindSubmatch(all); m != nil && !found {
			wrote, _ := strconv.ParseInt(string(m[1]), 10, 64) // 19 digits
			age, found = time.Duration(now-wrote), true
		}
		if err == nil {
			continue
		}
		if !found || err != io.EOF {
			return 0, fmt.Errorf("an answer without a call: %w: %q", err, all[:min(len(all), 400)])
		}
		return age, nil
	}
}

// writeCall answers with a call whose first piece has the time, and ends it some time
// later.
func writeCall(w http.ResponseWriter, piece func(delta, finish string) []byte) {
	flush := http.NewResponseController(w).Flush
	call := func(rest string) string { return `{"tool_calls":[{"index":0,` + rest + `}]}` }
	_, _ = w.Write(piece(call(`"id":"call_1","type":"function","function":{"name":"clock","arguments":""}`), "null"))
	_ = flush()
	time.Sleep(2 * time.Millisecond)
	_, _ = w.Write(piece(call(fmt.Sprintf(`"function":{"arguments":"{\"t\":%d"}`, time.Now().UnixNano())), "null"))
	_ = flush()
	time.Sleep(5 * time.Millisecond) // a piece that is held back until the next one is late
	_, _ = w.Write(piece(call(`"function":{"arguments":"}"}`), "null"))
	_, _ = w.Write(piece("{}", `"tool_calls"`))
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
