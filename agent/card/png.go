// SPDX-License-Identifier: Apache-2.0

package card

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds on containers.
const (
	// MaxFile is the most bytes of a file.
	MaxFile   = 64 << 20
	maxText   = 32 << 20 // bytes of the JSON in a file
	maxChunks = 10_000
	maxFiles  = 10_000 // in an archive
)

var signature = []byte("\x89PNG\r\n\x1a\n")

// inPNG returns the JSON in the text chunks of a PNG: that of ccv3, otherwise
// that of chara. found is false if there is neither.
func inPNG(raw []byte) (text []byte, found bool, err error) {
	at := len(signature)
	type textual struct {
		kind string
		data []byte
	}
	texts := map[string]textual{} // not unpacked: of several with a keyword, the last counts
	for range maxChunks {
		if len(raw)-at < 12 {
			break
		}
		n := int64(binary.BigEndian.Uint32(raw[at:]))
		kind := string(raw[at+4 : at+8])
		if n > int64(len(raw)-at-12) {
			break // cut off; what came before counts
		}
		data := raw[at+8 : at+8+int(n)]
		at += 12 + int(n)
		if kind == "IEND" {
			break
		}
		if keyword := keywordOf(kind, data); keyword == "ccv3" || keyword == "chara" {
			texts[keyword] = textual{kind, data}
		}
	}
	for _, keyword := range []string{"ccv3", "chara"} {
		if f, ok := texts[keyword]; ok {
			encoded, err := textChunk(f.kind, f.data)
			if err == nil {
				text, err = decodeBase64(encoded)
			}
			return text, true, err
		}
	}
	return nil, false, nil
}

// keywordOf returns the keyword of a chunk of text in lower case; "" for other chunks.
func keywordOf(kind string, data []byte) string {
	word, _, ok := bytes.Cut(data[:min(len(data), 80)], []byte{0})
	if !ok || kind != "tEXt" && kind != "zTXt" && kind != "iTXt" {
		return ""
	}
	return strings.ToLower(string(word))
}

// textChunk returns the value of a chunk of text.
func textChunk(kind string, data []byte) (value []byte, err error) {
	_, rest, _ := bytes.Cut(data, []byte{0}) // keywordOf has found the keyword
	packed := kind == "zTXt"
	switch kind {
	case "zTXt":
		if len(rest) < 1 {
			return nil, errors.New("a text chunk is damaged")
		}
		rest = rest[1:] // the method of compression
	case "iTXt":
		if len(rest) < 2 {
			return nil, errors.New("a text chunk is damaged")
		}
		packed, rest = rest[0] == 1, rest[2:]
		for range 2 { // language, translated keyword
			var ok bool
			if _, rest, ok = bytes.Cut(rest, []byte{0}); !ok {
				return nil, errors.New("a text chunk is damaged")
			}
		}
	}
	if packed {
		r, err := zlib.NewReader(bytes.NewReader(rest))
		if err != nil {
			return nil, fmt.Errorf("a text chunk is damaged: %w", err)
		}
		if rest, err = readAll(r); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// readAll reads up to maxText bytes.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err == nil && len(b) > maxText {
		err = fmt.Errorf("the card in it has more than %d MB", maxText>>20)
	}
	return b, err
}

func decodeBase64(encoded []byte) ([]byte, error) {
	encoded = bytes.TrimSpace(encoded)
	if len(encoded) > 0 && encoded[0] == '{' {
		return encoded, nil // some programs leave it unencoded
	}
	if len(encoded) > maxText*4/3 {
		return nil, fmt.Errorf("the card in it has more than %d MB", maxText>>20)
	}
	text := strings.NewReplacer("\n", "", "\r", "", "-", "+", "_", "/").Replace(strings.TrimRight(string(encoded), "="))
	out, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the card in it is damaged: %w", err)
	}
	return out, nil
}

// inArchive returns card.json of a CHARX file, and its main picture.
func inArchive(raw []byte) (text, picture []byte, err error) {
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, nil, fmt.Errorf("the archive is damaged: %w", err)
	}
	if len(z.File) > maxFiles {
		return nil, nil, fmt.Errorf("%d files in the archive, and at most %d are taken", len(z.File), maxFiles)
	}
	read := func(name string) ([]byte, error) {
		f, err := z.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readAll(f)
	}
	if text, err = read("card.json"); err != nil {
		return nil, nil, fmt.Errorf("card.json cannot be read: %w", err)
	}
	name := iconOf(text)
	if name == "" {
		return text, nil, nil
	}
	picture, err = read(name)
	if err != nil {
		return text, nil, nil // a card without its picture is still a card
	}
	return text, picture, nil
}
