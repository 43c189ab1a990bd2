// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// talk is a conversation of n messages of 400 characters.
func talk(n int, words string) []artel.Message {
	history := make([]artel.Message, n)
	for i := range history {
		role := "user"
		if i%2 == 0 {
			role = "assistant"
		}
		text := []rune(fmt.Sprintf("%d %s", i, words))
		history[i] = say(fmt.Sprintf("m%05d", i), role, string(text[:min(400, len(text))]))
		if i > 0 {
			history[i].Parent = history[i-1].ID
		}
	}
	return history
}

// tenRules are of the kinds that people write; few of them match.
func tenRules() pipeline.Setting {
	var rules []map[string]any
	for i, find := range []string{
		`\*\*([^*]+)\*\*`, `/<think>[\s\S]*?<\/think>/g`, `(?<=OOC: ).*`, `/\bcolour\b/gi`, `/^\s*#+ /gm`,
		`\[(\w+)\]\(([^)]+)\)`, `/(foo|bar)baz/g`, `/\{\{.*?\}\}/g`, `/"([^"]{200,})"/g`, `/—/g`,
	} {
		rules = append(rules, map[string]any{"id": fmt.Sprintf("rule%d", i), "find": find, "replace": "$1"})
	}
	config, _ := json.Marshal(map[string]any{"rules": rules})
	return pipeline.Setting{ID: pipeline.RegexProcessor, Config: config}
}

// cpu is how long this process has worked so far: on a machine that others use
// too it says more than the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A build with ten rules and a budget of 32,000 tokens: the first one of a
// process that has its vocabulary ("cold"), and one after one more message, of
// which all fit in the end ("all fit").
func BenchmarkBuild(b *testing.B) {
	english := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 12)
	chinese := strings.Repeat("敏捷的棕色狐狸跳过了那只懒狗。", 30)
	for _, language := range []struct{ name, words string }{{"english", english}, {"chinese", chinese}} {
		for _, n := range []int{100, 1000, 10_000} {
			history := talk(n+1, language.words)
			s := service(42_667) // a quarter is for the reply
			s.Capabilities.Tokenizer = model.Fact[string]{Value: token.O200k, Source: model.FromOperator}
			in := input(s, history[:n]...)
			in.Agent.Prompt, in.Now = "You lead.", now
			in.Settings.Agent = []pipeline.Setting{tenRules()}
			run := func(r *pipeline.Registry, in pipeline.Input) {
				if _, err := r.Build(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			run(builtIn(b), input(s, history[0])) // the vocabulary is read once in a process
			measure := func(name string, prepare func() (*pipeline.Registry, pipeline.Input)) {
				b.Run(fmt.Sprintf("%s/%d/%s", language.name, n, name), func(b *testing.B) {
					var took time.Duration
					for b.Loop() {
						b.StopTimer()
						r, in := prepare()
						before := cpu()
						b.StartTimer()
						run(r, in)
						took += cpu() - before
					}
					b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
			measure("cold", func() (*pipeline.Registry, pipeline.Input) { return builtIn(b), in })
			warm := builtIn(b)
			run(warm, in)
			more := in
			measure("one more", func() (*pipeline.Registry, pipeline.Input) {
				extra := history[n]
				extra.ID = artel.MessageID(fmt.Sprintf("x%d", time.Now().UnixNano()))
				extra.Parts = artel.Parts{artel.Text{Text: string(extra.ID) + history[n].Parts[0].(artel.Text).Text}}
				more.History = append(in.History[:n:n], extra)
				return warm, more
			})
		}
	}
}

// A build within a run: all messages fit, those of the build before are the
// same, and there are two more.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := service(200_000 + 400*n)
			s.Capabilities.Tokenizer = model.Fact[string]{Value: token.O200k, Source: model.FromOperator}
			in := input(s, talk(n, strings.Repeat("The quick brown fox jumps over the lazy dog. ", 12))...)
			in.Agent.Prompt, in.Now = "You lead.", now
			r := builtIn(b)
			var took time.Duration
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				in.History = in.History[:n:n]
				for k := range 2 {
					m := in.History[k]
					m.ID, m.Parent = artel.MessageID(fmt.Sprintf("x%d", k)), in.History[len(in.History)-1].ID
					m.Parts = artel.Parts{artel.Text{Text: fmt.Sprint(i, k, " said in this turn")}}
					in.History = append(in.History, m)
				}
				before := cpu()
				b.StartTimer()
				if _, err := r.Build(b.Context(), in); err != nil {
					b.Fatal(err)
				}
				took += cpu() - before
			}
			b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
