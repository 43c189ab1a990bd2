// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// FuzzHide: however an encoder writes a secret, between whatever, a message that was hidden
// is JSON of the same shape without it.
func FuzzHide(f *testing.F) {
	f.Add("", `k3y/<é>"x`, "", 0)
	f.Add(`say "`, "tok😀en\\", `\`, 0)
	f.Add(strings.Repeat("a", 100), "aaaa", "a\n", 200_000)
	f.Fuzz(func(t *testing.T, before, secret, after string, pad int) {
		secret = strings.ToValidUTF8(secret, "x")
		before, after = strings.ToValidUTF8(before, "x"), strings.ToValidUTF8(after, "x")
		if len(secret) < shortestSecret || strings.Contains("[NAME]", secret) || pad < 0 || pad > 300_000 {
			return
		}
		text := before + secret + after
		plain, escaped := quoted(text), []byte(nil)
		escaped, _ = json.Marshal(text)
		for _, form := range [][]byte{plain, escaped, bytes.ReplaceAll(plain, []byte("/"), []byte(`\/`)), []byte(`"` + string(inASCII(text)) + `"`)} {
			s := &spool{}
			fmt.Fprintf(s, `{"pad":%q,"n":1234,"text":%s}`, strings.Repeat(" ", pad), form)
			out, err := without(s, secretForms(map[string]string{"NAME": secret}))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(out.reader(out.all()))
			_ = out.Close()
			var m struct {
				N    int
				Text string
			}
			if err != nil || json.Unmarshal(b, &m) != nil {
				t.Fatalf("%v: %.300q", err, b)
			}
			if strings.Contains(m.Text, secret) && !strings.Contains(strings.ReplaceAll(text, secret, "[NAME]"), secret) {
				t.Errorf("%q still has %q", m.Text, secret)
			}
		}
	})
}
