// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
)

// What people and programs send passes the scrubber before it is stored. Of
// what it finds, the bytes are kept at once, while the text goes by; artifacts
// are made of them only where the whole of the text is accepted. Until then
// their blob refs stand in it.

// found is the media of one text.
type found struct {
	core   *core
	staged []artifact.Staged // in the order in which they were met, each once
}

// keep is a [scrub.Keep].
func (f *found) keep(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
	s, err := f.core.artifacts.Stage(ctx, r, tool.HintOf(h))
	if err != nil {
		return "", err
	}
	known := false
	for _, before := range f.staged {
		known = known || before.Digest == s.Digest
	}
	if !known {
		f.staged = append(f.staged, s)
	}
	return artel.BlobRef(s.Digest).String(), nil
}

// led returns what puts the refs of artifacts in the place of those of staged
// bytes.
func (f *found) led(kept []artel.Artifact) *strings.Replacer {
	pairs := make([]string, 0, 2*len(kept))
	for i, a := range kept {
		pairs = append(pairs, artel.BlobRef(f.staged[i].Digest).String(), a.MediaPart().Ref.String())
	}
	return strings.NewReplacer(pairs...)
}

// A TakenResult is a result that a tool of somebody else's returned, on its
// way in: first [TakenResult.Scrub], then [TakenResult.Finish].
type TakenResult struct {
	found        found
	owner        artel.Owner
	conversation artel.ConversationID
	at           artel.MessageID
	limit        int64
}

// A ScrubbedResult is a tool's result without media. Content is JSON: what was
// sent with refs where media were, a text of which only a part is shown, or,
// where the whole result is one file, the path under which that is served.
type ScrubbedResult struct {
	Content  json.RawMessage `json:"content"`
	Metadata map[string]any  `json:"metadata"`
}

// TakeResult begins to take a result in.
func (ts *Tools) TakeResult(ctx context.Context, c artel.ConversationID) (*TakenResult, error) {
	at, err := ts.core.desk(ctx, c, "")
	if err != nil {
		return nil, err
	}
	return &TakenResult{found: found{core: ts.core}, owner: ownerOf(ctx), conversation: c, at: at, limit: int64(ts.core.maxText)}, nil
}

// Scrub reads JSON, as a stream, and writes it to dst without media. What is
// left may be as long as the text of an artifact.
func (t *TakenResult) Scrub(ctx context.Context, dst io.Writer, src io.Reader) error {
	return scrub.Copy(ctx, &limited{dst, t.limit, t.limit}, src, t.found.keep)
}

// limited refuses to write more than so many bytes.
type limited struct {
	io.Writer
	left, limit int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, artel.Errorf(artel.TooLarge, "app.Tools.TakeResult", "body", "without media it has more than %s, which the text of an artifact may have; send less of it", phrase.Size(l.limit))
	}
	return l.Writer.Write(p)
}

// Finish makes artifacts of the media, and of a content that is too long to be
// shown. content is JSON that came through Scrub.
func (t *TakenResult) Finish(ctx context.Context, name string, content json.RawMessage) (ScrubbedResult, error) {
	env := t.found.core.env(t.owner, t.conversation, t.at, t.found.core.workspace(ctx, t.conversation, t.at), t.found.core.target(Target{}))
	k := tool.NewKeeper(&env)
	kept := make([]artel.Artifact, len(t.found.staged))
	for i, s := range t.found.staged {
		a, err := k.Add(ctx, s)
		if err != nil {
			return ScrubbedResult{}, err
		}
		kept[i] = a
	}
	text := t.found.led(kept).Replace(string(content))
	shown, isText := text, strings.HasPrefix(text, `"`)
	if isText {
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			return ScrubbedResult{}, artel.Errorf(artel.Invalid, "app.Tools.TakeResult", "content", "it is no JSON: %w", err)
		}
	}
	r, err := k.Finish(ctx, tool.Result{Content: shown})
	if err != nil {
		return ScrubbedResult{}, err
	}
	t.found.core.log.Notifier().Notify(t.conversation)
	out := ScrubbedResult{Content: json.RawMessage(text), Metadata: r.Metadata}
	out.Metadata["tool"] = artel.Shorten(name, tool.MaxName)
	if url, ok := r.Metadata["url"].(string); ok && isText && len(kept) == 1 && strings.TrimSpace(shown) == kept[0].MediaPart().Ref.String() {
		r.Content = url // the result is that file
	}
	if isText || r.Content != shown {
		out.Content, err = json.Marshal(r.Content)
	}
	return out, err
}

// scrubbed returns a message's input without media, and what they were.
func (k *core) scrubbed(ctx context.Context, in Input) (Input, *found, error) {
	f := &found{core: k}
	text, err := scrub.Text(ctx, in.Text, f.keep)
	if err != nil {
		return in, nil, err
	}
	if len(f.staged) > 0 || text != in.Text {
		in.title = titleOf(scrub.Line(in.Text))
	}
	in.Text = text
	return in, f, nil
}

// shownInEvents returns a payload as the log has it: arguments of tools that
// are longer than events are to be are cut, since the message and the artifact
// have all of them.
func (k *core) shownInEvents(p artel.Payload) artel.Payload {
	limit := k.shown.Bytes
	if limit == 0 {
		limit = tool.DefaultShownBytes
	}
	switch p := p.(type) {
	case artel.ToolStarted:
		p.Arguments = shortened(p.Arguments, limit)
		return p
	case artel.MessageCompleted:
		var parts artel.Parts
		for i, part := range p.Message.Parts {
			if c, ok := part.(artel.ToolCall); ok && len(c.Arguments) > limit {
				if parts == nil {
					parts = append(parts, p.Message.Parts...)
				}
				c.Arguments = shortened(c.Arguments, limit)
				parts[i] = c
			}
		}
		if parts != nil {
			p.Message.Parts = parts
		}
		return p
	}
	return p
}

// shortened cuts the long texts in arguments that are longer than limit.
func shortened(args json.RawMessage, limit int) json.RawMessage {
	if len(args) <= limit {
		return args
	}
	var v any
	if json.Unmarshal(args, &v) == nil {
		if b, err := json.Marshal(cutTexts(v)); err == nil && len(b) <= limit {
			return b
		}
	}
	b, err := json.Marshal(map[string]any{"omitted_bytes": len(args)})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// cutLength is how much of a long text an event shows, in characters.
const cutLength = 1000

func cutTexts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = cutTexts(x)
		}
	case []any:
		for i, x := range v {
			v[i] = cutTexts(x)
		}
	case string:
		if n := utf8.RuneCountInString(v); n > 2*cutLength {
			return string([]rune(v)[:cutLength]) + "… [" + strconv.Itoa(n) + " characters]"
		}
	}
	return v
}
