// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/blob/s3"
	"github.com/artelhq/artel/store"
)

// blobsVariable names where the blobs are, like --blobs.
const blobsVariable = "ARTEL_BLOBS"

// blobsFlag adds --blobs to the verbs that open a data directory.
func blobsFlag(cmd *cobra.Command, blobs *string) {
	cmd.Flags().StringVar(blobs, "blobs", os.Getenv(blobsVariable), "where the bytes of files are: s3://BUCKET?endpoint=https://…&region=…, or file:///FOLDER (default: blobs.url or blobs.dir of the configuration, else blobs in the data directory)")
}

// blobPlace returns where the blobs are: a bucket, or a folder if that is nil.
func (o serverOptions) blobPlace() (bucket *s3.Address, dir string, err error) {
	chosen := cmp.Or(o.config.blobs, o.config.Blobs.URL)
	if chosen == "" {
		dir = filepath.Join(o.data, "blobs")
		if o.config.Blobs.Dir != "" {
			dir = o.config.relative(o.config.Blobs.Dir)
		}
		return nil, dir, nil
	}
	return parseBlobs(chosen)
}

// parseBlobs reads the address of a bucket or a folder.
func parseBlobs(address string) (bucket *s3.Address, dir string, err error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "file" {
		if u.Host != "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, "", artel.Errorf(artel.Invalid, "blobs", "", "the folder of the blobs: want file:///FOLDER, with the absolute path of the folder")
		}
		return nil, filepath.FromSlash(u.Path), nil
	}
	a, err := s3.ParseAddress(withRegion(address))
	if err != nil {
		return nil, "", err
	}
	return &a, "", nil
}

// withRegion adds the region of the environment to the address of a bucket
// without one.
func withRegion(address string) string {
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	base, query, _ := strings.Cut(address, "?")
	if region == "" || slices.ContainsFunc(strings.Split(query, "&"), func(o string) bool { return strings.HasPrefix(o, "region=") }) {
		return address
	}
	return base + "?" + strings.TrimPrefix(query+"&region="+url.QueryEscape(region), "&")
}

// openBlobs opens the blobs of a database.
func (s *server) openBlobs(ctx context.Context, o serverOptions, db store.Store) (blob.Store, error) {
	bucket, dir, err := o.blobPlace()
	if err != nil {
		return nil, err
	}
	if bucket != nil {
		blobs, err := s3.Open(ctx, *bucket, db.Blobs(), s3.Options{Log: s.log})
		if err != nil {
			return nil, err
		}
		s.close = append(s.close, blobs.Close)
		s.public, err = blobs.Origin(ctx)
		if err == nil {
			err = s.warnOfFolder(ctx, o, db.Blobs())
		}
		return blobs, err
	}
	if inBucket, err := holds(ctx, db.Blobs()); err != nil || inBucket {
		if err == nil {
			err = artel.Errorf(artel.Conflict, "serve", o.data, "the files of this data directory are in a bucket; say which with --blobs s3://…, %s, or blobs.url of the configuration", blobsVariable)
		}
		return nil, err
	}
	blobs, err := blob.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, blobs.Close)
	if s.user, err = o.blobsUser(ctx, db); err != nil {
		return nil, err
	}
	if dir != filepath.Join(o.data, "blobs") {
		if err := claimBlobs(dir, s.user); err != nil {
			return nil, artel.Errorf(artel.Unavailable, "serve", dir, "the folder of the blobs cannot be written: %w", err)
		}
	}
	return blobs, nil
}

// holds reports whether an index has objects.
func holds(ctx context.Context, index blob.Index) (found bool, err error) {
	err = index.List(ctx, func(blob.Object) bool { found = true; return false })
	return found, err
}

// warnOfFolder says if the data directory has blobs that the bucket lacks.
func (s *server) warnOfFolder(ctx context.Context, o serverOptions, index blob.Index) error {
	missing, err := notCopied(ctx, o, index)
	if missing != "" {
		s.log.Warn("the folder of the blobs has files that the bucket lacks, and that are not found therefore; stop the server, and start it without --blobs to have them", "folder", missing)
	}
	return err
}

// notCopied returns the usual folder of blobs if one of its blobs is not in an index.
func notCopied(ctx context.Context, o serverOptions, index blob.Index) (folder string, err error) {
	o.config.blobs, o.config.Blobs.URL = "", ""
	_, dir, err := o.blobPlace()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	d, err := blob.OpenDir(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	err = d.List(ctx, func(i blob.Info) bool {
		if _, err := index.Find(ctx, i.Digest); artel.KindOf(err) == artel.NotFound {
			folder = dir
		}
		return false // one is enough
	})
	return folder, err
}

// blobs looks at the place of the blobs.
func (d *doctor) blobs(ctx context.Context, conf config) {
	const check = "blobs"
	conf.blobs = d.bucket
	o := serverOptions{data: d.data, config: conf}
	bucket, dir, err := o.blobPlace()
	if err != nil {
		d.ill(check, "correct --blobs, "+blobsVariable+" or blobs.url", "%v", err)
		return
	}
	if bucket != nil {
		ctx, stop := context.WithTimeout(ctx, 15*time.Second)
		defer stop()
		s, err := s3.Open(ctx, *bucket, nil, s3.Options{})
		if err == nil {
			err = s.Check(ctx)
			_ = s.Close()
		}
		if err != nil {
			d.ill(check, "look at the bucket, its address and its credentials; the server needs to read, write, list and delete there, and to list and end uploads", "%s: %v", bucket, err)
			return
		}
		d.fine(check, "%s gives access", bucket)
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.fine(check, "there are none yet")
	case err != nil:
		d.ill(check, "look at the rights of the folder", "%v", err)
	case !info.IsDir():
		d.ill(check, "remove the file, or set blobs.dir", "%s is no folder", dir)
	default:
		d.fine(check, "%s", dir)
	}
}

// checkBlobs rejects invalid places of blobs.
func (c *config) checkBlobs() error {
	switch {
	case c.Blobs.URL == "":
		return nil
	case c.Blobs.Dir != "":
		return errors.New("blobs has both url and dir; want one of them")
	}
	if _, _, err := parseBlobs(c.Blobs.URL); err != nil {
		return fmt.Errorf("blobs.url: %w", err)
	}
	return nil
}
