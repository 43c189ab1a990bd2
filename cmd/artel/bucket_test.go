// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/blob/s3/s3test"
)

// TestBucket: a server keeps what is uploaded in a bucket, redirects to it, says when
// it is away, and does not start without it.
func TestBucket(t *testing.T) {
	bucket := s3test.Start(t)
	bucket.Bucket(t, "files")
	proxy := bucket.Proxy(t)
	data := t.TempDir()
	o := serverOptions{data: data, log: slog.New(slog.DiscardHandler)}
	o.config.blobs = s3test.Address(proxy.Endpoint, "files") + "&presign=true"
	s, err := openServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.shut() }()
	ctx := access.With(artel.WithOwner(t.Context(), "me"), access.Operator())
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 1000)
	info, err := s.blobs.Put(ctx, strings.NewReader(picture), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "blobs")); err == nil {
		t.Error("there is a folder of blobs")
	}
	there := s.app.Files.Elsewhere(ctx, app.File{Digest: info.Digest, Info: artel.MediaInfo{MediaType: "image/png"}, Immutable: true})
	r, err := http.Get(there)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if r.Body.Close(); r.StatusCode != http.StatusOK || !strings.HasPrefix(there, s.public) || r.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%s: %s", there, r.Status)
	}
	if there := s.app.Files.Elsewhere(ctx, app.File{Digest: info.Digest, Info: artel.MediaInfo{MediaType: "image/svg+xml"}, Immutable: true}); there != "" {
		t.Errorf("a type that runs scripts is at %s", there)
	}
	if address := app.PresignedAddress(s.blobs, s.log, nil)(artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png"}); !strings.HasPrefix(address, s.public) {
		t.Errorf("services are sent to %q", address)
	}
	causes := func() string {
		var all []string
		for _, c := range s.health.Causes(t.Context()) {
			all = append(all, c.Code)
		}
		return strings.Join(all, " ")
	}
	proxy.Set(s3test.Away)
	if got := causes(); got != "blobs" {
		t.Errorf("while the bucket is away, the causes are %q", got)
	}
	proxy.Set(nil)
	for deadline := time.Now().Add(time.Minute); causes() != "" && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	if got := causes(); got != "" {
		t.Errorf("afterwards, the causes are %q", got)
	}
	report, err := s.app.Storage.Collect(ctx, app.CollectOptions{DryRun: true})
	if err != nil || report.Blobs.Count < 1 {
		t.Errorf("%+v, %v", report, err)
	}
	s.shut()
	o.config.blobs = ""
	if _, err := openServer(t.Context(), o); artel.KindOf(err) != artel.Conflict || !strings.Contains(err.Error(), "--blobs") {
		t.Errorf("without the bucket: %v", err)
	}
}

// TestPlaceOfBlobs: the flag comes before the configuration, and what is wrong in
// either is said.
func TestPlaceOfBlobs(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-north-1")
	conf := config{}
	conf.Blobs.URL = "s3://configured?endpoint=http://127.0.0.1:1"
	for flag, want := range map[string]string{
		"": "s3://configured?endpoint=http://127.0.0.1:1&region=eu-north-1", "s3://flagged?region=x": "s3://flagged?region=x", "s3://flagged": "s3://flagged?region=eu-north-1",
		"file:///srv/blobs": "/srv/blobs",
	} {
		conf.blobs = flag
		bucket, dir, err := serverOptions{data: "d", config: conf}.blobPlace()
		got := dir
		if bucket != nil {
			got = bucket.String()
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", flag, got, err, want)
		}
	}
	for _, flag := range []string{"/srv/blobs", "file://srv/blobs", "gs://bucket", "s3://bucket?endpoint=x"} {
		if bucket, dir, err := (serverOptions{config: config{blobs: flag}}).blobPlace(); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: %v, %q, %v", flag, bucket, dir, err)
		}
	}
	if err := conf.checkBlobs(); err != nil {
		t.Error(err)
	}
	conf.Blobs.Dir = "here"
	if err := conf.checkBlobs(); err == nil {
		t.Error("both a folder and a bucket")
	}
	d := doctor{data: t.TempDir(), bucket: "s3://KEY:SECRET@bucket?endpoint=http://127.0.0.1:1"}
	d.blobs(context.Background(), config{})
	if len(d.all) != 1 || d.all[0].OK || strings.Contains(d.all[0].Says, "SECRET") {
		t.Errorf("%+v", d.all)
	}
}
