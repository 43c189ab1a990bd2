// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/webui/webuitest"
)

// texts lists what the page says itself: texts and attributes that are shown or
// read, without what people, models and files brought and without names and
// code.
const texts = `(() => {
	const out = [], foreign = "script, noscript, style, code, pre, kbd, bdi, .said, .message .body, #viewer, #plan-body, .value, .excerpt, iframe, [lang]:not(html), [data-theirs]";
	const walk = (node) => {
		for (let n = document.createTreeWalker(node, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT), x; x = n.nextNode();) {
			const e = x.nodeType === 1 ? x : x.parentElement;
			if (!e || e.closest(foreign)) continue;
			if (x.nodeType === 3) { if (x.data.trim()) out.push(x.data.trim()); continue; }
			for (const name of ["aria-label", "title", "placeholder", "alt"]) if (x.getAttribute(name)) out.push(x.getAttribute(name));
			for (const [name, value] of Object.entries(x.id === "words" || x.id === "composer" ? x.dataset : {})) if (!/^(hx|htmx)/.test(name) && !/^\//.test(value)) out.push(value);
			if (x.localName === "template") walk(x.content);
		}
	};
	walk(document);
	return out;
})()`

// known are words that are the same in every language here: names, formats,
// keys and units.
var known = regexp.MustCompile(`(?i)\b(artel\.yaml|SillyTavern|CHARX|image|audio|video|Artel|OpenAI|Anthropic|Google|Gemini|OpenRouter|Ollama|llama\.cpp|vLLM|LM Studio|What is in these files|Please keep notes on the harbour|Notes on the harbour|Office|Board|English|API|SQLite|` +
	`MCP|streamable|HTTP|Schema|Authorization|Bearer|city|GET|POST|PUT|PATCH|DELETE|PDF|DOCX|PNG|JPEG|JSON|CSV|ZIP|SVG|MP3|MP4|HTML|Markdown|Go|Ctrl|Alt|Shift|Esc|Enter|KB|MB|GB|B|ms|s|v\d+|\d+k|` +
	`https?://\S+|[\w./:-]+\.(json|jpg|pdf|md|csv|svg|mp3|mp4|zip|txt|html|yaml)|127\.0\.0\.1\S*|[A-Z]+(_[A-Z]+)+|models\.json|test|demo|char|all|Webhook|agentskills\.io|ISO 8601|Europe/Berlin)\b`)

// Every text of the page is in the language of the reader.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	bad := newSiteOf(t, setup{services: []model.Service{troubled}})
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 1440, 900, webuitest.Command(network.Enable, network.EnableParams{}))
	b.Forgive("404")
	latin, han, missing := regexp.MustCompile(`[A-Za-z]{2,}`), regexp.MustCompile(`\p{Han}`), regexp.MustCompile(`page\.[a-z_]`)
	check := func(where, language string) {
		t.Helper()
		for _, text := range eval[[]string](b, texts) {
			switch rest := known.ReplaceAllString(text, ""); {
			case missing.MatchString(text), strings.Contains(text, "<no value>"):
				t.Errorf("%s: a text is missing: %q", where, text)
			case language == "zh" && latin.MatchString(rest):
				t.Errorf("%s in Chinese: %q", where, text)
			case language == "en" && han.MatchString(text) && text != "中文":
				t.Errorf("%s in English: %q", where, text)
			}
		}
	}
	for _, url := range []string{
		s.URL, bad.URL, s.URL + "/import", c, c + "/a/report?v=2", c + "/a/photo.jpg", c + "/a/report.pdf?view=text", c + "/a/archive.zip", s.URL + "/settings", s.URL + "/tools", s.URL + "/tools/mcp/new", s.URL + "/tools/http/new", s.URL + "/pipeline", s.URL + "/me", s.URL + "/rules", s.URL + "/macros", s.URL + "/books", s.URL + "/skills", s.URL + "/agents", s.URL + "/agents/a/lead_agent", s.URL + "/agents/new", s.URL + "/agents/new?from=lead_agent&as=file", s.URL + "/c?search=nothing+at+all",
		c + "/title", s.URL + "/nowhere", c + "/a/nothing", s.URL + "/?deleted=" + string(id),
	} {
		for _, language := range []string{"en", "zh"} {
			b.Do(webuitest.Command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}}))
			b.Do(chromedp.Navigate(url), see("#main"))
			if lang := eval[string](b, "document.documentElement.lang"); lang != language {
				t.Errorf("%s: lang is %q, want %q", url, lang, language)
			}
			check(url, language)
		}
	}

	// What comes and goes while a run is at work, and branches.
	s = steered(t)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.steer()
	check("a question and messages that wait", "zh")
	b.Do(click(`.question.open button[value="deny"]`))
	b.steered()
	check("a denied call", "zh")
	b.Do(click(".message.user [data-edit]"), see(".rewriting textarea"))
	check("a message that is edited", "zh")
	b.Do(fill(".rewriting textarea", "Otherwise."), press("\r", chromedp.ModifierCtrl), see(".question.open"), click(`.question.open button[value="allow"]`))
	b.rest()
	b.Do(click(`.message.user [name="muted"]`), see(".muted"))
	b.Do(click("#total > summary"), click("#total form button"), see(".boundary"))
	b.Until(`!document.querySelector("#status.active")`)
	b.Until(`document.querySelector(".siblings") !== null`)
	check("branches and a summary", "zh")
	b.Do(chromedp.Navigate(s.URL), see("#agent"), click("#agent"), see("#agent-picker"))
	check("the choice of an agent", "zh")
}

// What the settings switch takes effect at once and stays.
func TestSettings(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	b := openTab(t, 1440, 900)
	b.Prefer("light", false)
	pick := func(name, value string) {
		b.Do(click(fmt.Sprintf(`label:has(input[name=%s][value=%q])`, name, value)))
		b.Until(fmt.Sprintf(`document.readyState === "complete" && document.querySelector("input[name=%s][value='%s']")?.defaultChecked`, name, value))
	}
	look := func() []string {
		return eval[[]string](b, `[document.documentElement.lang, getComputedStyle(document.documentElement).backgroundColor, document.querySelector("#main h1").innerText]`)
	}
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#main"))
	light := look()
	b.Prefer("dark", false)
	b.Until(fmt.Sprintf(`getComputedStyle(document.documentElement).backgroundColor !== %q`, light[1]))
	dark := look()
	pick("theme", "light")
	if got := look(); !slices.Equal(got, light) {
		t.Errorf("light by choice looks like %q, by the system like %q", got, light)
	}
	b.Prefer("light", false)
	pick("theme", "dark")
	if got := look(); !slices.Equal(got, dark) {
		t.Errorf("dark by choice looks like %q, by the system like %q", got, dark)
	}
	pick("language", "zh")
	if got := look(); got[0] != "zh" || got[2] != "设置" {
		t.Errorf("in Chinese the settings look like %q", got)
	}
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages"))
	if got := look(); got[0] != "zh" || got[1] != dark[1] {
		t.Errorf("the next page looks like %q", got)
	}
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#main"))
	pick("language", "")
	pick("theme", "")
	if got := look(); !slices.Equal(got, light) {
		t.Errorf("as before everything looks like %q, not like %q", got, light)
	}

	// Things move unless the system or the reader says no.
	moving := `document.getAnimations().filter((a) => a.playState === "running").length`
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages"), write("And now?"), click("#composer .send"), see("#status.active"))
	b.Until(moving + " > 0")
	b.Prefer("light", true)
	b.Until(moving + " === 0")
	b.Prefer("light", false)
	b.Until(moving + " > 0")
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#main"))
	pick("motion", "off")
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#status.active .spin"))
	b.Until(`document.readyState === "complete"`)
	if n := eval[int](b, "document.getAnimations().length"); n > 0 {
		t.Errorf("%d things move although the reader has switched that off", n)
	}
}
