// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

// startsOver waits until the starts of a schedule are over, and returns them.
func startsOver(ctx context.Context, t *testing.T, client *httpapi.Client, id string, n int) (all []httpapi.StartView) {
	t.Helper()
	waitingFor(t, "the starts", func() bool {
		list, err := client.Starts(ctx, id, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		all = list.Items
		return len(all) >= n && !slices.ContainsFunc(all, func(s httpapi.StartView) bool { return s.State == store.StartWaiting })
	})
	return all
}

// TestScheduleAfterKill: starts that a killed server has stored are made by the next one, each as
// one run with one message.
func TestScheduleAfterKill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"s.txtar": "-- turn 1 --\nDone.\n"})
	begin := func() (*process, *httpapi.Client) {
		p := serving(t, dir, bareEnvironment(dir), "--scenario", filepath.Join(dir, "s.txtar"))
		return p, httpapi.NewClient(p.url, nil)
	}
	p, client := begin()
	var made []httpapi.ScheduleView
	for range 20 {
		s, err := client.MakeSchedule(ctx, httpapi.NewSchedule{Name: "News", Cron: "0 0 1 1 *", Zone: "Europe/Berlin", Text: "Go."})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, s)
	}
	for _, s := range made {
		if _, err := client.RunSchedule(ctx, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	p.kill() // while some are started
	_, client = begin()
	for _, s := range made {
		starts := startsOver(ctx, t, client, s.ID, 1)
		if len(starts) != 1 || starts[0].State != store.StartDone || !starts[0].Manual {
			t.Fatalf("got %+v", starts)
		}
		st := starts[0]
		if state := waitForEnd(ctx, t, client, st.Conversation, st.Run); state != artel.RunDone {
			t.Errorf("the run is %s", state)
		}
		messages, err := client.Messages(ctx, st.Conversation, "", 10)
		if err != nil || len(messages.Items) != 2 {
			t.Errorf("%d messages, %v", len(messages.Items), err)
		}
		c, err := client.Conversation(ctx, st.Conversation)
		if err != nil || c.Title != "News" {
			t.Errorf("got %+v, %v", c, err)
		}
	}
}

// TestScheduleCommands: the verbs, from the first schedule to its end.
func TestScheduleCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir))
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "artel", append(append([]string{"schedules"}, args...), "--server", p.url)...)
		cmd.Dir, cmd.Env = dir, bareEnvironment(dir)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%q: exit code %d, want %d (%v)\n%s", args, code, want, err, out)
		}
		return string(out)
	}
	lines := strings.Split(strings.TrimSpace(run(0, "add", "news", "30 8 * * *", "Summarise the news.", "--zone", "Asia/Shanghai")), "\n")
	id := lines[0]
	if len(lines) != 4 || !strings.HasSuffix(lines[1], "08:30 CST") {
		t.Fatalf("got %q", lines)
	}
	c, err := httpapi.NewClient(p.url, nil).CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	run(0, "set", id, "--conversation", string(c.ID), "--pause", "--cron", "@hourly")
	if out := run(0, "ls"); !strings.Contains(out, "@hourly") || !strings.Contains(out, "paused") || !strings.Contains(out, string(c.ID)) {
		t.Errorf("got %q", out)
	}
	if got := strings.Fields(run(0, "run", id)); len(got) != 2 || got[0] != string(c.ID) {
		t.Errorf("got %q", got)
	}
	waitingFor(t, "the run", func() bool { return strings.Contains(run(0, "log", id), "started") })
	run(0, "set", id, "--resume")
	for _, wrong := range [][]string{{"set", id}, {"log", id, "--limit", "0"}} {
		run(2, wrong...)
	}
	for _, wrong := range [][]string{{"add", "x", "* * *", "x"}, {"add", "x", "@daily", "x", "--agent", "nobody"}, {"add", "x", "@daily", "x", "--conversation", "conv_x"}, {"run", "none"}} {
		run(1, wrong...)
	}
	run(0, "rm", id)
	if out := run(0, "ls"); out != "" {
		t.Errorf("got %q", out)
	}
}
