// SPDX-License-Identifier: Apache-2.0

package media

import "strings"

// textExtensions and binaryExtensions map extensions to media types. The bytes
// decide which one is used, so that "ts" can be in both. [Extension] returns the
// first of several extensions of a type.
var textExtensions = [...]string{
	"text/plain txt text log out err conf cfg ini properties env lock gitignore editorconfig nfo",
	"text/markdown md markdown mdx mkd", "text/x-rst rst", "text/asciidoc adoc asciidoc", "text/org org",
	"text/html html htm", "application/xhtml+xml xhtml", "text/css css", "text/x-scss scss", "text/x-less less",
	"text/csv csv", "text/tab-separated-values tsv", "text/calendar ics", "text/vcard vcf", "text/vtt vtt",
	"application/x-subrip srt", "text/x-diff diff patch", "application/x-tex tex", "text/x-bibtex bib",
	"application/json json map webmanifest ipynb", "application/geo+json geojson", "application/x-ndjson ndjson jsonl",
	"application/json5 json5", "application/xml xml xsl xslt xsd rng plist", "image/svg+xml svg",
	"application/rss+xml rss", "application/atom+xml atom", "application/gpx+xml gpx",
	"application/vnd.google-earth.kml+xml kml", "application/yaml yaml yml", "application/toml toml",
	"text/javascript js mjs cjs", "text/jsx jsx", "text/typescript ts mts cts", "text/tsx tsx", "text/x-vue vue",
	"text/x-python py pyi", "text/x-go go", "text/x-rust rs", "text/x-c c h", "text/x-c++ cpp cc cxx hpp hh",
	"text/x-csharp cs", "text/x-java java", "text/x-kotlin kt kts", "text/x-scala scala", "text/x-swift swift",
	"text/x-ruby rb", "text/x-php php", "text/x-perl pl pm", "text/x-lua lua", "text/x-r r", "text/x-haskell hs",
	"text/x-ocaml ml mli", "text/x-erlang erl", "text/x-elixir ex exs", "text/x-clojure clj cljs", "text/x-dart dart",
	"text/x-objectivec m mm", "text/x-pascal pas", "text/x-fortran f f90", "text/x-asm asm s", "text/x-zig zig",
	"text/x-julia jl", "text/x-groovy groovy gradle", "text/x-vb vb", "text/x-fsharp fs", "text/x-lisp lisp el",
	"text/x-shellscript sh bash zsh fish", "text/x-powershell ps1", "text/x-batch bat cmd", "text/x-makefile mk",
	"text/x-dockerfile dockerfile", "text/x-cmake cmake", "application/sql sql", "application/graphql graphql gql",
	"text/x-protobuf proto", "text/x-terraform tf hcl", "application/postscript ps eps", "application/x-pem-file pem",
	"application/vnd.apple.mpegurl m3u8 m3u", "message/rfc822 eml",
}

var binaryExtensions = [...]string{
	"image/png png apng", "image/jpeg jpg jpeg jpe jfif", "image/gif gif", "image/webp webp", "image/bmp bmp dib",
	"image/tiff tiff tif", "image/avif avif", "image/heic heic", "image/heif heif", "image/x-icon ico", "image/jxl jxl",
	"image/jp2 jp2", "image/j2c j2k j2c jpc", "image/x-icns icns", "image/vnd.radiance hdr", "image/x-win-bitmap cur", "image/x-tga tga",
	"image/x-pcx pcx", "image/x-portable-pixmap ppm", "image/x-portable-graymap pgm", "image/x-portable-bitmap pbm", "image/vnd.adobe.photoshop psd", "image/vnd.djvu djvu", "image/x-canon-cr2 cr2",
	"image/x-nikon-nef nef", "image/x-sony-arw arw", "image/x-adobe-dng dng",
	"audio/mpeg mp3", "audio/wav wav", "audio/ogg ogg oga opus spx", "audio/flac flac", "audio/aac aac", "audio/mp4 m4a",
	"audio/aiff aiff aif aifc", "audio/x-caf caf", "audio/amr-wb awb", "audio/ac3 ac3", "audio/webm weba", "audio/x-matroska mka", "audio/midi mid midi", "audio/amr amr", "audio/x-ms-wma wma", "audio/basic au",
	"video/mp4 mp4 m4v", "video/webm webm", "video/quicktime mov", "video/x-matroska mkv", "video/x-msvideo avi",
	"video/mpeg mpeg mpg", "video/x-flv flv", "video/x-ms-asf asf wmv", "video/3gpp 3gp", "video/3gpp2 3g2",
	"video/ogg ogv", "video/mp2t ts m2ts mts", "application/vnd.rn-realmedia rm rmvb",
	"application/pdf pdf", "application/rtf rtf", "application/epub+zip epub", "application/x-mobipocket-ebook mobi",
	"application/msword doc", "application/vnd.ms-excel xls", "application/vnd.ms-powerpoint ppt",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation pptx",
	"application/vnd.ms-word.document.macroenabled.12 docm", "application/vnd.ms-excel.sheet.macroenabled.12 xlsm",
	"application/vnd.ms-excel.sheet.binary.macroenabled.12 xlsb", "application/vnd.ms-powerpoint.presentation.macroenabled.12 pptm",
	"application/vnd.ms-xpsdocument xps", "application/vnd.oasis.opendocument.text-template ott",
	"application/vnd.oasis.opendocument.text odt", "application/vnd.oasis.opendocument.spreadsheet ods",
	"application/vnd.oasis.opendocument.presentation odp", "application/vnd.ms-outlook msg",
	"application/vnd.apple.pages pages", "application/vnd.apple.numbers numbers", "application/vnd.apple.keynote key",
	"application/zip zip", "application/gzip gz tgz", "application/x-bzip2 bz2 tbz2", "application/x-xz xz txz",
	"application/zstd zst", "application/x-7z-compressed 7z", "application/vnd.rar rar", "application/x-tar tar",
	"application/x-lz4 lz4", "application/x-lzip lz", "application/x-cpio cpio", "application/x-archive ar", "application/vnd.ms-cab-compressed cab", "application/java-archive jar war ear",
	"application/vnd.android.package-archive apk", "application/vnd.debian.binary-package deb", "application/x-rpm rpm",
	"application/x-iso9660-image iso",
	"font/ttf ttf", "font/otf otf", "font/woff woff", "font/woff2 woff2", "font/collection ttc", "application/vnd.ms-fontobject eot",
	"application/vnd.sqlite3 sqlite sqlite3 db", "application/vnd.microsoft.portable-executable exe dll",
	"application/x-sharedlib so", "application/x-mach-binary dylib", "application/wasm wasm", "application/fits fits", "application/dicom dcm", "model/gltf-binary glb",
	"application/vnd.tcpdump.pcap pcap", "application/x-bittorrent torrent",
	"application/x-java-applet class", "application/x-bytecode.python pyc", "application/vnd.apache.parquet parquet",
}

// The same tables by extension; read-only.
var (
	textByExtension   = byExtension(textExtensions[:])
	binaryByExtension = byExtension(binaryExtensions[:])
)

func byExtension(rows []string) map[string]string {
	m := make(map[string]string, 4*len(rows))
	for _, row := range rows {
		mediaType, rest, _ := strings.Cut(row, " ")
		for ext := range strings.SplitSeq(rest, " ") {
			m[ext] = mediaType
		}
	}
	return m
}

func textExtension(filename string) string { return textByExtension[extensionIn(filename)] }

func binaryExtension(filename string) string { return binaryByExtension[extensionIn(filename)] }

func extensionOf(mediaType string) string {
	if mediaType == "" {
		return ""
	}
	for _, table := range [...][]string{textExtensions[:], binaryExtensions[:]} {
		for _, row := range table {
			if rest, ok := strings.CutPrefix(row, mediaType+" "); ok {
				ext, _, _ := strings.Cut(rest, " ")
				return "." + ext
			}
		}
	}
	return ""
}
