// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store"
)

// answer is what the page answered: status, header and body.
type answer struct {
	*http.Response
	body string
}

func (s *site) ask(t *testing.T, method, path, contentType string, body io.Reader, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(apptest.Context(t), method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "text/html,*/*;q=0.8") // as browsers do
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(b)}
}

// form makes a multipart body of fields and files.
func form(t *testing.T, fields map[string]string, files map[string]string) (contentType string, body io.Reader) {
	t.Helper()
	return formOf(t, "file", fields, files)
}

// formOf is form with another name for the field of the files.
func formOf(t *testing.T, field string, fields, files map[string]string) (contentType string, body io.Reader) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for k, v := range fields {
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		part, err := w.CreateFormFile(field, name)
		if err == nil {
			_, err = io.WriteString(part, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), &b
}

func (s *site) send(t *testing.T, text string, files map[string]string) artel.ConversationID {
	t.Helper()
	contentType, body := form(t, map[string]string{"text": text}, files)
	a := s.ask(t, "POST", "/c", contentType, body)
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	id, err := artel.ParseConversationID(strings.TrimPrefix(a.Header.Get("Location"), "/c/"))
	if err != nil {
		t.Fatal(err)
	}
	waitFinal(t, s, id)
	return id
}

// Every answer of the page carries the policy, and every page is whole HTML
// that names its language and takes nothing from another host.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "look", map[string]string{"a.md": "# A\n", "b.bin": "\x00\x01\x02"})
	long := "/c/" + string(s.seedLong(t, 100))
	older := regexp.MustCompile(`/older\?before=\w+`).FindString(s.ask(t, "GET", long, "", nil).body)
	if older == "" {
		t.Fatal("a long conversation offers no older messages")
	}
	c := "/c/" + string(id)
	for path, want := range map[string]int{
		"/": 200, "/c": 200, "/c?search=look": 200, "/c?search=nothing": 200, "/settings": 200, "/pipeline": 200, "/pipeline?at=model": 200, "/me": 200, "/rules": 200, "/macros": 200, "/import": 200, "/ui/style": 200, "/?deleted=" + string(id): 200,
		c: 200, c + "/a": 200, c + "/title": 200, long: 200, long + older: 200,
		c + "/a/a.md": 200, c + "/a/a.md?v=1": 200, c + "/a/a.md?v=1&view=code": 200, c + "/a/a.md?view=plain": 200, c + "/a/a.md?view=junk": 200,
		c + "/a/b.bin": 200, c + "/a/report": 200, c + "/a/task_plan": 200,
		c + "/a/a.md?v=99": 404, c + "/a/a.md?v=x": 404, c + "/a/none": 404, c + "/a/..%2F..": 404, c + older: 404, c + "/older?before=junk": 404,
		"/c/cnv_00000000000000000000000000": 404, "/c/cnv_00000000000000000000000000/title": 404, "/c/nonsense": 404, "/c/nonsense/title": 404,
		"/c?cursor=junk": 422, "/rules?message=junk": 404, "/sample/none": 404, "/pipeline?agent=nobody": 422, "/pipeline?service=nobody": 404, "/nowhere": 404,
	} {
		for _, language := range []string{"en", "zh-CN"} {
			a := s.ask(t, "GET", path, "", nil, "Accept-Language", language)
			if a.StatusCode != want {
				t.Errorf("%s: status %d, want %d", path, a.StatusCode, want)
			}
			if !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: header %v", path, a.Header)
			}
			checkPage(t, path, a.body, string(phrase.ParseLocale(language)))
		}
	}
}

func checkPage(t *testing.T, path, page, lang string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page, ">page.") || strings.Contains(page, "<no value>") {
		t.Errorf("%s: a text is missing", path)
	}
	ids := map[string]bool{}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s: <%s %s> is refused by the policy", path, n.Data, a.Key)
			case a.Key == "src" || a.Key == "href" || a.Key == "action":
				if n.Data == "a" && strings.HasPrefix(a.Val, "https://") {
					// What a model wrote may lead where it wants; the
					// referrer policy keeps to itself where that was.
					if !within(n, "block") && (attribute(n, "target") != "_blank" || attribute(n, "rel") != "noreferrer") {
						t.Errorf("%s: the link to %s takes the page away or tells where it was", path, a.Val)
					}
				} else if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
					t.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
				}
			case a.Key == "id":
				if ids[a.Val] {
					t.Errorf("%s: the id %q is there twice", path, a.Val)
				}
				ids[a.Val] = true
			case a.Key == "lang" && n.Data == "html" && a.Val != lang:
				t.Errorf("%s: lang %q, want %q", path, a.Val, lang)
			}
		}
	}
}

// within reports whether n is in an element of a class.
func within(n *html.Node, class string) bool {
	for p := range n.Ancestors() {
		if slices.Contains(strings.Fields(attribute(p, "class")), class) {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Names and texts of people never become markup.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	const evil = `<img src=x onerror=alert(1)>"'`
	id := s.send(t, evil, map[string]string{evil + ".txt": evil})
	for _, path := range []string{"/", "/c/" + string(id)} {
		if page := s.ask(t, "GET", path, "", nil).body; strings.Contains(page, "<img src=x") {
			t.Errorf("%s: the text became markup", path)
		}
	}
}

// A form that is wrong is refused with a status and a text, keeps what was
// written, and leaves nothing behind.
func TestBadForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	contentType, whole := form(t, map[string]string{"text": "kept <b>"}, map[string]string{"a.txt": strings.Repeat("x", 1000)})
	b, err := io.ReadAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	unknownType, unknown := form(t, map[string]string{"text": "kept <b>", "service": "nobody"}, nil)
	latinType, latin := form(t, map[string]string{"text": "caf\xe9"}, nil)
	for name, c := range map[string]struct {
		contentType string
		body        io.Reader
		status      int
		says        string
	}{
		"no form":      {"text/plain", strings.NewReader("hello"), 422, "arrived incomplete"},
		"half a form":  {contentType, bytes.NewReader(b[:len(b)-200]), 422, "arrived incomplete"},
		"empty":        {contentType, strings.NewReader(""), 422, "arrived incomplete"},
		"no service":   {unknownType, unknown, 422, "There is no such service"},
		"not UTF-8":    {latinType, latin, 422, "Not UTF-8."},
		"nothing sent": {"multipart/form-data; boundary=x", strings.NewReader("--x--\r\n"), 422, "attach a file"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, "POST", "/c", c.contentType, c.body)
			if a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
				t.Errorf("status %d, want %d and %q:\n%s", a.StatusCode, c.status, c.says, a.body)
			}
			if c.body == unknown && !strings.Contains(a.body, "kept &lt;b&gt;</textarea>") {
				t.Error("what was written is lost")
			}
		})
	}
	list, _, err := s.app.Conversations.List(apptest.Context(t), store.ConversationQuery{})
	if err != nil || len(list) > 0 {
		t.Errorf("%d conversations are left (%v)", len(list), err)
	}
}

// A message that waits for its turn brings its files, and one that is refused
// brings none.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	scenario, err := demo.ParseScenario([]byte("-- turn 1 --\nworking\n@hang\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{Scenario: scenario})
	send := func(path, text, file, service string) answer {
		contentType, body := form(t, map[string]string{"text": text, "service": service}, map[string]string{file: "a"})
		return s.ask(t, "POST", path, contentType, body)
	}
	path := send("/c", "first", "a.txt", "").Header.Get("Location")
	if a := send(path, "second", "b.txt", ""); a.StatusCode != http.StatusSeeOther {
		t.Errorf("status %d while a run is active", a.StatusCode)
	}
	if a := send(path, "third", "c.txt", "nobody"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("status %d for a service that there is not", a.StatusCode)
	}
	list, err := s.app.Artifacts.List(apptest.Context(t), artel.ConversationID(strings.TrimPrefix(path, "/c/")), "")
	if err != nil || len(list) != 2 || list[0].ID != "a.txt" || list[1].ID != "b.txt" {
		t.Errorf("got %v, %v", list, err)
	}
}

// The script asks for JSON and gets it, for success and refusal alike.
func TestScriptAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	contentType, body := form(t, map[string]string{"text": "hi"}, nil)
	a := s.ask(t, "POST", "/c", contentType, body, "Accept", "application/json")
	var out struct{ URL, Error string }
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.StatusCode != 200 || !strings.HasPrefix(out.URL, "/c/cnv_") {
		t.Errorf("%d %s (%v)", a.StatusCode, a.body, err)
	}
	contentType, body = form(t, nil, nil)
	a = s.ask(t, "POST", "/c", contentType, body, "Accept", "application/json")
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.StatusCode != 422 || out.Error == "" {
		t.Errorf("%d %s (%v)", a.StatusCode, a.body, err)
	}
}

// Every key that a template says is a key of the catalogue.
func TestTemplateKeys(t *testing.T) {
	t.Parallel()
	say := regexp.MustCompile(`say "([^"]+)"`)
	files, err := fs.Glob(os.DirFS("."), "templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range say.FindAllStringSubmatch(string(src), -1) {
			for _, l := range phrase.Locales() {
				if l.Say(phrase.Key(m[1]), map[string]any{"Count": 2, "Reason": "r"}) == m[1] {
					t.Errorf("%s: there is no text %q in %s", file, m[1], l)
				}
			}
		}
	}
}

// A browser that was away at any moment has the same page afterwards: the
// fragments from any number on, put over the page of then, give the page of now.
func TestResume(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\n@think Let me see.\nI write it down.\n"+
		"@call create_artifact {\"id\": \"notes\", \"title\": \"Notes\", \"content\": \"# Notes\"}\n-- turn 2 --\nIt stands in [the notes](artifact:notes).\n"))
	id := s.send(t, "look", map[string]string{"a.md": "# A\n"})
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	whole := s.fragments(t, id, 0, last)
	for after := range last {
		if got := s.fragments(t, id, after, last); !slices.Equal(got, whole[len(whole)-len(got):]) {
			t.Errorf("after %d the fragments differ", after)
		}
	}
}

// fragments reads the live stream after a number up to the last one, and
// returns the frames.
func (s *site) fragments(t *testing.T, id artel.ConversationID, after, last artel.Seq) []string {
	t.Helper()
	ctx, stop := context.WithCancel(apptest.Context(t))
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/c/"+string(id)+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", itoa(after))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var frames []string
	buf := make([]byte, 1<<16)
	for text := ""; ; {
		n, err := resp.Body.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		text += string(buf[:n])
		for {
			frame, rest, ok := strings.Cut(text, "\n\n")
			if !ok {
				break
			}
			frames, text = append(frames, frame), rest
			if strings.HasPrefix(frame, "id: "+itoa(last)+"\n") {
				return frames
			}
		}
	}
}

func itoa(n artel.Seq) string {
	b, _ := json.Marshal(n)
	return string(b)
}
