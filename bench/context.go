// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tiktoken-go/tokenizer"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/pipeline/token"
)

const contextAbout = "A branch of messages of 400 characters becomes a request of at most 32,000 tokens, counted by o200k_base, with the ten rules of finding and replacing. " +
	"Cold is the first build; warm is the next one after one new message. By processor time. " +
	"The anchor counts the same messages with the usual tokenizer, newest first until the window is full, and does nothing else. " +
	"The budgets are 100 ms cold and 5 ms warm for 10,000 messages. " +
	"The last rows are runs of one model call whose model answers at once."

const contextWindow = 32_000

func measureContext(ctx context.Context, l *lab) []result {
	codec := must(tokenizer.Get(tokenizer.O200kBase))
	chinese := chineseWords(l.root)
	rules, _ := someRules()
	config := must(json.Marshal(rule.Config{Rules: rules}))
	var out []result
	for _, language := range []string{"English", "Chinese"} {
		var cold, warm []result
		for _, n := range []int{100, 1000, 10_000} {
			history := messages(n + 1)
			if language == "Chinese" {
				inChinese(history, []rune(chinese))
			}
			m := buildContexts(ctx, l, codec, history, config)
			size := count(n, "messages")
			r := result{work: language + ", cold", size: size, unit: millis(), artel: m[0], anchor: m[2]}
			w := result{work: language + ", after one new message", size: size, unit: millis(), artel: m[1], anchor: m[2]}
			if n == 10_000 {
				r.target.limit, w.target.limit = 0.100, 0.005
			}
			cold, warm = append(cold, r), append(warm, w)
		}
		out = append(append(out, cold...), warm...)
	}
	return append(out, measureRuns(ctx, l)...)
}

// buildContexts measures a build of all messages but the last, the next one
// with a message more, and the anchor.
func buildContexts(ctx context.Context, l *lab, codec tokenizer.Codec, history []artel.Message, rules json.RawMessage) []float64 {
	var registry *pipeline.Registry
	before := history[:len(history)-1]
	build := func(history []artel.Message) error {
		in := contextOf(history)
		in.Settings.Deployment = []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: rules}}
		_, err := registry.Build(ctx, in)
		return err
	}
	round := 0
	return interleave(l.rounds(5),
		func() float64 {
			counter := token.NewCounter()
			must(counter.Count(token.O200k, "load the vocabulary"))
			registry = must(pipeline.NewRegistry(counter, pipeline.BuiltIn()...))
			return busySeconds(func() error { return build(before) })
		},
		func() float64 {
			round++
			newest := history[len(history)-1]
			text := newest.Parts[0].(artel.Text).Text
			newest.Parts = artel.Parts{artel.Text{Text: fmt.Sprint(round, " ", text)}}
			more := append(slices.Clip(before), newest)
			return busySeconds(func() error { return build(more) })
		},
		func() float64 { return busySeconds(func() error { return countNewest(codec, history) }) })
}

// inChinese replaces the texts of messages by Chinese ones of the same length.
func inChinese(history []artel.Message, words []rune) {
	for i := range history {
		from := i * 397 % (len(words) - 400)
		history[i].Parts = artel.Parts{artel.Text{Text: fmt.Sprint(i, "：", string(words[from:from+390]))}}
	}
}

// measureRuns runs the product's own benchmark.
func measureRuns(ctx context.Context, l *lab) []result {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkRuns$", "-benchtime", fmt.Sprint(50*l.times, "x"), "./app")
	cmd.Dir = l.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		fail("runs: %w\n%s", err, out)
	}
	var rows []result
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "BenchmarkRuns/") {
			continue
		}
		r := result{work: "a run", unit: millis()}
		size, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "BenchmarkRuns/"), "-")
		n, err := strconv.Atoi(size)
		if err != nil {
			fail("%q: %w", line, err)
		}
		r.size = count(n, "messages")
		at := slices.Index(fields, "cpu-ms/op")
		if at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(fields[at-1], 64)
		if err != nil {
			fail("%q: %w", line, err)
		}
		r.artel = v / 1000
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		fail("runs: no figures in %s", out)
	}
	return rows
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
