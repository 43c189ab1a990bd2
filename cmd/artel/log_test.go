// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestLogLosesMedia: bytes that travel as text are described in the log, in
// whatever they come.
func TestLogLosesMedia(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString(sampleBytes(t, "red.png"))
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutMedia}))
	log.Error("It said "+encoded, "text", "a "+encoded, "err", errors.New("b "+encoded), slog.Group("in", "text", "c "+encoded), "n", 5)
	if got := out.String(); strings.Contains(got, encoded[:30]) || strings.Count(got, "[image/png, 96 bytes]") != 4 {
		t.Error(got)
	}
}
