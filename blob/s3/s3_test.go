// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/blob/blobtest"
	"github.com/artelhq/artel/blob/s3"
	"github.com/artelhq/artel/blob/s3/s3test"
	"github.com/artelhq/artel/store/sqlite"
)

const bucket = "bucket"

func TestMain(m *testing.M) {
	if address := os.Getenv(crashAddress); address != "" {
		putUntilKilled(address)
	}
	goleak.VerifyTestMain(m)
}

// newIndex returns an empty index.
func newIndex(tb testing.TB) blob.Index {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), sqlite.Memory, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db.Blobs()
}

// open opens an address with an index.
func open(tb testing.TB, address string, index blob.Index, o s3.Options) *s3.Store {
	tb.Helper()
	a, err := s3.ParseAddress(address)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := s3.Open(tb.Context(), a, index, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) {
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	blobtest.Run(t, func(tb testing.TB) blob.Store {
		return open(tb, s3test.Address(server.Endpoint, bucket), newIndex(tb), s3.Options{})
	})
}

// TestSweeps: two processes sweep old blobs while both put some of them again.
// What was put again is there, and nothing else is.
func TestSweeps(t *testing.T) {
	server := s3test.Start(t)
	dir := server.Bucket(t, bucket)
	path := filepath.Join(t.TempDir(), "artel.db")
	var stores []*s3.Store
	for range 2 {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		stores = append(stores, open(t, s3test.Address(server.Endpoint, bucket), db.Blobs(), s3.Options{Rest: time.Nanosecond}))
	}
	content := func(i int) []byte { return fmt.Appendf(nil, "content %d", i) }
	const blobs = 12
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.SliceOfNDistinct(rapid.IntRange(0, blobs-1), 1, blobs, rapid.ID[int]).Draw(rt, "first")
		again := rapid.SliceOfN(rapid.IntRange(0, blobs-1), 0, 8).Draw(rt, "again")
		digests := map[int]artel.Digest{}
		for _, i := range first {
			info, err := stores[i%2].Put(t.Context(), bytes.NewReader(content(i)), 0)
			if err != nil {
				rt.Fatal(err)
			}
			digests[i] = info.Digest
		}
		var latest time.Time
		for _, d := range digests {
			info, err := stores[0].Stat(t.Context(), d)
			if err != nil {
				rt.Fatal(err)
			}
			if info.Time.After(latest) {
				latest = info.Time
			}
		}
		before := latest.Add(time.Nanosecond)
		for !time.Now().After(before) {
			time.Sleep(time.Microsecond)
		}
		var work errgroup.Group
		for who, s := range stores {
			work.Go(func() error {
				var broken error
				err := s.List(t.Context(), func(i blob.Info) bool {
					_, broken = s.Delete(t.Context(), i.Digest, before)
					return broken == nil
				})
				_, unstaged := s.Unstage(t.Context(), time.Now().Add(-time.Hour))
				return errors.Join(broken, err, unstaged)
			})
			work.Go(func() error {
				for n, i := range again {
					if n%2 == who || n%3 == 0 { // some by both
						if _, err := s.Put(t.Context(), bytes.NewReader(content(i)), 0); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
		if err := work.Wait(); err != nil {
			rt.Fatal(err)
		}
		want := map[artel.Digest]bool{}
		for _, i := range again {
			d := artel.NewDigest(sha256.Sum256(content(i)))
			want[d] = true
			same(t, stores[i%2], d, content(i))
		}
		got := map[artel.Digest]bool{}
		if err := stores[0].List(t.Context(), func(i blob.Info) bool { got[i.Digest] = true; return true }); err != nil {
			rt.Fatal(err)
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("there are %v, want %v", got, want)
		}
		if _, err := stores[1].Unstage(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			rt.Fatal(err)
		}
		if n := len(objects(t, dir)); n != len(want) {
			rt.Fatalf("the bucket has %d objects, want %d", n, len(want))
		}
	})
}

// TestFlat: memory does not grow with a blob.
func TestFlat(t *testing.T) {
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	s := open(t, s3test.Address(server.Endpoint, bucket), newIndex(t), s3.Options{})
	put(t, s, pattern(9<<20)) // buffers and connections
	const size = 200 << 20
	var before, between, after runtime.MemStats
	runtime.ReadMemStats(&before)
	info, err := s.Put(t.Context(), io.LimitReader(&zeros{}, size), 0)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&between)
	r, err := s.Open(t.Context(), info.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != size {
		t.Errorf("read %d bytes: %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if used := between.TotalAlloc - before.TotalAlloc; used > s3.PartSize+10<<20 {
		t.Errorf("putting 200 MB allocated %d bytes", used)
	}
	if used := after.TotalAlloc - between.TotalAlloc; used > 2<<20 {
		t.Errorf("reading 200 MB allocated %d bytes", used)
	}
}

type zeros struct{}

func (*zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestPresign: a presigned URL is good for one object and a time, and the same
// whenever it is made.
func TestPresign(t *testing.T) {
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	index, address := newIndex(t), s3test.Address(server.Endpoint, bucket)
	s := open(t, address+"&presign=true", index, s3.Options{})
	info := put(t, s, []byte("presigned"))
	from := time.Now().Truncate(time.Hour)
	presign := func(s *s3.Store, from, until time.Time) string {
		u, err := s.Presign(t.Context(), info.Digest, "image/png", from, until)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	u := presign(s, from, from.Add(2*time.Hour))
	if again := presign(open(t, address+"&presign=true", index, s3.Options{}), from, from.Add(2*time.Hour)); u != again {
		t.Errorf("another process makes another URL:\n%s\n%s", u, again)
	}
	get := func(u string) (int, string, string) {
		r, err := http.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, r.Header.Get("Content-Type"), string(b)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if code, kind, text := get(u); code != http.StatusOK || kind != "image/png" || text != "presigned" {
		t.Errorf("got %d %s %q", code, kind, text)
	}
	if code, _, _ := get(strings.Replace(u, "7200", "7201", 1)); code != http.StatusForbidden {
		t.Errorf("with another time: %d", code)
	}
	if code, _, _ := get(presign(s, from.Add(-3*time.Hour), from.Add(-time.Hour))); code != http.StatusForbidden {
		t.Errorf("of an earlier time: %d", code)
	}
	if _, err := s.Presign(t.Context(), info.Digest, "", from, from.Add(8*24*time.Hour)); artel.KindOf(err) != artel.Invalid {
		t.Errorf("for eight days: %v", err)
	}
	if _, err := s.Presign(t.Context(), artel.NewDigest([32]byte{}), "", from, from.Add(time.Hour)); artel.KindOf(err) != artel.NotFound {
		t.Errorf("of what is not there: %v", err)
	}
	if u := presign(open(t, address, index, s3.Options{}), from, from.Add(time.Hour)); u != "" {
		t.Errorf("without presign: %s", u)
	}
	u = presign(open(t, address+"&presign="+url.QueryEscape("https://files.example"), index, s3.Options{}), from, from.Add(time.Hour))
	if !strings.HasPrefix(u, "https://files.example/bucket/") {
		t.Errorf("with a public endpoint: %s", u)
	}
}

// TestOpen: what is wrong with an address is said when it is opened.
func TestOpen(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	credentials := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", credentials)
	t.Setenv("AWS_CONFIG_FILE", credentials)
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	good := s3test.Address(server.Endpoint, bucket)
	bare := strings.Replace(good, s3test.Key+":"+s3test.Secret+"@", "", 1)
	index := newIndex(t)
	try := func(address string) error {
		a, err := s3.ParseAddress(address)
		if err != nil {
			return err
		}
		s, err := s3.Open(t.Context(), a, index, s3.Options{})
		if err == nil {
			defer s.Close()
			_, err = s.Put(t.Context(), strings.NewReader(address), 0)
		}
		if err != nil && strings.Contains(err.Error(), s3test.Secret) {
			t.Errorf("the secret is in: %v", err)
		}
		return err
	}
	for address, want := range map[string]string{
		good:                      "",
		good + "&path_style=true": "",
		strings.Replace(good, "@bucket", "@bucket/a/b", 1): "",
		bare: "no credentials",
		strings.Replace(good, ":"+s3test.Secret, ":other", 1): "check its credentials",
		strings.Replace(good, "@bucket", "@absent", 1):        "create it",
		strings.Replace(good, "us-east-1", "eu-north-1", 1):   "check endpoint and region",
		good + "&regoin=x":                    `no option "regoin"`,
		good + "&region=x":                    "region is there 2 times",
		good + "&path_style=yes":              "want true or false",
		good + "&encryption=rot13":            "want AES256",
		good + "&presign=bucket":              "as clients reach it",
		"s3://bucket?endpoint=127.0.0.1:9000": "want https://HOST",
		"s3://bucket:9000/x":                  "the name of the bucket",
		"s3://KEY@bucket":                     "both key and secret",
		"https://bucket":                      "want s3://",
		"s3://" + s3test.Key + ":%zz" + s3test.Secret + "@bucket": "want s3://",
	} {
		if err := try(address); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	if err := os.WriteFile(credentials, []byte("[default]\naws_access_key_id = "+s3test.Key+"\naws_secret_access_key = "+s3test.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(bare); err != nil {
		t.Errorf("credentials of the file: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "other")
	if err := try(bare); err == nil {
		t.Error("the variables do not come before the file")
	}
	a, err := s3.ParseAddress(good)
	if err != nil || strings.Contains(a.String(), s3test.Secret) {
		t.Errorf("%s: %v", a, err)
	}
}

// TestEncryption: the server is asked to encrypt what is put.
func TestEncryption(t *testing.T) {
	server := s3test.Start(t)
	server.Bucket(t, bucket)
	proxy := server.Proxy(t)
	asked := make(chan string, 10)
	proxy.Set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut || r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
			asked <- r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
			w.WriteHeader(http.StatusForbidden) // the server has no keys
			return
		}
		next.ServeHTTP(w, r)
	})
	for option, want := range map[string]string{"": " ", "AES256": "AES256 ", "aws:kms": "aws:kms ", "aws:kms:arn:aws:kms:key/1": "aws:kms arn:aws:kms:key/1"} {
		s := open(t, s3test.Address(proxy.Endpoint, bucket)+"&encryption="+url.QueryEscape(option), newIndex(t), s3.Options{})
		for _, n := range []int{1, 9 << 20} {
			if _, err := s.Put(t.Context(), bytes.NewReader(make([]byte, n)), 0); err == nil {
				t.Error("the refusal is lost")
			}
			if got := <-asked; got != want {
				t.Errorf("%s, %d bytes: asked for %q, want %q", option, n, got, want)
			}
		}
	}
}
