// SPDX-License-Identifier: Apache-2.0

package media

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// cleanType splits a declared type into the media type, in lower case without
// parameters, stray quotes and blanks, and the charset. An invalid type becomes "".
func cleanType(declared string) (mediaType, charset string) {
	if declared == "" {
		return "", ""
	}
	const stray = " \t\r\n\"'`<>"
	mediaType, params, _ := strings.Cut(declared, ";")
	mediaType = strings.ToLower(strings.Trim(mediaType, stray))
	for p := range strings.SplitSeq(params, ";") {
		if k, v, ok := strings.Cut(p, "="); ok && strings.EqualFold(strings.Trim(k, stray), "charset") {
			charset = charsetName(strings.Trim(v, stray))
		}
	}
	major, minor, ok := strings.Cut(mediaType, "/")
	if !ok || !isToken(major) || !isToken(minor) || len(mediaType) > 255 {
		return "", charset
	}
	return mediaType, charset
}

// isToken reports a token of RFC 9110 §5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isUninformative reports types that clients send for unknown content.
func isUninformative(mediaType string) bool {
	switch mediaType {
	case "", octetStream, "binary/octet-stream", "application/unknown", "application/x-unknown", "unknown/unknown",
		"application/x-download", "application/force-download", "*/*",
		"application/x-www-form-urlencoded", "multipart/form-data":
		return true
	}
	return false
}

// Canonical maps synonyms of a media type to the registered or most common name.
func Canonical(mediaType string) string {
	switch mediaType {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "image/svg":
		return "image/svg+xml"
	case "image/x-bmp", "image/x-ms-bmp":
		return "image/bmp"
	case "image/x-psd", "image/psd", "application/x-photoshop":
		return "image/vnd.adobe.photoshop"
	case "image/fits":
		return "application/fits"
	case "image/vnd.microsoft.icon":
		return "image/x-icon"
	case "audio/mp3", "audio/x-mp3", "audio/x-mpeg":
		return "audio/mpeg"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "audio/wav"
	case "audio/x-m4a", "audio/m4a":
		return "audio/mp4"
	case "audio/x-flac":
		return "audio/flac"
	case "audio/x-aiff":
		return "audio/aiff"
	case "audio/mid", "audio/x-midi":
		return "audio/midi"
	case "video/avi", "video/msvideo":
		return "video/x-msvideo"
	case "video/x-ms-wmv":
		return "video/x-ms-asf"
	case "application/vnd.rn-realmedia-vbr":
		return "application/vnd.rn-realmedia"
	case "video/matroska":
		return "video/x-matroska"
	case "video/x-m4v":
		return "video/mp4"
	case "application/x-pdf":
		return "application/pdf"
	case "application/x-zip", "application/x-zip-compressed":
		return "application/zip"
	case "application/x-gzip":
		return "application/gzip"
	case "application/bzip2":
		return "application/x-bzip2"
	case "application/lzip":
		return "application/x-lzip"
	case "application/x-sqlite3":
		return "application/vnd.sqlite3"
	case "font/sfnt", "application/x-font-ttf":
		return "font/ttf"
	case "application/x-rar", "application/x-rar-compressed":
		return "application/vnd.rar"
	case "text/rtf":
		return "application/rtf"
	case "text/json", "application/x-json":
		return "application/json"
	case "text/xml":
		return "application/xml"
	case "text/x-markdown":
		return "text/markdown"
	case "application/javascript", "application/x-javascript":
		return "text/javascript"
	}
	return mediaType
}

// isText reports media types whose bytes are text.
func isText(mediaType string) bool {
	major, minor, _ := strings.Cut(mediaType, "/")
	switch {
	case minor == "rtf":
		return false
	case major == "text", major == "message",
		strings.HasSuffix(minor, "+xml"), strings.HasSuffix(minor, "+json"), strings.HasSuffix(minor, "+yaml"):
		return true
	case major != "application":
		return false
	}
	switch minor {
	case "json", "xml", "javascript", "x-javascript", "ecmascript", "typescript", "x-typescript", "yaml", "x-yaml",
		"toml", "sql", "graphql", "x-sh", "x-shellscript", "x-httpd-php", "x-ndjson", "jsonl", "x-jsonlines", "json5",
		"x-subrip", "x-tex", "x-latex", "xhtml", "xml-dtd", "x-perl", "x-python", "x-ruby", "x-lua",
		"vnd.apple.mpegurl", "x-mpegurl", "pgp-signature", "x-pem-file", "postscript":
		return true
	}
	return false
}

// KindOf returns the kind of a media type. Text-based types such as SVG are text.
func KindOf(mediaType string) artel.MediaKind {
	if isText(mediaType) {
		return artel.KindText
	}
	major, minor, _ := strings.Cut(mediaType, "/")
	switch {
	case minor == "vnd.djvu", major == "application" && isDocument(minor):
		return artel.KindDocument
	case major == "image":
		return artel.KindImage
	case major == "audio", mediaType == "application/ogg":
		return artel.KindAudio
	case major == "video", minor == "mp4", minor == "vnd.rn-realmedia":
		return artel.KindVideo
	case major == "application" && slices.Contains(archives[:], minor):
		return artel.KindArchive
	}
	return artel.KindOther
}

func isDocument(minor string) bool {
	switch minor {
	case "pdf", "rtf", "msword", "epub+zip", "vnd.visio", "oxps", "x-mobipocket-ebook", "vnd.amazon.ebook", "onenote",
		"vnd.fdf", "vnd.wordperfect", "vnd.lotus-1-2-3", "vnd.sun.xml.calc", "x-ole-storage", "vnd.ms-htmlhelp":
		return true
	}
	for _, p := range []string{
		"vnd.openxmlformats-officedocument.", "vnd.oasis.opendocument.", "vnd.ms-excel", "vnd.ms-powerpoint",
		"vnd.ms-word", "vnd.ms-xpsdocument", "vnd.ms-publisher", "vnd.ms-outlook", "vnd.ms-visio", "vnd.ms-project", "vnd.apple.pages",
		"vnd.apple.numbers", "vnd.apple.keynote", "x-iwork-",
	} {
		if strings.HasPrefix(minor, p) {
			return true
		}
	}
	return false
}

var archives = [...]string{
	"zip", "gzip", "x-bzip2", "x-xz", "zstd", "x-7z-compressed", "vnd.rar", "x-tar", "x-compressed-tar", "x-lzip", "vnd.comicbook+zip",
	"x-lz4", "x-compress", "vnd.ms-cab-compressed", "x-archive", "x-unix-archive", "x-cpio", "x-xar", "java-archive",
	"vnd.android.package-archive", "vnd.debian.binary-package", "x-rpm", "x-iso9660-image", "x-installshield", "zlib",
}

// Extension returns the usual file name extension of a media type with its dot, e.g.
// ".jpg"; "" if there is none.
func Extension(mediaType string) string {
	clean, _ := cleanType(mediaType)
	return extensionOf(Canonical(clean))
}

// MaxFilename is the longest file name, in bytes, as file systems have it.
const MaxFilename = 255

// ShortFilename returns a name of at most MaxFilename bytes, with its extension.
func ShortFilename(name string) string {
	if len(name) <= MaxFilename {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 32 {
		ext = ""
	}
	end := MaxFilename - len(ext)
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + ext
}

// Filename returns name with the usual extension of its media type, unless its
// own is one of a known type.
func Filename(name, mediaType string) string {
	if textExtension(name) != "" || binaryExtension(name) != "" {
		return name
	}
	return name + Extension(mediaType)
}

func extensionIn(filename string) string {
	ext := strings.ToLower(path.Ext(strings.ReplaceAll(filename, `\`, "/")))
	if strings.ContainsRune(ext, '/') || len(ext) < 2 {
		return ""
	}
	return ext[1:]
}
