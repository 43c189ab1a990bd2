// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Record tells how a request came to be. It names messages and digests and
// holds no copy of what they say.
//
// RequestHash is the SHA-256, in hexadecimal digits, of these JSON values, each
// followed by a line feed: an object with the service's id, dialect and model;
// for each message {"role","parts"}, where parts is a number, and each of its
// parts: text as an object, any other in a list of its own, with a digest in the place of bytes; each tool; the
// output limit. It is empty where the build failed.
type Record struct {
	Processors  []Step     `json:"processors"` // in the order in which they ran
	Decisions   []Decision `json:"decisions,omitempty"`
	Tokens      Tokens     `json:"tokens"`
	RequestHash string     `json:"request_sha256,omitempty"`
}

// A Step is what one processor did.
type Step struct {
	ID           string       `json:"id"`
	Settings     SettingLevel `json:"settings,omitempty"` // the level that configured it
	Added        []string     `json:"added,omitempty"`    // ids of messages, in the order of the draft
	Removed      []string     `json:"removed,omitempty"`
	Changed      []string     `json:"changed,omitempty"`
	TokensBefore int          `json:"tokens_before"` // of all messages, without tools
	TokensAfter  int          `json:"tokens_after"`
	Millis       float64      `json:"ms"`
	Logs         []Log        `json:"logs,omitempty"`
}

// A Log is a note of a processor.
type Log struct {
	Level   Level          `json:"level"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Level says how grave a note is.
type Level string

// The levels.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// A Decision is how one media part was sent.
type Decision struct {
	artel.AttachmentRoute
	Digest artel.Digest `json:"digest,omitempty"` // of the original's bytes; empty where they could not be found
}

// Tokens sums up what is sent, in tokens of the service's vocabulary.
type Tokens struct {
	Fixed   int      `json:"fixed"`   // whatever is not history, and the tools
	History int      `json:"history"` // what is left of it
	Total   int      `json:"total"`
	Budget  int      `json:"budget"`            // 0: the service's window is not known, nothing is cut
	Dropped []string `json:"dropped,omitempty"` // ids of history messages, oldest first
	Cut     []string `json:"cut,omitempty"`     // ids of messages of which a part is sent
}

// hashRequest implements the rule in the comment on [Record].
func hashRequest(r *model.Request) (string, error) {
	h := sha256.New()
	e := json.NewEncoder(h)
	e.SetEscapeHTML(false)
	head := struct {
		Service artel.ServiceID `json:"service"`
		Dialect model.Dialect   `json:"dialect"`
		Model   string          `json:"model"`
	}{r.Service.ID, r.Service.Dialect, r.Service.Model}
	if err := e.Encode(head); err != nil {
		return "", err
	}
	for _, m := range r.Messages {
		if err := hashMessage(e, m); err != nil {
			return "", err
		}
	}
	for _, t := range r.Tools {
		if err := e.Encode(t); err != nil {
			return "", err
		}
	}
	if err := e.Encode(r.MaxOutput); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashMessage writes parts one by one, because text alone is written several
// times faster than inside a list of parts.
func hashMessage(e *json.Encoder, m model.Message) error {
	err := e.Encode(struct {
		Role  artel.Role `json:"role"`
		Parts int        `json:"parts"`
	}{m.Role, len(m.Parts)})
	for _, p := range m.Parts {
		if err != nil {
			return err
		}
		if t, ok := p.(artel.Text); ok {
			err = e.Encode(struct {
				Type string `json:"type"`
				artel.Text
			}{"text", t})
			continue
		}
		err = e.Encode(artel.Parts{p})
	}
	return err
}
