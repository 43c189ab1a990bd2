// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// guest returns a reader without a login.
func (s *site) guest(t *testing.T, lang string) *reader {
	t.Helper()
	return &reader{t, s, &http.Client{Transport: s.Client().Transport}, lang}
}

// TestErrorsInTheLanguageOfThePage: errors that several users meet are sentences in the
// language of the page.
func TestErrorsInTheLanguageOfThePage(t *testing.T) {
	t.Parallel()
	s := inhabited(t)
	en, zh := s.enter(t, "ann@example.org", accountPassword, "en"), s.enter(t, "ann@example.org", accountPassword, "zh")
	bob := en.join("Bob")
	check := func(what string, r *reader, method, path string, want int, says string, pairs ...string) {
		t.Helper()
		status, text := 0, ""
		if method == http.MethodPost {
			status, text = r.post(path, pairs...)
		} else {
			status, text = r.do(method, path, nil)
		}
		r.shows(what, status, want, text, says)
	}
	wrong := []string{"email", "ann@example.org", "password", "not the password"}
	check("a wrong password", s.guest(t, "en"), "POST", "/login", 401, ">The address or the password is wrong.<", wrong...)
	check("a wrong password", s.guest(t, "zh"), "POST", "/login", 401, ">电子邮件地址或密码不正确。<", wrong...)
	taken := []string{"name", "Bo", "email", "bob@example.org", "role", "member"}
	check("a taken address", en, "POST", "/people", 409, "Another user has this e-mail address.", taken...)
	check("a taken address", zh, "POST", "/people", 409, "已有用户使用此电子邮件地址。", taken...)
	gone := "/c/cnv_01K8A0QJ7V8E9YB4WZK2M6T3RD"
	check("no conversation", en, "GET", gone, 404, "There is no such conversation, or it is not yours.")
	check("no conversation", zh, "GET", gone, 404, "没有这个对话，或者它不属于你。")
	check("a member", bob, "GET", "/people", 403, "Only administrators can open this page.")
	bob.lang = "zh"
	check("a member", bob, "GET", "/people", 403, "只有管理员才能打开此页面。")
	if text := zh.get("/settings"); strings.Contains(text, "scripted, no model") || !strings.Contains(text, "演示（脚本") {
		t.Error("the settings name the demo in English")
	}
}

// TestEndedAddresses: the address of a set-up or an invitation that has ended shows no
// form, and the one of an invitation says for which account it is.
func TestEndedAddresses(t *testing.T) {
	t.Parallel()
	s := inhabited(t)
	ann, guest := s.enter(t, "ann@example.org", accountPassword, "en"), s.guest(t, "en")
	_, text := ann.post("/people", "name", "Bob", "email", "bob@example.org", "role", "member")
	link := regexp.MustCompile(`(/invite\?code=([A-Z2-7]+))`).FindStringSubmatch(text)
	if link == nil {
		t.Fatal("no invitation")
	}
	if text := guest.get(link[1]); !strings.Contains(text, `>bob@example.org</bdi>`) || !strings.Contains(text, "<form") {
		t.Errorf("an invitation does not name its account: %s", text)
	}
	status, text := guest.post("/invite", "code", link[2], "password", "short")
	guest.shows("a short password", status, 422, text, `>bob@example.org</bdi>`)
	if status, text = guest.post("/invite", "code", link[2], "password", accountPassword); status != 200 {
		t.Fatalf("accepted: %d %s", status, text)
	}
	other := s.guest(t, "en")
	ended := func(path string, want int) {
		t.Helper()
		status, text := other.do(http.MethodGet, path, nil)
		other.shows(path, status, want, text, "This address was used or has ended; ask an administrator for a new one.")
		if strings.Contains(text, "<form") || !strings.Contains(text, `href="/login"`) {
			t.Errorf("%s has a form, or no link to the login: %s", path, text)
		}
	}
	ended(link[1], 403)
	ended("/invite?code=WRONG", 403)
	ended("/setup?code=xx", 409)
	if _, err := s.app.Access.Users.Invited(t.Context(), "WRONG"); err == nil || !strings.Contains(err.Error(), "7 days") {
		t.Errorf("got %v", err)
	}
}
