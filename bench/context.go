// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tiktoken-go/tokenizer"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/token"
)

const contextAbout = "A branch of messages of 400 characters becomes a request of at most 32,000 tokens, counted by o200k_base. " +
	"Cold is the first build; warm is the next one after one new message. " +
	"The anchor counts the same messages with the same tokenizer, newest first until the window is full, and does nothing else. " +
	"No budget of this release; the aim is 100 ms cold and 5 ms warm for 10,000 messages."

const contextWindow = 32_000

func measureContext(ctx context.Context, l *lab) ([]result, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	var cold, warm []result
	for _, n := range []int{1000, 3000, 10_000} {
		history := messages(n + 1)
		var registry *pipeline.Registry
		countAll := func() error { return countNewest(codec, history) }
		build := func(history []artel.Message) error {
			_, err := registry.Build(ctx, contextOf(history))
			return err
		}
		m, err := interleave(l.rounds(2),
			func() (float64, error) {
				counter := token.NewCounter()
				if _, err := counter.Count(token.O200k, "load the vocabulary"); err != nil {
					return 0, err
				}
				var err error
				if registry, err = pipeline.NewRegistry(counter, pipeline.BuiltIn()...); err != nil {
					return 0, err
				}
				return seconds(func() error { return build(history[:n]) })()
			},
			seconds(func() error { return build(history) }),
			seconds(countAll))
		if err != nil {
			return nil, err
		}
		size := count(n, "messages")
		cold = append(cold, result{work: "cold", size: size, unit: millis(), artel: m[0], anchor: m[2]})
		warm = append(warm, result{work: "after one new message", size: size, unit: millis(), artel: m[1], anchor: m[2]})
	}
	return append(cold, warm...), nil
}

// messages returns a branch.
func messages(n int) []artel.Message {
	text, _ := io.ReadAll(prose(400*int64(n), 1)) // cannot fail
	history := make([]artel.Message, n)
	for i := range history {
		m := &history[i]
		m.ID, m.Role = artel.MessageID(fmt.Sprintf("m%d", i)), artel.RoleUser
		if i > 0 {
			m.Parent = history[i-1].ID
		}
		if i%2 == 1 {
			m.Role = artel.RoleAssistant
		}
		m.Parts = artel.Parts{artel.Text{Text: strings.ToValidUTF8(string(text[400*i:400*(i+1)]), "")}}
	}
	return history
}

func contextOf(history []artel.Message) pipeline.Input {
	c := model.TextOnly()
	c.ContextWindow.Value, c.Tokenizer.Value = contextWindow, token.O200k
	return pipeline.Input{
		Owner: artel.Local, Agent: pipeline.Agent{Name: "assistant", Prompt: "You help."}, History: history, Locale: "en",
		Service: model.Service{ID: "bench", Dialect: model.OpenAI, Model: aModel, Capabilities: c},
	}
}

// countNewest is the anchor.
func countNewest(codec tokenizer.Codec, history []artel.Message) error {
	left := contextWindow
	for i := len(history) - 1; i >= 0 && left > 0; i-- {
		n, err := codec.Count(history[i].Parts[0].(artel.Text).Text)
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}
