// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestTry tries again when the API asks for it, within the limits of the
// caller, and keeps its place among the calls until the answer is read.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := model.NewCaller(nil, model.CallerOptions{})
		c := slow.WithOptions(model.CallerOptions{MaxWait: 5 * time.Second})
		s := model.Service{ID: "s", MaxConcurrent: 1}
		begun := time.Now()
		errs := []error{overloaded(4 * time.Second), overloaded(0), nil}
		leave, n, err := c.Try(t.Context(), s, func() error { err := errs[0]; errs = errs[1:]; return err })
		if err != nil || n != 3 || time.Since(begun) < 4*time.Second {
			t.Fatalf("%d attempts, %v, after %v", n, err, time.Since(begun))
		}
		if _, n, err := c.Try(t.Context(), model.Service{ID: "other"}, func() error { return overloaded(6 * time.Second) }); n != 1 || artel.KindOf(err) != artel.Unavailable {
			t.Errorf("a service that asks for too much patience: %d attempts, %v", n, err)
		}
		final := errors.New("refused")
		if _, n, err := c.Try(t.Context(), model.Service{ID: "other"}, func() error { return final }); n != 1 || !errors.Is(err, final) {
			t.Errorf("a final error: %d attempts, %v", n, err)
		}

		var entered atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			l, _, err := slow.Try(t.Context(), s, func() error { entered.Store(true); return nil })
			if err == nil {
				l()
			}
		})
		synctest.Wait()
		if entered.Load() {
			t.Error("two calls at once to a service that takes one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, _, err := c.Try(ctx, s, func() error { return nil }); artel.KindOf(err) != artel.Canceled {
				t.Errorf("left while waiting: %v", err)
			}
		})
		cancel()
		leave()
		wg.Wait()
		if !entered.Load() {
			t.Error("the place was not given on")
		}
	})
}

func TestRelenting(t *testing.T) {
	service := model.Service{ID: "s", BaseURL: "http://x", Model: "m"}
	service.Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromDialect}
	media := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "image/png", Kind: artel.KindImage}
	r := &model.Request{Service: service, Messages: []model.Message{{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c", Parts: artel.Parts{media}}}}}}
	refusal := &model.CallError{Status: 400, Message: "Image URLs are only allowed for messages with role 'user'"}
	refusal.Refusal = model.Classify(400, "", refusal.Message)

	var l model.RefusalPolicy
	marks, describe, ok := l.Next(r, refusal)
	if !ok || len(marks) != 1 || len(describe) != 0 {
		t.Fatalf("%v, %v, %v", marks, describe, ok)
	}
	next := *r
	next.Service = service.Lowered(marks)
	if !l.Changes(&next) {
		t.Error("the picture moves out of the result, and that is no change")
	}
	if _, _, ok := l.Next(&next, refusal); ok {
		t.Error("the zero value allows two attempts")
	}
	if learned := l.Learned(service, "one"); len(learned) != 1 || learned[0].Place != model.InTool {
		t.Errorf("learned %v", learned)
	}

	twice := model.RefusalPolicy{Most: 2}
	twice.Next(r, refusal)
	if _, describe, ok := twice.Next(&next, refusal); !ok || len(describe) != 1 {
		t.Errorf("the last attempt describes %v, %v", describe, ok)
	}
	same := model.RefusalPolicy{}
	same.Next(r, refusal)
	if same.Changes(r) {
		t.Error("the same request again is a change")
	}
	if all := same.DescribeAll(r); len(all) != 1 {
		t.Errorf("all media are %v", all)
	}
}

// TestWhatIsLearned: only words that name what the service does not take are learned,
// and only if the request had it.
func TestWhatIsLearned(t *testing.T) {
	t.Parallel()
	digest := artel.NewDigest([32]byte{3})
	for words, want := range map[string]model.Mark{
		"Could not process image":                     {Place: model.InUser, MediaType: "image/png", Digest: digest, Holder: "one"},
		"No endpoints found that support image input": {Place: model.InUser, MediaType: "image/*"},
		"At most 2 image(s) may be provided":          {Limit: model.RefusedCount, Value: 2},
		"image dimensions exceed 2000 pixels":         {Limit: model.RefusedSide, Value: 2000},

		"Bad request":                                      {}, // who knows why
		"too many images":                                  {}, // a number would be guessed
		"image width exceeds what is allowed":              {},
		"At most 20 image(s) may be provided":              {}, // there were fewer
		"image dimensions must be at most 9000 pixels":     {},
		"The PDF specified was not valid.":                 {}, // of two suspects
		"The specified MIME type does not match the image": {}, // a label
		"The image was specified using the image/jpeg media type, but the image appears to be a image/png image": {},
	} {
		r := asked(model.TextOnly())
		if strings.Contains(words, "PDF") {
			pdf := part(7, "application/pdf")
			r.Messages[0].Parts = append(r.Messages[0].Parts, pdf)
		}
		var l model.RefusalPolicy
		if _, _, ok := l.Next(r, refusal(400, words)); !ok {
			t.Errorf("%q is not tried again", words)
		}
		got := l.Learned(r.Service, "one")
		if want == (model.Mark{}) {
			if len(got) > 0 {
				t.Errorf("%q: learned %+v", words, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Seen != 1 || got[0].Evidence == "" {
			t.Errorf("%q: learned %+v", words, got)
			continue
		}
		if diff := cmp.Diff(want, got[0], cmpopts.IgnoreFields(model.Mark{}, "Endpoint", "Model", "Dialect", "Source", "Evidence", "Seen")); diff != "" {
			t.Errorf("%q: %s", words, diff)
		}
	}
}
