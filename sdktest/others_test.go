// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"google.golang.org/genai"
)

func anthropicGo(w *world, service string, files map[string]file, retries int) client {
	options := []option.RequestOption{option.WithBaseURL(w.bases["Anthropic"]), option.WithAPIKey("sk-anything")}
	if retries >= 0 {
		options = append(options, option.WithMaxRetries(retries))
	}
	api := anthropic.NewClient(options...)
	given := func(name string) []anthropic.ToolUnionParam {
		return []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: name, Description: anthropic.String(toolText),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: schemaOf("q")["properties"], Required: []string{"q"}},
		}}}
	}
	words := func(m *anthropic.Message) string {
		var b strings.Builder
		for _, c := range m.Content {
			b.WriteString(c.Text)
		}
		return b.String()
	}
	request := func(blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{Model: anthropic.Model(service), MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}}
	}
	asks := func(blocks ...anthropic.ContentBlockParamUnion) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			r, err := api.Messages.New(ctx, request(append([]anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(tell)}, blocks...)...))
			if err != nil {
				return outcome{}, err
			}
			return outcome{Text: words(r), Usage: raw(r.Usage)}, nil
		}
	}
	loop := func(prompt, name string, withPicture bool) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			r := request(anthropic.NewTextBlock(prompt))
			r.Tools = given(name)
			for called := 0; called < 4; {
				m, err := api.Messages.New(ctx, r)
				if err != nil {
					return outcome{}, err
				}
				r.Messages = append(r.Messages, m.ToParam())
				var results []anthropic.ContentBlockParamUnion
				for _, c := range m.Content {
					if c.Type != "tool_use" {
						continue
					}
					result := anthropic.ToolResultBlockParam{ToolUseID: c.ID, Content: []anthropic.ToolResultBlockParamContentUnion{
						{OfText: &anthropic.TextBlockParam{Text: meaning(c.Input)}},
					}}
					if withPicture {
						result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: anthropic.NewImageBlockBase64("image/png", files["png"].base64).OfImage})
					}
					results = append(results, anthropic.ContentBlockParamUnion{OfToolResult: &result})
				}
				if len(results) == 0 {
					return outcome{Text: words(m), Calls: called}, nil
				}
				called += len(results)
				r.Messages = append(r.Messages, anthropic.NewUserMessage(results...))
			}
			return outcome{}, errForEver
		}
	}
	simple := func(ctx context.Context, prompt string, change func(*anthropic.MessageNewParams)) (outcome, error) {
		p := request(anthropic.NewTextBlock(prompt))
		change(&p)
		m, err := api.Messages.New(ctx, p)
		if err != nil {
			return outcome{}, err
		}
		o := outcome{Text: words(m)}
		for _, c := range m.Content {
			o.Thought += c.Thinking
		}
		return o, nil
	}
	stream := func(ctx context.Context, prompt string, each func(string)) (o outcome, err error) {
		s := api.Messages.NewStreaming(ctx, request(anthropic.NewTextBlock(prompt)))
		defer s.Close()
		for s.Next() {
			o.Chunks++
			switch e := s.Current().AsAny().(type) {
			case anthropic.ContentBlockDeltaEvent:
				o.Text += e.Delta.Text
			case anthropic.MessageDeltaEvent:
				o.Finish, o.Usage = string(e.Delta.StopReason), raw(e.Usage)
			}
			each(o.Text)
		}
		return o, s.Err()
	}
	streams := func(ctx context.Context, _ string) (outcome, error) { return stream(ctx, tell, func(string) {}) }
	return client{
		"text": asks(), "error": asks(), "stream": streams, "broken": ended(streams),
		"tools": loop(callOne, toolName, false), "parallel": loop(callTwo, toolName, false), "image": loop(callOne, toolName, true),
		"picture": asks(anthropic.NewImageBlockBase64("image/png", files["png"].base64)),
		"pdf":     asks(anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: files["pdf"].base64})),
		"json": func(ctx context.Context, _ string) (outcome, error) {
			r := request(anthropic.NewTextBlock(askJSON))
			r.OutputConfig = anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: schemaOf("answer")}}
			m, err := api.Messages.New(ctx, r)
			if err != nil {
				return outcome{}, err
			}
			return answered(words(m))
		},
		"count": func(ctx context.Context, _ string) (outcome, error) {
			n, err := api.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{
				Model: anthropic.Model(service), Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(tell), anthropic.NewImageBlockBase64("image/png", files["png"].base64))},
			})
			if err != nil {
				return outcome{}, err
			}
			return counted(n.InputTokens), nil
		},
		"names": loop(callOne, named(128), false),
		"arguments": func(ctx context.Context, _ string) (outcome, error) {
			r := request(anthropic.NewTextBlock(write))
			r.Tools = given(toolName)
			s := api.Messages.NewStreaming(ctx, r)
			defer s.Close()
			var parts []string
			for s.Next() {
				if e, ok := s.Current().AsAny().(anthropic.ContentBlockDeltaEvent); ok && e.Delta.PartialJSON != "" {
					parts = append(parts, e.Delta.PartialJSON)
				}
			}
			if err := s.Err(); err != nil {
				return outcome{}, err
			}
			return pieces(parts)
		},
		"schema": func(ctx context.Context, _ string) (outcome, error) {
			o, err := simple(ctx, askData, func(p *anthropic.MessageNewParams) {
				p.OutputConfig = anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: person()}}
			})
			if err != nil {
				return o, err
			}
			return told(o.Text)
		},
		"reasoning": func(ctx context.Context, _ string) (outcome, error) {
			return simple(ctx, reason, func(p *anthropic.MessageNewParams) {
				p.MaxTokens, p.Thinking = 20_000, anthropic.ThinkingConfigParamOfEnabled(12_000)
			})
		},
		"retries": func(ctx context.Context, mark string) (outcome, error) {
			return simple(ctx, flaky+mark, func(*anthropic.MessageNewParams) {})
		},
		"cancel": left(stream),
	}
}

// counted says whether n can be the tokens of a short text and a small picture,
// and not of its base64.
func counted(n int64) outcome {
	if n > 0 && n < 5000 {
		return outcome{Text: "counted"}
	}
	return outcome{Text: fmt.Sprint(n)}
}

func genaiGo(w *world, service string, files map[string]file, _ int) client {
	open := func(ctx context.Context) (*genai.Client, error) {
		return genai.NewClient(ctx, &genai.ClientConfig{APIKey: "anything", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: w.bases["Google Gemini"]}})
	}
	data := func(name string) []byte {
		b, _ := base64.StdEncoding.DecodeString(files[name].base64) // it was encoded here
		return b
	}
	generate := func(ctx context.Context, contents []*genai.Content, config *genai.GenerateContentConfig) (*genai.GenerateContentResponse, error) {
		api, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return api.Models.GenerateContent(ctx, service, contents, config)
	}
	asks := func(parts ...*genai.Part) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			r, err := generate(ctx, []*genai.Content{{Role: "user", Parts: append([]*genai.Part{{Text: tell}}, parts...)}}, nil)
			if err != nil {
				return outcome{}, err
			}
			return outcome{Text: r.Text(), Usage: raw(r.UsageMetadata)}, nil
		}
	}
	given := func(name string) *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: name, Description: toolText, ParametersJsonSchema: schemaOf("q")},
		}}}}
	}
	simple := func(ctx context.Context, prompt string, config *genai.GenerateContentConfig) (outcome, error) {
		r, err := generate(ctx, genai.Text(prompt), config)
		if err != nil {
			return outcome{}, err
		}
		o := outcome{Text: r.Text()}
		for _, p := range r.Candidates[0].Content.Parts {
			if p.Thought {
				o.Thought += p.Text
			}
		}
		return o, nil
	}
	loop := func(prompt, name string, withPicture bool) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			contents := genai.Text(prompt)
			for called := 0; called < 4; {
				r, err := generate(ctx, contents, given(name))
				if err != nil {
					return outcome{}, err
				}
				made := r.FunctionCalls()
				if len(made) == 0 {
					return outcome{Text: r.Text(), Calls: called}, nil
				}
				results := &genai.Content{Role: "user"}
				for _, c := range made {
					result := &genai.FunctionResponse{ID: c.ID, Name: c.Name, Response: map[string]any{"output": meaning(raw(c.Args))}}
					if withPicture {
						result.Parts = []*genai.FunctionResponsePart{{InlineData: &genai.FunctionResponseBlob{MIMEType: "image/png", Data: data("png")}}}
					}
					results.Parts = append(results.Parts, &genai.Part{FunctionResponse: result})
				}
				called += len(made)
				contents = append(contents, r.Candidates[0].Content, results)
			}
			return outcome{}, errForEver
		}
	}
	stream := func(ctx context.Context, prompt string, each func(string)) (o outcome, err error) {
		api, err := open(ctx)
		if err != nil {
			return o, err
		}
		for r, err := range api.Models.GenerateContentStream(ctx, service, genai.Text(prompt), nil) {
			if err != nil {
				return o, err
			}
			o.Chunks++
			o.Text += r.Text()
			if len(r.Candidates) > 0 && r.Candidates[0].FinishReason != "" {
				o.Finish = string(r.Candidates[0].FinishReason)
			}
			if r.UsageMetadata != nil {
				o.Usage = raw(r.UsageMetadata)
			}
			each(o.Text)
		}
		return o, nil
	}
	streams := func(ctx context.Context, _ string) (outcome, error) { return stream(ctx, tell, func(string) {}) }
	return client{
		"text": asks(), "error": asks(), "stream": streams, "broken": ended(streams),
		"tools": loop(callOne, toolName, false), "parallel": loop(callTwo, toolName, false), "image": loop(callOne, toolName, true),
		"picture": asks(genai.NewPartFromBytes(data("png"), "image/png")),
		"pdf":     asks(genai.NewPartFromBytes(data("pdf"), "application/pdf")),
		"audio":   asks(genai.NewPartFromBytes(data("wav"), "audio/wav")),
		"json": func(ctx context.Context, _ string) (outcome, error) {
			r, err := generate(ctx, genai.Text(askJSON), &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: schemaOf("answer")})
			if err != nil {
				return outcome{}, err
			}
			return answered(r.Text())
		},
		"count": func(ctx context.Context, _ string) (outcome, error) {
			api, err := open(ctx)
			if err != nil {
				return outcome{}, err
			}
			r, err := api.Models.CountTokens(ctx, service, []*genai.Content{{Role: "user", Parts: []*genai.Part{{Text: tell}, genai.NewPartFromBytes(data("png"), "image/png")}}}, nil)
			if err != nil {
				return outcome{}, err
			}
			return counted(int64(r.TotalTokens)), nil
		},
		"names": loop(callOne, "look.up:"+named(56), false),
		"schema": func(ctx context.Context, _ string) (outcome, error) {
			o, err := simple(ctx, askData, &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: person()})
			if err != nil {
				return o, err
			}
			return told(o.Text)
		},
		"reasoning": func(ctx context.Context, _ string) (outcome, error) {
			return simple(ctx, reason, &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: genai.Ptr[int32](12_000), IncludeThoughts: true}})
		},
		"retries": func(ctx context.Context, mark string) (outcome, error) { return simple(ctx, flaky+mark, nil) },
		"cancel":  left(stream),
	}
}
