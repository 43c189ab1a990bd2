// SPDX-License-Identifier: Apache-2.0

package logctx_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/internal/logctx"
)

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logctx.Handler(slog.NewJSONHandler(&out, nil))).With("server", "a")
	line := func() map[string]any {
		t.Helper()
		var v map[string]any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		delete(v, "time")
		delete(v, "level")
		return v
	}
	ctx := logctx.WithRequest(t.Context())
	log.InfoContext(ctx, "first")
	first := line()
	id, _ := first["request"].(string)
	if len(id) != 12 {
		t.Errorf("got %v", first)
	}
	ctx = logctx.With(ctx, slog.String("run", "run_1"), slog.String("conversation", "cnv_1"))
	ctx = logctx.With(ctx, slog.String("run", "run_2"))
	log.InfoContext(ctx, "second", "conversation", "its own")
	want := map[string]any{"msg": "second", "server": "a", "request": id, "run": "run_2", "conversation": "its own"}
	if d := cmp.Diff(want, line()); d != "" {
		t.Error(d)
	}
	log.InfoContext(t.Context(), "third")
	if d := cmp.Diff(map[string]any{"msg": "third", "server": "a"}, line()); d != "" {
		t.Error(d)
	}
	log.InfoContext(logctx.WithRequest(t.Context()), "fourth")
	if other := line()["request"]; other == id {
		t.Error("two requests have the id " + id)
	}
}
