// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

const (
	// titledFrom is how many code points of the message and of its answer a model
	// receives for a title.
	titledFrom = 2000
	// longestTitle is the limit of a title by a model, in code points.
	longestTitle = 80
)

// makeTitle asks a model for a title after the first answer, if the title is
// still made of the message's first words. The call is a run of its own, so that
// its usage counts.
func (x *execution) makeTitle(ctx context.Context) {
	if x.provisionalTitle == "" || x.config.Background.Titles == "" || x.run.State != artel.RunDone || x.run.Purpose != artel.RunAnswers {
		return
	}
	s := x.service
	if x.config.Background.Titles != OwnService {
		named, err := x.config.chooser().Callable(x.config.Background.Titles)
		if err != nil {
			x.config.Logger.WarnContext(ctx, "a conversation got no title", "conversation", x.run.Conversation, "err", err)
			return
		}
		s = named.OnWire()
	} else if s.Demo() {
		return // its answers are scripted
	}
	began := x.config.Now()
	var asked, answered artel.Message
	err := x.config.Store.View(ctx, x.owner, func(tx store.Tx) (err error) {
		if asked, err = tx.Messages.Get(x.run.Message); err == nil {
			answered, err = tx.Messages.Get(x.run.Reply)
		}
		return err
	})
	var title string
	var usage artel.Usage
	if err == nil {
		text := artel.Beginning(artel.TextOf(asked.Parts), titledFrom) + "\n\n---\n\n" + artel.Beginning(artel.TextOf(answered.Parts), titledFrom)
		title, usage, err = x.config.ask(ctx, s, x.config.Locale.Say(phrase.TitleAsk, nil), text)
	}
	if err == nil || usage.Calls > 0 {
		titles := artel.Run{
			ID: artel.NewRunID(began), Conversation: x.run.Conversation, Message: x.run.Message, Purpose: artel.RunTitles, State: artel.RunDone,
			Service: s.ID, Agent: x.run.Agent, Usage: usage, StartedAt: began,
		}
		if err != nil { // what was received of the answer is paid for
			title, titles.State = "", artel.RunFailed
		}
		err = cmp.Or(err, x.storeTitle(context.WithoutCancel(ctx), s, titleIn(title), usage, titles))
	}
	if err != nil {
		x.config.Logger.InfoContext(ctx, "a model gave a conversation no title; the first words stay", "conversation", x.run.Conversation, "service", s.ID, "err", err)
	}
}

func (x *execution) storeTitle(ctx context.Context, s model.Service, title string, usage artel.Usage, run artel.Run) error {
	now := x.config.Now()
	run.FinishedAt = &now
	err := x.retry(ctx, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(run.Conversation)
		if err != nil {
			return err
		}
		if err := tx.Runs.Create(run, store.Lease{Owner: x.owner, Run: run.ID, Conversation: c.ID, Until: x.runs.leaseNow()}); err != nil {
			return err
		}
		told := artel.ConversationTitled{Title: c.Title, Service: s.ID, Usage: usage}
		if title != "" && c.Title == x.provisionalTitle {
			c.Title, told.Title = title, title
			if err := tx.Conversations.Update(c); err != nil {
				return err
			}
		}
		return x.config.Events.Append(tx, c.ID, artel.Event{}, told)
	})
	if err == nil {
		x.config.notifier().Notify(run.Conversation)
	}
	return err
}

// marks are characters that models put around titles.
const marks = " #*_`\"'“”‘’«»《》「」『』.。"

// titleIn returns the title in an answer: its first line without marks; "": there
// is none.
func titleIn(said string) string {
	said = scrub.Line(said)
	for line := range strings.Lines(said) {
		line = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || breaksLine(r) {
				return ' '
			}
			return r
		}, line)), " ")
		line = strings.Trim(line, marks)
		for _, label := range []string{"title:", "标题：", "标题:"} {
			if len(line) >= len(label) && strings.EqualFold(line[:len(label)], label) {
				line = line[len(label):]
			}
		}
		line = strings.Trim(line, marks)
		if line == "" {
			continue
		}
		if utf8.RuneCountInString(line) > longestTitle {
			line = strings.TrimSpace(artel.Beginning(line, longestTitle)) + "…"
		}
		return line
	}
	return ""
}

func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// titleOf makes a title from the first words of a message.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(line)
	title := ""
	for _, w := range words {
		if title != "" && utf8.RuneCountInString(title)+utf8.RuneCountInString(w) >= 60 {
			return title + "…"
		}
		title = strings.TrimSpace(title + " " + w)
	}
	if runes := []rune(title); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return title
}
