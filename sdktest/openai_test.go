// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// statusOf is the status in an SDK's error; 0: there is none.
func statusOf(err error) int {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode
	}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return e.StatusCode
	}
	if e, ok := errors.AsType[genai.APIError](err); ok {
		return e.Code
	}
	return 0
}

func openOpenAI(w *world, retries int) openai.Client {
	options := []option.RequestOption{option.WithBaseURL(w.bases["OpenAI"]), option.WithAPIKey("sk-anything")}
	if retries >= 0 {
		options = append(options, option.WithMaxRetries(retries))
	}
	return openai.NewClient(options...)
}

func dataURL(mediaType, base64 string) string { return "data:" + mediaType + ";base64," + base64 }

func raw(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

func openAIChat(w *world, service string, files map[string]file, retries int) client {
	api := openOpenAI(w, retries)
	given := func(name string) []openai.ChatCompletionToolUnionParam {
		return []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: name, Description: openai.String(toolText), Parameters: schemaOf("q"),
		})}
	}
	simple := func(ctx context.Context, prompt string, change func(*openai.ChatCompletionNewParams)) (outcome, error) {
		p := openai.ChatCompletionNewParams{Model: service, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
		change(&p)
		r, err := api.Chat.Completions.New(ctx, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{Text: r.Choices[0].Message.Content}, nil
	}
	ask := func(ctx context.Context, parts ...openai.ChatCompletionContentPartUnionParam) (outcome, error) {
		r, err := api.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
			Model: service, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(append([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(tell)}, parts...))},
		})
		if err != nil {
			return outcome{}, err
		}
		return outcome{Text: r.Choices[0].Message.Content, Usage: raw(r.Usage)}, nil
	}
	asks := func(parts ...openai.ChatCompletionContentPartUnionParam) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) { return ask(ctx, parts...) }
	}
	loop := func(prompt, name string) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			messages := []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}
			for called := 0; called < 4; {
				r, err := api.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: service, Messages: messages, Tools: given(name)})
				if err != nil {
					return outcome{}, err
				}
				m := r.Choices[0].Message
				if len(m.ToolCalls) == 0 {
					return outcome{Text: m.Content, Calls: called}, nil
				}
				messages = append(messages, m.ToParam())
				for _, c := range m.ToolCalls {
					called++
					messages = append(messages, openai.ToolMessage(meaning([]byte(c.Function.Arguments)), c.ID))
				}
			}
			return outcome{}, errForEver
		}
	}
	stream := func(ctx context.Context, prompt string, each func(string)) (o outcome, err error) {
		s := api.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
			Model: service, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
			StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		})
		defer s.Close()
		for s.Next() {
			o.Chunks++
			for _, c := range s.Current().Choices {
				o.Text += c.Delta.Content
				if c.FinishReason != "" {
					o.Finish = c.FinishReason
				}
			}
			if u := s.Current().Usage; u.TotalTokens > 0 {
				o.Usage = raw(u)
			}
			each(o.Text)
		}
		return o, s.Err()
	}
	streams := func(ctx context.Context, _ string) (outcome, error) { return stream(ctx, tell, func(string) {}) }
	return client{
		"text": asks(), "error": asks(), "stream": streams, "broken": ended(streams), "tools": loop(callOne, toolName), "parallel": loop(callTwo, toolName),
		"picture": asks(openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: dataURL("image/png", files["png"].base64)})),
		"pdf": asks(openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
			Filename: openai.String("paper.pdf"), FileData: openai.String(dataURL("application/pdf", files["pdf"].base64)),
		})),
		"audio": asks(openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: files["wav"].base64, Format: "wav"})),
		"file": func(ctx context.Context, _ string) (outcome, error) {
			data, err := base64.StdEncoding.DecodeString(files["pdf"].base64)
			if err != nil {
				return outcome{}, err
			}
			f, err := api.Files.New(ctx, openai.FileNewParams{File: openai.File(bytes.NewReader(data), "paper.pdf", "application/pdf"), Purpose: openai.FilePurposeUserData})
			if err != nil {
				return outcome{}, err
			}
			o, err := ask(ctx, openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileID: openai.String(f.ID)}))
			if err != nil {
				return o, err
			}
			back, err := api.Files.Content(ctx, f.ID)
			if err != nil {
				return o, err
			}
			defer back.Body.Close()
			again, err := io.ReadAll(back.Body)
			same := bytes.Equal(data, again)
			o.Same = &same
			return o, err
		},
		"json": func(ctx context.Context, _ string) (outcome, error) {
			r, err := api.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
				Model: service, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(askJSON)},
				ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &openai.ResponseFormatJSONSchemaParam{
					JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schemaOf("answer"), Strict: openai.Bool(true)},
				}},
			})
			if err != nil {
				return outcome{}, err
			}
			return answered(r.Choices[0].Message.Content)
		},
		"names": loop(callOne, named(64)),
		"arguments": func(ctx context.Context, _ string) (outcome, error) {
			s := api.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
				Model: service, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(write)}, Tools: given(toolName),
			})
			defer s.Close()
			var parts []string
			for s.Next() {
				for _, c := range s.Current().Choices {
					for _, made := range c.Delta.ToolCalls {
						if made.Function.Arguments != "" {
							parts = append(parts, made.Function.Arguments)
						}
					}
				}
			}
			if err := s.Err(); err != nil {
				return outcome{}, err
			}
			return pieces(parts)
		},
		"schema": func(ctx context.Context, _ string) (outcome, error) {
			o, err := simple(ctx, askData, func(p *openai.ChatCompletionNewParams) {
				p.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Schema: person()}}
			})
			if err != nil {
				return o, err
			}
			return told(o.Text)
		},
		"reasoning": func(ctx context.Context, _ string) (outcome, error) {
			return simple(ctx, reason, func(p *openai.ChatCompletionNewParams) { p.ReasoningEffort = openai.ReasoningEffortHigh })
		},
		"retries": func(ctx context.Context, mark string) (outcome, error) {
			return simple(ctx, flaky+mark, func(*openai.ChatCompletionNewParams) {})
		},
		"cancel": left(stream),
	}
}

// ended makes an error of a stream that ends without a reason, where an SDK does
// not.
func ended(stream func(context.Context, string) (outcome, error)) func(context.Context, string) (outcome, error) {
	return func(ctx context.Context, mark string) (outcome, error) {
		o, err := stream(ctx, mark)
		if err == nil && o.Finish == "" {
			err = errors.New("the stream ended without a reason")
		}
		return o, err
	}
}

func answered(text string) (outcome, error) {
	var a struct{ Answer string }
	err := json.Unmarshal([]byte(text), &a)
	return outcome{Text: a.Answer}, err
}

func openAIResponses(w *world, service string, files map[string]file, retries int) client {
	api := openOpenAI(w, retries)
	given := func(name string) []responses.ToolUnionParam {
		return []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: name, Description: openai.String(toolText), Parameters: schemaOf("q"), Strict: openai.Bool(false),
		}}}
	}
	simple := func(ctx context.Context, prompt string, change func(*responses.ResponseNewParams)) (outcome, error) {
		p := responses.ResponseNewParams{Model: service, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}}
		change(&p)
		r, err := api.Responses.New(ctx, p)
		if err != nil {
			return outcome{}, err
		}
		o := outcome{Text: r.OutputText()}
		for _, item := range r.Output {
			for _, s := range item.Summary {
				o.Thought += s.Text
			}
		}
		return o, nil
	}
	input := func(parts ...responses.ResponseInputContentUnionParam) responses.ResponseNewParamsInputUnion {
		return responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam(parts), responses.EasyInputMessageRoleUser),
		}}
	}
	text := responses.ResponseInputContentUnionParam{OfInputText: &responses.ResponseInputTextParam{Text: tell}}
	asks := func(parts ...responses.ResponseInputContentUnionParam) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			r, err := api.Responses.New(ctx, responses.ResponseNewParams{
				Model: service, Input: input(append([]responses.ResponseInputContentUnionParam{text}, parts...)...),
			})
			if err != nil {
				return outcome{}, err
			}
			return outcome{Text: r.OutputText(), Usage: raw(r.Usage)}, nil
		}
	}
	picture := dataURL("image/png", files["png"].base64)
	loop := func(prompt, name string, withPicture bool) func(context.Context, string) (outcome, error) {
		return func(ctx context.Context, _ string) (outcome, error) {
			items := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(prompt, responses.EasyInputMessageRoleUser)}
			for called := 0; called < 4; {
				r, err := api.Responses.New(ctx, responses.ResponseNewParams{
					Model: service, Tools: given(name), Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items},
				})
				if err != nil {
					return outcome{}, err
				}
				before := called
				for _, item := range r.Output {
					if item.Type != "function_call" {
						continue
					}
					called++
					c := item.AsFunctionCall()
					said := meaning([]byte(c.Arguments))
					output := responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(said)}
					if withPicture {
						output = responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfResponseFunctionCallOutputItemArray: responses.ResponseFunctionCallOutputItemListParam{
							{OfInputText: &responses.ResponseInputTextContentParam{Text: said}},
							{OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: openai.String(picture)}},
						}}
					}
					items = append(items, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.CallID, c.Name),
						responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(c.CallID), Output: output}})
				}
				if called == before {
					return outcome{Text: r.OutputText(), Calls: called}, nil
				}
			}
			return outcome{}, errForEver
		}
	}
	stream := func(ctx context.Context, prompt string, each func(string)) (o outcome, err error) {
		s := api.Responses.NewStreaming(ctx, responses.ResponseNewParams{
			Model: service, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
		})
		defer s.Close()
		for s.Next() {
			o.Chunks++
			switch e := s.Current(); e.Type {
			case "response.output_text.delta":
				o.Text += e.Delta
			case "response.completed":
				o.Finish, o.Usage = e.Type, raw(e.Response.Usage)
			case "response.failed", "error":
				return o, errors.New(e.Type + ": " + e.Message)
			}
			each(o.Text)
		}
		return o, s.Err()
	}
	streams := func(ctx context.Context, _ string) (outcome, error) { return stream(ctx, tell, func(string) {}) }
	return client{
		"text": asks(), "error": asks(), "stream": streams, "broken": ended(streams),
		"tools": loop(callOne, toolName, false), "parallel": loop(callTwo, toolName, false), "image": loop(callOne, toolName, true),
		"picture": asks(responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{ImageURL: openai.String(picture), Detail: responses.ResponseInputImageDetailAuto}}),
		"pdf": asks(responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{
			Filename: openai.String("paper.pdf"), FileData: openai.String(dataURL("application/pdf", files["pdf"].base64)),
		}}),
		"json": func(ctx context.Context, _ string) (outcome, error) {
			r, err := api.Responses.New(ctx, responses.ResponseNewParams{
				Model: service, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(askJSON)},
				Text: responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigUnionParam{
					OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Schema: schemaOf("answer"), Strict: param.NewOpt(true)},
				}},
			})
			if err != nil {
				return outcome{}, err
			}
			return answered(r.OutputText())
		},
		"names": loop(callOne, named(64), false),
		"arguments": func(ctx context.Context, _ string) (outcome, error) {
			s := api.Responses.NewStreaming(ctx, responses.ResponseNewParams{
				Model: service, Tools: given(toolName), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(write)},
			})
			defer s.Close()
			var parts []string
			for s.Next() {
				if e := s.Current(); e.Type == "response.function_call_arguments.delta" {
					parts = append(parts, e.Delta)
				}
			}
			if err := s.Err(); err != nil {
				return outcome{}, err
			}
			return pieces(parts)
		},
		"schema": func(ctx context.Context, _ string) (outcome, error) {
			o, err := simple(ctx, askData, func(p *responses.ResponseNewParams) {
				p.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "person", Schema: person()}
			})
			if err != nil {
				return o, err
			}
			return told(o.Text)
		},
		"reasoning": func(ctx context.Context, _ string) (outcome, error) {
			return simple(ctx, reason, func(p *responses.ResponseNewParams) {
				p.Reasoning = openai.ReasoningParam{Effort: openai.ReasoningEffortHigh, Summary: openai.ReasoningSummaryAuto}
			})
		},
		"retries": func(ctx context.Context, mark string) (outcome, error) {
			return simple(ctx, flaky+mark, func(*responses.ResponseNewParams) {})
		},
		"cancel": left(stream),
	}
}
