// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/httpapi"
)

// logged is a server whose gateway has answered one more request each time that
// its log is asked for, after the first n; over is called when more than last are
// asked for.
func logged(t *testing.T, n, last int, over func()) (url string, asked *[]string) {
	asked = new([]string)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n > last {
			over()
		}
		*asked = append(*asked, r.URL.String())
		list := httpapi.List[gatewaylog.GatewayEntry]{}
		for i := n; i > 0; i-- {
			e := gatewaylog.GatewayEntry{Number: int64(i), Time: time.Unix(int64(i), 0), Endpoint: "/v1/messages", Model: "claude", Service: "chat", Status: 200, Millis: 12.4}
			e.Usage.InputTokens, e.Usage.Cost, e.Changes = 5, artel.Cost{USD: 0.0125, Calls: 1}, []gatewaylog.GatewayChange{{Did: "carried"}, {Did: "carried"}, {Did: "named"}}
			list.Items = append(list.Items, e)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // to a client that is there
		n++
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func gatewayLog(ctx context.Context, url string, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"gateway", "log", "--server", url}, args...))
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestGatewayLog(t *testing.T) {
	t.Parallel()
	url, asked := logged(t, 2, 100, func() {})
	out, err := gatewayLog(t.Context(), url, "--key", "ci", "--service", "chat", "--status", "4xx", "--changed", "--limit", "7")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], ":01") || !strings.Contains(lines[1], ":02") ||
		!strings.Contains(lines[0], "claude → chat") || !strings.HasSuffix(lines[0], "carried named") || !strings.Contains(lines[0], "5 in, 0 out, $0.012500") {
		t.Errorf("%v:\n%s", err, out)
	}
	if want := "/api/v1/gateway/log?changed=true&key=ci&limit=7&service=chat&status=4xx"; len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("asked for %v, want %s", *asked, want)
	}
	var list httpapi.List[gatewaylog.GatewayEntry]
	if out, err = gatewayLog(t.Context(), url, "--json"); err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list.Items) != 3 {
		t.Errorf("%v: %s", err, out)
	}
	if _, err = gatewayLog(t.Context(), url, "--limit", "0"); err == nil || !strings.Contains(err.Error(), "between 1 and 200") {
		t.Errorf("a limit of 0: %v", err)
	}
}

// TestGatewayLogFollowed tells each request once, in their order.
func TestGatewayLogFollowed(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, _ := logged(t, 2, 4, stop)
	out, err := gatewayLog(ctx, url, "--json", "-f")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out) {
		var e gatewaylog.GatewayEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		got = append(got, fmt.Sprint(e.Number))
	}
	if s := strings.Join(got, " "); s != "1 2 3 4" && s != "1 2 3 4 5" { // the last comes with the end
		t.Errorf("told %s", s)
	}
}
