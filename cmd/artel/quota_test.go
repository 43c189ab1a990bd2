// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/artelhq/artel/app/access"
)

// noText returns n bytes that are no text; each seed has others.
func noText(n int, seed byte) string {
	return "\x00\x01" + strings.Repeat(string([]byte{seed}), n-2)
}

// usage of storage as the API says it.
type storageUse struct{ Used, Limit int64 }

// TestStorageLimit: a user with a limit of storage is refused what does not fit, in the
// words of each door, before it is read where its size is known; the same is said on
// all pages; deleting gives space back; other users have their own limit.
func TestStorageLimit(t *testing.T) {
	const limit = 100_000
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.Limits.User.Storage = limit })
	admin := g.setUp()
	bob := g.user(admin, "bob@example.org", "member")
	as := func(cookie string) []string { return []string{"Cookie", cookie, "Origin", g.http.URL} }
	var c struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", "{}", as(bob)...)
	upload := func(cookie, conversation, content string) (*http.Response, string) {
		return g.ask("POST", "/api/v1/conversations/"+conversation+"/artifacts?filename=a.bin", content, append(as(cookie), "Content-Type", "application/octet-stream")...)
	}
	if resp, text := upload(bob, c.ID, noText(50_000, 1)); resp.StatusCode != http.StatusCreated {
		t.Fatalf("the first upload: %s %s", resp.Status, text)
	}
	var me struct{ Storage storageUse }
	g.must(&me, "GET", "/api/v1/me", "", as(bob)...)
	if me.Storage != (storageUse{50_000, limit}) {
		t.Errorf("after it: %+v", me.Storage)
	}
	form := func(content, name string, fields map[string]string) (body, kind string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for k, v := range fields {
			_ = w.WriteField(k, v)
		}
		part, _ := w.CreateFormFile(name, "b.bin")
		_, _ = io.WriteString(part, content)
		_ = w.Close()
		return b.String(), w.FormDataContentType()
	}
	_, token := g.token(bob, `["write","gateway"]`)
	var file struct{ ID string }
	body, kind := form(noText(10_000, 5), "file", map[string]string{"purpose": "user_data"})
	g.must(&file, "POST", "/v1/files", body, "Content-Type", kind, "Authorization", "Bearer "+token)
	// Too much is refused by the API, with what is used and allowed.
	resp, text := upload(bob, c.ID, noText(50_000, 2))
	for _, want := range []string{`"code":"storage_limit"`, `"used":60000`, `"limit":100000`, "limits.user.storage", "48.8 KB more"} {
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, want) {
			t.Errorf("too much: %s, without %s: %s", resp.Status, want, text)
		}
	}
	// A form is longer than its files; what fits exactly is taken.
	body, kind = form(noText(40_000, 3), "file", nil)
	if resp, text := g.ask("POST", "/api/v1/conversations/"+c.ID+"/artifacts", body, append(as(bob), "Content-Type", kind)...); resp.StatusCode != http.StatusCreated {
		t.Errorf("what fits exactly: %s %s", resp.Status, text)
	}
	// Media in the text of a message, and a message itself, which needs nothing.
	inline := `{"text":"look: data:application/octet-stream;base64,` + strings.Repeat("AAECAwQF", 2000) + `"}`
	if resp, text := g.ask("POST", "/api/v1/conversations/"+c.ID+"/messages", inline, as(bob)...); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "storage_limit") {
		t.Errorf("media in a message: %s %s", resp.Status, text)
	}
	// The gateway, in two dialects.
	body, kind = form(noText(1_000, 4), "file", map[string]string{"purpose": "user_data"})
	for header, want := range map[string]string{"Authorization": `"code":"storage_limit"`, "x-api-key": `"type":"request_too_large"`} {
		value, extra := token, []string{}
		if header == "Authorization" {
			value = "Bearer " + token
		} else {
			extra = []string{"anthropic-version", "2023-06-01", "anthropic-beta", "files-api-2025-04-14"}
		}
		resp, text := g.ask("POST", "/v1/files", body, append(extra, "Content-Type", kind, header, value)...)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(strings.ReplaceAll(text, " ", ""), want) || !strings.Contains(text, "97.7 KB of your 97.7 KB") {
			t.Errorf("a file of the gateway by %s: %s %s", header, resp.Status, text)
		}
	}
	// The pages.
	for _, page := range []struct{ path, cookie, language, want string }{
		{"/account", bob, "en", "97.7 KB of 97.7 KB"}, {"/account", bob, "zh", "97.7 KB / 97.7 KB"}, {"/people", admin, "en", "97.7 KB of 97.7 KB"}, {"/people", admin, "en", "0 B of 97.7 KB"},
	} {
		if resp, text := g.ask("GET", page.path, "", append(as(page.cookie), "Accept-Language", page.language)...); resp.StatusCode != http.StatusOK || !strings.Contains(text, page.want) {
			t.Errorf("%s in %s: %s without %q", page.path, page.language, resp.Status, page.want)
		}
	}
	var all struct {
		Items []struct {
			Email   string
			Storage storageUse
		}
	}
	g.must(&all, "GET", "/api/v1/users", "", as(admin)...)
	if got := fmt.Sprint(all.Items); got != "[{ann@example.org {0 100000}} {bob@example.org {100000 100000}}]" {
		t.Errorf("users: %s", got)
	}
	_, operator := g.token(admin, `["admin"]`)
	if _, text := g.ask("GET", "/metrics", "", "Authorization", "Bearer "+operator); !strings.Contains(text, "\nartel_stored_bytes 100000\n") || !strings.Contains(text, "\nartel_stored_bytes_largest_user 100000\n") || !strings.Contains(text, "\nartel_storage_limit_bytes 100000\n") {
		t.Error("the metrics do not say what is stored")
	}
	// Another user has a limit of their own, and does not see that the bytes are known.
	var mine struct{ ID string }
	g.must(&mine, "POST", "/api/v1/conversations", "{}", as(admin)...)
	if resp, text := upload(admin, mine.ID, noText(60_000, 1)); resp.StatusCode != http.StatusCreated {
		t.Errorf("the same bytes of another user: %s %s", resp.Status, text)
	}
	g.must(&me, "GET", "/api/v1/me", "", as(admin)...)
	if me.Storage.Used != 60_000 {
		t.Errorf("of another user: %+v", me.Storage)
	}
	// What is deleted gives space back.
	g.must(nil, "DELETE", "/v1/files/"+file.ID, "", "Authorization", "Bearer "+token)
	g.must(&me, "GET", "/api/v1/me", "", as(bob)...)
	if me.Storage.Used != 90_000 {
		t.Errorf("after deleting a file of the gateway: %+v", me.Storage)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "1000": 1000, "5GB": 5 << 30, "5 GB": 5 << 30, "500mb": 500 << 20, "1.5TB": 3 << 39, "2GiB": 2 << 30, "12 B": 12, "3k": 3 << 10,
	} {
		var got struct{ Size byteSize }
		if err := yaml.Unmarshal([]byte("size: "+text), &got); err != nil || got.Size != want {
			t.Errorf("%s: %d, %v; want %d", text, got.Size, err, want)
		}
	}
	for _, text := range []string{"-1", "5XB", "GB", "5GBB", "1e400", "five", "99999PB", "5MGB", "5I"} {
		var got struct{ Size byteSize }
		if err := yaml.Unmarshal([]byte("size: "+text), &got); err == nil {
			t.Errorf("%s is %d", text, got.Size)
		}
	}
}

// TestUploadsThatBreakOff: files that are complete when a client breaks off its form are on
// the disk and belong to nothing. They count until they are swept, so that the disk of a
// user who does this again and again has at most the limit more; an upload that is
// completed does not count twice, and other users are not refused.
func TestUploadsThatBreakOff(t *testing.T) {
	const limit = 100_000
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.Limits.User.Storage = limit })
	admin := g.setUp()
	bob := g.user(admin, "bob@example.org", "member")
	as := func(cookie string) []string { return []string{"Cookie", cookie, "Origin", g.http.URL} }
	conversation := func(cookie string) string {
		var c struct{ ID string }
		g.must(&c, "POST", "/api/v1/conversations", "{}", as(cookie)...)
		return "/api/v1/conversations/" + c.ID + "/artifacts"
	}
	whole := func(cookie, path string, seed byte) (*http.Response, string) {
		return g.ask("POST", path+"?filename=a.bin", noText(30_000, seed), append(as(cookie), "Content-Type", "application/octet-stream")...)
	}
	path := conversation(bob)
	if resp, text := whole(bob, path, 200); resp.StatusCode != http.StatusCreated {
		t.Fatalf("an upload: %s %s", resp.Status, text)
	}
	address, err := url.Parse(g.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	// breakOff sends a file and the beginning of another, and no more.
	breakOff := func(seed byte) string {
		c, err := net.Dial("tcp", address.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		part := func(content string) string {
			return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.bin\"\r\n\r\n" + content
		}
		body := part(noText(30_000, seed)) + "\r\n" + part(noText(1_000, seed))
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s", path, address.Host, g.http.URL, bob, len(body)+1_000, body)
		_ = c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c) // the end of the request
		return string(b)
	}
	admitted := 0
	for seed := byte(1); seed < 20; seed++ {
		text := breakOff(seed)
		if strings.Contains(text, "uploads that broke off") {
			break
		}
		admitted++
	}
	if admitted < 3 || admitted > 4 { // of 30,000 bytes with a limit of 100,000
		t.Errorf("%d broken requests of 30,000 bytes were admitted", admitted)
	}
	resp, text := whole(bob, path, 201)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "uploads that broke off") || resp.Header.Get("Retry-After") == "" {
		t.Errorf("afterwards: %s %s, Retry-After %q", resp.Status, text, resp.Header.Get("Retry-After"))
	}
	if resp, text := whole(admin, conversation(admin), 202); resp.StatusCode != http.StatusCreated {
		t.Errorf("another user: %s %s", resp.Status, text)
	}
}
