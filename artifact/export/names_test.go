// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"report.md": "report.md", "报告.docx": "报告.docx", "": "_", ".": "_", "..": "_", "../../etc/passwd": "_.._.._etc_passwd",
		`a\b:c*d?"e<f>g|h`: "a_b_c_d__e_f_g_h", "con": "_con", "Con.txt": "_Con.txt", "com¹.log": "_com¹.log", "COM10": "COM10", "nul .a": "_nul .a",
		"lpt0": "_lpt0", "console": "console", "a.": "a", "a. . ": "a", " a": "a", ".env": "_.env", "-rf": "_-rf", "~x": "_~x", "a\u202Egnp.exe": "agnp.exe",
		"a\x00b\nc": "abc", "e\u0301": "é", "\xff": "_", strings.Repeat("x", 300) + ".tar": strings.Repeat("x", 116) + ".tar",
		strings.Repeat("字", 100) + ".md": strings.Repeat("字", 39) + ".md",
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	n := names{}
	for _, tt := range [][2]string{
		{"a.md", "a.md"}, {"a.md", "a_2.md"}, {"A.MD", "A_3.MD"}, {"a_2.md", "a_2_2.md"}, {"Straße", "Straße"}, {"STRASSE", "STRASSE_2"}, {"ﬁ", "ﬁ"}, {"fi", "fi_2"}, {"con", "_con"}, {"_con", "_con_2"},
	} {
		if got := n.take(tt[0]); got != tt[1] {
			t.Errorf("%q: got %q, want %q", tt[0], got, tt[1])
		}
	}
}

// TestNamesProperty holds names to what all systems take, apart from each
// other also where case makes no difference.
func TestNamesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := names{}
		seen := map[string]bool{}
		for _, s := range rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "A", "a_2", "con", "CON.a", "..", "x/y", "\u202E", strings.Repeat("é", 200)}))).Draw(t, "names") {
			got := n.take(s)
			low := strings.ToLower(got)
			switch {
			case seen[low]:
				t.Fatalf("%q is there twice", got)
			case got == "" || len(got) > maxName || !utf8.ValidString(got):
				t.Fatalf("%q is too long, or no name", got)
			case strings.ContainsAny(got, `<>:"/\|?*`) || strings.IndexFunc(got, unicode.IsControl) >= 0:
				t.Fatalf("%q has a character that it must not have", got)
			case strings.HasPrefix(got, ".") || strings.HasPrefix(got, "-") || strings.HasSuffix(got, ".") || strings.HasSuffix(got, " ") || strings.HasPrefix(got, " "):
				t.Fatalf("%q begins or ends as it must not", got)
			case slices.Contains([]string{"con", "prn", "aux", "nul"}, strings.TrimSpace(strings.Split(low, ".")[0])):
				t.Fatalf("%q is a device", got)
			}
			seen[low] = true
		}
	})
}

func TestExtensionFor(t *testing.T) {
	for _, tt := range []struct{ id, filename, mediaType, want string }{
		{"plan", "", "text/markdown", ".md"},
		{"a.py", "", "text/markdown", ".py"},
		{"x", "Photo.JPG", "image/jpeg", ".jpg"},
		{"x", "", "image/png", ".png"},
		{"x", "", "application/x-unheard-of", ""},
		{"x.有", "", "application/x-unheard-of", ""},
		{"x", "a.b c", "image/png", ".png"},
		{"v1.verylongextension", "", "text/plain", ".txt"},
	} {
		v := artel.Version{Filename: tt.filename}
		v.MediaType = tt.mediaType
		if got := extensionFor(artel.ArtifactID(tt.id), v); got != tt.want {
			t.Errorf("%v: got %q", tt, got)
		}
	}
}

func TestCleanURL(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		relative bool
	}{
		{"https://example.com/a?b=1&c=%20#d", "https://example.com/a?b=1&c=%20#d", false},
		{"HTTP://Example.com", "http://Example.com", false},
		{"https://bücher.example/ü?q=ü#ü", "https://xn--bcher-kva.example/%C3%BC?q=%C3%BC#%C3%BC", false},
		{"http://my_host:80/[x]", "http://my_host:80/%5Bx%5D", false},
		{"http://[::1]:8080/", "http://[::1]:8080/", false},
		{"http://[fe80::1%25eth0]/", "", false},
		{"https://a.example/?q=%zz%", "https://a.example/?q=%25zz%25", false},
		{"https://a.example/a b", "https://a.example/a%20b", false},
		{"mailto:a@b.c?subject=x y", "mailto:a@b.c?subject=x%20y", false},
		{"mailto:", "", false},
		{"https://", "", false},
		{"https:x", "", false},
		{"http://a<b>/", "", false},
		{"http://a b/", "", false},
		{"javascript:alert(1)", "", true},
		{"data:text/html,x", "", true},
		{"file:///etc/passwd", "", true},
		{"", "", true},
		{"a b/c.md", "a%20b/c.md", true},
		{"../x.md", "../x.md", true},
		{"x.md", "", false},
		{"/x", "", true},
		{"//a/b", "", true},
		{`\\a\b`, "", true},
		{"https://a.example/" + strings.Repeat("x", 3000), "", false},
	} {
		got, ok := cleanURL(tt.in, tt.relative)
		if got != tt.want && ok || ok != (tt.want != "") {
			t.Errorf("%q: got %q, %v, want %q", tt.in, got, ok, tt.want)
		}
	}
}

// TestMayPack holds what is written to the ratio that is read, however well
// the entries pack.
func TestMayPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var unpacked, packed int64
		for range rapid.IntRange(1, 50).Draw(t, "entries") {
			size := rapid.Int64Range(0, 300<<20).Draw(t, "size")
			if mayPack(unpacked, packed, size) {
				packed += size / rapid.Int64Range(1, 1030).Draw(t, "ratio")
			} else {
				packed += size
			}
			unpacked += size
		}
		if unpacked > unpackedSlack+maxRatio*packed {
			t.Fatalf("%d bytes unpack to %d", packed, unpacked)
		}
	})
	if mayPack(0, 0, 1<<30) || !mayPack(0, 0, 1<<20) {
		t.Error("the first entry")
	}
}

func TestFileName(t *testing.T) {
	for _, tt := range []struct{ s, ext, want string }{
		{"Report", ".docx", "Report.docx"},
		{"a/b: c", ".zip", "a_b_ c.zip"},
		{"", ".zip", "_.zip"},
		{"CON", ".md", "_CON.md"},
		{"报告.", ".html", "报告.html"},
		{"main.py", "", "main.py"},
		{strings.Repeat("é", 100), ".docx", strings.Repeat("é", 57) + ".docx"},
	} {
		if got := FileName(tt.s, tt.ext); got != tt.want {
			t.Errorf("FileName(%.40q, %q) is %q, want %q", tt.s, tt.ext, got, tt.want)
		}
	}
}
