// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/export"
)

// entriesOf unpacks a ZIP.
func entriesOf(t testing.TB, file string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, f := range z.File {
		b, err := readAll(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		entries[f.Name] = string(b)
	}
	return entries
}

// consume reads everything that a ZIP has.
func consume(ctx context.Context, file string, o export.ReadOptions) error {
	a, err := export.ReadZIP(ctx, strings.NewReader(file), int64(len(file)), o)
	if err != nil {
		return err
	}
	for _, err := range a.EachMessage(ctx) {
		if err != nil {
			return err
		}
	}
	for x, err := range a.EachArtifact(ctx) {
		if err != nil {
			return err
		}
		for _, v := range x.Versions {
			r, err := a.Open(x.ID, v.Number)
			if err != nil {
				return err
			}
			n, err := io.Copy(io.Discard, r)
			if err := errors.Join(err, r.Close()); err != nil {
				return err
			}
			if n != v.Size {
				return fmt.Errorf("%s version %d has %d bytes, want %d", x.ID, v.Number, n, v.Size)
			}
		}
	}
	return nil
}

// TestReadZIPOfOthers reads what somebody has packed again, with more in it.
func TestReadZIPOfOthers(t *testing.T) {
	entries := entriesOf(t, sample(t).zip(t))
	entries["__MACOSX/._x"] = "x"
	entries[".DS_Store"] = "x"
	delete(entries, "README.md")
	delete(entries, "files/Red square.png")
	entries["conversation.json"] = strings.Replace(entries["conversation.json"], `"artifacts":[`, `"later":{"a":[1]},"artifacts":[`, 1)
	if err := consume(t.Context(), rezip(t, entries, zip.FileHeader{Name: "artifacts/"}), export.ReadOptions{}); err != nil {
		t.Error(err)
	}
}

func TestReadZIPRefuses(t *testing.T) {
	whole := sample(t)
	good := entriesOf(t, whole.zip(t))
	root := string(whole.messages[0].ID)
	tests := []struct {
		name     string
		old, new string // in conversation.json
		entry    string // another one to change: "name=content", or "-name"
		kind     artel.Kind
		says     string
	}{
		{name: "no index", entry: "-conversation.json", kind: artel.Invalid, says: "conversation.json: the ZIP has no such file"},
		{name: "no JSON", old: `{"format"`, new: `{format`, kind: artel.Invalid, says: "conversation.json: is not the JSON"},
		{name: "a list", old: `{"format"`, new: `[{"format"`, kind: artel.Invalid, says: "conversation.json"},
		{name: "cut", old: "]}]}\n", new: "]}", kind: artel.Invalid, says: "conversation.json"},
		{name: "more", old: "]}]}\n", new: "]}]}{}", kind: artel.Invalid, says: "goes on"},
		{name: "another format", old: "artel-conversation", new: "other", kind: artel.Invalid, says: `"other"`},
		{name: "newer", old: `"format_version":1`, new: `"format_version":2`, kind: artel.Unsupported, says: "version 2"},
		{name: "version of text", old: `"format_version":1`, new: `"format_version":"1"`, kind: artel.Invalid, says: "conversation.json"},
		{name: "field missing", old: `"messages":[`, new: `"massages":[`, kind: artel.Invalid, says: `"messages" is missing`},
		{name: "variables of nobody", old: `"artifacts":[`, new: `"variables":[{"message":"msg_none","value":{}}],"artifacts":[`, kind: artel.Invalid, says: "which has variables, is not in it"},
		{name: "variables twice", old: `"artifacts":[`, new: `"variables":[{"message":"` + root + `","value":{}},{"message":"` + root + `","value":{}}],"artifacts":[`, kind: artel.Invalid, says: "has variables twice"},
		{name: "variables that are no object", old: `"artifacts":[`, new: `"variables":[{"message":"` + root + `","value":7}],"artifacts":[`, kind: artel.Invalid, says: "are no object"},
		{name: "variables that are no list", old: `"artifacts":[`, new: `"variables":7,"artifacts":[`, kind: artel.Invalid, says: "should be"},
		{name: "field twice", old: `"artifacts":[`, new: `"artifacts":[],"artifacts":[`, kind: artel.Invalid, says: "twice"},
		{name: "messages no list", old: `"messages":[`, new: `"messages":{},"x":[`, kind: artel.Invalid, says: "conversation.json"},
		{name: "conversation id", old: string(whole.ID), new: "cnv_x", kind: artel.Invalid, says: "no id of the right form"},
		{name: "message id", old: `"messages":[` + "\n" + `{"id":"` + root, new: `"messages":[` + "\n" + `{"id":"../x`, kind: artel.Invalid, says: "message 1 has no id"},
		{name: "message twice", old: string(whole.messages[1].ID), new: root, kind: artel.Invalid, says: root + " is there twice"},
		{name: "parent", old: `"parent_id":"` + root, new: `"parent_id":"` + string(whole.messages[2].ID), kind: artel.Invalid, says: "does not come before it"},
		{name: "role", old: `"role":"user"`, new: `"role":"king"`, kind: artel.Invalid, says: `"king"`},
		{name: "part", old: `"type":"tool_call"`, new: `"type":"spell"`, kind: artel.Invalid, says: `message 3: part 1: unknown type "spell"`},
		{name: "leaf", old: `"leaf":"` + string(whole.Leaf), new: `"leaf":"` + string(artel.NewMessageID(written)), kind: artel.Invalid, says: "newest message"},
		{name: "artifact id", old: `{"id":"plan"`, new: `{"id":"../plan"`, kind: artel.Invalid, says: "artifact 5 has no id"},
		{name: "artifact twice", old: `{"id":"plan"`, new: `{"id":"Plan"`, kind: artel.Invalid, says: "artifact Plan is there twice"},
		{name: "no version", old: `{"id":"plan"`, new: `{"id":"none","versions":[]},{"id":"plan"`, kind: artel.Invalid, says: "none has no version"},
		{name: "version order", old: `"version":4`, new: `"version":1`, kind: artel.Invalid, says: "plan version 1 does not come after"},
		{name: "version zero", old: `"version":1`, new: `"version":0`, kind: artel.Invalid, says: "version 0"},
		{name: "parent version", old: `"version":4`, new: `"version":4,"parent":4`, kind: artel.Invalid, says: "parent 4"},
		{name: "update type", old: `"update_type":"delete"`, new: `"update_type":"vanish"`, kind: artel.Invalid, says: `"vanish"`},
		{name: "source", old: `"source":"agent"`, new: `"source":"moon"`, kind: artel.Invalid, says: `"moon"`},
		{name: "kind", old: `"kind":"image"`, new: `"kind":"smell"`, kind: artel.Invalid, says: `"smell"`},
		{name: "digest form", old: `"digest":"sha256-`, new: `"digest":"md5-`, kind: artel.Invalid, says: "no digest"},
		{name: "version's message", old: `"message_id":"` + root, new: `"message_id":"` + string(artel.NewMessageID(written)), kind: artel.Invalid, says: "is not in it"},
		{name: "file missing", entry: "-artifacts/plan_2/v4.md", kind: artel.Invalid, says: "artifacts/plan_2/v4.md: the file of plan version 4"},
		{name: "file elsewhere", old: `"file":"artifacts/plan_2/v4.md"`, new: `"file":"../../../etc/passwd"`, kind: artel.Invalid, says: "etc/passwd: the file of plan"},
		{name: "file of two", old: `"file":"artifacts/plan_2/v4.md"`, new: `"file":"artifacts/plan_2/v1.md"`, kind: artel.Invalid, says: "artifacts/plan_2/v1.md"},
		{name: "longer file", entry: "artifacts/plan_2/v1.md=first and more", kind: artel.Invalid, says: "artifacts/plan_2/v1.md: has 14 bytes"},
		{name: "other file", entry: "artifacts/plan_2/v1.md=worst", kind: artel.Invalid, says: "artifacts/plan_2/v1.md: the bytes are not those"},
		{name: "up", entry: "a/../../x=x", kind: artel.Invalid, says: "a/../../x: the name leads out"},
		{name: "root", entry: "/etc/x=x", kind: artel.Invalid, says: "/etc/x: the name"},
		{name: "windows", entry: `a\..\x=x`, kind: artel.Invalid, says: `a\..\x: the name`},
		{name: "drive", entry: "C:x=x", kind: artel.Invalid, says: "C:x: the name"},
		{name: "dots", entry: "a/./x=x", kind: artel.Invalid, says: "a/./x: the name"},
		{name: "control", entry: "a\x00b=x", kind: artel.Invalid, says: "the name"},
		{name: "no UTF-8", entry: "a\xffb=x", kind: artel.Invalid, says: "the name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries := map[string]string{}
			for k, v := range good {
				entries[k] = v
			}
			if tt.old != "" {
				changed := strings.Replace(good["conversation.json"], tt.old, tt.new, 1)
				if changed == good["conversation.json"] {
					t.Fatalf("no %s", tt.old)
				}
				entries["conversation.json"] = changed
			}
			if gone, ok := strings.CutPrefix(tt.entry, "-"); ok {
				delete(entries, gone)
			} else if name, s, ok := strings.Cut(tt.entry, "="); ok {
				entries[name] = s
			}
			err := consume(t.Context(), rezip(t, entries), export.ReadOptions{})
			if artel.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %s: %v\nwant %s: %s", artel.KindOf(err), err, tt.kind, tt.says)
			}
		})
	}
}

func TestReadZIPRefusesEntries(t *testing.T) {
	good := entriesOf(t, sample(t).zip(t))
	link := zip.FileHeader{Name: "link"}
	link.SetMode(fs.ModeSymlink | 0o777)
	locked := zip.FileHeader{Name: "locked", Flags: 1}
	for _, tt := range []struct {
		header zip.FileHeader
		kind   artel.Kind
		says   string
	}{
		{zip.FileHeader{Name: "README.md"}, artel.Invalid, "README.md: the ZIP has two files"},
		{link, artel.Invalid, "link: is neither"},
		{locked, artel.Unsupported, "locked: is encrypted"},
	} {
		err := consume(t.Context(), rezip(t, good, tt.header), export.ReadOptions{})
		if artel.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.header.Name, err)
		}
	}
	odd := rezip(t, good)
	// The method of every entry is one that there is not.
	for at := 0; ; {
		i := strings.Index(odd[at:], "PK\x01\x02")
		if i < 0 {
			break
		}
		at += i
		odd = odd[:at+10] + "\x63\x00" + odd[at+12:]
		at += 12
	}
	if err := consume(t.Context(), odd, export.ReadOptions{}); artel.KindOf(err) != artel.Unsupported {
		t.Errorf("another method: %v", err)
	}
	for _, file := range []string{"", "no ZIP", strings.Repeat("PK\x05\x06", 100)} {
		if err := consume(t.Context(), file, export.ReadOptions{}); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%q: %v", artel.Shorten(file, 20), err)
		}
	}
}

func TestReadZIPLimits(t *testing.T) {
	file := sample(t).zip(t)
	for name, tt := range map[string]struct {
		o    export.ReadOptions
		says string
	}{
		"entries":  {export.ReadOptions{Entries: 3}, "at most 3"},
		"messages": {export.ReadOptions{Messages: 2}, "more than 2 messages"},
		"index":    {export.ReadOptions{Index: 100}, "conversation.json: has "},
		"file":     {export.ReadOptions{File: 6}, "artifacts/Plan/v1.md: has 10 bytes, and at most 6"},
		"unpacked": {export.ReadOptions{Unpacked: 1000}, "unpacks to more than 1000"},
	} {
		err := consume(t.Context(), file, tt.o)
		if artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := consume(ctx, file, export.ReadOptions{}); artel.KindOf(err) != artel.Canceled {
		t.Errorf("canceled: %v", err)
	}
	if _, err := export.ReadZIP(t.Context(), broken{}, 1000, export.ReadOptions{}); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a reader that fails: %v", err)
	}
}

// broken is a file that cannot be read.
type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the disk is gone") }

// TestBombs reads files that say much more than they are.
func TestBombs(t *testing.T) {
	good := entriesOf(t, sample(t).zip(t))
	zeros := func(n int) string { return strings.Repeat("0", n) }

	// One that unpacks to 1,000 times its size.
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, s := range good {
		e, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(e, s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	packed := []byte("x")
	e, err := w.CreateRaw(&zip.FileHeader{Name: "bomb", Method: zip.Deflate, CompressedSize64: 1, UncompressedSize64: 5 << 30})
	if err == nil {
		_, err = e.Write(packed)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := consume(t.Context(), b.String(), export.ReadOptions{}); artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), "bomb: ") {
		t.Errorf("a bomb: %v", err)
	}

	// A directory that is longer than it says.
	many := rezip(t, map[string]string{"a": "x"})
	header := many[strings.Index(many, "PK\x01\x02"):strings.Index(many, "PK\x05\x06")]
	end := []byte(many[strings.Index(many, "PK\x05\x06"):])
	binary.LittleEndian.PutUint32(end[12:], uint32(len(header)*65537))
	long := many[:strings.Index(many, "PK\x01\x02")] + strings.Repeat(header, 65537) + string(end)
	if err := consume(t.Context(), long, export.ReadOptions{Entries: 100}); artel.KindOf(err) != artel.TooLarge {
		t.Errorf("a long directory: %v", err)
	}

	// Parts in parts in parts: each level would be read again and again.
	deep := entriesOf(t, sample(t).zip(t))
	levels := 2000
	nest := strings.Repeat(`{"type":"tool_result","call_id":"c","parts":[`, levels) + `{"type":"text","text":"` + zeros(60<<10) + `"}` + strings.Repeat("]}", levels)
	deep["conversation.json"] = strings.Replace(deep["conversation.json"], `"parts":[`, `"parts":[`+nest+`,`, 1)
	err = consume(t.Context(), rezip(t, deep), export.ReadOptions{Index: 1 << 20})
	if artel.KindOf(err) != artel.TooLarge || !strings.Contains(err.Error(), "brackets") {
		t.Errorf("deep parts: %v", err)
	}
}

// FuzzReadZIP reads anything, and an index of anything.
func FuzzReadZIP(f *testing.F) {
	good := sample(f).zip(f)
	entries := entriesOf(f, good)
	f.Add([]byte(good), entries["conversation.json"])
	f.Add([]byte(good[:len(good)/2]), `{"format":"artel-conversation"}`)
	f.Add([]byte(good[len(good)/2:]), "[]")
	f.Add([]byte(strings.ReplaceAll(good, "plan", "../x")), strings.ReplaceAll(entries["conversation.json"], `"version":`, `"version":1`))
	f.Fuzz(func(t *testing.T, file []byte, index string) {
		o := export.ReadOptions{Unpacked: 1 << 24, Index: 1 << 22}
		for _, s := range []string{string(file), rezip(t, map[string]string{"conversation.json": index, "artifacts/plan_2/v1.md": "first", "artifacts/red.png/v1.png": "x"})} {
			switch err := consume(t.Context(), s, o); artel.KindOf(err) {
			case "", artel.Invalid, artel.TooLarge, artel.Unsupported:
			default:
				t.Errorf("%s: %v", artel.KindOf(err), err)
			}
		}
	})
}

// large is a conversation of many messages and some large files.
func large(b *testing.B, messages int, files int) *thread {
	c := sample(b)
	parent := c.Leaf
	text := strings.Repeat("Some words of an answer, as models give them. ", 20)
	for range messages {
		parent = c.say(parent, artel.RoleAssistant, artel.Text{Text: text})
	}
	bytes := bytes.Repeat([]byte("\x00\x01 some bytes of a file that nobody can read"), 100_000)
	for i := range files {
		v := artel.Version{Number: 1, InBlob: true}
		v.MediaType, v.Kind = "application/octet-stream", artel.KindOther
		c.add(artel.ArtifactID(fmt.Sprintf("z%d", i)), v, bytes)
	}
	return c
}

// size is that of all versions.
func (c *thread) size() (n int64) {
	for _, b := range c.bytes {
		n += int64(len(b))
	}
	return n
}

func BenchmarkZIP(b *testing.B) {
	c := large(b, 2000, 4)
	b.SetBytes(c.size())
	b.ReportAllocs()
	for b.Loop() {
		if err := export.ZIP(b.Context(), io.Discard, c.conversation()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadZIP(b *testing.B) {
	c := large(b, 2000, 4)
	file := c.zip(b)
	b.SetBytes(c.size())
	b.ReportAllocs()
	for b.Loop() {
		if err := consume(b.Context(), file, export.ReadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReadZIPKeepsNothingUnknown reads an index whose unknown field is longer
// than what is kept: values are bounded, lists are skipped piece by piece.
func TestReadZIPKeepsNothingUnknown(t *testing.T) {
	read := func(name, field string) error {
		entries := entriesOf(t, sample(t).zip(t))
		entries["conversation.json"] = strings.Replace(entries["conversation.json"], "{", "{"+field+",", 1)
		var before, after runtime.MemStats
		var packed bytes.Buffer
		w := zip.NewWriter(&packed)
		for name, text := range entries {
			e, err := w.Create(name)
			if err == nil {
				_, err = io.WriteString(e, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		file := packed.String()
		runtime.ReadMemStats(&before)
		err := consume(t.Context(), file, export.ReadOptions{})
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; err != nil && mb > 100 {
			t.Errorf("%s: %d MB were taken", name, mb)
		}
		return err
	}
	const n = 60 << 20
	for name, field := range map[string]string{
		"a text": `"zz":"` + strings.Repeat("A", n) + `"`, "a key": `"` + strings.Repeat("k", n) + `":1`, "brackets": `"zz":` + strings.Repeat("[", n/4) + strings.Repeat("]", n/4),
		"a title": `"conversation":{"title":"` + strings.Repeat("A", n) + `"}`,
	} {
		if err := read(name, field); artel.KindOf(err) != artel.TooLarge && artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := read("a list", `"zz":[`+strings.Repeat(`"a",`, 1<<20)+`{"b":[]}]`); err != nil {
		t.Errorf("a list: %v", err)
	}
}
