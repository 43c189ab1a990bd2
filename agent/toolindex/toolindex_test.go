// SPDX-License-Identifier: Apache-2.0

package toolindex_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/pipeline/token"
)

func counter(t testing.TB) func(string) int {
	c := token.NewCounter()
	return func(s string) int {
		n, err := c.Count(token.O200k, s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func names(tools []toolindex.Tool) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

func schema(properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
}

// several are tools of different servers.
func several() []toolindex.Tool {
	return []toolindex.Tool{
		{Name: "github_create_issue", Description: "Creates an issue in a repository.", Schema: schema(`"title":{"type":"string"},"labels":{"type":"array","items":{"type":"object","properties":{"colour":{"type":"string"}}}}`)},
		{Name: "github_list_issues", Description: "Lists the issues of a repository."},
		{Name: "browserTakeScreenshot", Description: "Takes a picture of the page.", Schema: schema(`"fullPage":{"type":"boolean","description":"also what is below the viewport"}`)},
		{Name: "browserNavigate", Description: "Opens an address."},
		{Name: "weather", Description: "查询城市的天气预报和气温。", Schema: schema(`"city":{"type":"string","description":"城市名称"}`)},
		{Name: "send_mail", Description: "发送电子邮件给联系人。"},
		{Name: "sql-query", Description: "Runs a query on the database."},
	}
}

func TestFind(t *testing.T) {
	x := toolindex.New(several())
	for query, want := range map[string]string{
		"create issue":                    "github_create_issue",
		"creating issues":                 "github_create_issue",
		"list the issues of a repo":       "github_list_issues",
		"take a screenshot":               "browserTakeScreenshot",
		"viewport":                        "browserTakeScreenshot", // in the description of an argument
		"colours":                         "github_create_issue",   // the name of a nested argument
		"browser navigate":                "browserNavigate",
		"SCREENSHOTS":                     "browserTakeScreenshot",
		"天气":                              "weather",
		"今天的天气预报":                         "weather",
		"发邮件给同事":                          "send_mail",
		"please call sql-query for me":    "sql-query",
		"query the databases with a join": "sql-query",
		"weather":                         "weather",
		"ｓｑｌ":                             "sql-query", // full-width letters
	} {
		found := names(x.Find(query, 3))
		if len(found) == 0 || found[0] != want {
			t.Errorf("Find(%q) = %q, want first %q", query, found, want)
		}
	}
	if found := x.Find("zzz qqq", 5); len(found) != 0 {
		t.Errorf("found %q for words that no tool has", names(found))
	}
	if found := x.Find("issue", 1); len(found) != 1 {
		t.Errorf("%d tools, want at most 1", len(found))
	}
	for _, n := range []int{0, -1} {
		if found := x.Find("issue", n); len(found) != 0 {
			t.Errorf("Find with %d gives %d tools", n, len(found))
		}
	}
}

// TestOrder: equal scores come in the order of the tools, and each time in the same.
func TestOrder(t *testing.T) {
	many := make([]toolindex.Tool, 50)
	for i := range many {
		many[i] = toolindex.Tool{Name: fmt.Sprintf("n%02d", i), Description: "copies a file"}
	}
	want := names(many)
	for range 20 {
		if diff := cmp.Diff(want, names(toolindex.New(many).Find("copy file", 50))); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestGet(t *testing.T) {
	x := toolindex.New(append(several(), toolindex.Tool{Name: "weather", Description: "another"}))
	if got, ok := x.Get("weather"); !ok || !strings.HasPrefix(got.Description, "查询") {
		t.Errorf("Get = %v %v, want the first of the name", got, ok)
	}
	if _, ok := x.Get("nothing"); ok || x.Len() != len(several()) {
		t.Errorf("Get finds nothing, or %d tools", x.Len())
	}
}

// TestListIsBounded: whatever the tools, the list is within the budget, and says how many
// tools there are beyond it.
func TestListIsBounded(t *testing.T) {
	count := counter(t)
	long := strings.Repeat("It does many things, one after the other. ", 100)
	for _, tc := range []struct {
		name string
		n    int
		tool func(int) toolindex.Tool
		want string // in the list
	}{
		{"few", 5, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("do_%d", i), Description: "Does it. " + long}
		}, "- do_3: Does it\n"},
		{"dozens", 60, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("do_%d", i), Description: long}
		}, "- do_30: It does many things"},
		{"names", 300, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("service%d_act_%d", i%7, i), Description: long}
		}, "service3_act_10, service4_act_11"},
		{"grouped", 450, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("longservicename%d_act%d", i%7, i)}
		}, "longservicename3_{act3,act10,"},
		{"thousands", 2000, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("service%d_create_thing_%d", i%9, i), Description: long}
		}, "service8_"},
		{"without prefixes", 2000, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: fmt.Sprintf("zxq%dvw%dk", i*7919, i)}
		}, "more tools"},
		{"hostile names", 2000, func(i int) toolindex.Tool {
			return toolindex.Tool{Name: strings.Repeat("名", 300) + fmt.Sprint(i) + "\nignore", Description: "\x00\xff"}
		}, "more tools"},
	} {
		all := make([]toolindex.Tool, tc.n)
		for i := range all {
			all[i] = tc.tool(i)
		}
		x := toolindex.New(all)
		list := x.List(toolindex.Budget, count)
		if n := count(list); n > toolindex.Budget || n == 0 {
			t.Errorf("%s: %d tokens", tc.name, n)
		}
		if !strings.Contains(list, tc.want) {
			t.Errorf("%s: %q is not in\n%s", tc.name, tc.want, list)
		}
		if again := toolindex.New(slices.Clone(all)).List(toolindex.Budget, count); again != list {
			t.Errorf("%s: the list differs", tc.name)
		}
	}
	if list := toolindex.New(several()).List(0, count); list != "" {
		t.Errorf("a list without room: %q", list)
	}
	if list := toolindex.New(nil).List(100, count); list != "" {
		t.Errorf("a list without tools: %q", list)
	}
}

func TestTokens(t *testing.T) {
	tools := []toolindex.Tool{{Name: "ab", Description: "cde", Schema: json.RawMessage("{}")}, {Name: "f"}}
	if n := toolindex.Tokens(tools, utf8.RuneCountInString); n != 8 {
		t.Errorf("%d, want 8", n)
	}
}

func TestCheck(t *testing.T) {
	tool := toolindex.Tool{Name: "add", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
	for arguments, want := range map[string]string{
		`{"n":1}`:       "",
		`{"n":"one"}`:   "integer",
		`{"m":1}`:       "add was not called",
		``:              "required",
		`null`:          "required",
		`[1]`:           "not a JSON object",
		`{"n":1`:        "not a JSON object",
		`{"n":1,"x":2}`: "Schema of its arguments: {",
	} {
		got := tool.Check(json.RawMessage(arguments))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Check(%s) = %q, want %q", arguments, got, want)
		}
	}
	for _, odd := range []string{"", "true", `"x"`, `{"$ref":"https://elsewhere.example/schema"}`} {
		if got := (toolindex.Tool{Name: "odd", Schema: json.RawMessage(odd)}).Check(json.RawMessage(`{"a":1}`)); got != "" {
			t.Errorf("with the schema %q: %s", odd, got)
		}
	}
}

func TestFound(t *testing.T) {
	all := several()
	text := toolindex.Found(all[:2], 4000)
	want := "github_create_issue: Creates an issue in a repository.\narguments: " + string(all[0].Schema) + "\n" +
		"github_list_issues: Lists the issues of a repository.\narguments: {}\n"
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	large := toolindex.Tool{Name: "large", Description: strings.Repeat("大", 5000), Schema: schema(`"x":{"description":"` + strings.Repeat("y", 9000) + `"}`)}
	for _, tools := range [][]toolindex.Tool{{large}, {large, all[0]}, {all[0], large, all[1]}} {
		for _, limit := range []int{300, 1000, 4000} {
			text := toolindex.Found(tools, limit)
			if len(text) > limit || !utf8.ValidString(text) {
				t.Errorf("%d bytes, limit %d", len(text), limit)
			}
			for _, tool := range tools {
				if !strings.Contains(text, tool.Name) {
					t.Errorf("limit %d: %s is missing in %q", limit, tool.Name, text)
				}
			}
		}
	}
}

// FuzzIndex: no tools and no query make the index panic, list more than its limit, or find a
// tool twice.
func FuzzIndex(f *testing.F) {
	f.Add("github_create_issue", "Creates an issue.", `{"properties":{"title":{"description":"天气"}}}`, "issue 天气", 100)
	f.Add("a\n_b", "\xff。", `{"properties":{"x":{"items":{"items":{}}}}}`, "A_B", 3)
	f.Fuzz(func(t *testing.T, name, about, schema, query string, limit int) {
		tools := []toolindex.Tool{
			{Name: name, Description: about, Schema: json.RawMessage(schema)}, {Name: name + "_x"}, {Name: about, Description: name},
		}
		x := toolindex.New(tools)
		found := x.Find(query, 10)
		if got := names(found); len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("found twice: %q", got)
		}
		if n := utf8.RuneCountInString(x.List(limit, utf8.RuneCountInString)); n > max(limit, 0) {
			t.Errorf("a list of %d, limit %d", n, limit)
		}
		if limit > 0 && limit < 1<<20 && len(toolindex.Found(found, limit)) > limit {
			t.Errorf("found %d bytes, limit %d", len(toolindex.Found(found, limit)), limit)
		}
		_ = tools[0].Check(json.RawMessage(query))
	})
}
