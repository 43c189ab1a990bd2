// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"slices"
	"testing"
)

// TestRefusedFields: the errors of real APIs name the field that a model refuses.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.":        "temperature",
		"Unsupported parameter: 'top_p' is not supported with this model.":                                                       "top_p",
		"Unsupported parameter: 'reasoning.effort' is not supported with this model.":                                            "reasoning_effort",
		"Unrecognized request argument supplied: reasoning_effort":                                                               "reasoning_effort",
		"Unknown parameter: 'safety_identifier'.":                                                                                "safety_identifier",
		"`temperature` is deprecated for this model.":                                                                            "temperature",
		"`temperature` and `top_p` cannot both be specified for this model. Please use only one.":                                "top_p",
		"`temperature` may only be set to 1 when thinking is enabled.":                                                           "temperature",
		"thinking: Extra inputs are not permitted":                                                                               "reasoning_effort",
		"Thinking level is not supported for this model.":                                                                        "reasoning_effort",
		"Penalty is not enabled for models/gemini-2.5-pro":                                                                       "penalties",
		"Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings": "reasoning.summary",
		`{"detail":[{"type":"extra_forbidden","loc":["body","safety_identifier"],"msg":"Extra inputs are not permitted"}]}`:      "safety_identifier",
		`{"detail":[{"type":"less_than_equal","loc":["body","temperature"],"msg":"Input should be less than or equal to 1.5"}]}`: "",
		"property 'seed' is unsupported":                                                                                         "seed",
		"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.":                                               "seed",
		"Unknown parameter: 'messages[0].content[0].uuid'.":                                                                      "",
		"`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.":                           "",
		"Unsupported value: 'messages[0].content' does not support image_url content type.":                                      "",
		"The model `gpt-9` does not exist or you do not have access to it.":                                                      "",
		"Image input is not supported for this model":                                                                            "",
	} {
		if got := fieldRefused(message); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// TestFieldsAreLeftOutOnce: after each refusal of another field the call is repeated
// without it; a field that is refused though it was not sent ends the call.
func TestFieldsAreLeftOutOnce(t *testing.T) {
	t.Parallel()
	half, k := 0.5, 3
	s := Service{ID: "s", Dialect: OpenAI, BaseURL: "http://x", Model: "m", Capabilities: TextOnly()}
	r := &Request{Service: s, Sampling: Sampling{Temperature: &half, TopK: &k}}
	refusal := func(message string) error {
		return &CallError{Service: "s", Status: 400, Message: message, Refusal: Classify(400, "", message)}
	}
	var policy RefusalPolicy
	for i, message := range []string{"Unsupported value: 'temperature' does not support 0.5", "Unknown parameter: 'top_k'."} {
		marks, _, again := policy.Next(r, refusal(message))
		if !again || len(marks) != 1 || !policy.Changes(r) {
			t.Fatalf("%s: %v %v", message, marks, again)
		}
		next := *r
		next.Service = r.Service.Lowered(marks)
		r = &next
		var dropped []string
		r.OnDrop = func(d Drop) error {
			dropped = append(dropped, d.Field)
			return nil
		}
		sent, err := r.withoutRefused()
		if err != nil || len(dropped) != i+1 || sent.Sampling.Temperature != nil || r.Sampling.Temperature == nil {
			t.Errorf("%s: %v, dropped %q, sent %+v of %+v", message, err, dropped, sent.Sampling, r.Sampling)
		}
	}
	if marks, _, again := policy.Next(r, refusal("Unknown parameter: 'top_k'.")); again {
		t.Errorf("a field that was not sent is refused again: %v", marks)
	}
	learned := policy.Learned(s, "client")
	if len(learned) != 2 || learned[0].Field != "temperature" || learned[1].Field != "top_k" {
		t.Errorf("learned %+v", learned)
	}
	stop := errors.New("no drops")
	r.OnDrop = func(Drop) error { return stop }
	if _, err := r.withoutRefused(); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if got := r.Service.Capabilities.RefusesFields.Value; !slices.Equal(got, []string{"temperature", "top_k"}) {
		t.Errorf("it refuses %q", got)
	}
}
