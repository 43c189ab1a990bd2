// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/skills"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// folder makes a skill of files.
func folder(t *testing.T, name string, files map[string]string) *skill.Folder {
	t.Helper()
	disk := fstest.MapFS{skill.FileName: {Data: []byte("---\nname: " + name + "\ndescription: Does " + name + " things.\nallowed-tools: delete_artifact\n---\n# How\n\nRead references/words.md.\n")}}
	for p, text := range files {
		disk[p] = &fstest.MapFile{Data: []byte(text)}
	}
	f, err := skill.ReadFS(disk, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func picture(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (b *bench) importSkill(f *skill.Folder, offer bool) skills.Imported {
	b.t.Helper()
	done, err := b.Skills.Import(apptest.Context(b.t), f, offer)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// An agent sees the names of its skills, opens them step by step, and gets pictures and
// templates as artifacts. The record of the request has the version.
func TestSkillsInRuns(t *testing.T) {
	var docs []string
	answers := []string{
		`{"name":"brand"}`, `{"name":"brand","path":"references/words.md"}`, `{"name":"brand","path":"assets/logo.png"}`,
		`{"name":"brand","path":"assets/letter.md","copy":true}`, `{"name":"brand","path":"nothing"}`, `{"name":"other"}`, `{}`,
	}
	var requests []*model.Request
	b := newBench(t, provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		requests = append(requests, r)
		for _, s := range r.Tools {
			if s.Name == "open_skill" {
				docs = append(docs, s.Description)
			}
		}
		n := len(requests) - 1
		if n >= len(answers) {
			_ = yield(model.TextDelta("Done."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
			return
		}
		var args map[string]any
		if err := json.Unmarshal([]byte(answers[n]), &args); err != nil {
			t.Error(err)
		}
		_ = yield(call("open_skill", args), nil) && yield(model.Finish{Reason: model.StopTools}, nil)
	}))
	b.importSkill(folder(t, "brand", nil), true)
	b.importSkill(folder(t, "brand", map[string]string{
		"references/words.md": "Say tide.\n", "assets/logo.png": picture(t), "assets/letter.md": "Dear {name}", "scripts/run.sh": "echo",
	}), true)
	b.importSkill(folder(t, "waiting", nil), false)
	c := b.conversation()
	if r := b.ask(c, "Write."); r.State != artel.RunDone {
		t.Fatalf("%+v", r)
	}
	for _, d := range docs {
		if d != docs[0] || !strings.Contains(d, "- brand (version 2): Does brand things.") || strings.Contains(d, "waiting") {
			t.Errorf("description %q", d)
		}
	}
	if len(docs) != len(answers)+1 {
		t.Errorf("%d requests with the tool", len(docs))
	}
	var results []artel.ToolResult
	for _, m := range b.messages(c) {
		results = append(results, artel.ResultsOf(m.Parts)...)
	}
	for i, want := range []string{
		"# How\n\nRead references/words.md.\n<files>\nassets/letter.md (text/markdown, 11 B)\nassets/logo.png (image/png, ", "\nSay tide.\n</skill>", "is the artifact 'logo.png'",
		"is the artifact 'letter.md'", "has no such file; it has: SKILL.md, assets/letter.md", "there is no such skill; there are: brand", "- brand (version 2): Does brand things.",
	} {
		if !strings.Contains(results[i].Content, want) {
			t.Errorf("result %d: %q, want %q", i, results[i].Content, want)
		}
	}
	if m := results[0].Metadata; fmt.Sprint(m["skill"], m["skill_version"]) != "brand2" {
		t.Errorf("metadata %v", m)
	}
	if len(artel.MediaOf(results[2].Parts)) != 1 {
		t.Errorf("the picture is not in %+v", results[2])
	}
	if text := b.text(c, "letter.md", b.messages(c)[len(b.messages(c))-1].ID); text != "Dear {name}" {
		t.Errorf("letter %q", text)
	}
}

// Agents without skills have no tool for them, and neither do those whose permission
// denies it.
func TestSkillsOfAgents(t *testing.T) {
	var tools []string
	b := newBench(t, provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		has := "none"
		for _, s := range r.Tools {
			if s.Name == "open_skill" {
				has = s.Description[strings.Index(s.Description, "The skills:"):]
			}
		}
		tools = append(tools, has)
		_ = yield(model.TextDelta("Done."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}), func(c *app.Config) {
		c.Skills = []skills.Folder{{Folder: folder(t, "house", nil), Dir: "/skills/house"}}
	})
	b.importSkill(folder(t, "brand", nil), true)
	for _, d := range []agent.Definition{
		{Name: "none", Prompt: "x"},
		{Name: "one", Prompt: "x", Skills: agent.SkillNames{"brand", "gone"}},
		{Name: "all", Prompt: "x", Skills: agent.SkillNames{"*"}},
		{Name: "denied", Prompt: "x", Skills: agent.SkillNames{"*"}, Permissions: agent.Permissions{"open_skill": agent.Deny}},
	} {
		b.make(d)
		c := b.conversation()
		b.ended(b.send(c, run.Input{Text: "Hi", Agent: d.Name}))
	}
	want := []string{"none", "The skills:\n- brand (version 1): Does brand things.", "The skills:\n- brand (version 1): Does brand things.\n- house: Does house things.", "none"}
	if fmt.Sprint(tools) != fmt.Sprint(want) {
		t.Errorf("got %q", tools)
	}
	if !strings.Contains(b.log.String(), "names skills that are not offered") {
		t.Error("the missing skill is not in the log")
	}
}

// Versions are kept, found again by content, offered, removed over the limit, and
// survive a sweep with all bytes. Another user sees nothing of them.
func TestSkillVersions(t *testing.T) {
	b := newBench(t, nil, func(c *app.Config) {
		c.Skills = []skills.Folder{{Folder: folder(t, "house", nil), Dir: "/skills/house"}}
	})
	ctx := apptest.Context(t)
	first := folder(t, "brand", map[string]string{"a.txt": "one", "bin": "\x00\x01"})
	if done := b.importSkill(first, false); done.Version.Number != 1 || !done.New || done.Skill.IsOffered() {
		t.Errorf("%+v", done)
	}
	if done := b.importSkill(first, true); done.Version.Number != 1 || done.New || done.Skill.Offered != 1 {
		t.Errorf("%+v", done)
	}
	var removed []int
	for i := range 21 {
		done := b.importSkill(folder(t, "brand", map[string]string{"a.txt": fmt.Sprint(i)}), false)
		if removed = append(removed, done.Removed...); done.Skill.Offered != 1 || done.Version.Number != i+2 || len(done.Skill.Versions) > 20 {
			t.Errorf("%d: %+v", i, done)
		}
	}
	if fmt.Sprint(removed) != "[2 3]" { // not 1, which is offered
		t.Errorf("removed %v", removed)
	}
	if _, err := sweep.Run(ctx, b.config.Store, b.config.Blobs, time.Now().Add(time.Hour), sweep.Options{}); err != nil {
		t.Fatal(err)
	}
	var one, other, third bytes.Buffer
	if err := errors.Join(skill.WriteZIP(&one, "brand", first.Files), b.Skills.Export(ctx, "brand", 1, &other), b.Skills.Export(ctx, "brand", 0, &third)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), other.Bytes()) || !bytes.Equal(one.Bytes(), third.Bytes()) {
		t.Error("the export has other bytes")
	}
	x, err := b.Skills.Find(ctx, "brand")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Skills.Offer(ctx, "brand", 22, x.Revision-1); artel.CodeOf(err) != app.CodeStale {
		t.Errorf("an old revision: %v", err)
	}
	if _, err := b.Skills.Offer(ctx, "brand", 3, 0); artel.CodeOf(err) != skills.CodeNotFound {
		t.Errorf("a removed version: %v", err)
	}
	if x, err = b.Skills.Offer(ctx, "brand", 22, x.Revision); err != nil || x.Current().Number != 22 {
		t.Errorf("%+v, %v", x, err)
	}
	stranger := artel.WithOwner(apptest.Context(t), "stranger")
	if all, err := b.Skills.List(stranger); err != nil || len(all) != 1 || all[0].Name != "house" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := b.Skills.Open(stranger, "brand", 0, ""); !errors.Is(err, artel.NotFound) {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"delete": b.Skills.Delete(ctx, "house", 0), "offer": func() error { _, err := b.Skills.Offer(ctx, "house", 1, 0); return err }(),
		"import": func() error { _, err := b.Skills.Import(ctx, folder(t, "house", nil), true); return err }(),
	} {
		if artel.CodeOf(err) != skills.CodeReadOnly {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Skills.Delete(ctx, "brand", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Skills.Find(ctx, "brand"); !errors.Is(err, artel.NotFound) {
		t.Error(err)
	}
	if done := b.importSkill(first, true); done.Version.Number != 1 {
		t.Errorf("%+v", done)
	}
}

// A file of the deployment that changes after the start is not shown as the one of before.
func TestSkillOfFolderChanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(skill.FileName, "---\nname: house\ndescription: x\n---\ntext")
	write("a.txt", "one")
	f, err := skill.ReadFS(os.DirFS(dir), "house")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil, func(c *app.Config) { c.Skills = []skills.Folder{{Folder: f, Dir: dir}} })
	o, err := b.Skills.Open(apptest.Context(t), "house", 0, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(o.Content); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
	write("a.txt", "two")
	if _, err := b.Skills.Open(apptest.Context(t), "house", 0, "a.txt"); err == nil || !strings.Contains(err.Error(), "was changed or removed since the server started") {
		t.Error(err)
	}
}
