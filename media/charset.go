// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	"github.com/artelhq/artel"
)

const (
	sampleSize = 1 << 10 // bytes for guessing, from the first one that is not ASCII
	maxTrials  = 4       // charsets tried on the whole stream
)

// The least confidence for text of a legacy charset: without and with a claim that
// the bytes are text, and for few bytes, which could be chance.
const (
	leastGuess   = 0.5
	leastClaimed = 0.4
	leastFew     = 0.95
	fewBytes     = 24
)

// A legacyCheck collects a sample, guesses charsets from it, and decodes the rest of
// the stream in each of them to find the valid ones.
type legacyCheck struct {
	sample  []byte
	guessed bool
	trials  []trial
}

type trial struct {
	textVerdict
	decoder    *encoding.Decoder
	pending    [8]byte // the beginning of a truncated character
	pendingLen int
	bad        bool
	scratch    *scratch // shared by the trials of one stream
}

type scratch struct {
	in  [2 << 10]byte
	out [8 << 10]byte // no charset grows by more than a factor of three
}

// feed takes the next bytes; high is the index of the first one that is not ASCII.
func (c *legacyCheck) feed(p []byte, high int, s *Sniffer) {
	if c.guessed {
		for i := range c.trials {
			c.trials[i].feed(p)
		}
		return
	}
	if c.sample == nil {
		if high < 0 {
			return
		}
		p = p[high:]
		c.sample = make([]byte, 0, sampleSize)
	}
	n := min(len(p), sampleSize-len(c.sample))
	c.sample = append(c.sample, p[:n]...)
	if len(c.sample) < sampleSize {
		return
	}
	c.guessed = true
	if utf8.Valid(c.sample[:len(c.sample)-cutRune(c.sample)]) {
		return // this much valid UTF-8 is certain, even if it is invalid later
	}
	_, declared := cleanType(s.hint.DeclaredType)
	c.trials = startTrials(c.sample, s.head, declared)
	for i := range c.trials {
		c.trials[i].feed(p[n:])
	}
}

// verdict returns the result at this point of the stream, which may continue.
func (c *legacyCheck) verdict(s *Sniffer, declared string, claimed bool) textVerdict {
	trials := c.trials
	if !c.guessed {
		trials = startTrials(c.sample, s.head, declared)
	}
	least := leastGuess
	switch {
	case claimed:
		least = leastClaimed
	case declared == "" && s.size < fewBytes && !mostlyLetters(s.head):
		least = leastFew
	}
	for i := range trials {
		if t := &trials[i]; t.confidence >= least && t.holds() {
			return t.textVerdict
		}
	}
	return textVerdict{}
}

// mostlyLetters reports at least three ASCII letters per byte that is not ASCII.
func mostlyLetters(b []byte) bool {
	var letters, high int
	for _, c := range b {
		switch {
		case c >= utf8.RuneSelf:
			high++
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
		}
	}
	return letters >= 3*high
}

// firstHigh returns the index of the first byte that is not ASCII, or -1.
func firstHigh(p []byte) int {
	i := 0
	for ; i+8 <= len(p) && binary.NativeEndian.Uint64(p[i:])&0x8080808080808080 == 0; i += 8 {
	}
	for ; i < len(p); i++ {
		if p[i] >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

// startTrials ranks the possible charsets of sample and starts a trial of each.
func startTrials(sample, head []byte, declared string) []trial {
	if len(sample) == 0 {
		return nil
	}
	ascii, _, _ := bytes.Cut(head, sample[:1])
	if bytes.ContainsFunc(ascii, isControl) {
		return nil
	}
	var trials []trial
	buffers := new(scratch)
	add := func(charset string, confidence float64) {
		name := charsetName(charset)
		same := func(t trial) bool { return t.charset == name }
		if strings.HasPrefix(name, "utf-") || slices.ContainsFunc(trials, same) || len(trials) == maxTrials {
			return
		}
		t := startTrial(name, confidence, buffers)
		if t.feed(sample); !t.bad {
			trials = append(trials, *t)
		}
	}
	if declared != "" {
		add(declared, 0.95)
	}
	if inside := documentCharset(head); inside != "" {
		add(inside, 0.95)
	}
	guesses := guessCharsets(sample)
	latin, confidence := guessLatin(sample)
	if latin != "" && (len(guesses) == 0 || guesses[0].Confidence < 0.95 || isSingleByte(guesses[0].Encoding)) {
		if latin == "windows-1252" && !slices.ContainsFunc(sample, isC1) {
			latin = "iso-8859-1"
		}
		add(latin, confidence)
	}
	for _, g := range guesses {
		if charsetName(g.Encoding) == "koi8-r" && isUkrainian(sample) {
			add("koi8-u", g.Confidence)
		}
		add(g.Encoding, g.Confidence)
	}
	if isArabic(sample) {
		add("windows-1256", 0.7)
	}
	return trials
}

// guessCharsets returns the library's guesses, best first. It recovers from panics,
// because the input is untrusted.
func guessCharsets(sample []byte) (guesses []chardet.Result) {
	defer func() {
		if recover() != nil {
			guesses = nil
		}
	}()
	guesses = chardet.DetectAll(sample)
	slices.SortStableFunc(guesses, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Encoding, b.Encoding))
	})
	return guesses
}

// isSingleByte reports the library's single-byte charsets.
func isSingleByte(charset string) bool {
	name := charsetName(charset)
	for _, p := range [...]string{"iso-8859-", "windows-", "koi8-", "ibm", "mac", "x-mac"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// isC1 reports the bytes in which windows-1252 and iso-8859-1 differ.
func isC1(c byte) bool { return c >= 0x80 && c < 0xA0 }

// documentCharset returns the charset declared inside of XML or HTML, or "".
func documentCharset(head []byte) string {
	head = bytes.TrimLeft(head[:min(len(head), 1<<10)], " \t\r\n")
	if len(head) == 0 || head[0] != '<' {
		return ""
	}
	word := "charset"
	if bytes.HasPrefix(head, []byte("<?xml")) {
		head, _, _ = bytes.Cut(head, []byte("?>"))
		word = "encoding"
	} else {
		head = bytes.ToLower(head)
	}
	for {
		i := bytes.Index(head, []byte(word))
		if i < 0 {
			return ""
		}
		head = bytes.TrimLeft(head[i+len(word):], " \t\r\n")
		if rest, ok := bytes.CutPrefix(head, []byte("=")); ok {
			rest = bytes.TrimLeft(rest, " \t\r\n\"'")
			if end := bytes.IndexAny(rest, " \t\r\n\"'/>;"); end > 0 {
				return charsetName(string(rest[:min(end, 40)]))
			}
		}
	}
}

// startTrial returns a trial of a charset named as by [charsetName]. It has failed
// already if the charset is unknown.
func startTrial(charset string, confidence float64, buffers *scratch) *trial {
	t := &trial{textVerdict: textVerdict{charset: charset, confidence: confidence, guessed: true}, scratch: buffers}
	enc, err := lookup(charset)
	if err != nil {
		t.bad = true
		return t
	}
	t.decoder = enc.NewDecoder()
	return t
}

// holds reports whether all fed bytes are text without a truncated character.
func (t *trial) holds() bool { return !t.bad && t.pendingLen == 0 }

// feed decodes the next piece and checks the result. A panic of the decoder means
// that the bytes are no text.
func (t *trial) feed(p []byte) {
	defer func() {
		if recover() != nil {
			t.bad = true
		}
	}()
	if t.bad {
		return
	}
	in, out := &t.scratch.in, &t.scratch.out
	for len(p) > 0 && !t.bad {
		held := copy(in[:], t.pending[:t.pendingLen])
		n := copy(in[held:], p)
		p = p[n:]
		written, read, err := t.decoder.Transform(out[:], in[:held+n], false)
		rest := in[read : held+n]
		t.bad = !plainText(out[:written]) || len(rest) > len(t.pending) || err != nil && !errors.Is(err, transform.ErrShortSrc)
		t.pendingLen = copy(t.pending[:], rest)
	}
}

// plainText reports whether decoded text has no replacement, control or private-use
// characters, which indicate a wrong charset.
func plainText(b []byte) bool {
	for i := 0; i < len(b); {
		if b[i] >= 0x20 && b[i] < 0x7F {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError || isControl(r) || r >= 0xE000 && r <= 0xF8FF {
			return false
		}
		i += n
	}
	return true
}

// charsetName maps the name of a charset to the one that Artel stores: the largest
// charset of its family, in lower case.
func charsetName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "ascii", "us-ascii", "utf-8-sig", "utf8":
		return "utf-8"
	case "gb2312", "gbk", "x-gbk", "cp936":
		return "gb18030"
	case "cp932", "shift-jis", "sjis", "windows-31j":
		return "shift_jis"
	case "cp949", "johab", "ks_c_5601-1987":
		return "euc-kr"
	case "latin1":
		return "iso-8859-1"
	case "macroman":
		return "macintosh"
	case "maccyrillic":
		return "x-mac-cyrillic"
	case "tis-620":
		return "windows-874"
	}
	return name
}

// lookup returns the encoding of a name returned by [charsetName]. As in HTML,
// iso-8859-1 means its superset windows-1252.
func lookup(name string) (encoding.Encoding, error) {
	switch name {
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), nil
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM), nil
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), nil
	case "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM), nil
	}
	enc, err := htmlindex.Get(name)
	if err == nil && enc == encoding.Replacement {
		err = errors.New("no decoder")
	}
	return enc, err
}

// TextReader returns the text of r as UTF-8 while it is read. It decodes as [DecodeText]
// does, and its errors are the same.
func TextReader(r io.Reader, charset string) (io.Reader, error) {
	name := charsetName(charset)
	if name == "" || name == "utf-8" {
		return unicode.UTF8.NewDecoder().Reader(r), nil
	}
	enc, err := lookup(name)
	if err != nil {
		return nil, artel.Errorf(artel.Unsupported, "media.DecodeText", artel.Shorten(charset, 60), "no such charset")
	}
	return &decoder{enc.NewDecoder().Reader(r), charset}, nil
}

// A decoder returns the panics of a decoder as errors.
type decoder struct {
	r       io.Reader
	charset string
}

// Read implements [io.Reader].
func (d *decoder) Read(p []byte) (n int, err error) {
	defer func() {
		if recover() != nil {
			n, err = 0, artel.Errorf(artel.Unsupported, "media.DecodeText", artel.Shorten(d.charset, 60), "its decoder failed over these bytes")
		}
	}()
	return d.r.Read(p)
}

// DecodeText reads r to its end and returns it as UTF-8. The charset is one returned
// by [Detect] or any name of the WHATWG Encoding Standard; "" is "utf-8". A byte
// order mark is kept in UTF-8 and dropped in UTF-16 and UTF-32. Invalid bytes become
// U+FFFD. The caller bounds r.
//
// The error is of kind [artel.Unsupported] for an unknown charset or a panic of its
// decoder, otherwise that of r.
func DecodeText(r io.Reader, charset string) (text string, err error) {
	if name := charsetName(charset); name != "" && name != "utf-8" { // UTF-8 is checked as a whole below
		if r, err = TextReader(r, charset); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	if _, err := io.Copy(&b, r); err != nil {
		return "", artel.Errorf(artel.KindOf(err), "media.DecodeText", "", "reading text: %w", err)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}
