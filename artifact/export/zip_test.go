// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
)

// A thread is a whole conversation in memory.
type thread struct {
	artel.Conversation
	messages  []artel.Message
	artifacts []export.Artifact
	bytes     map[artel.Ref][]byte
}

func newThread() *thread {
	c := &thread{bytes: map[artel.Ref][]byte{}}
	c.ID = artel.NewConversationID(written)
	c.Title, c.CreatedAt, c.UpdatedAt = "Quarter", written, written
	return c
}

// say adds a message, which becomes the newest.
func (c *thread) say(parent artel.MessageID, role artel.Role, parts ...artel.Part) artel.MessageID {
	m := artel.Message{ID: artel.NewMessageID(written), Conversation: c.ID, Parent: parent, Role: role, Parts: parts, CreatedAt: written.Add(time.Duration(len(c.messages)) * time.Second)}
	c.messages = append(c.messages, m)
	c.Leaf = m.ID
	return m.ID
}

// add adds a version with these bytes.
func (c *thread) add(id artel.ArtifactID, v artel.Version, b []byte) {
	v.Digest, v.Size, v.CreatedAt = artel.NewDigest(sha256.Sum256(b)), int64(len(b)), written.Add(time.Duration(v.Number)*time.Minute)
	if v.Update == "" {
		v.Update = artel.UpdateCreate
	}
	v.Provenance, v.Author = artel.SourceAgent, "lead"
	if i := slices.IndexFunc(c.artifacts, func(a export.Artifact) bool { return a.ID == id }); i >= 0 {
		c.artifacts[i].Versions = append(c.artifacts[i].Versions, v)
	} else {
		c.artifacts = append(c.artifacts, export.Artifact{ID: id, Versions: []artel.Version{v}})
	}
	c.bytes[artel.Ref{Conversation: c.ID, Artifact: id, Version: v.Number}] = b
}

func textVersion(n int, mediaType string, m artel.MessageID) artel.Version {
	v := artel.Version{Number: n, Message: m, Title: "T"}
	v.MediaType, v.Kind = mediaType, artel.KindText
	return v
}

func (c *thread) open(_ context.Context, ref artel.Ref) (artifact.Content, error) {
	b, ok := c.bytes[ref]
	if !ok {
		return artifact.Content{}, artel.Errorf(artel.NotFound, "thread.Open", ref.String(), "not here")
	}
	return content(b, "", ref.Version), nil
}

func sequence[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func (c *thread) conversation() export.Conversation {
	return export.Conversation{
		Conversation: c.Conversation, Messages: sequence(c.messages), Artifacts: sequence(c.artifacts),
		Open: c.open, Readme: "# What is what\n",
	}
}

func (c *thread) zip(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.ZIP(t.Context(), &b, c.conversation()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample is a conversation with two branches and what can be in one.
func sample(t testing.TB) *thread {
	c := newThread()
	root := c.say("", artel.RoleUser, artel.Text{Text: "Go on <b>"})
	other := c.say(root, artel.RoleAssistant, artel.Text{Text: "one way"})
	leaf := c.say(root, artel.RoleAssistant, artel.Text{Text: "the other"}, artel.ToolCall{ID: "1", Name: "read", Arguments: json.RawMessage(`{"a":1}`)})
	c.add("CON", textVersion(1, "text/markdown", root), []byte("device"))
	c.add("Plan", textVersion(1, "text/markdown", root), []byte("upper case"))
	gone := textVersion(2, "text/markdown", root)
	gone.Update = artel.UpdateDelete
	c.add("gone", textVersion(1, "text/markdown", root), []byte("was here"))
	c.add("gone", gone, []byte("was here"))
	gbk := textVersion(1, "text/csv", "")
	gbk.InBlob, gbk.Charset, gbk.Filename = true, "gb18030", "数据/表.csv"
	c.add("old.csv", gbk, []byte("\xd6\xd0\xce\xc4,1\n"))
	c.add("plan", textVersion(1, "text/markdown", root), []byte("first"))
	c.add("plan", textVersion(4, "text/markdown", other), []byte("on the other branch"))
	c.add("plan", textVersion(6, "text/markdown", leaf), []byte("See [picture](artifact:red.png), ![old](artifact:plan@1), <artifact:gone@1>, [other](artifact:elsewhere) and [whole](artifact:"+string(c.ID)+"/old.csv).\n"))
	red := artel.Version{Number: 1, Filename: "Red square.png", InBlob: true}
	red.MediaType, red.Kind = "image/png", artel.KindImage
	c.add("red.png", red, picture(t, "png", 30, 30))
	c.add("side", textVersion(3, "text/markdown", other), []byte("only there"))
	return c
}

func TestZIP(t *testing.T) {
	c := sample(t)
	file := c.zip(t)
	if file != c.zip(t) {
		t.Error("two exports differ")
	}
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{
		"README.md", "conversation.json", "artifacts/_CON/v1.md", "artifacts/Plan/v1.md", "artifacts/gone/v1.md", "artifacts/gone/v2.md",
		"artifacts/old.csv/v1.csv", "artifacts/old.csv/v1.utf-8.csv", "artifacts/plan_2/v1.md", "artifacts/plan_2/v4.md", "artifacts/plan_2/v6.md",
		"artifacts/red.png/v1.png", "artifacts/side/v3.md", "files/_CON.md", "files/Plan.md", "files/数据_表.csv", "files/plan_2.md", "files/Red square.png",
	}, names); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
	for name, want := range map[string]string{
		"README.md":                      "# What is what\n",
		"artifacts/old.csv/v1.csv":       "\xd6\xd0\xce\xc4,1\n",
		"artifacts/old.csv/v1.utf-8.csv": "中文,1\n",
		"files/plan_2.md":                "See [picture](Red%20square.png), ![old](../artifacts/plan_2/v1.md), [artifact:gone@1](../artifacts/gone/v1.md), [other](artifact:elsewhere) and [whole](%E6%95%B0%E6%8D%AE_%E8%A1%A8.csv).\n",
	} {
		b, err := readAll(z, name)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != want {
			t.Errorf("%s: got %q", name, b)
		}
	}
	index, err := readAll(z, "conversation.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"owner", "local", "apiKey"} {
		if bytes.Contains(index, []byte(bad)) {
			t.Errorf("the index says %s", bad)
		}
	}
	if err := sameThread(t, c, file); err != nil {
		t.Error(err)
	}
}

// sameThread reads a ZIP back and compares everything.
func sameThread(t testing.TB, c *thread, file string) error {
	a, err := export.ReadZIP(t.Context(), strings.NewReader(file), int64(len(file)), export.ReadOptions{})
	if err != nil {
		return err
	}
	if diff := cmp.Diff(c.Conversation, a.Conversation); diff != "" {
		return fmt.Errorf("conversation: -want +got\n%s", diff)
	}
	var messages []artel.Message
	for m, err := range a.EachMessage(t.Context()) {
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	if diff := cmp.Diff(c.messages, messages); diff != "" {
		return fmt.Errorf("messages: -want +got\n%s", diff)
	}
	var artifacts []export.Artifact
	var versions int
	var size int64
	for x, err := range a.EachArtifact(t.Context()) {
		if err != nil {
			return err
		}
		artifacts = append(artifacts, x)
		for _, v := range x.Versions {
			r, err := a.Open(x.ID, v.Number)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			if err := r.Close(); err != nil {
				return err
			}
			if !bytes.Equal(b, c.bytes[artel.Ref{Conversation: c.ID, Artifact: x.ID, Version: v.Number}]) {
				return fmt.Errorf("%s version %d has other bytes", x.ID, v.Number)
			}
			versions++
			size += int64(len(b))
		}
	}
	if diff := cmp.Diff(c.artifacts, artifacts); diff != "" {
		return fmt.Errorf("artifacts: -want +got\n%s", diff)
	}
	if a.Messages != len(messages) || a.Artifacts != len(artifacts) || a.Versions != versions || a.Size != size {
		return fmt.Errorf("counts %d, %d, %d, %d", a.Messages, a.Artifacts, a.Versions, a.Size)
	}
	return nil
}

// TestRoundTrip holds what is read to what was written, byte for byte.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newThread()
		c.Title = rapid.String().Draw(rt, "title")
		ids := []artel.MessageID{""}
		for range rapid.IntRange(0, 6).Draw(rt, "messages") {
			part := rapid.SampledFrom([]artel.Part{
				artel.Text{Text: "a < b & \u2028 中"},
				artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"s":[1,"x"]}`), Service: "s"},
				artel.Media{Ref: artel.Ref{Conversation: c.ID, Artifact: "a", Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Size: 3, Width: 4},
				artel.ToolCall{ID: "c", Name: "f", Arguments: json.RawMessage(`{"q":"\u003c"}`)},
				artel.ToolResult{CallID: "c", Content: "\x01", Parts: artel.Parts{artel.Text{Text: "in"}}, Metadata: map[string]any{"n": 1.5}},
			}).Draw(rt, "part")
			ids = append(ids, c.say(rapid.SampledFrom(ids).Draw(rt, "parent"), rapid.SampledFrom([]artel.Role{artel.RoleUser, artel.RoleAssistant, artel.RoleTool, artel.RoleSystem}).Draw(rt, "role"), part))
		}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.\-]{0,12}`), 0, 5, rapid.ID).Draw(rt, "ids")
		for _, id := range names {
			if _, err := artel.ParseArtifactID(id); err != nil {
				continue
			}
			n := 0
			for range rapid.IntRange(1, 3).Draw(rt, "versions") {
				n += rapid.IntRange(1, 3).Draw(rt, "step")
				v := artel.Version{Number: n, Parent: rapid.IntRange(0, n-1).Draw(rt, "of"), Message: rapid.SampledFrom(ids).Draw(rt, "message")}
				v.Filename = rapid.OneOf(rapid.Just(""), rapid.String(), rapid.SampledFrom([]string{"../x.md", "con.txt", "A.md"})).Draw(rt, "filename")
				v.Filename = strings.ToValidUTF8(v.Filename, "")
				v.InBlob = rapid.Bool().Draw(rt, "in blob")
				v.Update = rapid.SampledFrom([]artel.UpdateType{artel.UpdateCreate, artel.UpdateDelete, artel.UpdateFuzzy}).Draw(rt, "update")
				v.Changes = rapid.SampledFrom([][]artel.Change{nil, {{Layer: artel.LayerExact, Start: 1, End: 2, Old: "a", New: "<"}}}).Draw(rt, "changes")
				v.Charset = rapid.SampledFrom([]string{"", "utf-8", "gb18030", "utf-16le", "no such"}).Draw(rt, "charset")
				v.MediaType = rapid.SampledFrom([]string{"text/markdown", "text/plain", "image/png", "application/zip", "application/x"}).Draw(rt, "type")
				v.Kind = rapid.SampledFrom([]artel.MediaKind{artel.KindText, artel.KindImage, artel.KindOther}).Draw(rt, "kind")
				c.add(artel.ArtifactID(id), v, rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Just([]byte("[a](artifact:a) text"))).Draw(rt, "bytes"))
			}
		}
		slices.SortFunc(c.artifacts, func(a, b export.Artifact) int { return strings.Compare(string(a.ID), string(b.ID)) })
		if err := sameThread(t, c, c.zip(t)); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestLateMessages writes children that come before their parents after them,
// and leaves out what belongs to a message that is not there yet.
func TestLateMessages(t *testing.T) {
	c := newThread()
	a := c.say("", artel.RoleUser, artel.Text{Text: "a"})
	b := c.say(a, artel.RoleAssistant, artel.Text{Text: "b"})
	c.say(b, artel.RoleUser, artel.Text{Text: "c"})
	c.add("x", textVersion(1, "text/plain", a), []byte("1"))
	want := *c
	want.messages, want.artifacts = slices.Clone(c.messages), slices.Clone(c.artifacts)
	late := artel.NewMessageID(written)
	c.add("x", textVersion(2, "text/plain", late), []byte("2"))
	c.add("y", textVersion(1, "text/plain", late), []byte("3"))
	slices.Reverse(c.messages)
	if err := sameThread(t, &want, c.zip(t)); err != nil {
		t.Error(err)
	}
	c.messages = c.messages[:2]
	if err := export.ZIP(t.Context(), io.Discard, c.conversation()); artel.KindOf(err) != artel.Internal {
		t.Errorf("messages without a root: %v", err)
	}
}

func TestZIPFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*export.Conversation)
		kind   artel.Kind
		names  string
	}{
		"missing": {func(c *export.Conversation) {
			c.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
				return artifact.Content{}, artel.NotFound
			}
		}, artel.NotFound, "CON@1"},
		"other bytes": {func(c *export.Conversation) {
			c.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
				return content([]byte("devicE"), "", 1), nil
			}
		}, artel.Internal, "CON@1"},
		"more bytes": {func(c *export.Conversation) {
			c.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
				return content([]byte("devices"), "", 1), nil
			}
		}, artel.Internal, "CON@1"},
		"messages": {func(c *export.Conversation) {
			c.Messages = func(yield func(artel.Message, error) bool) { yield(artel.Message{}, artel.Unavailable) }
		}, artel.Unavailable, ""},
		"artifacts": {func(c *export.Conversation) {
			c.Artifacts = func(yield func(export.Artifact, error) bool) { yield(export.Artifact{}, artel.Unavailable) }
		}, artel.Unavailable, ""},
	} {
		c := sample(t).conversation()
		tt.change(&c)
		err := export.ZIP(t.Context(), io.Discard, c)
		if artel.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, room := range []int{0, 500, 1500} {
		if err := export.ZIP(t.Context(), &failing{room: room}, sample(t).conversation()); artel.KindOf(err) != artel.Unavailable {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := export.ZIP(ctx, io.Discard, sample(t).conversation()); artel.KindOf(err) != artel.Canceled {
		t.Errorf("canceled: %v", err)
	}
}

// rezip writes entries as they are told.
func rezip(t testing.TB, entries map[string]string, extra ...zip.FileHeader) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(e, entries[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range extra {
		e, err := w.CreateHeader(&h)
		if err == nil && !strings.HasSuffix(h.Name, "/") {
			_, err = io.WriteString(e, "x")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
