// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/store"
)

// TestScheduleForms: users make, change, pause, run and delete schedules without script, and
// see nothing of those of others.
func TestScheduleForms(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	bob := ann.join("Bob")
	status, text := bob.post("/schedules", "name", "news", "cron", "30 8 * * *", "zone", "Asia/Shanghai", "text", "What is new?")
	bob.shows("a schedule", status, 200, text, "08:30 CST")
	path := regexp.MustCompile(`action="(/schedules/schedule[A-Z2-7]+)"`).FindStringSubmatch(text)
	if path == nil || !strings.Contains(text, "Nothing was started yet.") {
		t.Fatalf("no address, or no log: %s", text)
	}
	for _, wrong := range [][]string{{"name", "typed", "cron", "61 * * * *", "zone", "UTC", "text", "x"}, {"name", "typed", "cron", "@daily", "zone", "Mars", "text", "x"}, {"name", "typed", "cron", "@daily", "zone", "UTC", "text", ""}, {"name", "typed", "cron", "@daily", "zone", "UTC", "text", "x", "agent", "nobody"}} {
		for _, to := range []string{"/schedules", path[1]} {
			status, text = bob.post(to, wrong...)
			bob.shows(to, status, 422, text, `role="alert"`)
			bob.shows("what was typed", status, 422, text, `value="typed"`)
		}
	}
	status, text = bob.post(path[1], "name", "sports", "cron", "@weekly", "zone", "UTC", "text", "Who won?")
	bob.shows("a change", status, 200, text, "@weekly")
	status, text = bob.post(path[1], "do", "run")
	bob.shows("a run by hand", status, 200, text, "by hand")
	status, text = bob.post(path[1], "do", "pause")
	bob.shows("paused", status, 200, text, "Paused")
	status, text = bob.post(path[1], "do", "resume")
	bob.shows("continued", status, 200, text, "00:00 UTC")
	eve := ann.join("Eve")
	for _, to := range []string{path[1], path[1] + "/delete"} {
		if status, text := eve.post(to, "do", "run"); status != http.StatusNotFound || strings.Contains(text, "sports") {
			t.Errorf("%s of another user: %d", to, status)
		}
	}
	if text := eve.get("/schedules"); strings.Contains(text, "sports") {
		t.Error("a member sees the schedule of another")
	}
	status, text = bob.post(path[1] + "/delete")
	bob.shows("deleted", status, 200, text, "No schedules yet.")
}

// TestSchedulesLook: the pages of schedules are accessible, and fit into narrow windows.
func TestSchedulesLook(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	ann.post("/schedules", "name", "news", "cron", "30 8 * * 1-5", "zone", "Europe/Berlin", "text", strings.Repeat("What is new? ", 20))
	ctx := access.With(apptest.Context(t), access.Actor{Owner: artel.Local, Role: store.Admin})
	users, err := s.app.Access.Users.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.app.Schedules.List(artel.WithOwner(ctx, users[0].ID))
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	for _, st := range []store.Start{
		{State: store.StartDone, Conversation: "conv_1", Run: "run_1"},
		{State: store.StartSkipped, Error: "the run that this schedule started before has not ended"},
		{State: store.StartFailed, Missed: 3, Error: "a long error of a run that could not be started for a reason"},
		{State: store.StartWaiting, Manual: true},
	} {
		st.Schedule, st.PlannedAt, st.CreatedAt = all[0].ID, all[0].CreatedAt.Add(-time.Hour), all[0].CreatedAt
		if err := s.store.People().Update(ctx, func(tx store.PeopleTx) error { return tx.Starts.Add(st) }); err != nil {
			t.Fatal(err)
		}
	}
	b := openTab(t, 1440, 900)
	b.Forgive("422")
	axe := newChecker(t, b)
	path := "/schedules/" + all[0].ID
	b.Do(chromedp.Navigate(s.URL+"/login?next="+path), see("#email"), fill("#email", "ann@example.org"), fill("#password", accountPassword), click("form.login button"), see("#log-title"))
	axe.checkPage("schedule")
	b.Do(click(".door:first-child > summary"), see(".door[open] > div > .entry"))
	axe.checkPage("schedule-change")
	b.Do(chromedp.Navigate(s.URL+"/schedules"), see("#schedules-title"))
	axe.checkPage("schedules")
	b.Do(fill("#schedule-name", "x"), fill("#schedule-cron", "never"), fill("#schedule-text", "x"), click(`form[action="/schedules"] button`), see(".note.bad"))
	axe.checkPage("schedules-refused")
}
