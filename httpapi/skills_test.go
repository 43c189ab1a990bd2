// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
)

// skillZIP is a skill with files in pairs of path and text.
func skillZIP(t *testing.T, name string, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	files = append([]string{"SKILL.md", "---\nname: " + name + "\ndescription: Writes letters.\nallowed-tools: Bash\n---\n# How\n"}, files...)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(name + "/" + files[i])
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
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

func TestSkills(t *testing.T) {
	b := newBench(t, "")
	first := skillZIP(t, "brand", "references/words.md", "tide\n")
	done := b.object(b.do("POST", "/skills/import?offer=false", first), 201)
	if fmt.Sprint(done["version"], done["offered"], done["new"], done["files"]) != "1 0 true 2" || !strings.Contains(fmt.Sprint(done["notes"]), "gives no permission") || fmt.Sprint(done["agents"]) != "[lead_agent]" {
		t.Errorf("imported %v", done)
	}
	if again := b.object(b.do("POST", "/skills/import", first), 201); fmt.Sprint(again["version"], again["offered"], again["new"]) != "1 1 false" {
		t.Errorf("again %v", again)
	}
	b.object(b.do("POST", "/skills/import?offer=false", skillZIP(t, "brand", "references/words.md", "ebb\n")), 201)
	list := fmt.Sprint(b.object(b.do("GET", "/skills", nil), 200))
	if !strings.Contains(list, "offered:1") || !strings.Contains(list, "newest:2") || !strings.Contains(list, "description:Writes letters.") {
		t.Errorf("list %s", list)
	}
	a := b.do("GET", "/skills/brand", nil)
	detail := fmt.Sprint(b.object(a, 200))
	if !strings.Contains(detail, "text:# How") || !strings.Contains(detail, "path:references/words.md") || a.Header.Get("ETag") != `"3"` {
		t.Errorf("detail %s, ETag %s", detail, a.Header.Get("ETag"))
	}
	for path, want := range map[string]string{
		"/skills/brand/file?path=references/words.md":           "tide\n",
		"/skills/brand/file?path=references/words.md&version=2": "ebb\n",
	} {
		if a := b.do("GET", path, nil); a.StatusCode != 200 || string(a.body) != want || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %s %q %v", path, a.Status, a.body, a.Header)
		}
	}
	exported := b.do("GET", "/skills/brand/export?version=1", nil)
	if again := b.object(b.do("POST", "/skills/import", string(exported.body)), 201); fmt.Sprint(again["version"], again["new"]) != "1 false" || again["digest"] != done["digest"] {
		t.Errorf("the export imported: %v", again)
	}
	if next := b.do("GET", "/skills/brand/export?version=1", nil); !bytes.Equal(next.body, exported.body) {
		t.Error("two exports differ")
	}
	b.problem(b.do("PATCH", "/skills/brand", `{"offered":2}`, header{"If-Match": `"1"`}), 412, "stale")
	b.problem(b.do("PATCH", "/skills/brand", `{"offered":9}`), 404, "skill_not_found")
	if x := b.object(b.do("PATCH", "/skills/brand", `{"offered":2}`), 200); fmt.Sprint(x["offered"], x["version"]) != "2 2" {
		t.Errorf("offered %v", x)
	}
	b.problem(b.do("GET", "/skills/none", nil), 404, "skill_not_found")
	b.problem(b.do("GET", "/skills/brand?version=7", nil), 404, "skill_not_found")
	b.problem(b.do("GET", "/skills/brand/file?path=../x", nil), 404, "skill_not_found")
	b.problem(b.do("POST", "/skills/import", "no ZIP"), 422, "invalid")
	b.problem(b.do("POST", "/skills/import", skillZIP(t, "brand", "../../evil", "x")), 422, "invalid")

	if x, err := b.client.OfferSkill(apptest.Context(t), "brand", 0); err != nil || x.Offered != 0 || x.Version != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	if err := b.client.DeleteSkill(apptest.Context(t), "brand"); err != nil {
		t.Error(err)
	}
	b.problem(b.do("DELETE", "/skills/brand", nil), 404, "skill_not_found")
}
