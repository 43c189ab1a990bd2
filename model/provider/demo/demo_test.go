// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// answer is what one call of the model gave.
type answer struct {
	text, reasoning string
	calls           []artel.ToolCall
	finish          model.Finish
	deltas          int
	err             error
}

func ask(ctx context.Context, p *demo.Provider, r *model.Request) answer {
	var a answer
	for d, err := range p.Generate(ctx, r) {
		if err != nil {
			a.err = err
			break
		}
		a.deltas++
		switch d := d.(type) {
		case model.TextDelta:
			a.text += string(d)
		case model.ReasoningDelta:
			a.reasoning += string(d)
		case model.CallDelta:
			a.calls = append(a.calls, artel.ToolCall(d))
		case model.Finish:
			a.finish = d
		}
	}
	return a
}

// A desk keeps artifacts the way the tools do, as far as the script can tell.
type desk struct {
	texts  map[string]string
	refuse map[string]bool // "tool id", refused once
	media  map[string]artel.Media
}

func newDesk() *desk {
	return &desk{texts: map[string]string{}, refuse: map[string]bool{}, media: map[string]artel.Media{}}
}

func (d *desk) do(t *testing.T, c artel.ToolCall) artel.ToolResult {
	t.Helper()
	var args struct {
		ID, Title, Content, Ref string
		Edits                   []struct{ Old, New string }
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	fail := func(s string) artel.ToolResult { return artel.ToolResult{CallID: c.ID, Content: s, IsError: true} }
	if key := c.Name + " " + args.ID; d.refuse[key] {
		delete(d.refuse, key)
		return fail("refused")
	}
	text, there := d.texts[args.ID]
	result := artel.ToolResult{CallID: c.ID, Content: "ok"}
	switch c.Name {
	case "create_artifact":
		if there || args.ID == "" || args.Title == "" {
			return fail("exists already")
		}
		d.texts[args.ID] = args.Content
	case "rewrite_artifact":
		if !there {
			return fail("not found")
		}
		d.texts[args.ID] = args.Content
	case "update_artifact":
		for _, e := range args.Edits {
			if strings.Count(text, e.Old) != 1 {
				return fail(fmt.Sprintf("%d places match", strings.Count(text, e.Old)))
			}
			text = strings.Replace(text, e.Old, e.New, 1)
		}
		d.texts[args.ID] = text
	case "read_artifact":
		if !there {
			return fail("not found")
		}
		result.Content = text
	case "get_artifact":
		if m, ok := d.media[strings.TrimPrefix(args.Ref, "artifact:")]; ok {
			result.Parts = artel.Parts{m}
		}
	default:
		t.Fatalf("there is no tool %s", c.Name)
	}
	return result
}

var allTools = tools("create_artifact", "update_artifact", "rewrite_artifact", "read_artifact", "get_artifact")

func tools(names ...string) []model.ToolSpec {
	var out []model.ToolSpec
	for _, n := range names {
		out = append(out, model.ToolSpec{Name: n})
	}
	return out
}

func user(parts ...artel.Part) model.Message {
	return model.Message{Role: artel.RoleUser, Parts: parts}
}

func says(s string) artel.Text { return artel.Text{Text: s} }

var reminder = user(says("<system-reminder>\nThe time is now. 时间\n\n<artifacts_inventory>\n# not a heading\n</artifacts_inventory>\n</system-reminder>"))

// run plays a whole run and returns the conversation after it, with one
// answer for each turn.
func run(t *testing.T, p *demo.Provider, d *desk, specs []model.ToolSpec, messages ...model.Message) ([]model.Message, []answer) {
	t.Helper()
	var answers []answer
	seen := map[artel.CallID]bool{}
	for range 30 {
		a := ask(t.Context(), p, &model.Request{Messages: append(slices.Clip(messages), reminder), Tools: specs})
		if a.err != nil {
			t.Fatal(a.err)
		}
		answers = append(answers, a)
		var parts artel.Parts
		if a.reasoning != "" {
			parts = append(parts, artel.Reasoning{Text: a.reasoning, Service: "demo"})
		}
		parts = append(parts, says(a.text))
		var results []model.Message
		for _, c := range a.calls {
			if seen[c.ID] {
				t.Fatalf("call id %s is used twice", c.ID)
			}
			seen[c.ID] = true
			parts = append(parts, c)
			results = append(results, model.Message{Role: artel.RoleTool, Parts: artel.Parts{d.do(t, c)}})
		}
		messages = append(append(messages, model.Message{Role: artel.RoleAssistant, Parts: parts}), results...)
		if len(a.calls) == 0 {
			if a.finish.Reason != model.StopEnd {
				t.Fatalf("stopped for %s", a.finish.Reason)
			}
			return messages, answers
		}
		if a.finish.Reason != model.StopTools {
			t.Fatalf("stopped for %s", a.finish.Reason)
		}
	}
	t.Fatal("the run does not end")
	return nil, nil
}

func names(answers []answer) []string {
	var out []string
	for _, a := range answers {
		var names []string
		for _, c := range a.calls {
			names = append(names, c.Name)
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

func picture(t testing.TB, blobs blob.Store) artel.Media {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 64, 48))); err != nil {
		t.Fatal(err)
	}
	return keep(t, blobs, buf.Bytes(), artel.Media{MediaType: "image/png", Kind: artel.KindImage, Filename: "photo.png"})
}

func keep(t testing.TB, blobs blob.Store, data []byte, m artel.Media) artel.Media {
	t.Helper()
	info, err := blobs.Put(t.Context(), bytes.NewReader(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Ref, m.Size = artel.BlobRef(info.Digest), info.Size
	return m
}

const pdfBytes = "%PDF-1.4\n1 0 obj<</Type/Pages/Count 2>>\n2 0 obj<</Type /Page>>\n3 0 obj<</Type/Page >>\n%%EOF"

func TestARunWithAttachments(t *testing.T) {
	blobs := blob.NewMemory()
	p := demo.New(blobs, demo.Options{})
	pdf := keep(t, blobs, []byte(pdfBytes), artel.Media{MediaType: "application/pdf", Kind: artel.KindDocument, Filename: "paper.pdf"})
	d := newDesk()
	d.texts["notes"] = "x"
	d.media["logo"] = picture(t, blobs)
	_, answers := run(t, p, d, allTools, user(
		says("What are these?"),
		says("attachment photo v1 (photo.png)"), picture(t, blobs),
		pdf,
		says("attachment notes v2 (notes (final).md, text/markdown):\n````\nintro\n```\n# not closed\n````\n[40 of 90 characters are shown; to continue: read_artifact(id='notes', offset=9, version=2)]"),
		says("[cannot read] logo.png (artifact:logo)\ntype: PNG image\nsize: 1 KB\nThis model cannot read this kind of file. Ask an agent that can."),
		says("[cannot read] song.mp3 (artifact:song)\ntype: MP3 audio\nsize: 1 KB\nThis model cannot read this kind of file. Ask an agent that can."),
	))
	want := []string{
		"create_artifact", "get_artifact read_artifact get_artifact get_artifact",
		"update_artifact", "create_artifact", "update_artifact", "",
	}
	if diff := cmp.Diff(want, names(answers)); diff != "" {
		t.Errorf("the steps differ (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(answers[0].text, "**Demo model**") {
		t.Errorf("the first words do not say what this is: %q", answers[0].text)
	}
	for i, a := range answers {
		want := ""
		if i == 0 {
			want = phrase.English.Say(phrase.DemoThought, nil)
		}
		if a.reasoning != want {
			t.Errorf("turn %d reasons %q, want %q", i+1, a.reasoning, want)
		}
	}
	if got := d.texts["task_plan"]; strings.Contains(got, "[ ]") || strings.Count(got, "- [x] ") != 6 {
		t.Errorf("the plan is not ticked off:\n%s", got)
	}
	for _, text := range []string{d.texts["report"], answers[len(answers)-1].text} {
		for _, want := range []string{
			"- `photo.png`: PNG picture, 64 × 48 pixels, ",
			fmt.Sprintf("- `paper.pdf`: PDF document, 2 pages, %d bytes", len(pdfBytes)),
			"- `notes (final).md`: text, first heading “not closed”, lines: 3",
			"- `logo.png`: PNG picture, 64 × 48 pixels",
			"- `song.mp3`: I cannot read it.",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %q:\n%s", want, text)
			}
		}
	}
	if got := d.texts["report"]; !strings.HasPrefix(got, "# Report\n\n**Demo model**") || !strings.Contains(got, "> What are these?\n\nIt has 15 characters.") {
		t.Errorf("the report:\n%s", got)
	}
	if last := answers[len(answers)-1].text; !strings.Contains(last, "(artifact:report)") {
		t.Errorf("the answer does not link the report: %q", last)
	}
}

func TestOtherFormsOfAttachments(t *testing.T) {
	blobs := blob.NewMemory()
	d := newDesk()
	shown := picture(t, blobs)
	shown.Filename = "" // as from the wire
	d.media["crowded"] = picture(t, blobs)
	described := func(l phrase.Locale, k phrase.Key, name string) string {
		return l.Say(k, map[string]any{"Name": name, "Ref": "artifact:" + name, "Type": "x", "Size": "1 KB"})
	}
	_, answers := run(t, demo.New(blobs, demo.Options{}), d, allTools, user(
		says("What are these?"),
		says(described(phrase.English, phrase.RouteCrowded, "crowded")),
		says(described(phrase.Chinese, phrase.RouteCrowded, "crowded2")),
		says(described(phrase.Chinese, phrase.RouteDescribed, "locked")+"\n"+phrase.Chinese.Say(phrase.RouteReadable, map[string]any{"ID": "locked"})),
		says(described(phrase.English, phrase.RouteDescribed, "locked2")+"\n"+phrase.English.Say(phrase.RouteReadable, map[string]any{"ID": "locked2"})),
		says("attachment wide v1 (wide.png, 640 × 480 pixels, shown as 64 × 48)"), shown,
		says("attachment letter v1 (letter.docx, application/x-letter), the text that was taken out of it:\n```\n# Dear all\n```"),
		says("attachment talk v1 (talk (1).mp3, audio/mpeg), written down by scribe:\n```\nHello.\n```\n[6 of 9 characters are shown; to continue: read_artifact(id='talk')]"),
	))
	last := answers[len(answers)-1].text
	for _, want := range []string{
		"- `wide.png`: PNG picture, 64 × 48 pixels, ",
		"- `crowded`: PNG picture, 64 × 48 pixels, ", "- `crowded2`: I cannot read it.", "- `locked`: I cannot read it.", "- `locked2`: I cannot read it.",
		"- `letter.docx`: the text in it, not the file: text, first heading “Dear all”, lines: 1",
		"- `talk (1).mp3`: what another service wrote down of it: text without a heading, lines: 1",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("lacks %q:\n%s", want, last)
		}
	}
	if got := d.texts["report"]; !strings.Contains(got, "> What are these?\n\n") {
		t.Errorf("the report takes an attachment for words of the user:\n%s", got)
	}
}

// A service gets the same bytes once; a message that has them again names what
// they were called.
func TestAttachmentsThatWereShownBefore(t *testing.T) {
	blobs := blob.NewMemory()
	d := newDesk()
	paper := keep(t, blobs, []byte(pdfBytes), artel.Media{MediaType: "application/pdf", Kind: artel.KindDocument, Filename: "paper.pdf"})
	first := user(
		says("What are these?"),
		says("attachment photo v1 (photo.png)"), picture(t, blobs),
		paper,
		says("artifact logo v2 (logo.png), from tool call c1"), picture(t, blobs),
	)
	again := says("And now?\n\nattachment photo v1 (photo.png)\n\nartifact photo v1 (photo.png): the same as artifact photo v1 (photo.png), already shown" +
		"\n\nfile (paper.pdf): the same as file (paper.pdf), already shown" +
		"\n\nattachment copy v1 (copy.png)\n\nartifact copy v1 (copy.png): the same as artifact logo v2 (logo.png), already shown" +
		"\n\nartifact lost v1 (lost.png): the same as artifact gone v1 (gone.png), already shown")
	_, answers := run(t, demo.New(blobs, demo.Options{}), d, allTools, first, model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{says("Pictures.")}}, user(again))
	last := answers[len(answers)-1].text
	for _, want := range []string{
		"- `photo.png`: PNG picture, 64 × 48 pixels, ",
		fmt.Sprintf("- `paper.pdf`: PDF document, 2 pages, %d bytes", len(pdfBytes)),
		"- `copy.png`: PNG picture, 64 × 48 pixels, ",
		"- `lost.png`: I cannot read it.",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("lacks %q:\n%s", want, last)
		}
	}
	if got := d.texts["report"]; !strings.Contains(got, "> And now?\n\n") {
		t.Errorf("the report takes an attachment for words of the user:\n%s", got)
	}
}

func TestChinese(t *testing.T) {
	blobs := blob.NewMemory()
	d := newDesk()
	_, answers := run(t, demo.New(blobs, demo.Options{}), d, allTools, user(
		says("这张 PNG 图片是什么?"), picture(t, blobs),
		says("[无法读取] 录音.mp3 (artifact:录音)\n类型: MP3 音频\n大小: 1.0 KB\n当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。"),
	))
	for _, want := range []string{"# 报告", "演示模型", "PNG 图片，64 × 48 像素", "`录音.mp3`: 我无法读取它。", "> 这张 PNG 图片是什么?\n"} {
		if !strings.Contains(d.texts["report"], want) {
			t.Errorf("lacks %q:\n%s", want, d.texts["report"])
		}
	}
	if got := d.texts["task_plan"]; !strings.Contains(got, "- [x] 3. 撰写报告") {
		t.Errorf("the plan:\n%s", got)
	}
	if !strings.HasPrefix(answers[0].text, "**演示模型**") || answers[0].reasoning != phrase.Chinese.Say(phrase.DemoThought, nil) {
		t.Errorf("the first words: %q, %q", answers[0].reasoning, answers[0].text)
	}
}

func TestLanguageFollowsTheMessage(t *testing.T) {
	p := demo.New(nil, demo.Options{})
	english, chinese := phrase.English.Say(phrase.DemoNotice, nil), phrase.Chinese.Say(phrase.DemoNotice, nil)
	for s, want := range map[string]string{
		"hello": english, "你好": chinese, "写一份 report": chinese, "これは日本語です": english,
		"What does 你 mean in this sentence?": english, "123": english, "Привет": english,
	} {
		if got := ask(t.Context(), p, &model.Request{Messages: []model.Message{user(says(s)), reminder}}); !strings.HasPrefix(got.text, want) {
			t.Errorf("%q is answered with %q", s, got.text)
		}
	}
	got := ask(t.Context(), p, &model.Request{Messages: []model.Message{user(says("你好")), {Role: artel.RoleAssistant, Parts: artel.Parts{says("hi")}}, user(says("123"))}})
	if !strings.HasPrefix(got.text, chinese) {
		t.Errorf("a message without letters is answered with %q", got.text)
	}
}

func TestARunWithoutAttachments(t *testing.T) {
	d := newDesk()
	_, answers := run(t, demo.New(nil, demo.Options{}), d, allTools, user(says("Hello there")))
	want := []string{"create_artifact", "update_artifact", "create_artifact", "update_artifact", ""}
	if diff := cmp.Diff(want, names(answers)); diff != "" {
		t.Error(diff)
	}
	if got := d.texts["task_plan"]; got != "# Task plan\n\n- [x] 1. Read the message\n- [x] 2. Write the report\n" {
		t.Errorf("the plan:\n%s", got)
	}
}

func TestASecondMessageUpdatesPlanAndReport(t *testing.T) {
	d := newDesk()
	p := demo.New(nil, demo.Options{})
	conversation, _ := run(t, p, d, allTools, user(says("First")))
	conversation, answers := run(t, p, d, allTools, append(conversation, user(says("第二条消息")))...)
	want := []string{"rewrite_artifact", "update_artifact", "update_artifact", "update_artifact", ""}
	if diff := cmp.Diff(want, names(answers)); diff != "" {
		t.Error(diff)
	}
	_, answers = run(t, p, d, allTools, append(conversation, user(says("Third")))...)
	if diff := cmp.Diff(want, names(answers)); diff != "" {
		t.Error(diff)
	}
	if got := d.texts["task_plan"]; got != "# Task plan\n\n- [x] 1. Read the message\n- [x] 2. Write the report\n" {
		t.Errorf("the plan:\n%s", got)
	}
	order := []string{"# Report", "Demo model", "## Message 3", "> Third", "## 第 2 条消息", "> 第二条消息", "## Message 1", "> First"}
	at := 0
	for _, s := range order {
		i := strings.Index(d.texts["report"][at:], s)
		if i < 0 {
			t.Fatalf("no %q after byte %d:\n%s", s, at, d.texts["report"])
		}
		at += i
	}
}

func TestFailingToolsAreMended(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*desk)
		want    []string
	}{
		"both exist, unseen": {
			func(d *desk) { d.texts["task_plan"], d.texts["report"] = "old", "old" },
			[]string{"create_artifact", "rewrite_artifact", "update_artifact", "create_artifact", "rewrite_artifact", "update_artifact", ""},
		},
		"an update fails": {
			func(d *desk) { d.refuse["update_artifact task_plan"] = true },
			[]string{"create_artifact", "update_artifact", "rewrite_artifact", "create_artifact", "update_artifact", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			c.prepare(d)
			_, answers := run(t, demo.New(nil, demo.Options{}), d, allTools, user(says("Hi")))
			if diff := cmp.Diff(c.want, names(answers)); diff != "" {
				t.Error(diff)
			}
			if got := d.texts["task_plan"]; strings.Count(got, "- [x] ") != 2 {
				t.Errorf("the plan:\n%s", got)
			}
			if !strings.Contains(answers[len(answers)-1].text, "artifact:report") {
				t.Error("the report is not linked")
			}
		})
	}
}

func TestNothingCanBeWritten(t *testing.T) {
	d := newDesk()
	d.refuse["create_artifact task_plan"] = true
	d.refuse["create_artifact report"] = true
	_, answers := run(t, demo.New(nil, demo.Options{}), d, allTools, user(says("Hi")))
	want := []string{"create_artifact", "rewrite_artifact", "create_artifact", "rewrite_artifact", ""}
	if diff := cmp.Diff(want, names(answers)); diff != "" {
		t.Error(diff)
	}
	if got := answers[len(answers)-1].text; strings.Contains(got, "artifact:report") {
		t.Errorf("a report is linked that is not there: %q", got)
	}
}

func TestWithoutTools(t *testing.T) {
	blobs := blob.NewMemory()
	_, answers := run(t, demo.New(blobs, demo.Options{}), newDesk(), tools("call_subagent"), user(says("Look"), picture(t, blobs)))
	if got := answers[0].text; len(answers) != 1 || !strings.HasPrefix(got, "**Demo model**") || !strings.Contains(got, "64 × 48") {
		t.Errorf("got %q", got)
	}
}

func TestBytesThatCannotBeRead(t *testing.T) {
	blobs := blob.NewMemory()
	damaged := keep(t, blobs, []byte("\x89PNG\r\n\x1a\nno"), artel.Media{MediaType: "image/png", Kind: artel.KindImage, Filename: "damaged.png"})
	noPDF := keep(t, blobs, []byte("hello"), artel.Media{MediaType: "application/pdf", Kind: artel.KindDocument, Filename: "no.pdf"})
	missing := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "image/png", Kind: artel.KindImage, Filename: "missing.png"}
	odd := keep(t, blobs, []byte("12345"), artel.Media{MediaType: "application/zip", Kind: artel.KindArchive, Filename: "a`b\n.zip"})
	_, answers := run(t, demo.New(blobs, demo.Options{}), newDesk(), nil, user(damaged, noPDF, missing, odd,
		artel.Media{Ref: artel.Ref{Artifact: "x"}, Kind: artel.KindImage},
		says("[file failed: broken.bin]\nerror: the file's bytes cannot be read\nCheck whether the file is damaged.")))
	for _, want := range []string{
		"`damaged.png`: I cannot read it.", "`no.pdf`: I cannot read it.", "`missing.png`: I cannot read it.",
		"`unknown file`: I cannot read it.", "`broken.bin`: I cannot read it.", "`a'b .zip`: ZIP archive, 5 B",
	} {
		if !strings.Contains(answers[0].text, want) {
			t.Errorf("lacks %q:\n%s", want, answers[0].text)
		}
	}
}

func manyAttachments(t *testing.T, blobs blob.Store, d *desk) model.Message {
	m := user(says("All of these"))
	for i := range 20 {
		id := fmt.Sprintf("f%d", i)
		d.texts[id] = "x"
		m.Parts = append(m.Parts, says(fmt.Sprintf("attachment %s v1 (same.md, text/markdown):\n```\n# Heading %d\n```", id, i)))
	}
	return m
}

func TestTwentyAttachmentsOfOneName(t *testing.T) {
	d := newDesk()
	_, answers := run(t, demo.New(nil, demo.Options{}), d, allTools, manyAttachments(t, nil, d))
	reads := 0
	for _, n := range names(answers) {
		reads += strings.Count(n, "read_artifact")
	}
	if reads != 20 || strings.Contains(d.texts["task_plan"], "[ ]") || !strings.Contains(d.texts["report"], "“Heading 19”") {
		t.Errorf("%d reads; plan:\n%s\nreport:\n%s", reads, d.texts["task_plan"], d.texts["report"])
	}
}

func TestARunGoesOnFromAnyTurn(t *testing.T) {
	d := newDesk()
	p := demo.New(nil, demo.Options{})
	whole, answers := run(t, p, d, allTools, manyAttachments(t, nil, d))
	turn := 0
	for i, m := range whole {
		if m.Role != artel.RoleAssistant {
			continue
		}
		for _, with := range [][]model.Message{nil, {reminder}} {
			got := ask(t.Context(), demo.New(nil, demo.Options{}), &model.Request{Messages: append(slices.Clone(whole[:i]), with...), Tools: allTools})
			if diff := cmp.Diff(answers[turn].calls, got.calls); diff != "" || got.text != answers[turn].text {
				t.Errorf("turn %d is another after a restart:\n%s\n%s", turn+1, got.text, diff)
			}
		}
		turn++
	}
}

func TestAnInterruptedCallIsDoneAnotherWay(t *testing.T) {
	p := demo.New(nil, demo.Options{})
	messages := []model.Message{user(says("Hi"))}
	first := ask(t.Context(), p, &model.Request{Messages: messages, Tools: allTools})
	messages = append(messages, model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{first.calls[0]}})
	second := ask(t.Context(), p, &model.Request{Messages: messages, Tools: allTools})
	if len(second.calls) != 1 || second.calls[0].Name != "rewrite_artifact" {
		t.Errorf("got %v", second.calls)
	}
}

func TestGenerateStreamsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := demo.New(nil, demo.Options{Delay: 10 * time.Millisecond})
		start := time.Now()
		a := ask(t.Context(), p, &model.Request{Messages: []model.Message{user(says("Hi"))}})
		if a.err != nil || a.deltas < 8 {
			t.Fatalf("%d deltas, %v", a.deltas, a.err)
		}
		if got, want := time.Since(start), time.Duration(a.deltas)*10*time.Millisecond; got != want {
			t.Errorf("took %s, want %s", got, want)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
		defer cancel()
		a = ask(ctx, p, &model.Request{Messages: []model.Message{user(says("Hi"))}})
		if !errors.Is(a.err, artel.Canceled) || a.deltas != 2 {
			t.Errorf("%d deltas, then %v", a.deltas, a.err)
		}
	})
}

func TestGenerateStopsWhenTheLoopBreaks(t *testing.T) {
	n := 0
	for range demo.New(nil, demo.Options{}).Generate(t.Context(), &model.Request{Messages: []model.Message{user(says("Hi"))}}) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d deltas after a break at 2", n)
	}
}

func TestGenerateHonorsAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := ask(ctx, demo.New(nil, demo.Options{}), &model.Request{}); !errors.Is(a.err, artel.Canceled) || a.deltas > 0 {
		t.Errorf("%d deltas, then %v", a.deltas, a.err)
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add("attachment a v1 (b, c/d):\n```\n# x\n```", "[cannot read] a (artifact:b)")
	f.Add("<system-reminder>\n</system-reminder>", "attachment x v1 (y)")
	f.Add("[file failed: x]", "attachment a v1 (b, c/d):\n```")
	p := demo.New(blob.NewMemory(), demo.Options{})
	f.Fuzz(func(t *testing.T, a, b string) {
		r := &model.Request{Tools: allTools, Messages: []model.Message{user(says(a), says(b), artel.Media{Filename: b}), reminder}}
		first, second := ask(t.Context(), p, r), ask(t.Context(), p, r)
		if first.err != nil || first.text != second.text || !cmp.Equal(first.calls, second.calls) {
			t.Errorf("%v; %q; %q", first.err, first.text, second.text)
		}
		for _, c := range first.calls {
			if !json.Valid(c.Arguments) {
				t.Errorf("arguments %q", c.Arguments)
			}
		}
	})
}
