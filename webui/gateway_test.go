// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// asked tells the log of requests: one that was changed, one as it was, one that
// failed.
func asked(t *testing.T, s *site) {
	t.Helper()
	f, err := os.Open(sample(t, "photo.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	staged, err := s.app.Parts().Artifacts.Uploads.Stage(apptest.Context(t), f, media.Hint{})
	if err != nil {
		t.Fatal(err)
	}
	photo := artel.BlobRef(staged.Digest)
	for _, e := range []gatewaylog.GatewayEntry{
		{
			Inbound: model.OpenAI, Outbound: model.Anthropic, Endpoint: "/v1/chat/completions", Model: "demo", Service: "demo", Status: 200, Millis: 1234, BytesIn: 2100, BytesOut: 900, Tries: 2, Relents: 1,
			Usage: artel.Usage{InputTokens: 1500, OutputTokens: 80, Calls: 1, Cost: artel.Cost{USD: 0.0123, Calls: 1}}, Changes: []gatewaylog.GatewayChange{
				{Did: "scrubbed", Ref: photo, MediaType: "image/jpeg", Call: "call_1"},
				{Did: "converted", Reason: artel.ReasonOverLimit, Ref: photo, MediaType: "image/jpeg", Place: model.AfterTool, Call: "call_1", Service: "demo"},
			},
		},
		{Inbound: model.Anthropic, Outbound: model.Anthropic, Endpoint: "/v1/messages", Model: "demo", Service: "demo", Status: 200, Millis: 87, Tries: 1},
		{Inbound: model.OpenAI, Endpoint: "/v1/chat/completions", Model: "nothing", Status: 404, Millis: 1, Error: "The model `nothing` does not exist"},
	} {
		e.Time = time.Now()
		s.app.GatewayLog.Add(apptest.Context(t), e)
	}
	if err := s.app.GatewayLog.Flush(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// The log shows what comes while it is looked at, what was done and why, leads
// to the bytes, and filters; the panel has this server's address.
func TestGatewayPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), click(`.sidebar a[href="/gateway"]`), see("#requests"))
	b.Says("#requests", "No requests yet")
	asked(t, s)
	b.Until(`document.querySelectorAll("#requests .request").length === 3`)
	b.Says("#requests", "changes: 2", "404")
	b.Do(click(".request:last-of-type summary"))
	b.Until(`document.querySelector(".request[open] .parts") !== null`)
	b.Says(".request[open]", "base64 in a tool result became a file", "It is larger than", "call_1", "1,500 → 80", "$0.0123", "with less after a refusal: 1")
	// What comes meanwhile shuts nothing.
	s.app.GatewayLog.Add(apptest.Context(t), gatewaylog.GatewayEntry{Time: time.Now(), Endpoint: "/v1/responses", Status: 502, Error: "gone"})
	b.Until(`document.querySelectorAll("#requests .request").length === 4 && document.querySelector(".request[open] .parts") !== null`)
	b.picture("gateway")
	if got := eval[string](b, `fetch(document.querySelector(".parts a").href).then((r) => r.status + " " + r.headers.get("Content-Type"))`); got != "200 image/jpeg" {
		t.Error("the bytes:", got)
	}

	s.app.GatewayLog.Add(apptest.Context(t), gatewaylog.GatewayEntry{
		Time: time.Now(), Inbound: gatewaylog.MCP, Endpoint: "tools/call", Status: 200, Millis: 12, BytesIn: 52428800, BytesOut: 3900,
		MCP:     &gatewaylog.MCPCall{Server: "browser", Tool: "shot", Host: "claude-code", HostVersion: "2.1", Conversation: "cnv_00000000000000000000000001"},
		Changes: []gatewaylog.GatewayChange{{Did: "offloaded", Ref: artel.BlobRef(artel.Digest("sha256-" + strings.Repeat("0", 64))), MediaType: "application/json", Size: 52428800}},
	})
	b.Until(`document.querySelectorAll("#requests .request").length === 5`)
	b.Do(click(".request:first-of-type summary"))
	b.Says(".request:first-of-type", "browser · shot", "claude-code 2.1", "a long result was stored", "50.0 MB → 3.8 KB")
	b.picture("gateway-mcp")
	b.Script(`document.querySelector('[name="of"]').value = "mcp"; document.querySelector('[name="of"]').dispatchEvent(new Event("change", {bubbles: true}))`)
	b.Until(`location.search.includes("of=mcp") && document.querySelectorAll("#requests .request").length === 1`)
	b.Do(chromedp.Navigate(s.URL+"/gateway?server=browser"), see("#requests .request"))
	b.Says("form.filters", "browser")
	b.Do(chromedp.Navigate(s.URL+"/gateway"), see("#requests .request"))

	b.Do(click(`[name="changed"]`))
	b.Until(`location.search.includes("changed=1") && document.querySelectorAll("#requests .request").length === 2`)
	b.Do(chromedp.Navigate(s.URL+"/gateway?status=failed&service=demo"), see("#requests .empty"))
	b.Says("#requests", "No request matches")

	b.Script(`document.querySelectorAll("#sdk details").forEach((d) => { d.removeAttribute("name"); d.open = true; })`)
	code := b.Text("#sdk")
	for _, want := range []string{`base_url="` + s.URL + `/v1"`, `baseURL: "` + s.URL + `"`, "ANTHROPIC_BASE_URL=" + s.URL + " ", `http_options={"base_url": "` + s.URL + `"}`, `wire_api = "responses"`, "curl " + s.URL + "/v1/chat/completions -H ", `-d '{"model": "`} {
		if !strings.Contains(code, want) {
			t.Errorf("no line has %s", want)
		}
	}
	if strings.Contains(code, "{service}") || strings.Contains(code, "{key}") || strings.Contains(code, "{address}") {
		t.Error("a line is not filled in")
	}
	b.picture("gateway-sdk")
}
