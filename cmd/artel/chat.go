// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// giveUp is how long a verb waits for a lost server.
const giveUp = 15 * time.Second

func chatCommand(g *globals) *cobra.Command {
	var conversation, service, agent string
	var files []string
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE…]",
		Short: "Talk to an agent; without a message, line by line",
		Long: `Sends a message with the files of --file, and prints the answer as it is written.
Without a message it reads one per line from the standard input. If a tool of the
agent or of a subagent needs permission, it asks, and reads y, n or a (always on
this branch); the end of the input means no. With --json every event is printed as
one line of JSON, and questions are left to other clients.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			lines := bufio.NewScanner(cmd.InOrStdin())
			lines.Buffer(nil, 1<<20)
			t := chatSession{client: g.client(), in: lines, out: cmd.OutOrStdout(), json: g.json, service: service, agent: agent}
			if err := t.begin(cmd.Context(), conversation); err != nil {
				return err
			}
			if len(args) > 0 || len(files) > 0 {
				return t.send(cmd.Context(), strings.Join(args, " "), files)
			}
			return t.loop(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&conversation, "conversation", "c", "", "continue this conversation")
	flags.StringArrayVarP(&files, "file", "f", nil, "upload and attach a file (repeatable)")
	flags.StringVar(&service, "service", "", "service that answers")
	flags.StringVar(&agent, "agent", "", "agent that answers")
	return cmd
}

// A chatSession is a conversation in the terminal.
type chatSession struct {
	client         *httpapi.Client
	in             *bufio.Scanner
	out            io.Writer
	json           bool
	service, agent string

	id   artel.ConversationID
	last artel.Seq
	said string // printed part of the answer in progress
}

func (t *chatSession) begin(ctx context.Context, conversation string) error {
	if conversation != "" {
		id, err := artel.ParseConversationID(conversation)
		t.id = id
		if err != nil {
			return err
		}
		return t.skip(ctx)
	}
	c, err := t.client.CreateConversation(ctx, httpapi.NewConversation{})
	t.id = c.ID
	if err == nil && !t.json {
		fmt.Fprintf(t.out, "conversation %s\n", c.ID)
	}
	return err
}

// skip skips the events that are already in the log.
func (t *chatSession) skip(ctx context.Context) error {
	for {
		page, err := t.client.Log(ctx, t.id, t.last)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		t.last = page.Items[len(page.Items)-1].Seq
	}
}

func (t *chatSession) loop(ctx context.Context) error {
	lines := t.in
	for t.prompt(); lines.Scan(); t.prompt() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := t.send(ctx, lines.Text(), nil); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (t *chatSession) prompt() {
	if !t.json {
		fmt.Fprint(t.out, "> ")
	}
}

// send uploads the files, sends the message and prints events until the run
// ends.
func (t *chatSession) send(ctx context.Context, text string, files []string) error {
	var attachments []string
	for _, path := range files {
		a, err := upload(ctx, t.client, t.id, path, "", "")
		if err != nil {
			return err
		}
		attachments = append(attachments, string(a.ID))
	}
	sent, err := t.client.Send(ctx, t.id, httpapi.NewMessage{Text: text, Attachments: attachments, Service: t.service, Agent: t.agent})
	if err != nil {
		return err
	}
	return t.follow(ctx, sent)
}

// follow prints the events of a run until it ends.
func (t *chatSession) follow(ctx context.Context, sent httpapi.Sent) error {
	for e, err := range t.client.Events(ctx, t.id, t.last, giveUp) {
		if err != nil {
			return err
		}
		if e.Seq > 0 {
			t.last = e.Seq
		}
		if err := t.print(e); err != nil {
			return err
		}
		if e.Type == artel.EventPermissionRequested && e.Run == sent.RunID && !t.json {
			if err := t.ask(ctx, e); err != nil {
				return err
			}
		}
		if e.Type == artel.EventElicitationRequested && e.Run == sent.RunID && !t.json {
			if err := t.elicit(ctx, e); err != nil {
				return err
			}
		}
		if e.Type == artel.EventRunFinished && e.Run == sent.RunID {
			var p artel.RunFinished
			if err := json.Unmarshal(e.Data, &p); err != nil {
				return err
			}
			if p.Error != nil {
				return artel.Errorf(p.Error.Kind, "chat", "run "+string(p.State), "%s", p.Error.Message)
			}
			return nil
		}
	}
	// The user interrupted: cancel the run, which would otherwise continue
	// without a reader.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := t.client.Cancel(stop, sent.RunID)
	return errors.Join(ctx.Err(), err)
}

// ask asks the user for permission to call a tool. If another client has
// already decided, that decision stands.
func (t *chatSession) ask(ctx context.Context, e artel.Event) error {
	var p artel.PermissionRequested
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return err
	}
	who := ""
	if e.Within != "" { // otherwise it is the agent of the conversation
		who = string(e.Agent) + ": "
	}
	shown := artel.Shorten(string(p.Arguments), 200)
	if p.Effect != "" { // all of an address: its end can carry what the agent has read
		shown += " (" + p.Effect + ": " + p.Object + ")"
	}
	fmt.Fprintf(t.out, "? %s%s %s: may it? (y, n, a for always) ", who, p.Name, shown)
	d := artel.Deny
	if t.in.Scan() {
		switch strings.ToLower(strings.TrimSpace(t.in.Text())) {
		case "y", "yes":
			d = artel.Allow
		case "a", "always":
			d = artel.Always
		}
	}
	_, err := t.client.Decide(ctx, e.Run, p.Permission, httpapi.NewDecision{Decision: d})
	if problem, ok := errors.AsType[*httpapi.Problem](err); ok && problem.Status == http.StatusConflict {
		return nil
	}
	return err
}

func (t *chatSession) print(e artel.Event) error {
	if t.json {
		return json.NewEncoder(t.out).Encode(e)
	}
	if e.Within != "" { // subagents may run in parallel: only the results of their calls are printed
		switch e.Type {
		case artel.EventSubagentStarted:
			fmt.Fprintf(t.out, "  %s works\n", e.Agent)
		case artel.EventSubagentCompleted:
			fmt.Fprintf(t.out, "  %s rests\n", e.Agent)
		}
		return nil
	}
	switch e.Type {
	case artel.EventAgentStarted:
		var p artel.AgentStarted
		if json.Unmarshal(e.Data, &p) == nil && p.Demo {
			fmt.Fprintln(t.out, "[demo: the answer is scripted, no model is asked]")
		}
	case artel.EventMessageDelta:
		var p artel.MessageDelta
		if json.Unmarshal(e.Data, &p) == nil {
			t.tell(p)
		}
	case artel.EventMessageCompleted:
		var p artel.MessageCompleted
		if json.Unmarshal(e.Data, &p) == nil {
			t.complete(artel.TextOf(p.Message.Parts))
		}
	case artel.EventServiceChosen:
		var p artel.ServiceChosen
		if json.Unmarshal(e.Data, &p) == nil {
			fmt.Fprintf(t.out, "· %s answers, chosen by %s of %d\n", p.Service, p.By, len(p.Candidates))
		}
	case artel.EventRetrying:
		var p artel.Retrying
		if json.Unmarshal(e.Data, &p) == nil {
			fmt.Fprintf(t.out, "· %s is asked again in %.1f s (attempt %d of %d): %s\n", p.Service, p.Wait, p.Attempt, p.Of, p.Reason)
		}
	case artel.EventCompactionCompleted:
		var p artel.CompactionCompleted
		if json.Unmarshal(e.Data, &p) == nil && p.OK {
			fmt.Fprintf(t.out, "· the conversation was summed up: %d messages\n", p.Replaced)
		}
	case artel.EventToolStarted:
		var p artel.ToolStarted
		if json.Unmarshal(e.Data, &p) == nil {
			fmt.Fprintf(t.out, "· %s %s\n", p.Name, artel.Shorten(subject(p.Arguments), 80))
		}
	case artel.EventToolCompleted:
		var p artel.ToolCompleted
		if json.Unmarshal(e.Data, &p) == nil && !p.OK {
			fmt.Fprintf(t.out, "  %s was refused\n", p.Name)
		}
	}
	return nil
}

func (t *chatSession) tell(d artel.MessageDelta) {
	if d.Reset && t.said != "" {
		fmt.Fprintln(t.out)
		t.said = ""
	}
	fmt.Fprint(t.out, d.Text)
	t.said += d.Text
}

// complete prints the missing rest of an answer. Deltas may be lost; the
// complete message makes up for them.
func (t *chatSession) complete(whole string) {
	rest, ok := strings.CutPrefix(whole, t.said)
	switch {
	case ok:
	case strings.TrimSpace(whole) == strings.TrimSpace(t.said):
		rest = ""
	default: // a delta in the middle was lost
		rest = "\n" + whole
	}
	fmt.Fprintln(t.out, rest)
	t.said = ""
}

// subject extracts the object of a tool call from its arguments.
func subject(args json.RawMessage) string {
	var a struct{ ID, Ref, Agent string }
	_ = json.Unmarshal(args, &a)
	if a.Agent != "" {
		return a.Agent
	}
	if a.ID != "" {
		return a.ID
	}
	return a.Ref
}

// upload sends one file; declared and name may be empty.
func upload(ctx context.Context, c *httpapi.Client, id artel.ConversationID, path, name, declared string) (artel.Artifact, error) {
	f, err := openUpload(path)
	if err != nil {
		return artel.Artifact{}, err
	}
	defer f.Close()
	if name == "" {
		name = filepath.Base(path)
	}
	return c.Upload(ctx, id, name, declared, f.File, f.size)
}

// An uploadFile is an open file with its size in bytes.
type uploadFile struct {
	*os.File
	size int64
}

func openUpload(path string) (uploadFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return uploadFile{}, artel.Errorf(artel.Invalid, "upload", path, "cannot be read: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	if err != nil {
		_ = f.Close()
		return uploadFile{}, artel.Errorf(artel.Invalid, "upload", path, "cannot be read: %w", err)
	}
	return uploadFile{f, info.Size()}, nil
}
