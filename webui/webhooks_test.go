// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/store"
)

// TestWebhookForms: users make, change, try and delete webhooks without script, see a secret
// once, and nothing of the webhooks of others.
func TestWebhookForms(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	bob := ann.join("Bob")
	status, text := bob.post("/webhooks", "name", "chat", "url", "https://192.0.2.1/hook", "event", "run_finished")
	bob.shows("a webhook", status, 200, text, "It is shown only now.")
	secret := regexp.MustCompile(webhooks.SecretPrefix + `[A-Za-z0-9+/=]+`).FindString(text)
	path := regexp.MustCompile(`action="(/webhooks/hook[A-Z2-7]+)"`).FindStringSubmatch(text)
	if secret == "" || path == nil {
		t.Fatalf("no secret %q, or no address: %s", secret, text)
	}
	if text = bob.get(path[1]); strings.Contains(text, secret) || !strings.Contains(text, "Nothing was sent yet.") {
		t.Error("the secret is shown twice, or the log is missing")
	}
	for _, wrong := range [][]string{{"name", "x", "url", "ftp://x", "event", "run_finished"}, {"name", "typed", "url", "https://192.0.2.1/"}, {"name", " ", "url", "https://192.0.2.1/", "event", "run_finished"}} {
		for _, to := range []string{"/webhooks", path[1]} {
			status, text = bob.post(to, wrong...)
			bob.shows(to, status, 422, text, `role="alert"`)
		}
	}
	if status, text = bob.post("/webhooks", "name", "typed", "url", "http://10.0.0.1/", "event", "usage"); !strings.Contains(text, `value="typed"`) {
		t.Errorf("what was typed is lost: %d", status)
	}
	status, text = bob.post(path[1], "do", "test")
	bob.shows("a test", status, 200, text, "waiting")
	status, text = bob.post(path[1], "name", "talk", "url", "https://192.0.2.1/new", "event", "artifact_created")
	bob.shows("a change", status, 200, text, "https://192.0.2.1/new")
	status, text = bob.post(path[1], "do", "rotate")
	if next := regexp.MustCompile(webhooks.SecretPrefix + `[A-Za-z0-9+/=]+`).FindString(text); status != 200 || next == "" || next == secret {
		t.Errorf("rotated to %q: %d", next, status)
	}
	status, text = bob.post(path[1], "do", "disable")
	bob.shows("disabled", status, 200, text, "new events are not kept for it")
	status, text = bob.post(path[1], "do", "test")
	bob.shows("a test while it is disabled", status, 409, text, `role="alert"`)
	eve := ann.join("Eve")
	for _, to := range []string{path[1], path[1] + "/delete"} {
		if status, text := eve.post(to, "do", "enable"); status != http.StatusNotFound || strings.Contains(text, "talk") {
			t.Errorf("%s of another user: %d", to, status)
		}
	}
	if text := eve.get("/webhooks"); strings.Contains(text, "talk") {
		t.Error("a member sees the webhook of another")
	}
	status, text = bob.post(path[1] + "/delete")
	bob.shows("deleted", status, 200, text, "No webhooks yet.")
}

// TestWebhooksLook: the pages of webhooks are accessible, and fit into narrow windows.
func TestWebhooksLook(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	ann.post("/webhooks", "name", "chat", "url", "https://192.0.2.1/a/rather/long/path/of/a/hook?with=values", "event", "run_finished")
	ctx := access.With(apptest.Context(t), access.Actor{Owner: artel.Local, Role: store.Admin})
	users, err := s.app.Access.Users.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	as := artel.WithOwner(ctx, users[0].ID)
	all, err := s.app.Webhooks.List(as)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	for _, d := range []store.Delivery{
		{Conversation: "conv_1", Event: 7, Type: artel.EventRunFinished, State: store.DeliveryAccepted, Attempts: 1, Last: store.Attempt{At: all[0].CreatedAt, Status: 200, Took: 12e6, Answer: "thanks"}},
		{Conversation: "conv_1", Event: 9, Type: artel.EventArtifactUpdated, State: store.DeliveryWaiting, Attempts: 2, DueAt: all[0].CreatedAt, Last: store.Attempt{At: all[0].CreatedAt, Status: 500, Took: 12e6, Answer: strings.Repeat("an answer ", 90), Error: "answered 500"}},
		{Event: 1, State: store.DeliveryFailed, Attempts: 11, Last: store.Attempt{At: all[0].CreatedAt, Error: "no answer within 15s"}},
	} {
		d.Webhook, d.CreatedAt = all[0].ID, all[0].CreatedAt
		if err := s.store.People().Update(ctx, func(tx store.PeopleTx) error { return tx.Deliveries.Add(d) }); err != nil {
			t.Fatal(err)
		}
	}
	b := openTab(t, 1440, 900)
	b.Forgive("422", "403")
	axe := newChecker(t, b)
	path := "/webhooks/" + all[0].ID
	b.Do(chromedp.Navigate(s.URL+"/login?next="+path), see("#email"), fill("#email", "ann@example.org"), fill("#password", accountPassword), click("form.login button"), see("#log-title"))
	axe.checkPage("webhook")
	b.Do(chromedp.Navigate(s.URL+"/webhooks"), see("#webhooks-title"))
	axe.checkPage("webhooks")
	b.Do(fill("#hook-name", "desk"), fill("#hook-url", "https://192.0.2.1/"), click(`form[action="/webhooks"] button`), see("figure.code code"))
	axe.checkPage("webhook-secret")
	b.Do(click(`button[value="disable"]`), see(`button[value="enable"]`))
	axe.checkPage("webhook-disabled")
	b.Do(chromedp.Navigate(s.URL+"/webhooks"), see("#webhooks-title"), fill("#hook-name", "x"), fill("#hook-url", "http://10.0.0.1/"), click(`form[action="/webhooks"] button`), see(".note.bad"))
	axe.checkPage("webhooks-refused")
}
