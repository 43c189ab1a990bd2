// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

func schedulesCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedules", Short: "Start runs of agents at set times", Args: usage(cobra.NoArgs),
		Long: `A schedule sends an agent a message at the times of a cron expression (minute, hour,
day, month, weekday), in one conversation or in a new one each time.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(scheduleAddCommand(g), scheduleListCommand(g), scheduleSetCommand(g), scheduleRunCommand(g), scheduleLogCommand(g), scheduleRemoveCommand(g))
	return cmd
}

// scheduleFlags are the flags of what a schedule has.
type scheduleFlags struct{ name, cron, zone, agent, conversation, text string }

func (f *scheduleFlags) declare(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.zone, "zone", "UTC", "time zone of the times, such as Europe/Berlin")
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent that gets the message; default: that of the conversation, or the first one")
	cmd.Flags().StringVar(&f.conversation, "conversation", "", "id of the conversation; default: a new one each time")
}

func scheduleAddCommand(g *globals) *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use: "add NAME CRON TEXT", Short: "Make a schedule", Args: usage(cobra.ExactArgs(3)),
		Example: `  artel schedules add news "30 8 * * 1-5" "Summarise the news of today." --zone Europe/Berlin
  artel schedules add report @weekly "Write the report of the week." --agent lead_agent --conversation conv_01JD`,
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := g.client().MakeSchedule(cmd.Context(), httpapi.NewSchedule{
				Name: args[0], Cron: args[1], Text: args[2], Zone: f.zone, Agent: artel.AgentName(f.agent), Conversation: artel.ConversationID(f.conversation),
			})
			if err != nil {
				return err
			}
			return g.printSchedule(cmd, made)
		},
	}
	f.declare(cmd)
	return cmd
}

// printSchedule prints the id of a schedule, and its next times.
func (g *globals) printSchedule(cmd *cobra.Command, v httpapi.ScheduleView) error {
	return g.print(cmd, v, func(w printer) {
		w.line(v.ID)
		for _, at := range v.Next {
			w.line("  " + inZone(at, v.Zone))
		}
	})
}

// inZone writes a time in a zone.
func inZone(at time.Time, zone string) string {
	if l, err := time.LoadLocation(zone); err == nil {
		at = at.In(l)
	}
	return at.Format("2006-01-02 15:04 MST")
}

func scheduleListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List your schedules", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Schedules(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, s := range all.Items {
					next := "paused"
					if len(s.Next) > 0 {
						next = "next " + inZone(s.Next[0], s.Zone)
					}
					where := string(s.Conversation)
					if where == "" {
						where = "new conversations"
					}
					w.linef("%s\t%s\t%s\t%s\t%s\t%s", s.ID, s.Name, s.Cron, s.Zone, where, next)
				}
			})
		},
	}
}

func scheduleSetCommand(g *globals) *cobra.Command {
	var f scheduleFlags
	var pause, resume bool
	cmd := &cobra.Command{
		Use: "set ID", Short: "Change a schedule, pause it or continue it", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel schedules set scheduleABC --cron "0 9 * * *" --zone Asia/Shanghai
  artel schedules set scheduleABC --pause`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var c httpapi.ScheduleChange
			agent, conversation := artel.AgentName(f.agent), artel.ConversationID(f.conversation)
			any := pause || resume
			for name, set := range map[string]func(){
				"name": func() { c.Name = &f.name }, "cron": func() { c.Cron = &f.cron }, "zone": func() { c.Zone = &f.zone }, "text": func() { c.Text = &f.text },
				"agent": func() { c.Agent = &agent }, "conversation": func() { c.Conversation = &conversation },
			} {
				if cmd.Flags().Changed(name) {
					set()
					any = true
				}
			}
			if !any {
				return usageError{fmt.Errorf("say what to change: --name, --cron, --zone, --text, --agent, --conversation, --pause or --resume")}
			}
			if pause || resume {
				c.Paused = &pause
			}
			s, err := g.client().ChangeSchedule(cmd.Context(), args[0], c)
			if err != nil {
				return err
			}
			return g.printSchedule(cmd, s)
		},
	}
	f.declare(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "new name")
	cmd.Flags().StringVar(&f.cron, "cron", "", "new times")
	cmd.Flags().StringVar(&f.text, "text", "", "new message")
	cmd.Flags().BoolVar(&pause, "pause", false, "start nothing")
	cmd.Flags().BoolVar(&resume, "resume", false, "start runs again, from the next time on")
	cmd.MarkFlagsMutuallyExclusive("pause", "resume")
	return cmd
}

func scheduleRunCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "run ID", Short: "Start a run of a schedule now, and print its id", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.client().RunSchedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return g.print(cmd, s, func(w printer) { w.linef("%s\t%s", s.Conversation, s.Run) })
		},
	}
}

func scheduleLogCommand(g *globals) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "log ID", Short: "Show what a schedule has started, newest first", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 500 {
				return usageError{fmt.Errorf("--limit %d: want 1 to 500", limit)}
			}
			all, err := g.client().Starts(cmd.Context(), args[0], "", limit)
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, s := range all.Items {
					late := ""
					if d := s.CreatedAt.Sub(s.PlannedAt); d >= time.Minute {
						late = "late by " + d.Round(time.Second).String()
					}
					if s.Missed > 0 {
						late += fmt.Sprintf(", %d later times left out", s.Missed)
					}
					w.linef("%s\t%s\t%s\t%s\t%s\t%s", s.PlannedAt.Local().Format(time.DateTime), s.State, s.Conversation, s.Run, late, artel.Shorten(s.Error, 200))
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many")
	return cmd
}

func scheduleRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Delete a schedule with its log; its conversations stay", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().DeleteSchedule(cmd.Context(), args[0])
		},
	}
}
