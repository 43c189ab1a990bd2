// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

var quiet = slog.New(slog.DiscardHandler)

// marked is a registry with one service that sees, and marks about it.
func marked(s model.Service, marks ...model.Mark) (*model.Registry, model.Service) {
	r := model.NewRegistry([]model.Service{s}, "")
	for i := range marks {
		marks[i].Endpoint, marks[i].Model = s.BaseURL, s.Model
	}
	r.Learned().Add(marks...)
	out, _ := r.Lookup(s.ID)
	return r, out
}

func seeing(from model.Provenance) model.Service {
	s := service("a")
	s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: from}
	return s
}

func TestMarksOverCapabilities(t *testing.T) {
	t.Parallel()
	const learned, probed = model.FromLearned, model.FromProbe
	for name, tt := range map[string]struct {
		s     model.Service
		marks []model.Mark
		ok    func(c model.Capabilities) bool
	}{
		"a kind is refused": {
			seeing(model.FromEndpoint),
			[]model.Mark{{Place: model.InUser, MediaType: "image/*", Source: learned}},
			func(c model.Capabilities) bool {
				return !c.Has(artel.CanVision) && c.Input.Source == learned && !c.Takes(artel.CanVision, "image/png")
			},
		},
		"a type is refused": {
			seeing(model.FromEndpoint),
			[]model.Mark{{Place: model.InUser, MediaType: "image/bmp", Source: learned}},
			func(c model.Capabilities) bool {
				return c.Takes(artel.CanVision, "image/png") && !c.Takes(artel.CanVision, "image/bmp")
			},
		},
		"the operator stands": {
			seeing(model.FromOperator),
			[]model.Mark{{Place: model.InUser, MediaType: "image/*", Source: learned}},
			func(c model.Capabilities) bool { return c.Has(artel.CanVision) && c.Input.Source == model.FromOperator },
		},
		"a picture was seen": {
			service("a"),
			[]model.Mark{{Place: model.InUser, MediaType: "image/*", OK: true, Source: probed}},
			func(c model.Capabilities) bool { return c.Input.Source == model.FromOperator }, // service states its input
		},
		"a PDF was read, which says nothing about other files": {
			seeing(model.FromCatalog),
			[]model.Mark{{Place: model.InUser, MediaType: "application/pdf", OK: true, Source: probed}},
			func(c model.Capabilities) bool {
				return c.Takes(artel.CanFile, "application/pdf") && c.Takes(artel.CanVision, "image/png") && !c.Takes(artel.CanFile, "application/zip")
			},
		},
		"places of tools": {
			seeing(model.FromCatalog),
			[]model.Mark{
				{Place: model.InTool, MediaType: "image/*", OK: true, Source: probed}, {Place: model.InTool, MediaType: "application/pdf", Source: probed}, {Place: model.AfterTool, Source: probed},
			},
			func(c model.Capabilities) bool {
				return c.ToolTakes("image/png") && !c.ToolTakes("application/pdf") && c.ToolFile.Source == probed && c.NeedsFiller()
			},
		},
		"the newer counts": {
			seeing(model.FromCatalog),
			[]model.Mark{
				{Place: model.InTool, MediaType: "image/*", OK: true, Source: probed}, {Place: model.InTool, MediaType: "image/*", Source: learned},
			},
			func(c model.Capabilities) bool { return !c.ToolTakes("image/png") && c.ToolImage.Source == learned },
		},
		"what was seen to work ends what was refused": {
			seeing(model.FromCatalog),
			[]model.Mark{
				{Place: model.InUser, MediaType: "image/png", Source: learned}, {Place: model.InUser, MediaType: "image/*", OK: true, Source: probed},
			},
			func(c model.Capabilities) bool { return c.Takes(artel.CanVision, "image/png") },
		},
		"limits are lowered and never raised": {
			seeing(model.FromCatalog),
			[]model.Mark{
				{Limit: model.RefusedSide, Value: 2000, Source: learned},
				{Limit: model.RefusedCount, Value: 5, Source: learned},
				{Limit: model.RefusedPages, Value: 10, Source: learned},
				{Limit: model.RefusedItem, Value: 1000, Source: learned},
				{Limit: model.RefusedRequest, Value: 9000, Source: learned},
			},
			func(c model.Capabilities) bool {
				return c.MaxSide.Value == 2000 && c.MaxImages.Value == 5 && c.MaxPages.Value == 10 && c.MaxItemBytes.Value == 1000 && c.MaxRequestBytes.Value == 9000
			},
		},
		"of bytes": {
			seeing(model.FromCatalog),
			[]model.Mark{{Place: model.InUser, Digest: artel.NewDigest([32]byte{1}), Source: learned}},
			func(c model.Capabilities) bool { return c.Takes(artel.CanVision, "image/png") },
		},
	} {
		if _, got := marked(tt.s, tt.marks...); !tt.ok(got.Capabilities) {
			t.Errorf("%s: %+v", name, got.Capabilities)
		}
	}
}

// damaged is a mark of one client about a picture.
func damaged(s model.Service, d artel.Digest) model.Mark {
	m := model.PlacedMedia{Media: artel.Media{Ref: artel.BlobRef(d), MediaType: "image/png"}, Place: model.InUser}
	return model.Damaged(s, m, "one", "no")
}

// TestMarksAreConfirmed: what one refusal showed applies only when another request
// has shown it, and only to what was the same: the dialect, the client of bytes.
func TestMarksAreConfirmed(t *testing.T) {
	t.Parallel()
	chat, responses := seeing(model.FromEndpoint), seeing(model.FromEndpoint)
	chat.Dialect, responses.Dialect, responses.ID = model.OpenAI, model.OpenAIResponses, "b"
	r := model.NewRegistry([]model.Service{chat, responses}, "")
	refused := model.Mark{Endpoint: chat.BaseURL, Model: chat.Model, Dialect: chat.Dialect, Place: model.InUser, MediaType: "image/*", Source: model.FromLearned, Seen: 1}
	bad := artel.NewDigest([32]byte{1})
	sees := func(id artel.ServiceID) bool { s, _ := r.Lookup(id); return s.Capabilities.Has(artel.CanVision) }
	for n := 1; n <= 3; n++ {
		r.Learned().Add(refused, damaged(chat, bad))
		if confirmed := n >= model.Confirmations; sees("a") == confirmed || r.Learned().Refuses("a", bad, "one") != confirmed || r.Learned().Refuses("a", bad, "two") {
			t.Errorf("after %d refusals: sees %v, refuses %v", n, sees("a"), r.Learned().Refuses("a", bad, "one"))
		}
		if marks := r.Learned().Marks("a"); len(marks) != 2 || marks[0].Seen != n || marks[0].Applies() != (n > 1) {
			t.Errorf("after %d refusals: %+v", n, marks)
		}
	}
	if !sees("b") || len(r.Learned().Marks("b")) != 0 {
		t.Errorf("the other dialect learned %+v", r.Learned().Marks("b"))
	}
	// It can be forgotten.
	marks := r.Learned().Marks("a")
	if n := r.Learned().Forget("a", "000000000000") + r.Learned().Forget("nobody", "") + r.Learned().Forget("b", ""); n != 0 {
		t.Errorf("%d unknown marks were forgotten", n)
	}
	if n := r.Learned().Forget("a", marks[0].Key()); n != 1 || !sees("a") || !r.Learned().Refuses("a", bad, "one") {
		t.Errorf("forgot %d; sees %v", n, sees("a"))
	}
	if n := r.Learned().Forget("a", ""); n != 1 || r.Learned().Refuses("a", bad, "one") {
		t.Errorf("forgot %d", n)
	}
}

// TestOldMarksAreDropped: earlier versions learned from one refusal, whatever its
// cause; what they learned is not trusted, unlike what was tried out.
func TestOldMarksAreDropped(t *testing.T) {
	t.Parallel()
	s := seeing(model.FromEndpoint)
	mark := func(rest string) string {
		return `{"endpoint":` + strconv.Quote(s.BaseURL) + `,"model":` + strconv.Quote(s.Model) + `,"at":"2026-01-02T03:04:05Z","until":"2126-01-02T03:04:05Z","ok":false,` + rest + `}`
	}
	data := `{"version":1,"marks":[` + mark(`"source":"learned","place":"user","media_type":"image/*"`) + `,` +
		mark(`"source":"learned","place":"user","digest":"`+string(artel.NewDigest([32]byte{1}))+`"`) + `,` + mark(`"source":"probe","place":"tool","media_type":"image/*"`) + `]}`
	r := model.NewRegistry([]model.Service{s}, "")
	r.Learned().Use(model.NewLedger(model.LedgerOptions{Data: []byte(data), Log: quiet}))
	if marks := r.Learned().Marks(s.ID); len(marks) != 1 || marks[0].Source != model.FromProbe {
		t.Errorf("%+v", marks)
	}
}

func TestMarksAreAboutOneModel(t *testing.T) {
	t.Parallel()
	other, same := seeing(model.FromEndpoint), seeing(model.FromEndpoint)
	other.ID, other.Model, same.ID = "b", "other", "c"
	first := seeing(model.FromEndpoint)
	r := model.NewRegistry([]model.Service{first, other, same}, "")
	bad := artel.NewDigest([32]byte{1})
	r.Learned().Add(model.Mark{Endpoint: first.BaseURL, Model: first.Model, Place: model.InUser, MediaType: "image/*", Source: model.FromLearned}, damaged(first, bad), damaged(first, bad))
	for id, want := range map[artel.ServiceID]bool{"a": true, "b": false, "c": true} {
		s, _ := r.Lookup(id)
		if s.Capabilities.Has(artel.CanVision) == want || r.Learned().Refuses(id, bad, "one") != want || (len(r.Learned().Marks(id)) == 2) != want {
			t.Errorf("%s: %+v, %d marks", id, s.Capabilities.Input, len(r.Learned().Marks(id)))
		}
	}
	if r.Learned().Refuses("a", artel.NewDigest([32]byte{2}), "one") || r.Learned().Refuses("a", bad, "two") || r.Learned().Refuses("nobody", bad, "one") || r.Learned().Marks("nobody") != nil {
		t.Error("it refuses what nobody said")
	}
	// Replacing the services keeps what is known of their endpoints.
	r.Replace([]model.Service{first}, []model.Finding{{Services: []artel.ServiceID{"a"}}}, "")
	if s, _ := r.Lookup("a"); s.Capabilities.Has(artel.CanVision) || r.Findings()[0].Marks != 2 {
		t.Errorf("%+v %+v", s, r.Findings())
	}
}

func TestMarksEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := marked(seeing(model.FromEndpoint),
			model.Mark{Place: model.InUser, MediaType: "image/*", Source: model.FromLearned},
			model.Mark{Place: model.InTool, MediaType: "image/*", OK: true, Source: model.FromProbe})
		sees := func() bool { s, _ := r.Lookup("a"); return s.Capabilities.Has(artel.CanVision) }
		time.Sleep(model.LearnedHolds - time.Minute)
		if sees() {
			t.Error("forgotten too early")
		}
		time.Sleep(2 * time.Minute)
		if !sees() || len(r.Learned().Marks("a")) != 1 {
			t.Errorf("not forgotten: %+v", r.Learned().Marks("a"))
		}
		time.Sleep(model.ProbeHolds)
		if len(r.Learned().Marks("a")) != 0 {
			t.Errorf("not forgotten: %+v", r.Learned().Marks("a"))
		}
	})
}

func TestLedgerIsKept(t *testing.T) {
	t.Parallel()
	var kept []byte
	open := func(now time.Time) *model.Registry {
		r := model.NewRegistry([]model.Service{seeing(model.FromEndpoint)}, "")
		r.Learned().Use(model.NewLedger(model.LedgerOptions{
			Data: kept, Save: func(b []byte) error { kept = b; return nil }, Now: func() time.Time { return now }, Log: quiet,
		}))
		return r
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := seeing(model.FromEndpoint)
	open(now).Learned().Add(model.Mark{Endpoint: s.BaseURL, Model: s.Model, Dialect: s.Dialect, Place: model.InUser, MediaType: "image/*", Source: model.FromLearned, Evidence: strings.Repeat("x", 1000)})
	marks := open(now.Add(time.Hour)).Learned().Marks("a")
	if len(marks) != 1 || !marks[0].At.Equal(now) || !marks[0].Until.Equal(now.Add(model.LearnedHolds)) || len(marks[0].Evidence) > 210 {
		t.Errorf("%+v", marks)
	}
	if marks := open(now.Add(model.LearnedHolds)).Learned().Marks("a"); len(marks) != 0 {
		t.Errorf("%+v", marks)
	}
	good := kept
	for _, broken := range [][]byte{[]byte("{"), []byte("[]"), []byte(`{"version":2,"marks":[]}`), []byte(`{"version":1,"marks":[{"endpoint":"x"},{}]}`), good[:len(good)/2]} {
		kept = broken
		if marks := open(now).Learned().Marks("a"); len(marks) != 0 {
			t.Errorf("%s: %+v", broken, marks)
		}
	}
	// What cannot be saved holds as long as the process.
	r := model.NewRegistry([]model.Service{s}, "")
	r.Learned().Use(model.NewLedger(model.LedgerOptions{Save: func([]byte) error { return errors.New("disk full") }, Log: quiet}))
	r.Learned().Add(damaged(s, artel.NewDigest([32]byte{1})))
	if len(r.Learned().Marks("a")) != 1 {
		t.Error("it is lost")
	}
}

// TestLedgerIsBounded: bad pictures without end do not fill memory.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	s := seeing(model.FromEndpoint)
	r := model.NewRegistry([]model.Service{s}, "")
	var marks []model.Mark
	for i := range 2500 {
		m := damaged(s, artel.NewDigest([32]byte{byte(i), byte(i >> 8), 1}))
		m.Seen = model.Confirmations
		marks = append(marks, m)
	}
	r.Learned().Add(marks...)
	if n := len(r.Learned().Marks("a")); n != 2000 || r.Learned().Refuses("a", marks[0].Digest, "one") || !r.Learned().Refuses("a", marks[2499].Digest, "one") {
		t.Errorf("%d marks", n)
	}
}

// TestMarksNeverBreakCapabilities: whatever was learned, text is taken, and
// what the operator stated stays.
func TestMarksNeverBreakCapabilities(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := seeing(rapid.SampledFrom([]model.Provenance{model.FromOperator, model.FromCatalog, model.FromNothing}).Draw(rt, "source"))
		var marks []model.Mark
		for range rapid.IntRange(0, 6).Draw(rt, "marks") {
			marks = append(marks, model.Mark{
				Place:     rapid.SampledFrom([]model.Place{"", model.InUser, model.InTool, model.AfterTool, "roof"}).Draw(rt, "place"),
				MediaType: rapid.SampledFrom([]string{"", "image/*", "image/png", "application/pdf", "audio/*", "*/*", "/", "x"}).Draw(rt, "type"),
				Limit:     rapid.SampledFrom([]model.RefusalClass{"", "", model.RefusedSide, model.RefusedCount, "other"}).Draw(rt, "limit"),
				Value:     rapid.Int64Range(-1, 5000).Draw(rt, "value"), OK: rapid.Bool().Draw(rt, "ok"),
				Source: rapid.SampledFrom([]model.Provenance{model.FromProbe, model.FromLearned, "rumor"}).Draw(rt, "from"),
			})
		}
		_, got := marked(s, marks...)
		c := got.Capabilities
		if len(c.Input.Value) == 0 || c.Input.Value[0] != artel.CanText || !c.Takes(artel.CanText, "text/plain") {
			rt.Fatalf("%+v", c)
		}
		if s.Capabilities.Input.Source == model.FromOperator && (c.Input.Source != model.FromOperator || !c.Has(artel.CanVision)) {
			rt.Fatalf("the operator's word: %+v", c)
		}
	})
}
