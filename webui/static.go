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

// assets serves the page's static files. Their URLs contain a digest of all
// files, so browsers cache them until the program changes.
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
		panic(err) // the folder is embedded
	}
	return &assets{"/static/" + hex.EncodeToString(h.Sum(nil)[:6]), http.FileServerFS(files)}
}

// icons are the names of all icons.
func (a *assets) icons() []string {
	b, err := static.ReadFile("static/vendor/icons.svg")
	if err != nil {
		panic(err) // the file is embedded
	}
	var names []string
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)"`).FindAllSubmatch(b, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// url is the URL of a file.
func (a *assets) url(name string) string { return a.root + "/" + name }

// ServeHTTP accepts any digest, so that a page loaded from an older program
// still finds its files; only the current digest is cached.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/") {
		http.NotFound(w, r) // no directory listings
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

// compressed compresses responses with gzip, except event streams, whose pieces
// must be flushed at once.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.ContentTypes([]string{
		"text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml",
	}))
	if err != nil {
		panic(err) // the options are constant
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
