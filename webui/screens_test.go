// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/webui/webuitest"
)

// maxScreen is how large, in bytes, a picture of the page may be: pictures stay
// in the repository for ever.
const maxScreen = 120_000

// A scene is a state of the page of which pictures are taken.
type scene struct {
	name string
	url  string
	then []chromedp.Action[chromedp.Void]
	wide []chromedp.Action[chromedp.Void] // only where there is room
	slim []chromedp.Action[chromedp.Void] // only where there is not
}

// textOnly is a model that takes no pictures, sharp one that does.
var (
	textOnly = model.Service{
		ID: "plain", Name: "Plain 8B", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:9/v1", Model: "plain-8b", Origin: "models.json",
		Capabilities: model.Capabilities{Input: model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText}, Source: model.FromOperator}},
	}
	sharp = model.Service{
		ID: "sharp", Name: "Sharp", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:9/v1", Model: "sharp-2", Origin: "models.json",
		Capabilities: model.Capabilities{Input: model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator}},
	}
)

// Pictures of the page in fifteen states, light and dark, wide and narrow: each
// can be taken and shows something. ARTEL_SCREENS names the folder in which they
// are kept, none of them large.
func TestScreens(t *testing.T) {
	t.Parallel()
	fresh := newSiteOf(t, setup{})
	s := newSiteOf(t, setup{demo: script(t, gallery), sees: true, services: []model.Service{textOnly, sharp}})
	branched := s.branched(t)
	id := s.visited(t)
	s.programs(t)
	c := s.URL + "/c/" + string(id)
	sheet := steps(click(`main [popovertarget="sidebar"]`), see("#sidebar"))
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(steered(t).URL), see("#composer"))
	b.steer()
	steering := eval[string](b, "location.href")
	scenes := []scene{
		{name: "home", url: fresh.URL},
		{name: "warning", url: s.URL, then: steps(write("What does the picture show?"), choose(sample(t, "photo.jpg")), see("#fit .note"))},
		{name: "picker", url: s.URL, then: steps(click("#model"), see("#picker"))},
		{name: "conversation", url: c, then: steps(see("#messages .call"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".call")[1].open = true; document.querySelectorAll(".call")[1].scrollIntoView()`))},
		{name: "ways", url: c, then: steps(see(".message.user .way summary"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".message.user .way details")[0].open = true; document.getElementById("scroller").scrollTop = 0`))},
		{name: "report", url: c + "/a/report", then: steps(see("#viewer"))},
		{name: "table", url: c + "/a/prices.csv", then: steps(see("#viewer table"))},
		{name: "list", url: c + "?search=files", wide: steps(press("k", chromedp.ModifierCtrl), press("report"), see(".excerpt")), slim: sheet},
		{name: "settings", url: s.URL + "/settings"},
		{name: "models", url: s.URL + "/settings", then: steps(see("#s-sharp"), chromedp.Evaluate[chromedp.Void](`if (!document.querySelector("#s-sharp .probed")) document.querySelector("#s-sharp form button").click()`),
			see("#s-sharp .probed"), chromedp.Evaluate[chromedp.Void](`document.querySelector("#s-sharp details")?.setAttribute("open", ""); document.getElementById("s-sharp").scrollIntoView()`))},
		{name: "gateway", url: s.URL + "/gateway", then: steps(see(".request:nth-of-type(2)"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".request")[1].open = true`))},
		{name: "gateway-sdk", url: s.URL + "/gateway", then: steps(see("#sdk"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#sdk details")[0].open = true; document.getElementById("sdk").scrollIntoView()`))},
		{name: "steering", url: steering, then: steps(see(".question.open"), see("#waiting .queued"))},
		{name: "branches", url: s.URL + "/c/" + string(branched), then: steps(see(".siblings"), chromedp.Evaluate[chromedp.Void](`document.getElementById("scroller").scrollTop = 0`))},
		{name: "running", url: c, then: steps(see("#messages"), write("Now compare the two suppliers, and keep the table up to date."), click("#composer .send"), see(".message.writing"))},
	}
	for _, sc := range scenes {
		for _, size := range []struct {
			name          string
			width, height int64
			only          []chromedp.Action[chromedp.Void]
		}{{"wide", 1440, 900, sc.wide}, {"narrow", 390, 844, sc.slim}} {
			resize(b, size.width, size.height)
			b.Prefer("light", true)
			b.Do(chromedp.Navigate(sc.url), see("body"))
			b.Until(`document.readyState === "complete"`)
			if sc.name != "running" || size.name == "wide" {
				b.Do(sc.then...)
			} else {
				b.Do(see(".message.writing"))
			}
			b.Do(size.only...)
			if sc.name == "running" {
				b.Until(`document.querySelector(".message.writing").innerText.includes("cheaper by")`)
			}
			b.Until(`[...document.images].every((i) => i.complete)`)
			for _, scheme := range []string{"light", "dark"} {
				if screens == "" && (scheme == "dark") != (size.name == "wide") {
					continue // one of each size is enough to see that it can be taken
				}
				b.Prefer(scheme, true)
				name := sc.name + "-" + size.name + "-" + scheme + ".png"
				shot := get(b, chromedp.CaptureScreenshot())
				if len(shot) < 8000 {
					t.Errorf("%s shows next to nothing in %d bytes", name, len(shot))
				}
				if screens == "" {
					continue
				}
				if shot = small(t, shot); len(shot) > maxScreen {
					t.Errorf("%s has %d bytes", name, len(shot))
				}
				names := []string{name}
				if name == "running-wide-light.png" {
					names = append(names, "first-page.png") // which the README shows
				}
				for _, name := range names {
					if err := os.WriteFile(filepath.Join(screens, name), shot, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// small writes a picture with few colors.
func small(t *testing.T, raw []byte) []byte {
	t.Helper()
	shot, err := webuitest.Small(raw)
	if err != nil {
		t.Fatal(err)
	}
	return shot
}

// prices is a table that suppliers are compared in.
const prices = "part,supplier,price,days\nframe,Northwind,412.00,9\nframe,Fabrikam,389.50,14\nwheel,Northwind,96.20,4\nwheel,Fabrikam,101.00,3\nchain,Northwind,18.90,2\nchain,Fabrikam,17.40,5\nsaddle,Northwind,54.00,6\nsaddle,Fabrikam,49.90,8\n"

// branched is a conversation whose first message was asked in two ways.
func (s *site) branched(t *testing.T) artel.ConversationID {
	t.Helper()
	id := s.send(t, "Which supplier should we take?", map[string]string{"prices.csv": prices})
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	text := "Which supplier is cheaper, Northwind or Fabrikam?"
	if _, err := s.app.Runs.Edit(apptest.Context(t), id, turns[0].ID, run.Edit{Text: &text}); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.app.Events.Follow(apptest.Context(t), id, last, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	return id
}

// visited fills a site with what a visitor of some days has.
func (s *site) visited(t *testing.T) artel.ConversationID {
	t.Helper()
	for _, text := range []string{"Summarize the meeting of the building group", "Which of these pictures is out of focus?", "整理这份合同的要点", "Plan a week in Lisbon"} {
		s.send(t, text, nil)
	}
	content := map[string]string{}
	for _, name := range []string{"photo.jpg", "report.pdf"} {
		raw, err := os.ReadFile(sample(t, name))
		if err != nil {
			t.Fatal(err)
		}
		content[name] = string(raw)
	}
	content["prices.csv"] = prices
	return s.send(t, "Look at these files, make a plan, and write a report about them.", content)
}

// programs tells the log of what some programs have asked.
func (s *site) programs(t *testing.T) {
	t.Helper()
	photo, err := os.Open(sample(t, "photo.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	defer photo.Close()
	staged, err := s.app.Parts().Artifacts.Uploads.Stage(apptest.Context(t), photo, media.Hint{})
	if err != nil {
		t.Fatal(err)
	}
	ref := artel.BlobRef(staged.Digest)
	entry := func(minutes int, in model.Dialect, endpoint, name string, service artel.ServiceID, status int, millis float64, tokens int64) gatewaylog.GatewayEntry {
		e := gatewaylog.GatewayEntry{
			Time: time.Now().Add(-time.Duration(minutes) * time.Minute), Inbound: in, Endpoint: endpoint, Model: name, Service: service,
			Status: status, Millis: millis, BytesIn: 4 * tokens, BytesOut: 900, Tries: 1, Usage: artel.Usage{InputTokens: tokens, OutputTokens: tokens / 12},
		}
		if service != "" {
			e.Outbound = model.OpenAI
		}
		return e
	}
	all := []gatewaylog.GatewayEntry{
		entry(34, model.OpenAI, "/v1/chat/completions", "sharp-2", "sharp", 200, 1840, 2900),
		entry(21, model.Gemini, "/v1beta/models/gemini-pro:generateContent", "gemini-pro", "", 404, 1, 0),
		entry(12, model.Anthropic, "/v1/messages", "sharp", "sharp", 200, 6210, 18400),
		entry(6, model.OpenAIResponses, "/v1/responses", "plain-8b", "plain", 200, 2270, 5200),
		entry(2, model.OpenAI, "/v1/chat/completions", "plain", "plain", 200, 960, 1500),
	}
	all[1].Error = "The model `gemini-pro` does not exist"
	all[2].Changes = []gatewaylog.GatewayChange{
		{Did: "carried", Ref: ref, MediaType: "image/jpeg", Place: model.AfterTool, Call: "toolu_01", Service: "sharp"},
		{Did: "named", Ref: ref, MediaType: "image/jpeg", Service: "sharp"},
	}
	all[3].Changes = []gatewaylog.GatewayChange{
		{Did: "repaired", Ref: ref, MediaType: "image/jpeg", Call: "call_look"},
		{Did: "described", Reason: artel.ReasonCapabilityMissing, Ref: ref, MediaType: "image/jpeg", Call: "call_look", Service: "plain"},
		{Did: "offloaded", Ref: ref, MediaType: "text/plain", Call: "call_search"},
	}
	for _, e := range all {
		s.app.GatewayLog.Add(apptest.Context(t), e)
	}
	if err := s.app.GatewayLog.Flush(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// gallery is what the model of the pictures says.
const gallery = `
-- message 1 --
-- turn 1 --
@think Three files: a picture, a document and a table. First a plan, then each file in turn, then the report.
I look at each file, keep a plan, and write the report.
@call create_artifact {"id": "task_plan", "title": "Task plan", "content": "# Plan\n\n- [x] Look at the picture\n- [x] Read the document\n- [x] Compare the prices\n- [ ] Ask for a second quote\n"}
@call create_artifact {"id": "report", "title": "Report: suppliers for the workshop", "content": "# Suppliers for the workshop\n\nTwo suppliers were compared over **four parts**. Fabrikam is cheaper in total, Northwind delivers sooner.\n\n| part | Northwind | Fabrikam | difference |\n|---|---:|---:|---:|\n| frame | 412.00 | 389.50 | −22.50 |\n| wheel | 96.20 | 101.00 | +4.80 |\n| chain | 18.90 | 17.40 | −1.50 |\n| saddle | 54.00 | 49.90 | −4.10 |\n\n## How it was reckoned\n\n` + "```python\\ntotal = sum(row.price for row in rows)\\nfor supplier, rows in by_supplier.items():\\n    print(f\\\"{supplier}: {total:.2f}\\\")  # without delivery\\n```" + `\n\n> Prices are those of the table; delivery is not in them.\n\n1. Order the frames from Fabrikam.\n2. Order the wheels from Northwind.\n"}
-- turn 2 --
@call read_artifact {"id": "prices.csv"}
@call update_artifact {"id": "report", "old_str": "2. Order the wheels from Northwind.", "new_str": "2. Order the wheels from Northwind.\n3. Ask both for a second quote."}
-- turn 3 --
The [report](artifact:report) is done. In short:

- **Fabrikam** is cheaper by 23.30 over the four parts.
- **Northwind** delivers in 5.3 days on average, Fabrikam in 7.5.

One step of the plan is open: a second quote.
-- message 2 --
-- turn 1 --
@think The table is there already; I compare the totals first.
Without delivery, Fabrikam is cheaper by **23.30** over all parts:

| supplier | total | days |
|---|---:|---:|
| Northwind | 581.10 | 5.3 |
| Fabrikam | 557.80 | 7.5 |

The difference comes from the
@hang
`
