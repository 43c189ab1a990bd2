// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"github.com/wlynxg/chardet"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/mediatest"
)

const detectAbout = "What bytes are, in one call, without a name or a declaration. `media` reads all of a text, since all has to be text, and guesses the charset of what is not Unicode; of other files it reads the beginning. " +
	"The anchor is the library that it builds on, gabriel-vasile/mimetype, which reads 3 KB; where a charset is guessed it is wlynxg/chardet over the same 1 KB. Rows beside net/http have its detector, which reads 512 bytes, as the anchor. " +
	"Right answers are counted over the files of `testdata/files`: the media type by the bytes alone, under any of its names. Neither anchor is made to see the whole of a text, and it shows."

func micros() unit { return unit{"µs", 1e6, false} }

// The budgets, and what the anchors take on the machine that they were set for.
const (
	binaryLimit, binaryReference = 2e-6, 1.6e-6 // the mean of many formats
	textLimit, textReference     = 15e-6, 7e-6
	guessLimit, guessReference   = 1.5e-3, 0.6e-3
)

// A detection is one kind of bytes, or files that stand for one.
type detection struct {
	name    string
	files   [][]byte
	target  target
	guessed bool // the charset is
}

func measureDetect(_ context.Context, l *lab) ([]result, error) {
	corpus, err := mediatest.Read(filepath.Join(l.root, "testdata", "files"))
	if err != nil {
		return nil, err
	}
	works, err := detections(corpus)
	if err != nil {
		return nil, err
	}
	var results, beside []result
	for _, w := range works {
		anchor := func(b []byte) { mimetype.Detect(b) }
		if w.guessed {
			anchor = func(b []byte) { chardet.DetectAll(b[:min(len(b), 1<<10)]) }
		}
		const while = 30 * time.Millisecond
		m, err := interleave(l.rounds(5),
			perFile(while, w.files, func(b []byte) { media.Detect(b, media.Hint{}) }), perFile(while, w.files, anchor),
			perFile(while, w.files, func(b []byte) { http.DetectContentType(b) }))
		if err != nil {
			return nil, err
		}
		size := fmt.Sprintf("%.1f KB", float64(len(w.files[0]))/1e3)
		if len(w.files) > 1 {
			size = count(len(w.files), "files")
		}
		results = append(results, result{work: w.name, size: size, unit: micros(), artel: m[0], anchor: m[1], target: w.target})
		if len(w.files) > 1 || w.name == "English" {
			beside = append(beside, result{work: w.name + ", beside net/http", size: size, unit: micros(), artel: m[0], anchor: m[2]})
		}
	}
	right, err := rightAnswers(corpus)
	return append(append(results, beside...), right...), err
}

func detections(corpus *mediatest.Corpus) ([]detection, error) {
	english, err := io.ReadAll(prose(8e3, 1))
	if err != nil {
		return nil, err
	}
	all := detection{name: "each format that does not begin like text, mean", target: target{limit: binaryLimit, reference: binaryReference}}
	for _, f := range corpus.Files {
		b, err := corpus.Bytes(f.File)
		if err != nil {
			return nil, err
		}
		if f.Kind != artel.KindText && f.Type != "application/octet-stream" && !beginsLikeText(b) {
			all.files = append(all.files, b)
		}
	}
	utf8, guess := target{limit: textLimit, reference: textReference}, target{limit: guessLimit, reference: guessReference}
	works := []detection{all, {name: "English", files: [][]byte{english}, target: utf8}}
	for _, w := range []struct {
		file    string
		work    detection
		repeats bool // until it is as long as the English
	}{
		{"zh_utf8.txt", detection{name: "Chinese, UTF-8", target: utf8}, true},
		{"long.json", detection{name: "JSON"}, false},
		{"utf16le.txt", detection{name: "Chinese, UTF-16"}, true},
		{"zh_gb18030.txt", detection{name: "Chinese, GB18030", target: guess, guessed: true}, true},
		{"ja_sjis.txt", detection{name: "Japanese, Shift-JIS", target: guess, guessed: true}, true},
		{"ru_cp1251.txt", detection{name: "Russian, windows-1251", target: guess, guessed: true}, true},
		{"fr_latin1.txt", detection{name: "French, Latin-1", target: guess, guessed: true}, true},
		{"pl_latin2.txt", detection{name: "Polish, Latin-2", target: guess, guessed: true}, true},
		{"alpha.png", detection{name: "PNG"}, false},
		{"photo.jpg", detection{name: "JPEG"}, false},
		{"photo.heic", detection{name: "HEIC"}, false},
		{"tone.mp3", detection{name: "MP3"}, false},
		{"clip.mp4", detection{name: "MP4"}, false},
		{"report.pdf", detection{name: "PDF"}, false},
		{"brief.docx", detection{name: "DOCX"}, false},
		{"archive.zip", detection{name: "ZIP"}, false},
	} {
		b, err := corpus.Bytes(w.file)
		if err != nil {
			return nil, err
		}
		if w.repeats {
			b = bytes.Repeat(b, len(english)/len(b))
		}
		w.work.files = [][]byte{b}
		works = append(works, w.work)
	}
	return works, nil
}

func beginsLikeText(b []byte) bool {
	b = b[:min(len(b), 32)]
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
}

// perFile measures one of many calls, in batches, as looking at the clock costs
// as much as a call.
func perFile(while time.Duration, files [][]byte, work func([]byte)) sample {
	return func() (float64, error) {
		for n, began := 0, time.Now(); ; {
			for range 16/len(files) + 1 {
				for _, b := range files {
					work(b)
				}
				n += len(files)
			}
			if d := time.Since(began); d >= while {
				return d.Seconds() / float64(n), nil
			}
		}
	}
}

// rightAnswers counts the media types that each detector finds.
func rightAnswers(corpus *mediatest.Corpus) ([]result, error) {
	var own, library, standard int
	for _, f := range corpus.Files {
		data, err := corpus.Bytes(f.File)
		if err != nil {
			return nil, err
		}
		if media.Detect(data, media.Hint{}).MediaType == f.Type {
			own++
		}
		found := mimetype.Detect(data)
		if found.Is(f.Type) || anyOf(f.Aliases, found.Is) {
			library++
		}
		name, _, _ := strings.Cut(http.DetectContentType(data), ";")
		if name == f.Type || anyOf(f.Aliases, func(alias string) bool { return alias == name }) {
			standard++
		}
	}
	files := unit{fmt.Sprintf("of %d", len(corpus.Files)), 1, true}
	row := func(work string, anchor int) result {
		return result{work: work, size: "–", unit: files, artel: float64(own), anchor: float64(anchor)}
	}
	return []result{row("right answers", library), row("right answers, beside net/http", standard)}, nil
}

func anyOf(names []string, is func(string) bool) bool {
	for _, n := range names {
		if is(n) {
			return true
		}
	}
	return false
}
