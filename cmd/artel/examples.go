// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// mostExamples is how many examples of others a command shows.
const mostExamples = 3

// addExamples gives every command without an example of its own those of the list. A test
// holds each line to the arguments and flags of its command.
func addExamples(root *cobra.Command) {
	lines := map[string][]string{}
	for line := range strings.Lines(exampleLines) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		cmd, _, err := root.Find(words[1:])
		if err != nil {
			continue // the test reports it
		}
		path := cmd.CommandPath()
		lines[path] = append(lines[path], "  "+line)
	}
	eachCommand(root, func(cmd *cobra.Command) {
		own := lines[cmd.CommandPath()]
		for _, c := range cmd.Commands() { // one that only has others shows theirs
			if below := lines[c.CommandPath()]; cmd.Example == "" && len(own) < mostExamples && len(below) > 0 && len(lines[cmd.CommandPath()]) == 0 {
				own = append(own, below[0])
			}
		}
		if cmd.Example == "" {
			cmd.Example = strings.Join(own, "\n")
		}
	})
}

// eachCommand calls f with a command and all below it.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, f)
	}
}

const exampleLines = `artel services
artel services ls
artel services check own
artel services check --url http://gpu.example:8000/v1
artel services rm own
artel mcp rm search
artel mcp ls
artel mcp check search
artel mcp check --url https://search.example/mcp
artel tools servers
artel mcp connect search
artel mcp disconnect search
artel mcp accounts
artel mcp resources search
artel mcp read search file:///notes.md
artel mcp prompts search
artel mcp prompt search summarise topic=ships
artel http-tools
artel http-tools add weather.yaml
artel agents
artel agents list
artel agents show lead_agent
artel agents check
artel agents check agents/writer.md
artel agents new writer
artel agents import writer.md
artel agents rm writer
artel put plan.md sales.csv
artel put -c CONVERSATION plan.md
artel get artifact:CONVERSATION/plan
artel ls
artel ls CONVERSATION
artel cat artifact:CONVERSATION/plan@2
artel rm CONVERSATION
artel backup
artel backup verify /backup/artel
artel books
artel books list
artel books rm world
artel books show world
artel books try world chat.txt
artel books use world lead_agent
artel books drop world lead_agent
artel import character seraphina.png
artel import sillytavern regex.json
artel http-tools ls
artel http-tools rm weather
artel schedules
artel schedules ls
artel schedules log SCHEDULE
artel schedules rm SCHEDULE
artel schedules run SCHEDULE
artel branches list CONVERSATION
artel branches
artel branches show CONVERSATION
artel branches switch CONVERSATION MESSAGE
artel branches edit CONVERSATION MESSAGE "What is in the second picture?"
artel branches retry CONVERSATION MESSAGE --service own
artel branches mute CONVERSATION MESSAGE
artel chat "What is in this repository?"
artel compact CONVERSATION
artel compact list CONVERSATION
artel compact read CONVERSATION SUMMARY
artel compact undo CONVERSATION SUMMARY
artel compact redo CONVERSATION SUMMARY
artel context show CALL
artel context diff CALL
artel context why CALL photo.png
artel demo
artel doctor
artel doctor --services
artel export CONVERSATION
artel import conversation.zip
artel import zip conversation.zip
artel fake openai
artel gateway
artel gateway log
artel gc
artel versions artifact:CONVERSATION/plan
artel diff artifact:CONVERSATION/plan
artel restore artifact:CONVERSATION/plan@1
artel edit notes.md --old draft --new final
artel key create build
artel key
artel key ls
artel key rm KEY
artel usage
artel login https://artel.example
artel logout
artel models
artel models probe own
artel models forget own
artel detect photo.png
artel route photo.png
artel token
artel token create laptop --scope read,write
artel token ls
artel token rm TOKEN
artel users
artel users ls
artel users invite ada@example.org
artel users reset USER
artel users set USER --role member
artel users rm USER
artel users recover ada@example.org
artel replay RUN --service own
artel regex rules.json
artel macros chat.txt
artel settings
artel settings export
artel settings import settings.yaml
artel settings import settings.yaml --dry-run
artel skills
artel skills ls
artel skills rm pdf
artel skills import skills/pdf
artel skills show pdf
artel skills offer pdf 2
artel skills export pdf
artel tokens notes.md
artel tools
artel tools list
artel tools check
artel trust
artel trust artel.yaml
artel serve
artel serve --addr 127.0.0.1:8000 --data data --open=false
artel webhooks
artel webhooks ls
artel webhooks secret HOOK
artel webhooks test HOOK
artel webhooks log HOOK
artel webhooks again HOOK 3
artel webhooks rm HOOK`
