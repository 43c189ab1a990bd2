// SPDX-License-Identifier: Apache-2.0

// Command scale measures what Artel does with engines of others, beside these engines
// alone: both in turn, in one process, on one server. Only the ratios say something
// about Artel.
//
//	cd bench && go run ./scale
//	cd bench && go run ./scale databases  # the rows of PostgreSQL and SQLite alone
//	cd bench && go run ./scale replicas   # whole runs with one to three servers alone
//	cd bench && go run ./scale model      # how many runs a larger database carries, by a formula
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/artelhq/artel/blob/s3"
	"github.com/artelhq/artel/blob/s3/s3test"
	"github.com/artelhq/artel/store/sqlite"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

const bucket = "bench"

func run(ctx context.Context) error {
	if len(os.Args) > 1 && os.Args[1] == "model" {
		model()
		return nil
	}
	program, err := s3test.Program()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "artel-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if len(os.Args) > 1 && os.Args[1] == "replicas" {
		return replicas(ctx, dir)
	}
	if len(os.Args) > 1 && os.Args[1] == "databases" {
		return databases(ctx, dir)
	}
	if err := databases(ctx, dir); err != nil {
		return err
	}
	fmt.Println()
	if err := wakes(ctx); err != nil {
		return err
	}
	fmt.Println()
	if err := buckets(ctx, dir, program); err != nil {
		return err
	}
	fmt.Println()
	return replicas(ctx, dir)
}

// buckets measures blobs in a bucket beside the bare client of the same server.
func buckets(ctx context.Context, dir, program string) error {
	if err := os.MkdirAll(filepath.Join(dir, "s3", bucket), 0o700); err != nil {
		return err
	}
	const address = "127.0.0.1:17070"
	server := exec.CommandContext(ctx, program, "--port", address, "--quiet", "--keep-alive", "posix", "--disableotmp", filepath.Join(dir, "s3"))
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s3test.Key, "ROOT_SECRET_KEY="+s3test.Secret)
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	bare, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(s3test.Key, s3test.Secret, ""), Region: "us-east-1"})
	if err != nil {
		return err
	}
	for there := false; !there; time.Sleep(10 * time.Millisecond) {
		there, _ = bare.BucketExists(ctx, bucket)
	}
	db, err := sqlite.Open(ctx, filepath.Join(dir, "artel.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	a, err := s3.ParseAddress("s3://" + s3test.Key + ":" + s3test.Secret + "@" + bucket + "?region=us-east-1&endpoint=" + url.QueryEscape("http://"+address))
	if err != nil {
		return err
	}
	store, err := s3.Open(ctx, a, db.Blobs(), s3.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	fmt.Println("| work | size | Artel, MB/s | minio-go alone, MB/s | ratio |")
	fmt.Println("|---|---:|---:|---:|---:|")
	for _, row := range []struct{ size, rounds int }{{1_000_000, 60}, {50_000_000, 8}} {
		if err := measure(ctx, row.size, row.rounds, store, bare); err != nil {
			return err
		}
	}
	return nil
}

// measure puts and gets blobs of a size, by Artel and alone in turn.
func measure(ctx context.Context, size, rounds int, store *s3.Store, bare *minio.Client) error {
	content := make([]byte, size)
	var puts, gets [2][]float64
	for i := range rounds + 1 {
		random := rand.NewChaCha8([32]byte{byte(i), byte(size)})
		_, _ = random.Read(content)
		key := fmt.Sprint("bare-", i)
		began := time.Now()
		info, err := store.Put(ctx, plain{bytes.NewReader(content)}, 0)
		if err != nil {
			return err
		}
		took := []time.Duration{time.Since(began)}
		began = time.Now()
		if _, err := bare.PutObject(ctx, bucket, key, plain{bytes.NewReader(content)}, -1, minio.PutObjectOptions{PartSize: s3.PartSize}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		began = time.Now()
		r, err := store.Open(ctx, info.Digest)
		if err == nil {
			err = drain(r, size)
		}
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		began = time.Now()
		o, err := bare.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
		if err == nil {
			err = drain(o, size)
		}
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if i == 0 {
			continue // connections and buffers
		}
		for who := range 2 {
			puts[who] = append(puts[who], took[who].Seconds())
			gets[who] = append(gets[who], took[2+who].Seconds())
		}
	}
	for _, w := range []struct {
		name  string
		times [2][]float64
	}{{"put", puts}, {"get", gets}} {
		speed := func(who int) float64 { return float64(size) / 1e6 / median(w.times[who]) }
		fmt.Printf("| %s | %d MB | %.0f | %.0f | %.2f |\n", w.name, size/1_000_000, speed(0), speed(1), speed(0)/speed(1))
	}
	return nil
}

// plain hides all but Read, as a request body does.
type plain struct{ io.Reader }

func drain(r io.ReadCloser, want int) error {
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != int64(want) {
		err = io.ErrUnexpectedEOF
	}
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

func median[T float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
