// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"path"
	"strconv"

	"github.com/artelhq/artel"
)

// readEPUB reads the chapters of a book in their order.
func readEPUB(src *source, o *out) error {
	a, err := openArchive(src)
	if err != nil {
		return err
	}
	if a.has("META-INF/encryption.xml") && a.has("META-INF/rights.xml") {
		return artel.Errorf(artel.Unsupported, op, src.info.MediaType, "the book is protected against copying; its text cannot be read")
	}
	book := ""
	err = a.subtrees("META-INF/container.xml", func(n *node) {
		n.all("rootfile", func(r *node) {
			if book == "" {
				book = resolve("", r.attr("full-path"))
			}
		})
	})
	if err != nil {
		return err
	}
	items := map[string]string{}
	var chapters []string
	err = a.subtrees(book, func(n *node) {
		n.all("item", func(i *node) { items[i.attr("id")] = resolve(path.Dir(book)+"/", i.attr("href")) })
		n.all("itemref", func(i *node) { chapters = append(chapters, items[i.attr("idref")]) })
	})
	if err != nil {
		return err
	}
	o.pages = len(chapters)
	for i, name := range chapters {
		if i >= o.maxPages {
			o.truncate("the book has more chapters than the limit")
			break
		}
		if !a.has(name) {
			o.omit(OmitPart, 1)
			continue
		}
		o.comment("chapter " + strconv.Itoa(i+1))
		r, err := a.open(name)
		if err != nil {
			return err
		}
		if text, known := decoded(r); known {
			err = writeHTML(a.budget, o, &xhtmlReader{r: text})
		} else {
			o.omit(OmitPart, 1)
		}
		_ = r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
