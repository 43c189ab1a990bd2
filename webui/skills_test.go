// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
)

// writeSkill writes a skill into a folder.
func writeSkill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const letters = "---\nname: letters\ndescription: Writes letters for the harbour.\nlicense: MIT\nallowed-tools: Bash\n---\n# How\n\n<!-- hidden words -->\nBe brief. See references/words.md.\n"

func TestSkillForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	bring := func(files map[string]string) reply {
		contentType, body := formOf(t, "file", nil, files)
		return s.follow(t, s.ask(t, "POST", "/skills/import", contentType, body))
	}
	if a := s.open(t, "/skills"); a.status != 200 || !strings.Contains(a.body, "There are no skills yet.") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":     {map[string]string{}, "Choose a file or a folder first."},
		"no skill":    {map[string]string{"x/a.md": "a"}, "is no ZIP"},
		"no name":     {map[string]string{"x/SKILL.md": "---\ndescription: x\n---\n", "x/a.md": "a"}, "name: is missing"},
		"a way out":   {map[string]string{"SKILL.md": letters, "../../a.md": "a"}, "../../a.md: The path leads out of the folder"},
		"other roots": {map[string]string{"x/SKILL.md": letters, "y/a.md": "a"}, "y/a.md: Is outside of the folder"},
	} {
		if a := bring(c.files); a.status != 422 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d, want %q in %s", name, a.status, c.want, regexp.MustCompile(`(?s)id="skill-error".*?</p>`).FindString(a.body))
		}
	}
	// What is imported is shown as it is before agents get it.
	a := bring(map[string]string{"letters/SKILL.md": letters, "letters/references/words.md": "tide"})
	for _, want := range []string{"Agents do not get this version yet", "hidden words", "allowed-tools gives no permission", "references/words.md", "not offered to agents"} {
		if a.path != "/skills/s/letters" || !strings.Contains(a.body, want) {
			t.Errorf("imported: %d %s lacks %q", a.status, a.path, want)
		}
	}
	if x, err := s.app.Skills.Find(apptest.Context(t), "letters"); err != nil || x.IsOffered() {
		t.Fatalf("%+v, %v", x, err)
	}
	const at = "/skills/s/letters"
	if a := s.open(t, at+"?path=references/words.md"); !strings.Contains(a.body, "tide") {
		t.Error("the file is not shown")
	}
	if a := s.post(t, at, "do", "offer", "version", "1", "revision", "1"); a.status != 200 || !strings.Contains(a.body, "Agents get version 1 from their next run on.") {
		t.Errorf("offered: %d", a.status)
	}
	if a := s.post(t, at, "do", "withdraw", "revision", "1"); a.status != 412 && a.status != 409 {
		t.Errorf("an old revision: %d", a.status)
	}
	if a := s.open(t, "/agents/a/lead_agent"); !strings.Contains(a.body, "<dt>Skills</dt><dd><bdi>all</bdi>") {
		t.Error("the agent's page does not name its skills")
	}
	if a := s.post(t, at, "do", "delete", "revision", "2"); a.path != "/skills" {
		t.Errorf("deleted: %d %s", a.status, a.path)
	}
	if a := s.open(t, at); a.status != 404 {
		t.Errorf("after that: %d", a.status)
	}
}

// A folder is chosen, looked at and offered in the browser; the pages can be read by
// everyone, in both languages and looks.
func TestSkills(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	dir := filepath.Join(t.TempDir(), "letters")
	writeSkill(t, dir, map[string]string{"SKILL.md": letters, "references/words.md": "tide", "scripts/run.sh": "echo tide"})
	b := openTab(t, 1440, 900)
	b.Do(
		chromedp.Navigate(s.URL+"/skills"), see("#skill-import"),
		chromedp.SetUploadFiles("#skill-folder", []string{dir}), see("#skill-files"), see(`button[value="offer"]`),
	)
	_, files, err := s.app.Skills.Files(apptest.Context(t), "letters", 1)
	if err != nil || len(files) != 3 || files[1].Path != "references/words.md" {
		t.Fatalf("%+v, %v", files, err)
	}
	b.Do(click(`button[value="offer"]`), see(`button[value="withdraw"]`))
	axe := newChecker(t, b)
	for name, path := range map[string]string{"skills": "/skills", "skill": "/skills/s/letters"} {
		b.Do(chromedp.Navigate(s.URL+path), see("#main"))
		for _, width := range []int64{390, 1440} {
			resize(b, width, 900)
			for scheme, rules := range map[string]string{"dark": colorRules, "light": allRules} {
				b.Prefer(scheme, true)
				axe.check("html", rules, name, scheme)
				b.picture(fmt.Sprint(name, "-", width, "-", scheme))
			}
		}
	}
}
