// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
)

const (
	maxInventory = 50 // artifacts in the inventory
	planTail     = 4  // a shortened plan ends with the last quarter of what is shown
)

// A reminder begins and ends with these.
const (
	ReminderStart = "<system-reminder>\n"
	ReminderEnd   = "\n</system-reminder>"
)

// reminder returns the time, the plan and the inventory; "" if all are empty.
func (d *Draft) reminder(ctx context.Context, conf injection) (string, error) {
	switch {
	case d.Placement == PlaceNone:
		return "", nil
	case d.Reminder != nil:
		return *d.Reminder, nil
	}
	var sections []string
	if !d.Now.IsZero() {
		sections = append(sections, d.Locale.Say(phrase.ReminderTime, map[string]any{
			"Time": d.Now.Format(time.RFC3339) + " (" + d.Now.Weekday().String() + ")",
		}))
	}
	if d.Sources != nil {
		o, err := d.Sources.Overview(ctx, d.Owner, d.Conversation, d.At, conf.Preview)
		if err != nil {
			return "", storeError("read the artifacts", err)
		}
		sections = append(sections, d.plan(o, conf.PlanLimit), d.inventory(o.Others, conf.Preview))
	}
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	if len(sections) == 0 {
		return "", nil
	}
	return ReminderStart + strings.Join(sections, "\n\n") + ReminderEnd, nil
}

func (d *Draft) plan(o artifact.Overview, limit int) string {
	if o.Plan.ID == "" {
		if !d.hasTool("create_artifact") {
			return ""
		}
		return d.Locale.Say(phrase.ReminderNoPlan, nil)
	}
	done, total := artel.PlanProgress(o.PlanText)
	head := d.Locale.Say(phrase.ReminderPlan, map[string]any{"Version": o.Plan.Version, "Done": done, "Total": total})
	return fmt.Sprintf("%s\n<team_task_plan version=\"%d\">\n%s\n</team_task_plan>", head, o.Plan.Version, d.middleCut(o.PlanText, limit))
}

// middleCut removes the middle of a text that is too long.
func (d *Draft) middleCut(text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if limit == 0 || n <= limit {
		return text
	}
	r := []rune(text)
	tail := limit / planTail
	hint := d.Locale.Say(phrase.ReminderCut, map[string]any{"Count": n - limit, "ID": string(artel.TaskPlan)})
	return string(r[:limit-tail]) + "\n" + hint + "\n" + string(r[n-tail:])
}

func (d *Draft) inventory(items []artel.Artifact, preview int) string {
	if len(items) == 0 {
		if !d.hasTool("list_artifacts") {
			return ""
		}
		return d.Locale.Say(phrase.ReminderNoArtifacts, nil)
	}
	items = slices.SortedFunc(slices.Values(items), func(a, b artel.Artifact) int { // the most recently used first
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	var b strings.Builder
	b.WriteString(d.Locale.Say(phrase.ReminderInventory, map[string]any{"Count": len(items)}))
	b.WriteString("\n<artifacts_inventory>\n")
	for _, a := range items[:min(len(items), maxInventory)] {
		entry(&b, a, preview)
	}
	if more := len(items) - maxInventory; more > 0 {
		b.WriteString(d.Locale.Say(phrase.ReminderMore, map[string]any{"Count": more}) + "\n")
	}
	b.WriteString("</artifacts_inventory>")
	return b.String()
}

// entry writes one artifact: its facts, and the beginning of a text.
func entry(b *strings.Builder, a artel.Artifact, preview int) {
	fmt.Fprintf(b, `<artifact_slice id="%s" version="%d" type="%s" source="%s" size="%s"`,
		attribute(string(a.ID)), a.Version, attribute(a.MediaType), a.Source, phrase.Size(a.Size))
	if a.Binary {
		fmt.Fprintf(b, ` kind="%s"`, a.Kind)
	} else if preview > 0 {
		by := "none"
		if int64(len(a.Preview)) < a.Size && utf8.RuneCountInString(a.Preview) >= preview {
			by = "preview"
		}
		fmt.Fprintf(b, ` truncated_by="%s"`, by)
	}
	fmt.Fprintf(b, ">\n<title>%s</title>\n", attribute(oneLine(a.Title)))
	if a.Preview != "" {
		b.WriteString(a.Preview + "\n")
	}
	b.WriteString("</artifact_slice>\n")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// attribute escapes s for an attribute or a title.
func attribute(s string) string { return escaper.Replace(s) }

// hasTool reports whether the agent may call the tool.
func (d *Draft) hasTool(tool string) bool {
	for _, t := range d.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}
