// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// errNotReady is the answer of a server that cannot do its work.
var errNotReady = errors.New("not ready")

func healthCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask the running server whether it is ready, for the health checks of containers", Args: usage(cobra.NoArgs),
		Long: `Asks the server of --server for /readyz, which needs no login. Exits with 0 if it is
ready, with 1 and the causes if it is not, and with 3 if no server answers.`,
		Example: "  artel health\n  artel health --server http://127.0.0.1:7420",
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := g.address()
			if err != nil {
				return err
			}
			causes, err := askReady(cmd.Context(), strings.TrimRight(at, "/"))
			switch {
			case errors.Is(err, errNotReady):
				return artel.Errorf(artel.Unavailable, "health", at, "%w: %s; run artel doctor on its machine", err, artel.Shorten(causes, 500))
			case err != nil:
				return artel.Errorf(httpapi.CodeUnreachable, "health", at, "no server answers: %w", err)
			}
			return g.print(cmd, map[string]any{"server": at, "ready": true}, func(w printer) { w.line(at + " is ready") })
		},
	}
}

// askReady asks the server at an address for /readyz. It sends no secrets, and the server's
// certificate need not name the address at which this machine reaches it.
func askReady(ctx context.Context, at string) (body string, err error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/readyz", nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	defer client.CloseIdleConnections()
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 10_000))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errNotReady
	}
	return string(text), err
}
