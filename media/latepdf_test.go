// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel/media"
)

// TestLatePDF says that a PDF may begin after other bytes, where its readers still accept
// it, and that a text about PDF stays one.
func TestLatePDF(t *testing.T) {
	const head, plain = "%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj\n<<>>\nendobj\n", "%PDF-1.7\n1 0 obj\n<<>>\nendobj\n"
	for name, c := range map[string]struct {
		data, file, declared string
		want                 string
	}{
		"binary comment":      {strings.Repeat("job: x\r\n", 100) + head, "", "", "application/pdf"},
		"named":               {"# a note\n" + plain, "a.pdf", "", "application/pdf"},
		"declared":            {"# a note\n" + plain, "", "application/pdf", "application/pdf"},
		"declared otherwise":  {"# a note\n" + plain, "a.pdf", "text/markdown", "text/markdown"},
		"text about PDF":      {"A PDF begins so:\n" + plain, "notes.md", "", "text/markdown"},
		"too late":            {strings.Repeat("x", 1020) + "\n" + plain, "a.pdf", "", "text/plain"},
		"mentioned in a line": {"it says %PDF-1.7\n1 0 obj", "a.pdf", "", "text/plain"},
	} {
		if got := media.Detect([]byte(c.data), media.Hint{Filename: c.file, DeclaredType: c.declared}); got.MediaType != c.want {
			t.Errorf("%s: %s, want %s", name, got.MediaType, c.want)
		}
	}
}
