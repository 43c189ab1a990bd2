// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// throttled bounds what the browser sends, in bytes a second; 0: not at all.
func throttled(upload float64) chromedp.Action[chromedp.Void] {
	conditions := network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{}}
	if upload > 0 {
		conditions.MatchedNetworkConditions = append(conditions.MatchedNetworkConditions, &network.Conditions{DownloadThroughput: -1, UploadThroughput: upload})
	}
	return webuitest.Command(network.EmulateNetworkConditionsByRule, conditions)
}

// Files come by button, by paste and by drop; one is taken away again; the
// rest is sent and arrives whole.
func TestManyUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("All of these, please."))
	b.Do(choose(sample(t, "photo.jpg"), sample(t, "report.pdf")))
	b.Do(choose(sample(t, "tone.mp3"))) // choosing again adds
	transfer := func(name, kind, content string) string {
		return fmt.Sprintf(`const data = new DataTransfer(); data.items.add(new File([%s], %q, { type: %q }));`, content, name, kind)
	}
	b.Script(`(async () => { const picture = await (await fetch("/sample/workbench.png")).blob();` + transfer("pasted.png", "image/png", "picture") +
		`document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); })()`)
	b.Until(`document.querySelectorAll("#chosen .thumb").length === 2`)
	b.Script(`(() => {` + transfer("dropped.txt", "text/plain", `"dropped text"`) + `
		const over = (type) => document.getElementById("scroller")?.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }))
			?? document.getElementById("main").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
		over("dragenter"); window.marked = document.getElementById("composer").classList.contains("over"); over("dragover"); window.taken = !over("drop"); })()`)
	b.Until(`document.querySelectorAll("#chosen li").length === 5`)
	if !eval[bool](b, `marked && taken && !document.getElementById("composer").classList.contains("over")`) {
		t.Error("the composer does not show that it takes what is dragged over it")
	}
	b.Until(`[...document.querySelectorAll("#chosen .thumb")].every((picture) => picture.complete)`)
	b.picture("chosen")
	b.Says("#chosen", "photo.jpg", "report.pdf", "tone.mp3", "pasted.png", "dropped.txt", "12 B")
	b.Do(click(`#chosen button[aria-label="Remove tone.mp3"]`))
	b.Until(`document.querySelectorAll("#chosen li").length === 4 && document.activeElement.id === "text"`)
	b.Do(press("\r"), see("#messages .message.user"))
	b.rest()
	b.Says(".message.user", "photo.jpg", "report.pdf", "pasted.png", "dropped.txt")
	c := s.all(t)[0].ID
	for name, path := range map[string]string{"photo.jpg": sample(t, "photo.jpg"), "report.pdf": sample(t, "report.pdf"), "pasted.png": "../cmd/artel/samples/workbench.png"} {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := s.ask(t, "GET", app.FileURL(artel.Ref{Conversation: c, Artifact: artel.ArtifactID(name)}), "", nil)
		if got.StatusCode != 200 || !bytes.Equal([]byte(got.body), want) {
			t.Errorf("%s: status %d and %d bytes, want the %d that were sent", name, got.StatusCode, len(got.body), len(want))
		}
	}
	b.sameAnew()
}

// Sending shows its progress and can be cancelled: then nothing was sent, and
// nothing that was written or chosen is lost.
func TestUploadCancelled(t *testing.T) {
	t.Parallel()
	big := filepath.Join(t.TempDir(), "big.bin")
	if err := os.WriteFile(big, bytes.Repeat([]byte("0123456789abcdef"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("A big one."), choose(sample(t, "notes.md"), big))
	b.Until(`document.querySelectorAll("#chosen li").length === 2`)
	b.Do(throttled(200_000), press("\r"), see("#upload-cancel"))
	b.Until(`((bar) => bar && bar.value > 0 && bar.value < bar.max && bar.getAttribute("aria-label") === "big.bin")(document.querySelectorAll("#chosen progress")[1])`)
	b.picture("sending")
	b.Do(click("#upload-cancel"))
	b.Until(`!document.getElementById("composer-error").hidden && document.getElementById("upload-cancel").hidden && !document.querySelector("#chosen progress")`)
	b.Says("#composer-error", "cancelled", "Nothing was sent")
	b.Says("#chosen", "notes.md", "big.bin")
	if got := get(b, chromedp.Value(chromedp.CSS("#text"))); got != "A big one." {
		t.Errorf("the text became %q", got)
	}
	b.Wait("the server to leave nothing behind", func() bool { return len(s.all(t)) == 0 })
	b.Do(throttled(0), press("\r"), see("#messages .message.user"))
	b.rest()
	b.Says(".message.user", "A big one.", "notes.md", "big.bin", "1.0 MB")
	if n := len(s.all(t)); n != 1 {
		t.Errorf("there are %d conversations", n)
	}
}
