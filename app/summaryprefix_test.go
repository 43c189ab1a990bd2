// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
)

// cacheMark is the mark up to which a service is asked to cache; it moves with
// the end of the request.
var cacheMark = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// TestSummaryRequestsShareThePrefix: on the wire, the request for a summary is
// the one before it up to the newest message, byte for byte, with the same tools
// and the same choice among them. Otherwise the provider's cache would not apply
// when the history is longest.
func TestSummaryRequestsShareThePrefix(t *testing.T) {
	for _, dialect := range []model.Dialect{model.Anthropic, model.OpenAI, model.OpenAIResponses, model.Gemini} {
		t.Run(string(dialect), func(t *testing.T) {
			w := newWire(t, dialect, false)
			c := w.conversation()
			for _, text := range []string{"one", "two", "three"} {
				if r := w.ask(c, text); r.State != artel.RunDone {
					t.Fatalf("it ended as %s: %+v", r.State, r.Error)
				}
			}
			r, err := w.Runs.Compact(apptest.Context(t), c, "")
			if err != nil {
				t.Fatal(err)
			}
			if r = w.ended(r); r.State != artel.RunDone {
				t.Fatalf("it ended as %s: %+v", r.State, r.Error)
			}
			before, messages := fieldsOf(t, w.bodies[len(w.bodies)-2])
			asked, longer := fieldsOf(t, w.bodies[len(w.bodies)-1])
			for name, raw := range before {
				if !bytes.Equal(raw, asked[name]) {
					t.Errorf("%s differs:\n%s\n%s", name, raw, asked[name])
				}
			}
			if len(before) != len(asked) || len(before["tools"]) == 0 {
				t.Errorf("%d fields became %d", len(before), len(asked))
			}
			last := len(messages) - 1 // it has the reminder, for one call only
			if last < 4 || len(longer) <= last {
				t.Fatalf("%d messages, then %d", len(messages), len(longer))
			}
			for i, raw := range messages[:last] {
				if !bytes.Equal(raw, longer[i]) {
					t.Errorf("message %d differs:\n%s\n%s", i, raw, longer[i])
				}
			}
			if end := bytes.LastIndex(messages[last], []byte("three")); end < 0 || !bytes.HasPrefix(longer[last], messages[last][:end+len("three")]) {
				t.Errorf("the newest message differs:\n%s\n%s", messages[last], longer[last])
			}
		})
	}
}

// fieldsOf returns the fields of a body, without marks for the cache, and its
// messages apart.
func fieldsOf(t *testing.T, body string) (fields map[string]json.RawMessage, messages []json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(cacheMark.ReplaceAll([]byte(body), nil), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"messages", "input", "contents"} {
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, &messages); err != nil {
				t.Fatal(err)
			}
			delete(fields, name)
		}
	}
	return fields, messages
}
