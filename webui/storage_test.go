// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel/model/provider/demo"
)

// TestStorageOnThePage: the page says before anything is sent that files do not fit, what
// is sent nevertheless is refused with the same words, and a message without files is not.
func TestStorageOnThePage(t *testing.T) {
	t.Parallel()
	big, small := filepath.Join(t.TempDir(), "big.bin"), filepath.Join(t.TempDir(), "small.bin")
	for path, size := range map[string]int{big: 80_000, small: 10_000} {
		if err := os.WriteFile(path, []byte("\x00\x01"+strings.Repeat("x", size-2)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, b := openSite(t, setup{demo: demo.Options{}, storage: 50_000}, 1280, 800)
	b.Forgive("status of 413")
	b.Do(choose(big))
	b.Until(`document.querySelector("#fit .note.bad")?.textContent.includes("0 B of 48.8 KB are used, and it needs 78.1 KB more")`)
	b.picture("storage")
	b.Do(write("Take it."), press("\r"))
	b.Until(`document.querySelector("#composer-error:not([hidden])")?.textContent.includes("does not fit into your storage")`)
	b.Until(`document.body.innerText.split("does not fit into your storage").length === 2`) // once
	b.picture("storage-refused")
	if got := s.all(t); len(got) != 0 {
		t.Errorf("the refused message left %d conversations", len(got))
	}
	b.Do(click(`#chosen button[aria-label="Remove big.bin"]`))
	b.Until(`!document.querySelector("#fit .note.bad") && document.querySelector("#composer-error").hidden`)
	b.Do(choose(small))
	b.Until(`document.querySelectorAll("#chosen li").length === 1`)
	b.Do(press("\r"), see("#messages .message.user"))
	b.rest()
	b.Says(".message.user", "small.bin")
}
