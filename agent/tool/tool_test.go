// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a conversation with the built-in tools.
type bench struct {
	t     *testing.T
	box   *tool.Set
	env   tool.Env
	files *artifact.Collection
	store store.Store
	blobs blob.Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db := rowstest.Open(t)
	const conv = artel.ConversationID("cnv_00000000000000000000000000")
	err := db.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: conv})
	})
	if err != nil {
		t.Fatal(err)
	}
	box, err := tool.NewSet(tool.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	blobs := blob.NewMemory()
	files := artifact.New(db, blobs, artifact.Options{})
	return &bench{t: t, box: box, files: files, store: db, blobs: blobs, env: tool.Env{
		Owner: artel.Local, Conversation: conv, Artifacts: files, Locale: phrase.English,
		Workspace: files.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: conv, Author: "lead"}),
	}}
}

func (b *bench) call(name string, args any) tool.Result {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.box.Call(b.t.Context(), &b.env, name, raw)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// ok calls a tool that must succeed.
func (b *bench) ok(name string, args any) tool.Result {
	b.t.Helper()
	r := b.call(name, args)
	if r.IsError {
		b.t.Fatalf("%s %v: %s", name, args, r.Content)
	}
	return r
}

// refused calls a tool that must fail with a result that holds every want.
func (b *bench) refused(name string, args any, want ...string) tool.Result {
	b.t.Helper()
	r := b.call(name, args)
	if !r.IsError {
		b.t.Fatalf("%s %v succeeded: %s", name, args, r.Content)
	}
	for _, w := range want {
		if !strings.Contains(r.Content, w) {
			b.t.Errorf("%s %v: %q does not say %q", name, args, r.Content, w)
		}
	}
	return r
}

func (b *bench) upload(name string, data []byte) artel.Artifact {
	b.t.Helper()
	s, err := b.files.Uploads.Stage(b.t.Context(), bytes.NewReader(data), media.Hint{Filename: name})
	if err != nil {
		b.t.Fatal(err)
	}
	as, err := b.files.Uploads.Add(b.t.Context(), artel.Local, b.env.Conversation, []artifact.Staged{s})
	if err != nil {
		b.t.Fatal(err)
	}
	return as[0]
}

type m = map[string]any

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriting(t *testing.T) {
	b := newBench(t)
	r := b.ok("create_artifact", m{"id": " artifact:notes ", "title": "Notes", "content": "one\ntwo\ntwo\n", "content_type": "text/plain"})
	if want := `<artifact version="1"><id>notes</id> Created artifact 'notes'</artifact>`; r.Content != want {
		t.Errorf("got %s, want %s", r.Content, want)
	}
	snapshot := r.Metadata["artifact_snapshot"].(m)
	if snapshot["media_type"] != "text/plain" || snapshot["version"] != 1 {
		t.Errorf("snapshot: %v", snapshot)
	}
	b.refused("create_artifact", m{"id": "notes", "title": "", "content": "x"}, "update_artifact")
	b.refused("create_artifact", m{"id": "../etc/passwd", "title": "", "content": "x"}, "not an artifact id")
	b.refused("update_artifact", m{"id": "notes", "old_str": "two", "new_str": "2"}, "2", "line")
	b.refused("update_artifact", m{"id": "notes", "old_str": "absent and nowhere", "new_str": "2"})
	b.refused("update_artifact", m{"id": "notes"}, "nothing to do")
	b.refused("update_artifact", m{"id": "notes", "old_str": "one"}, "go together")
	b.refused("update_artifact", m{"id": "notes", "old_str": "one", "new_str": "", "edits": []m{{"old": "one", "new": "1"}}}, "not both")
	b.refused("update_artifact", m{"id": "other", "old_str": "one", "new_str": "1"}, "other")
	b.refused("update_artifact", m{"id": "notes@1", "old_str": "one", "new_str": "1"}, "never changes")
	b.refused("update_artifact", m{"id": "artifact:cnv_11111111111111111111111111/notes", "old_str": "one", "new_str": "1"}, "another conversation")
	b.refused("update_artifact", m{"id": "notes", "old_str": "one", "new_str": "1", "if_version": 7}, "version 1")
	b.refused("update_artifact", m{"id": "notes", "edits": []m{{"old": "one", "new": "1"}, {"old": "zzz", "new": "1"}}}, "edit 2 of 2", "none of the edits")

	r = b.ok("update_artifact", m{"id": "notes", "if_version": 1, "edits": []m{{"old": "one", "new": "1"}, {"old": "two", "new": "2", "replace_all": true}}})
	if want := `<artifact version="2"><id>notes</id> Successfully updated artifact 'notes' (v2)</artifact>`; r.Content != want {
		t.Errorf("got %s, want %s", r.Content, want)
	}
	if es := r.Metadata["edits"].([]m); len(es) != 2 || es[1]["count"] != 2 {
		t.Errorf("edits: %v", es)
	}
	b.ok("rewrite_artifact", m{"id": "notes", "content": "new", "if_version": 2})
	b.refused("rewrite_artifact", m{"id": "notes", "content": "newer", "if_version": 2}, "version 3", "<yours>\nnewer", "<version_3>\nnew")
	if got := b.ok("get_artifact", m{"ref": "artifact:notes@2"}).Content; got != "1\n2\n2\n" {
		t.Errorf("version 2 is %q", got)
	}
	if got := b.ok("get_artifact", m{"ref": "notes"}).Content; got != "new" {
		t.Errorf("the head is %q", got)
	}
}

func TestBinaryIsNeverEditedNorShownAsText(t *testing.T) {
	b := newBench(t)
	data := picture(t)
	a := b.upload("Shot.PNG", data)
	id := string(a.ID)
	b.refused("update_artifact", m{"id": id, "old_str": "PNG", "new_str": "x"}, "binary")
	b.refused("rewrite_artifact", m{"id": id, "content": "x"}, "binary")
	b.refused("read_artifact", m{"id": id}, "get_artifact")
	b.refused("read_artifact", m{"id": id, "version": 1}, "get_artifact")

	for _, ref := range []string{id, id + "@1", a.Ref.String() + "@1", "blob:" + string(a.Digest)} {
		r := b.ok("get_artifact", m{"ref": ref})
		if len(r.Parts) != 0 || !strings.HasPrefix(r.Content, "[cannot read] Shot.PNG") {
			t.Errorf("%s for a text model: %q %v", ref, r.Content, r.Parts)
		}
	}
	b.env.Target = route.Target{Capabilities: model.Capabilities{Input: model.Fact[[]artel.Capability]{
		Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromOperator,
	}}}
	r := b.ok("get_artifact", m{"ref": id})
	var got struct{ ContentType, Routing, Step string }
	if err := json.Unmarshal([]byte(r.Content), &got); err != nil {
		t.Fatal(err)
	}
	if got.ContentType != "image" || got.Routing != artel.RoutingImage || got.Step != "native" {
		t.Errorf("content: %s", r.Content)
	}
	ref := a.Ref
	ref.Version = 1
	want := artel.Parts{
		artel.Media{Ref: ref, MediaType: "image/png", Kind: artel.KindImage, Filename: "Shot.PNG", Size: int64(len(data)), Width: 40, Height: 30},
	}
	if diff := cmp.Diff(want, r.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if strings.Contains(r.Content, base64.StdEncoding.EncodeToString(data)[:24]) {
		t.Error("the content holds bytes of the picture")
	}
	if u := r.Metadata["url"]; u != "/api/v1/files/artifact:cnv_00000000000000000000000000%2F"+id+"@1" {
		t.Errorf("url: %v", u)
	}
}

func TestMissingArtifact(t *testing.T) {
	b := newBench(t)
	for _, ref := range []string{"nothing", "artifact:nothing@3", "blob:sha256-" + strings.Repeat("0", 64), "../../etc", "artifact:cnv_11111111111111111111111111/x@1"} {
		r := b.refused("get_artifact", m{"ref": ref})
		var got struct{ Error, Ref, Message string }
		if err := json.Unmarshal([]byte(r.Content), &got); err != nil {
			t.Fatalf("%s: %v in %q", ref, err, r.Content)
		}
		if got.Error != artel.CodeArtifactNotFound || got.Ref != ref || got.Message == "" {
			t.Errorf("%s: %s", ref, r.Content)
		}
	}
	b.refused("read_artifact", m{"id": "nothing"}, "nothing")
	b.env.Artifacts = nil
	b.refused("get_artifact", m{"ref": "blob:sha256-" + strings.Repeat("0", 64)}, "only artifacts of this conversation")
}

func TestList(t *testing.T) {
	b := newBench(t)
	if got := b.ok("list_artifacts", nil).Content; got != "No artifacts in this conversation yet." {
		t.Errorf("empty: %s", got)
	}
	b.ok("create_artifact", m{"id": "a", "title": `<b> & "c"`, "content": "x"})
	if got := b.ok("list_artifacts", m{}).Content; !strings.Contains(got, `<title>&lt;b&gt; &amp; &quot;c&quot;</title>`) {
		t.Errorf("the title is not escaped: %s", got)
	}
}

func TestBoxSaysWhatIsWrong(t *testing.T) {
	b := newBench(t)
	b.refused("delete_everything", m{}, "create_artifact", "get_artifact")
	b.refused("create_artifact", m{"id": "x"}, "content", "Schema")
	b.refused("create_artifact", m{"id": "x", "title": "t", "content": "c", "colour": "red"}, "colour")
	b.refused("create_artifact", m{"id": 7, "title": "t", "content": "c"}, "string")
	b.refused("create_artifact", "no JSON in here", "not a JSON object")
	b.refused("create_artifact", []int{1}, "not a JSON object")
	b.refused("read_artifact", m{"id": "x", "offset": -1}, "from 1")

	b.ok("create_artifact", m{"id": "x", "title": "t", "content": "c", "media_type": nil})
	b.ok("read_artifact", `{"id":"x","version":null}`)
	b.ok("list_artifacts", nil)
	for _, s := range b.box.Specs() {
		if bytes.Contains(s.Schema, []byte(`"null"`)) || s.Description == "" {
			t.Errorf("%s: %s", s.Name, s.Schema)
		}
	}
	if got := b.box.Specs("read_artifact", "absent", "create_artifact"); len(got) != 2 || got[0].Name != "read_artifact" {
		t.Errorf("specs: %v", got)
	}
}

func TestNewBoxRefuses(t *testing.T) {
	good := tool.Func("good", "", func(context.Context, *tool.Env, struct{}) (tool.Result, error) { return tool.Result{}, nil })
	noSchema := tool.Func("f", "", func(context.Context, *tool.Env, struct{ F func() }) (tool.Result, error) { return tool.Result{}, nil })
	array := good
	array.Schema = json.RawMessage(`{"type":"array"}`)
	for name, tools := range map[string][]tool.Tool{
		"twice":       {good, good},
		"no schema":   {noSchema},
		"no function": {{Name: "x", Schema: good.Schema}},
		"bad name":    {{Name: "a b", Schema: good.Schema, Call: good.Call}},
		"array":       {array},
	} {
		if _, err := tool.NewSet(tools...); !errors.Is(err, artel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailuresOfTools(t *testing.T) {
	boom := tool.Func("boom", "", func(context.Context, *tool.Env, struct{}) (tool.Result, error) { panic("at the disco") })
	fails := tool.Func("fails", "", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		return tool.Result{}, fmt.Errorf("disk: %w", artel.Unavailable)
	})
	box, err := tool.NewSet(boom, fails)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Call(t.Context(), &tool.Env{}, "boom", nil); artel.KindOf(err) != artel.Internal || !strings.Contains(err.Error(), "at the disco") {
		t.Errorf("panic: %v", err)
	}
	if _, err := box.Call(t.Context(), &tool.Env{}, "fails", nil); !errors.Is(err, artel.Unavailable) {
		t.Errorf("failure: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.Call(ctx, &tool.Env{}, "boom", nil); !errors.Is(err, artel.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
