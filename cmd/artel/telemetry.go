// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/artelhq/artel/app/telemetry"
)

// flushTime is how long a server that ends waits for the receiver of its traces.
const flushTime = 5 * time.Second

// openTelemetry exports traces and metrics if the variables OTEL_* say so.
func (s *server) openTelemetry(ctx context.Context) (err error) {
	s.telemetry, err = telemetry.Open(ctx, telemetry.Options{Version: version, Env: os.Getenv, Metrics: s.metrics.Gatherer(), Log: s.log})
	if err != nil || s.telemetry == nil {
		return err
	}
	s.metrics.Watch(s.telemetry.Request, s.telemetry.Event)
	s.onRun = s.telemetry.Run
	s.close = append(s.close, func() error {
		ctx, stop := context.WithTimeout(context.Background(), flushTime)
		defer stop()
		return s.telemetry.Close(ctx)
	})
	return nil
}
