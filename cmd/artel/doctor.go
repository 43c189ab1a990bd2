// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/disk"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/sqlite"
)

// A diagnosis is the result of one check of artel doctor.
type diagnosis struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Says  string `json:"says"`          // what was found
	Fix   string `json:"fix,omitempty"` // what to do about it
}

// errFindings makes artel doctor exit with 1.
var errFindings = errors.New("artel doctor has findings")

func doctorCommand(g *globals) *cobra.Command {
	var addr, data, blobs string
	var services, recount bool
	var database string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what keeps the server from working", Args: usage(cobra.NoArgs),
		Long: `Checks the configuration, the data directory, the disk, the database, the address,
the clock, and, with --services, whether each model service answers, which costs a
few tokens each. Changes nothing, and prints no keys; --recount alone corrects how
much each user stores, where the sums that are kept are wrong. Exits with 1 if
something needs to be done.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := doctor{addr: addr, data: data, bucket: blobs, postgres: database, recount: recount}
			d.examine(cmd.Context(), g.config, services)
			err := g.print(cmd, map[string]any{"version": version, "checks": d.all}, func(w printer) {
				for _, one := range d.all {
					sign := "ok"
					if !one.OK {
						sign = "!!"
					}
					w.linef("%s\t%s\t%s", sign, one.Check, one.Says)
					if one.Fix != "" {
						w.linef("\t\t→ %s", one.Fix)
					}
				}
			})
			if err != nil {
				return err
			}
			for _, one := range d.all {
				if !one.OK {
					return errFindings
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "addr", envOr("ARTEL_ADDR", defaultAddr), "address that the server is to listen on")
	cmd.Flags().StringVar(&data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	databaseFlag(cmd, &database)
	blobsFlag(cmd, &blobs)
	cmd.Flags().BoolVar(&recount, "recount", false, "correct how much each user stores, if it is wrong; writes wait meanwhile")
	cmd.Flags().BoolVar(&services, "services", false, "ask every model service for a word, which may cost")
	return cmd
}

// A doctor collects diagnoses.
type doctor struct {
	addr, data string
	bucket     string // of --blobs
	postgres   string // of --database
	recount    bool
	all        []diagnosis
}

func (d *doctor) fine(check, format string, args ...any) {
	d.all = append(d.all, diagnosis{Check: check, OK: true, Says: fmt.Sprintf(format, args...)})
}

func (d *doctor) ill(check, fix, format string, args ...any) {
	d.all = append(d.all, diagnosis{Check: check, Says: fmt.Sprintf(format, args...), Fix: fix})
}

func (d *doctor) examine(ctx context.Context, path string, services bool) {
	conf, err := readConfig(path)
	switch {
	case err != nil:
		d.ill("configuration", "correct the file", "%v", err)
	case len(conf.withheld) > 0:
		d.ill("configuration", "read the file, then run: artel trust", "%s is not trusted, so these settings are not used: %s", conf.path, strings.Join(conf.withheld, ", "))
	case conf.path == "":
		d.fine("configuration", "none; the defaults are used")
	default:
		d.fine("configuration", "%s", conf.path)
	}
	if err == nil {
		d.entries(conf)
		d.certificate(conf)
	}
	served := d.directory()
	d.space()
	d.database(ctx)
	d.secrets()
	d.blobs(ctx, conf)
	d.address(ctx, served)
	d.clock()
	if services && err == nil {
		d.services(ctx, conf)
	}
}

// entries looks at the services of the configuration.
func (d *doctor) entries(conf config) {
	const check = "services"
	all, findings, err := conf.configured()
	if err != nil {
		d.ill(check, "correct the configuration", "%v", err)
		return
	}
	var warnings []string
	for _, f := range findings {
		warnings = append(warnings, f.Warnings()...)
	}
	if len(warnings) > 0 {
		d.ill(check, "correct the configuration", "%s", strings.Join(warnings, "; "))
		return
	}
	d.fine(check, "%d in the configuration; --services asks them for a word", len(all))
}

// certificate reads the files of tls, if there are any.
func (d *doctor) certificate(conf config) {
	const check = "certificate"
	if conf.TLS.Cert == "" {
		return
	}
	pair, err := newKeyPair(conf.relative(conf.TLS.Cert), conf.relative(conf.TLS.Key), slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		d.ill(check, "correct tls.cert and tls.key, or the files; the server does not start without them", "%v", err)
		return
	}
	switch ends := pair.pair.Leaf.NotAfter; {
	case time.Now().After(ends):
		d.ill(check, "renew it; a running server reads the new files", "%s expired at %s", pair.cert, ends.UTC().Format(time.RFC3339))
	default:
		d.fine(check, "%s is valid until %s", pair.cert, ends.UTC().Format(time.RFC3339))
	}
}

// directory looks at the data directory, and reports whether a server uses it.
func (d *doctor) directory() (served bool) {
	const check = "data directory"
	info, err := os.Stat(d.data)
	if errors.Is(err, fs.ErrNotExist) {
		d.fine(check, "%s is not there yet; the server makes it", d.data)
		return false
	}
	if err != nil || !info.IsDir() {
		d.ill(check, "choose another with --data", "%s cannot be used as a folder: %v", d.data, err)
		return false
	}
	f, err := os.CreateTemp(d.data, "doctor-")
	if err != nil {
		d.ill(check, "give this account the right to write there, or run the server as the owner of the folder", "%v", err)
		return false
	}
	_ = f.Close()
	if err := os.Remove(f.Name()); err != nil {
		d.ill(check, "look at the rights of the folder", "%v", err)
		return false
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		d.ill(check, "run: chmod 700 "+d.data, "other accounts of this machine have rights in %s (%s)", d.data, info.Mode().Perm())
		return d.locked()
	}
	d.fine(check, "%s can be written", d.data)
	return d.locked()
}

// locked reports whether a server uses the data directory.
func (d *doctor) locked() bool {
	path := filepath.Join(d.data, "lock")
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock := flock.New(path)
	held, err := lock.TryLock()
	if held {
		_ = lock.Unlock() // nothing was written
	}
	return !held && err == nil
}

func (d *doctor) space() {
	path := d.data
	if _, err := os.Stat(path); err != nil {
		path = filepath.Dir(path)
	}
	const least = 1_000_000_000
	switch free, err := disk.Free(path); {
	case err != nil:
		d.ill("disk", "look at the file system", "the free space of %s is not known: %v", path, err)
	case free < least:
		d.ill("disk", "make room; artel gc removes what nothing refers to", "%s has %s left", path, phrase.Size(free))
	default:
		d.fine("disk", "%s are left", phrase.Size(free))
	}
}

func (d *doctor) database(ctx context.Context) {
	if d.postgres != "" {
		ctx, stop := context.WithTimeout(ctx, 15*time.Second)
		defer stop()
		if err := postgres.Check(ctx, d.postgres); err != nil {
			d.ill("database", "look at the database, its address and its account; the server needs to create and write tables", "%v", err)
			return
		}
		d.fine("database", "PostgreSQL gives access")
		return
	}
	path := filepath.Join(d.data, databaseFile)
	if _, err := os.Stat(path); err != nil {
		d.fine("database", "there is none yet")
		return
	}
	const fix = "stop the server, keep a copy of the data directory, and restore a backup; sqlite3's .recover reads what is left"
	switch damages, err := sqlite.QuickCheck(ctx, path); {
	case err != nil:
		d.ill("database", fix, "%v", err)
	case len(damages) > 0:
		d.ill("database", fix, "it is damaged: %s", strings.Join(damages, "; "))
	default:
		d.fine("database", "the quick check finds no damage")
		d.stored(ctx, path)
	}
}

// stored compares what is kept about how much users store with the rows.
func (d *doctor) stored(ctx context.Context, path string) {
	const check = "storage of users"
	wrong, err := sqlite.Recount(ctx, path, d.recount)
	var lines []string
	for _, m := range wrong {
		lines = append(lines, fmt.Sprintf("%s: %s, in truth %s (%d files with wrong uses)", m.Owner, phrase.Size(m.Counted), phrase.Size(m.Real), m.Blobs))
	}
	switch {
	case err != nil:
		d.ill(check, "look at the rights of the database", "%v", err)
	case len(wrong) == 0:
		d.fine(check, "the sums are those of the rows")
	case d.recount:
		d.fine(check, "corrected: %s", strings.Join(lines, "; "))
	default:
		d.ill(check, "run: artel doctor --recount", "%s", strings.Join(lines, "; "))
	}
}

// secrets looks at the key of the stored secrets. Whether it is the right one, the
// running server knows.
func (d *doctor) secrets() {
	const check = "secrets"
	path, text := filepath.Join(d.data, secretFile), os.Getenv(secret.Variable)
	box, err := secret.New(text, path)
	if _, missing := os.Lstat(path); err == nil && text == "" && missing != nil {
		d.fine(check, "none has been stored")
		return
	}
	if err == nil {
		_, err = box.Seal(check, "", nil) // the key is there, so none is made
	}
	if err != nil {
		d.ill(check, "restore the key; without it, the keys of services have to be entered again", "%v", err)
		return
	}
	d.fine(check, "their key can be read")
}

// address looks who listens on the address of the server.
func (d *doctor) address(ctx context.Context, served bool) {
	const check = "address"
	if at, err := readAddress(d.data); served && err == nil {
		d.server(ctx, at.URL)
		return
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.addr)
	switch {
	case err == nil:
		_ = l.Close()
		if served {
			d.fine(check, "%s is free; the server of the data directory listens elsewhere", d.addr)
			return
		}
		d.fine(check, "%s is free", d.addr)
	case !served:
		d.ill(check, "stop the other program, or choose another address with --addr", "%v", err)
	default:
		d.server(ctx, "http://"+d.addr)
	}
}

// server asks the running server whether it is ready.
func (d *doctor) server(ctx context.Context, at string) {
	const check = "server"
	body, err := askReady(ctx, at)
	switch {
	case errors.Is(err, errNotReady):
		d.ill(check, "look at the log of the server", "it is not ready: %s", artel.Shorten(body, 500))
		return
	case err != nil:
		d.ill(check, "look at the log of the server", "it does not answer: %v", err)
		return
	}
	d.fine(check, "%s is ready", at)
}

// clock looks whether the time can be true.
func (d *doctor) clock() {
	released := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if now := time.Now(); now.Before(released) {
		d.ill("clock", "set the clock; certificates of services are refused otherwise", "it is %s, before this program was made", now.UTC().Format(time.RFC3339))
		return
	}
	d.fine("clock", "%s", time.Now().UTC().Format(time.RFC3339))
}

// services asks every service for a word.
func (d *doctor) services(ctx context.Context, conf config) {
	const check, patience = "service", 30 * time.Second
	s := &server{config: conf, log: slog.New(slog.DiscardHandler), http: modelClient()}
	if err := s.findServices(); err != nil {
		d.ill(check, "correct the configuration", "%v", err)
		return
	}
	s.nameModels(ctx)
	caller := model.NewCaller(networkProviders(s.http, blob.NewMemory(), nil), model.CallerOptions{Attempts: 1})
	asked := 0
	for _, one := range s.services.All() {
		if one.Demo() || one.Model == "" || one.BaseURL == "" {
			continue
		}
		asked++
		limited, stop := context.WithTimeout(ctx, patience)
		_, err := caller.CallText(limited, &model.Request{
			Service: one, MaxOutput: 16,
			Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "Say: ok"}}}},
		})
		stop()
		if err != nil {
			d.ill(check+" "+string(one.ID), "look at its address, its model and its key", "%s", artel.Shorten(err.Error(), 500))
			continue
		}
		d.fine(check+" "+string(one.ID), "it answers")
	}
	if asked == 0 {
		d.ill(check, "set a key such as OPENAI_API_KEY, or services in artel.yaml", "there is none; the built-in demo answers")
	}
}
