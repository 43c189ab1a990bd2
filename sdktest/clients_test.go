// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// What every client asks; js/words.mjs has the same for the others.
const (
	tell     = "do: tell"
	callOne  = "do: call"
	callTwo  = "do: calls"
	askJSON  = "do: json"
	toolName = "look_up"
	toolText = "Looks a word up."
)

func schemaOf(property string) map[string]any {
	return map[string]any{
		"type": "object", "properties": map[string]any{property: map[string]any{"type": "string"}},
		"required": []string{property}, "additionalProperties": false,
	}
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

// A maker points an SDK at a service.
type maker func(w *world, service string, files map[string]file) client

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
					o := do(make(w, job.Service, files)[c], markOf(name, job.Service))
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
