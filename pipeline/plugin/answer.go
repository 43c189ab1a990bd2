// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// An Answer is the output of a program: all messages of the request, in order.
// A message of the draft that is missing in it is removed.
//
//   - {"id": "…"} is a message of the draft, unchanged.
//   - With "parts", or with "text" for a single text, it is that message with
//     other texts. Parts that are not texts must be the message's own, unchanged
//     and at most once each; messages of tools, with tool calls, and opaque ones
//     cannot be changed.
//   - An id that is not in the draft, with a role (system, user or assistant) and
//     "text" or text parts, is a new message.
//
// Every tool call must be followed by its results. The newest message of the
// user must stay. Alternatively the answer is {"version": 1, "error": "…"}: the
// program failed for this reason.
type Answer struct {
	Version  int        `json:"version"`
	Messages []Replaced `json:"messages"`
	Logs     []Log      `json:"logs,omitempty"`  // for the record
	Board    Board      `json:"board,omitempty"` // changes of shared values; null removes one
	Error    string     `json:"error,omitempty"`
}

// Replaced is a message of an [Answer].
type Replaced struct {
	ID    string      `json:"id"`
	Role  artel.Role  `json:"role,omitempty"`
	Text  *string     `json:"text,omitempty"`
	Parts artel.Parts `json:"parts,omitempty"`
}

// A Log is a note for the record.
type Log struct {
	Level   pipeline.Level `json:"level"` // info, warn or error
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Bounds on answers.
const (
	maxMessages = 100_000
	maxLogs     = 100
	maxLog      = 2000 // characters of a note
	reserved    = "artel:"
)

func refuse(format string, args ...any) error {
	return artel.Errorf(artel.Invalid, "plugin.Answer", "", format, args...)
}

// readAnswer parses an answer. Unknown fields are refused, because a misspelled
// name would be ignored silently.
func readAnswer(b []byte) (Answer, error) {
	var a Answer
	if !utf8.Valid(b) {
		return a, refuse("the answer is no UTF-8")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return a, refuse("the answer is empty")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return a, refuse("the answer cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return a, refuse("something follows the answer")
	}
	switch {
	case a.Version != Version:
		return a, refuse("the answer has the version %d: want %d", a.Version, Version)
	case a.Error != "":
		return a, artel.Errorf(artel.Unavailable, "plugin.Answer", "", "the program says: %s", artel.Shorten(a.Error, maxLog))
	case len(a.Messages) > maxMessages:
		return a, refuse("%d messages, and at most %d are taken", len(a.Messages), maxMessages)
	case len(a.Logs) > maxLogs:
		return a, refuse("%d logs, and at most %d are taken", len(a.Logs), maxLogs)
	}
	for i, l := range a.Logs {
		if !slices.Contains([]pipeline.Level{pipeline.Info, pipeline.Warn, pipeline.Error}, l.Level) {
			return a, refuse("logs[%d].level is %q: want info, warn or error", i, artel.Shorten(string(l.Level), 40))
		}
		a.Logs[i].Message = artel.Shorten(l.Message, maxLog)
	}
	return a, nil
}

// apply returns the messages that the answer makes of ms.
func (a Answer) apply(ms []pipeline.Message) ([]pipeline.Message, error) {
	known := map[string][]pipeline.Message{} // several presets may share an id
	for _, m := range ms {
		known[m.ID] = append(known[m.ID], m)
	}
	fresh := map[string]bool{}
	out := make([]pipeline.Message, 0, len(a.Messages))
	for i, r := range a.Messages {
		m, err := r.message(known, fresh)
		if err != nil {
			return nil, refuse("messages[%d] %s: %w", i, artel.Shorten(r.ID, 60), err)
		}
		out = append(out, m)
	}
	return out, checkExchanges(ms, out)
}

func (r Replaced) message(known map[string][]pipeline.Message, fresh map[string]bool) (pipeline.Message, error) {
	if r.ID == "" {
		return pipeline.Message{}, errors.New("the id is missing")
	}
	if r.Text != nil && r.Parts != nil {
		return pipeline.Message{}, errors.New("want either text or parts")
	}
	parts := r.Parts
	if r.Text != nil {
		parts = artel.Parts{artel.Text{Text: *r.Text}}
	}
	left, ok := known[r.ID]
	if !ok {
		return r.added(parts, fresh)
	}
	if len(left) == 0 {
		return pipeline.Message{}, errors.New("it comes more often than in the draft")
	}
	known[r.ID] = left[1:]
	return r.changed(left[0], parts)
}

// added makes a new message.
func (r Replaced) added(parts artel.Parts, fresh map[string]bool) (pipeline.Message, error) {
	m := pipeline.Message{ID: r.ID, Role: r.Role, Parts: parts, Origin: pipeline.OriginPlugin, Stability: pipeline.Turn}
	switch {
	case fresh[r.ID]:
		return m, errors.New("the id is given twice")
	case len(r.ID) > artel.MaxIDLength || strings.HasPrefix(r.ID, reserved):
		return m, fmt.Errorf("a new id has at most %d bytes and does not begin with %q", artel.MaxIDLength, reserved)
	case !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant}, r.Role):
		return m, fmt.Errorf("the role of a new message is %q: want system, user or assistant", artel.Shorten(string(r.Role), 40))
	case len(parts) == 0:
		return m, errors.New("a new message needs a text")
	case slices.ContainsFunc(parts, func(p artel.Part) bool { _, ok := p.(artel.Text); return !ok }):
		return m, errors.New("a new message has texts only")
	}
	fresh[r.ID] = true
	return m, nil
}

// changed returns a message of the draft with its changes.
func (r Replaced) changed(m pipeline.Message, parts artel.Parts) (pipeline.Message, error) {
	shown, opaque := withoutOpaque(m.Parts)
	if r.Role != "" && r.Role != m.Role {
		fixed := opaque || m.Role == artel.RoleTool || r.Role == artel.RoleTool || artel.HasCalls(m.Parts)
		if fixed || !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant}, r.Role) {
			return m, fmt.Errorf("its role %s cannot become %q", m.Role, artel.Shorten(string(r.Role), 40))
		}
		m.Role, m.Stability = r.Role, pipeline.Turn
	}
	if r.Text == nil && r.Parts == nil || equal(parts, shown) {
		return m, nil
	}
	if opaque || m.Role == artel.RoleTool || artel.HasCalls(m.Parts) {
		return m, errors.New("what belongs to a tool or to a service cannot be changed; give the id alone, or leave the message out")
	}
	taken := make([]bool, len(shown))
	out := make(artel.Parts, 0, len(parts))
	for i, p := range parts {
		if _, ok := p.(artel.Text); ok {
			out = append(out, p)
			continue
		}
		own := -1
		for j, q := range shown {
			if !taken[j] && equal(artel.Parts{p}, artel.Parts{q}) {
				own = j
				break
			}
		}
		if own < 0 {
			return m, fmt.Errorf("part %d is no text, and none of the message's own parts", i)
		}
		taken[own] = true
		out = append(out, m.Parts[own])
	}
	m.Parts, m.Stability = out, pipeline.Turn
	return m, nil
}

// equal compares the encodings of parts.
func equal(a, b artel.Parts) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	if err1 != nil || err2 != nil {
		return false
	}
	if bytes.Equal(x, y) {
		return true
	}
	// The order of keys in arguments, and escapes, may differ.
	var v, w any
	return json.Unmarshal(x, &v) == nil && json.Unmarshal(y, &w) == nil && reflect.DeepEqual(v, w)
}

func unchanged(a, b pipeline.Message) bool {
	same := len(a.Parts) == len(b.Parts) && (len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0])
	return same && a.ID == b.ID && a.Role == b.Role
}

// checkExchanges refuses requests that no API accepts: calls without results,
// results without calls, and a request without the user's newest message.
func checkExchanges(before, after []pipeline.Message) error {
	var open []artel.CallID
	for _, m := range after {
		if m.Role != artel.RoleTool && len(open) > 0 {
			return refuse("the message %s is between a tool call and its result", artel.Shorten(m.ID, 60))
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.ToolCall:
				open = append(open, p.ID)
			case artel.ToolResult:
				i := slices.Index(open, p.CallID)
				if i < 0 {
					return refuse("the result in %s has no call before it", artel.Shorten(m.ID, 60))
				}
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	if len(open) > 0 {
		return refuse("a tool call has no result after it")
	}
	for _, m := range slices.Backward(before) {
		if m.Role == artel.RoleUser && (m.Origin == pipeline.OriginHistory || m.Origin == pipeline.OriginMerged) {
			if !slices.ContainsFunc(after, func(n pipeline.Message) bool { return n.ID == m.ID && n.Origin == m.Origin && n.Role == m.Role }) {
				return refuse("the newest message of the user, %s, is missing", artel.Shorten(m.ID, 60))
			}
			break
		}
	}
	return nil
}
