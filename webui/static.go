// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

//go:embed static
var static embed.FS

// assets serves the page's own files. Their addresses hold a digest of all of
// them, so that browsers keep them until the program changes.
type assets struct {
	root  string // "/static/" and the digest
	files http.Handler
}

func newAssets() *assets {
	h := sha256.New()
	files, err := fs.Sub(static, "static")
	if err == nil {
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(files, name)
			h.Write([]byte(name))
			h.Write(b)
			return err
		})
	}
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return &assets{"/static/" + hex.EncodeToString(h.Sum(nil)[:6]), http.FileServerFS(files)}
}

// icons are the names of all icons.
func (a *assets) icons() []string {
	b, err := static.ReadFile("static/vendor/icons.svg")
	if err != nil {
		panic(err) // it is embedded above
	}
	var names []string
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)"`).FindAllSubmatch(b, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// url is the address of a file.
func (a *assets) url(name string) string { return a.root + "/" + name }

// ServeHTTP takes addresses with any digest, so that a page that was loaded
// before the program changed still finds its files; only the present digest
// is kept by browsers.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/") {
		http.NotFound(w, r) // folders are not listed
		return
	}
	digest, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/static/"), "/")
	keep := "no-cache"
	if "/static/"+digest == a.root {
		keep = "private, max-age=31536000, immutable"
	}
	w.Header().Set("Cache-Control", keep)
	http.StripPrefix("/static/"+digest, a.files).ServeHTTP(w, r)
}

// compressed answers with gzip where that is worth it, and never the event
// stream, whose pieces must not wait for each other.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.ContentTypes([]string{
		"text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml",
	}))
	if err != nil {
		panic(err) // the options above are constant
	}
	zipped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/live") {
			next.ServeHTTP(w, r)
			return
		}
		zipped.ServeHTTP(w, r)
	})
}
