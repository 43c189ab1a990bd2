// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/apptest"
)

// shop is a server whose tools ask a person.
type shop struct{ toolbox }

const shopForm = `{"type":"object","properties":{
	"name":{"type":"string","title":"Name on the parcel","minLength":2,"pattern":"^[A-Z]"},
	"count":{"type":"integer","title":"How many","minimum":1,"maximum":9,"default":2},
	"mail":{"type":"string","format":"email","description":"Where the bill goes"},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time","default":"2026-01-31T08:30:00Z"},
	"size":{"type":"string","title":"Size","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}],"default":"l"},
	"extras":{"type":"array","title":"Extras","items":{"anyOf":[{"const":"c","title":"A card"},{"const":"r","title":"A ribbon"}]},"default":["r"]},
	"note":{"type":"string","maxLength":400},
	"gift":{"type":"boolean","title":"It is a <b>gift</b>"}
},"required":["name","count","size"]}`

func (shop) Tools(artel.Owner) []tool.Tool {
	ask := func(name string, q tool.Elicitation) tool.Tool {
		q.Key, q.Name, q.Server = "1", name, "shop"
		return tool.Tool{Name: name, Doc: "Orders.", Schema: json.RawMessage(`{"type":"object"}`), Call: func(ctx context.Context, e *tool.Env, _ json.RawMessage) (tool.Result, error) {
			got, err := e.Host.Elicit(ctx, e.Call, []tool.Elicitation{q})
			if err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Content: fmt.Sprintf("%s %v", got[0].Action, got[0].Content)}, nil
		}}
	}
	return []tool.Tool{
		ask("shop_order", tool.Elicitation{Mode: artel.ElicitForm, Message: "What may I pack?\nIt leaves today.", Schema: json.RawMessage(shopForm)}),
		ask("shop_pay", tool.Elicitation{Mode: artel.ElicitURL, Message: "Pay the bill.", URL: "https://pay.example/bill?id=1"}),
	}
}
func (shop) Prefixes() []string { return []string{"shop_"} }

// TestServersAskOnThePage: a form of a tool server takes what its schema takes and nothing
// else, and stays through a reload; a page to open is named by its host. What was answered is
// shown afterwards.
func TestServersAskOnThePage(t *testing.T) {
	t.Parallel()
	s, b := openSite(t, setup{servers: shop{}, agents: []agent.Definition{{Name: agent.Lead, Prompt: "You buy.", Tools: []string{"shop_*"}}}, demo: script(t, "-- turn 1 --\n@call shop_order {}\n-- turn 2 --\n@call shop_pay {}\n-- turn 3 --\nDone.\n")}, 1280, 1000)
	b.send("go")
	b.Do(see(".elicit.open"))
	const begins = `document.querySelector(".elicit.open").getBoundingClientRect().top >= document.getElementById("scroller").getBoundingClientRect().top - 1`
	b.Until(begins) // a long form is read from its beginning
	b.picture("elicit")
	b.Says(".elicit.open", "The tool server shop asks you", "What may I pack?", "It is a <b>gift</b>", "Where the bill goes", "not to the model", "Send to shop", "left)")
	b.Says(".call.waiting", "waits for your answer")
	b.Says("#status", "Waits for your answer")
	axe := newChecker(t, b)
	axe.check("#messages", allRules, "elicit")
	b.Do(chromedp.Reload(), see(".elicit.open"))
	b.Until(begins)
	b.Do(press("y", chromedp.ModifierAlt))
	b.on(`.elicit.open button[value="accept"]`)
	b.Do(press("\r"))
	b.Until(`document.activeElement.matches(".elicit input:invalid")`) // the browser says what is missing
	b.Do(fill(`.elicit [name="f0"]`, "anna"), press("\r"))
	b.Until(`document.querySelector('.elicit [name="f0"]').validity.patternMismatch`)
	b.Do(fill(`.elicit [name="f0"]`, "Anna"))
	// What no browser would send is refused with what is wrong, and the form stays.
	id := s.all(t)[0].ID
	list, err := s.app.Elicitations.List(apptest.Context(t), id)
	if err != nil || len(list) != 1 {
		t.Fatalf("there are %d questions, %v", len(list), err)
	}
	path := "/r/" + string(list[0].Run) + "/elicitations/" + string(list[0].ID)
	bad := s.askFragment(t, "POST", path, "/c/"+string(id), map[string][]string{"action": {"accept"}, "f0": {"x"}, "f1": {"many"}})
	if bad.StatusCode != 422 || !strings.Contains(bad.body, "Name on the parcel has at least 2 characters.") || !strings.Contains(bad.body, "How many is of another kind") || !strings.Contains(bad.body, "Size is missing.") {
		t.Errorf("a wrong answer: status %d, %s", bad.StatusCode, bad.body)
	}
	b.Do(click(`.elicit.open button[value="accept"]`))
	b.Do(see(".elicit.open a"))
	b.Says(".elicit:not(.open)", "shop", "Answered", "Anna", "A ribbon", "2026-01-31T08:30", "Large")
	b.picture("elicit-url")
	b.Says(".elicit.open", "pay.example", "https://pay.example/bill?id=1", "I have opened it")
	if got := eval[string](b, `(({href, target, rel}) => href + " " + target + " " + rel)(document.querySelector(".elicit.open a"))`); !strings.HasPrefix(got, "https://pay.example/bill?id=1 _blank noopener noreferrer") {
		t.Errorf("the link is %s", got)
	}
	axe.check("#messages", allRules, "elicit-url")
	b.Do(click(`.elicit.open button[value="decline"]`))
	b.rest()
	b.Says("#messages", "Declined", "Done.")
	b.sameAnew()
	results := eval[string](b, `document.querySelector("#messages").textContent`)
	if want := "accept map[at:2026-01-31T08:30:00Z count:2 extras:[r] gift:false name:Anna size:l]"; !strings.Contains(results, want) || !strings.Contains(results, "decline map[]") {
		t.Errorf("the server got %s, want %s", results, want)
	}
	if late := s.askFragment(t, "POST", path, "/c/"+string(id), map[string][]string{"action": {"cancel"}}); late.StatusCode != 409 || !strings.Contains(late.body, "already been answered") {
		t.Errorf("a late answer: status %d, %s", late.StatusCode, late.body)
	}
}
