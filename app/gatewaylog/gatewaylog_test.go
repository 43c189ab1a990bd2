// SPDX-License-Identifier: Apache-2.0

package gatewaylog_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestRefusedRequests: a request that was refused, and so has no owner, is in no
// log and fails no write.
func TestRefusedRequests(t *testing.T) {
	var lines bytes.Buffer
	l := gatewaylog.New(gatewaylog.Config{Store: rowstest.Open(t), Log: slog.New(slog.NewTextHandler(&lines, nil)), Now: time.Now})
	l.Add(t.Context(), gatewaylog.GatewayEntry{Status: 401})
	if err := l.Flush(t.Context()); err != nil || lines.Len() > 0 {
		t.Errorf("%v: %s", err, lines.String())
	}
}
