// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store/rows"
	"github.com/artelhq/artel/store/sqlite"
)

// A fault is what artel fsck has found.
type fault struct {
	Subject string `json:"subject"` // as a digest, a ref, a conversation
	Says    string `json:"says"`
	Fix     string `json:"fix,omitempty"`
	Mended  bool   `json:"mended"`
}

// A checkup is the report of artel fsck.
type checkup struct {
	Faults []fault `json:"faults"`
	Blobs  int64   `json:"blobs"` // looked at
	Bytes  int64   `json:"bytes"`
}

// errFaults ends the command if something is left to do.
var errFaults = errors.New("some data are not whole; see above")

// damagedDir is the folder of a data directory that takes the bytes of damaged blobs.
const damagedDir = "damaged"

func fsckCommand(g *globals) *cobra.Command {
	var at place
	var deep, repair bool
	cmd := &cobra.Command{
		Use: "fsck", Short: "Look whether the data of a stopped server are whole", Args: usage(cobra.NoArgs),
		Long: `Looks whether everything that users store is there: the blobs that rows name, with
their sizes; the numbers of events; the database file. With --deep it reads every text and every
byte and compares the digests. Opening brings the tables to the form of this version; other than
that it changes nothing without --repair, which moves damaged blobs aside, so that uploading the
file again mends it, makes the search index anew and corrects the sums of what users store.
Nothing is ever thrown away. The exit code is 1 if something is left.`,
		Example: "  artel fsck --data data\n  artel fsck --deep --database postgres://artel@db/artel --blobs s3://files",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if at.database == "" && !exists(filepath.Join(at.data, databaseFile)) {
				return usageError{fmt.Errorf("--data %s: there is no database in it", at.data)}
			}
			o, err := at.open(cmd.Context(), g, true)
			if err != nil {
				return err
			}
			defer o.server.shut()
			far, end := farOf(cmd.ErrOrStderr())
			c, err := o.check(cmd.Context(), deep, repair, far)
			if end(); err != nil {
				return err
			}
			if err := g.print(cmd, c, c.lines); err != nil {
				return err
			}
			for _, f := range c.Faults {
				if !f.Mended {
					return errFaults
				}
			}
			return nil
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&deep, "deep", false, "read every text and every byte")
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what can be mended from what is there")
	return cmd
}

// check looks for what is wrong, and mends it with repair where it can be.
func (o *openPlace) check(ctx context.Context, deep, repair bool, far func(string)) (c checkup, err error) {
	c.Faults = []fault{}
	if o.database == "" {
		if err := o.checkFile(ctx, &c, repair); err != nil {
			return c, err
		}
	}
	far("rows")
	err = rows.Flaws(ctx, rowsOf(o.store), deep, func(table string, n int64) { far(fmt.Sprintf("%s: %d rows", table, n)) }, func(f rows.Flaw) {
		c.Faults = append(c.Faults, fault{Subject: f.Subject, Says: f.Detail, Fix: "bring it back from a backup"})
	})
	if err != nil {
		return c, err
	}
	if repair {
		far("the search index")
		if err := rows.Reindex(ctx, rowsOf(o.store)); err != nil {
			return c, err
		}
	}
	kept, err := rows.Kept(ctx, rowsOf(o.store))
	if err != nil {
		return c, err
	}
	for d, size := range kept {
		if err := o.checkBlob(ctx, &c, d, size, deep, repair); err != nil {
			return c, err
		}
		c.Blobs, c.Bytes = c.Blobs+1, c.Bytes+size
		far(fmt.Sprintf("%d of %d files, %s", c.Blobs, len(kept), phrase.Size(c.Bytes)))
	}
	return c, nil
}

// checkFile looks at the file of SQLite, and at the sums in it.
func (o *openPlace) checkFile(ctx context.Context, c *checkup, repair bool) error {
	path := filepath.Join(o.data, databaseFile)
	damages, err := sqlite.QuickCheck(ctx, path)
	if err != nil {
		return err
	}
	for _, d := range damages {
		c.Faults = append(c.Faults, fault{Subject: databaseFile, Says: d, Fix: "bring it back from a backup"})
	}
	wrong, err := sqlite.Recount(ctx, path, repair)
	if err != nil {
		return err
	}
	for _, m := range wrong {
		c.Faults = append(c.Faults, fault{Subject: string(m.Owner), Says: "the sum of what the user stores is wrong", Fix: "artel fsck --repair", Mended: repair})
	}
	return nil
}

// checkBlob looks at a blob of which the size is known, if it is not 0.
func (o *openPlace) checkBlob(ctx context.Context, c *checkup, d artel.Digest, size int64, deep, repair bool) error {
	found := func(says string, mended bool) {
		f := fault{Subject: string(d), Says: says, Fix: "upload the file again, or bring it back from a backup", Mended: mended}
		if mended {
			f.Fix = ""
		}
		c.Faults = append(c.Faults, f)
	}
	info, err := o.blobs.Stat(ctx, d)
	switch {
	case errors.Is(err, artel.NotFound):
		found("the file is missing", false)
		return nil
	case err != nil && artel.KindOf(err) != artel.Internal:
		return err
	}
	damaged := err != nil || size > 0 && info.Size != size
	if !damaged && deep {
		if damaged, err = o.differs(ctx, d); err != nil {
			return err
		}
	}
	if !damaged {
		return nil
	}
	says := "the bytes of the file are damaged"
	if repair {
		aside, err := o.moveAside(ctx, d)
		if err != nil {
			return err
		}
		says += "; they are in " + aside + " now"
	}
	found(says, false)
	return nil
}

// differs reads a blob and reports whether it has another digest.
func (o *openPlace) differs(ctx context.Context, d artel.Digest) (bool, error) {
	r, err := o.blobs.Open(ctx, d)
	if artel.KindOf(err) == artel.Internal {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	info, err := reader{}.Put(ctx, r, 0)
	return info.Digest != d, err
}

// moveAside keeps the bytes of a damaged blob in a file, and removes it from the blobs.
func (o *openPlace) moveAside(ctx context.Context, d artel.Digest) (string, error) {
	const op = "fsck"
	dir := filepath.Join(o.data, damagedDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", artel.Errorf(artel.Unavailable, op, dir, "the folder of damaged files cannot be made: %w", err)
	}
	if folder, ok := o.blobs.(*blob.Dir); ok {
		return dir, folder.MoveAside(ctx, d, dir)
	}
	r, err := o.blobs.Open(ctx, d)
	if err != nil {
		return "", err
	}
	if err := errors.Join(writeTo(filepath.Join(dir, d.Hex()), r), r.Close()); err != nil {
		return "", artel.Errorf(artel.Unavailable, op, string(d), "the damaged file cannot be kept: %w", err)
	}
	_, err = o.blobs.Delete(ctx, d, time.Now().Add(time.Hour))
	return dir, err
}

func writeTo(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// lines prints the report.
func (c checkup) lines(w printer) {
	for _, f := range c.Faults {
		sign := "!!"
		if f.Mended {
			sign = "mended"
		}
		w.linef("%s\t%s\t%s", sign, f.Subject, f.Says)
		if f.Fix != "" && !f.Mended {
			w.linef("\t\t→ %s", f.Fix)
		}
	}
	if len(c.Faults) == 0 {
		w.linef("everything is there: %d files (%s)", c.Blobs, phrase.Size(c.Bytes))
	}
}
