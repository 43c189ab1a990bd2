// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// largeRequest asks about one large file of a service that takes files.
func largeRequest() *model.Request {
	s := model.Service{ID: "s", BaseURL: "http://s.test/v1", Model: "m", APIKey: "key"}
	s.Capabilities.Transport = model.Fact[[]model.Transport]{Value: []model.Transport{model.ByBytes, model.ByFileID}, Source: model.FromOperator}
	m := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "image/png; x=y", Size: 1 << 20}
	return &model.Request{Service: s, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}
}

func takes(string, bool) bool { return true }

// sent sends r and returns the names in it.
func sent(t *testing.T, h *provider.Uploads, r *model.Request, name string, answers ...error) (names []string, err error) {
	t.Helper()
	up := provider.FileAPI{Takes: takes, Upload: func(_ context.Context, m artel.Media) (string, time.Time, error) {
		if m.MediaType != "image/png" {
			t.Errorf("uploaded as %q", m.MediaType)
		}
		return name, time.Now().Add(provider.UploadLifetime), nil
	}}
	_, err = h.Send(t.Context(), r, up, func(r *model.Request) (*http.Response, error) {
		names = append(names, r.Names[artel.NewDigest([32]byte{1})].Text)
		if len(names) <= len(answers) {
			return nil, answers[len(names)-1]
		}
		return nil, nil
	})
	return names, err
}

// TestHeldNames names files by nothing that could write itself into a request.
func TestHeldNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"file-1": "file-1", "https://h/v1/files/a": "https://h/v1/files/a",
		"": "", `a"},{"b":"`: "", "a\nb": "", `a\`: "", "ä": "", strings.Repeat("a", 501): "",
	} {
		names, err := sent(t, provider.NewUploads(provider.UploadsOptions{}), largeRequest(), name)
		if err != nil || len(names) != 1 || names[0] != want {
			t.Errorf("%q: sent as %q (%v), want %q", name, names, err, want)
		}
	}
	if names, err := sent(t, nil, largeRequest(), "file-1"); err != nil || names[0] != "" {
		t.Errorf("without a record: %q, %v", names, err)
	}
}

// TestHeldHeals sends a file anew for refusals that speak of it, and once.
func TestHeldHeals(t *testing.T) {
	t.Parallel()
	refusal := func(status int, text string) error { return &model.CallError{Status: status, Message: text} }
	for _, c := range []struct {
		status int
		text   string
		calls  int
	}{
		{404, "No such File object: file-1", 2},
		{400, "The file 'file-1' has expired", 2},
		{403, "no access to this file", 2},
		{400, "this file is too long", 1},
		{404, "no such model or profile", 1},
		{429, "file-1 has to wait", 1},
	} {
		err := refusal(c.status, c.text)
		names, got := sent(t, provider.NewUploads(provider.UploadsOptions{}), largeRequest(), "file-1", err, err, err)
		if len(names) != c.calls || !errors.Is(got, err) {
			t.Errorf("%d %s: %d calls, %v; want %d", c.status, c.text, len(names), got, c.calls)
		}
	}
}

// TestHeldIsBounded begins with more files than are kept, and with rubbish.
func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	var rows []map[string]any
	for i := range 10_050 {
		rows = append(rows, map[string]any{
			"account": "a", "digest": artel.NewDigest([32]byte{2, byte(i), byte(i >> 8)}), "media_type": "image/png",
			"name": fmt.Sprint("file-", i), "until": time.Now().Add(time.Duration(i-20) * time.Hour),
		})
	}
	src, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	var saved []struct{ Name string }
	for _, c := range []struct {
		data []byte
		want int
	}{{src, 10_000}, {[]byte(`{"what":`), 1}, {nil, 1}} {
		h := provider.NewUploads(provider.UploadsOptions{Data: c.data, Save: func(b []byte) error { return json.Unmarshal(b, &saved) }})
		if _, err := sent(t, h, largeRequest(), "new"); err != nil {
			t.Fatal(err)
		}
		if len(saved) != c.want {
			t.Errorf("%d files are kept, want %d", len(saved), c.want)
		}
	}
}

// TestUploadWaits lets one caller go while it uploads: another one continues.
func TestUploadWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := provider.NewUploads(provider.UploadsOptions{})
		uploads := 0
		up := provider.FileAPI{Takes: takes, Upload: func(ctx context.Context, _ artel.Media) (string, time.Time, error) {
			uploads++
			select {
			case <-ctx.Done():
				return "", time.Time{}, ctx.Err()
			case <-time.After(time.Minute):
				return "file-1", time.Now().Add(provider.UploadLifetime), nil
			}
		}}
		first, leave := context.WithCancel(t.Context())
		ended := make(chan string, 2)
		for _, ctx := range []context.Context{first, t.Context()} {
			go func() {
				_, _ = h.Send(ctx, largeRequest(), up, func(r *model.Request) (*http.Response, error) {
					ended <- r.Names[artel.NewDigest([32]byte{1})].Text
					return nil, nil
				})
			}()
			synctest.Wait()
		}
		if uploads != 1 {
			t.Errorf("%d uploads at once", uploads)
		}
		leave()
		if got := <-ended; got != "" {
			t.Errorf("the one that left sent %q", got)
		}
		if got := <-ended; got != "file-1" || uploads != 2 {
			t.Errorf("the other sent %q after %d uploads", got, uploads)
		}
	})
}
