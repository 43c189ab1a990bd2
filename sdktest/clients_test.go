// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// What every client asks; js/words.mjs has the same for the others.
const (
	tell     = "do: tell"
	callOne  = "do: call"
	callTwo  = "do: calls"
	askJSON  = "do: json"
	askData  = "do: data"
	reason   = "do: reason"
	write    = "do: write"
	flaky    = "do: flaky "
	toolName = "look_up"
	toolText = "Looks a word up."
)

func schemaOf(property string) map[string]any {
	return map[string]any{
		"type": "object", "properties": map[string]any{property: map[string]any{"type": "string"}},
		"required": []string{property}, "additionalProperties": false,
	}
}

// person is a schema with what the APIs' own strict schemas do not take: an
// optional property and a limit.
func person() map[string]any {
	return map[string]any{
		"type": "object", "required": []string{"name", "age"}, "additionalProperties": false,
		"properties": map[string]any{
			"name": map[string]any{"type": "string"}, "age": map[string]any{"type": "integer", "minimum": 0}, "nick": map[string]any{"type": "string"},
		},
	}
}

// told is the outcome of an answer that describes a person.
func told(text string) (outcome, error) {
	var p struct {
		Name string
		Age  int
	}
	err := json.Unmarshal([]byte(text), &p)
	return outcome{Text: fmt.Sprint(p.Name, " ", p.Age)}, err
}

// named is the name of a tool with n characters.
func named(n int) string { return toolName + strings.Repeat("_", n-len(toolName)) }

// pieces is the outcome of a call whose arguments arrived in parts.
func pieces(parts []string) (outcome, error) {
	var a struct{ Q string }
	err := json.Unmarshal([]byte(strings.Join(parts, "")), &a)
	return outcome{Text: a.Q, Chunks: len(parts)}, err
}

func meaning(arguments []byte) string {
	var a struct{ Q string }
	if err := json.Unmarshal(arguments, &a); err != nil {
		return err.Error()
	}
	return "the meaning of " + a.Q + " is 42"
}

// A client is an SDK that is pointed at a service: what it does, by case.
type client map[string]func(ctx context.Context, mark string) (outcome, error)

// A maker points an SDK at a service. retries is how often it asks again; less than
// 0: as by default.
type maker func(w *world, service string, files map[string]file, retries int) client

var makers = map[string]maker{"openai-go chat": openAIChat, "openai-go responses": openAIResponses, "anthropic-go": anthropicGo, "genai-go": genaiGo}

// runGo lets the clients that are written in Go do their cases.
func runGo(w *world, todo []work, files map[string]file) []outcome {
	var mu sync.Mutex
	var all []outcome
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for name, make := range makers {
		if *only != "" && *only != name {
			continue
		}
		for _, job := range todo {
			for _, c := range job.Cases {
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					retries := -1
					if c == "error" {
						retries = 0
					}
					o := do(make(w, job.Service, files, retries)[c], markOf(name, job.Service))
					o.Client, o.Service, o.Case = name, job.Service, c
					mu.Lock()
					defer mu.Unlock()
					all = append(all, o)
				})
			}
		}
	}
	wg.Wait()
	return all
}

func do(f func(context.Context, string) (outcome, error), mark string) outcome {
	if f == nil {
		return outcome{Absent: true}
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	o, err := f(ctx, mark)
	if err != nil {
		o.Error = &failure{Name: fmt.Sprintf("%T", err), Status: statusOf(err), Message: err.Error()}
	}
	return o
}

var errForEver = errors.New("it calls tools for ever")

// left is a case that leaves a stream after its first text.
func left(stream func(ctx context.Context, prompt string, each func(text string)) (outcome, error)) func(context.Context, string) (outcome, error) {
	return func(ctx context.Context, mark string) (outcome, error) {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		_, err := stream(ctx, "do: wait "+mark, func(text string) {
			if text != "" {
				leave()
			}
		})
		if ctx.Err() == nil {
			return outcome{}, errors.Join(errors.New("the stream ended by itself"), err)
		}
		return outcome{Left: true}, nil
	}
}
