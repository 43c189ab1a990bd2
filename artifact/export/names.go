// SPDX-License-Identifier: Apache-2.0

package export

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// maxName is the longest name of a file in bytes, far below what file systems
// take, so that folders fit before it.
const maxName = 120

// FileName returns a name for a file that is called s and has the extension
// ext, with its dot: one that every system takes. Where s is nothing that can
// be seen it is "_".
func FileName(s, ext string) string { return cut(safeName(s), maxName-len(ext)) + ext }

// safeName converts s to a name that a file can have on every system: without
// separators and characters that Windows refuses, without invisible characters,
// none of the names of devices, not hidden, not taken for an option, and not
// too long. It is never empty.
func safeName(s string) string {
	s = norm.NFC.String(artel.Visible(strings.ToValidUTF8(s, "_")))
	s = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`<>:"/\|?*`, r), r == utf8.RuneError, !unicode.IsPrint(r):
			return '_'
		}
		return r
	}, s)
	// Windows drops dots and spaces at the end. A dot at the beginning hides.
	s = strings.TrimRight(s, ". ")
	s = strings.TrimLeft(s, " ")
	if s == "" {
		s = "_"
	}
	if s[0] == '.' || s[0] == '-' || s[0] == '~' || isDevice(s) {
		s = "_" + s
	}
	if len(s) <= maxName {
		return s
	}
	stem, ext := splitName(s)
	return cut(stem, maxName-len(ext)) + ext
}

// isDevice reports whether Windows takes a name for that of a device, which it
// does whatever the extension is.
func isDevice(s string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(s), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	rest, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		rest, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && utf8.RuneCountInString(rest) == 1 && strings.ContainsAny(rest, "0123456789¹²³")
}

// splitName parts a name before its extension, which has its dot and may be
// "". What is long is no extension.
func splitName(s string) (stem, ext string) {
	ext = path.Ext(s)
	if len(ext) > 16 || len(ext) == len(s) || ext == "." {
		return s, ""
	}
	return s[:len(s)-len(ext)], ext
}

// cut returns at most n bytes of s, whole code points.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], ". ")
}

// names are the names that a folder has, by what a file system that does not
// tell upper from lower case takes for the same, each with the number that the
// next file of this name may get.
type names map[string]int

// take returns s, numbered where another file has the name already.
func (n names) take(s string) string {
	s = safeName(s)
	stem, ext := splitName(s)
	wanted := folded(s)
	i := n[wanted]
	for ; n[folded(s)] > 0; i++ {
		number := "_" + strconv.Itoa(i)
		s = cut(stem, maxName-len(ext)-len(number)) + number + ext
	}
	n[wanted] = max(i, 2)
	n[folded(s)] = max(n[folded(s)], 2)
	return s
}

// folded is the same for names that some file system takes for the same.
func folded(s string) string { return norm.NFKC.String(cases.Fold().String(norm.NFKD.String(s))) }

// extensionFor returns the extension of a version's file with its dot: that of
// the name it was given, else of its id, else the usual one of its type.
func extensionFor(id artel.ArtifactID, v artel.Version) string {
	for _, name := range []string{v.Filename, string(id)} {
		if _, ext := splitName(safeName(name)); plainExtension(ext) {
			return strings.ToLower(ext)
		}
	}
	if ext := media.Extension(v.MediaType); plainExtension(ext) {
		return ext
	}
	return ""
}

// plainExtension reports whether ext is one as programs have them.
func plainExtension(ext string) bool {
	if len(ext) < 2 || len(ext) > 11 {
		return false
	}
	for _, c := range []byte(ext[1:]) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
