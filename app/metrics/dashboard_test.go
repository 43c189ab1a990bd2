// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/artelhq/artel/app/metrics"
	"github.com/artelhq/artel/run"
)

// TestDashboard: the dashboard asks for metrics that exist, and for all of them.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	m := metrics.New("test")
	metrics.CountStored(m, 0, func(context.Context) (sum, most int64, err error) { return 0, 0, nil })
	m.CountRuns(func(context.Context) (run.Load, error) { return run.Load{}, nil })
	all := make(chan *prometheus.Desc, 1000)
	m.Gatherer().(prometheus.Collector).Describe(all)
	close(all)
	shown := map[string]bool{} // by the metrics that exist
	for d := range all {
		name, _, _ := strings.Cut(strings.TrimPrefix(d.String(), `Desc{fqName: "`), `"`)
		shown[name] = false
	}
	asked := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			asked++
			for _, name := range regexp.MustCompile(`\b(?:artel|go|process)_\w+`).FindAllString(target.Expr, -1) {
				for _, suffix := range []string{"_bucket", "_count", "_sum"} {
					name = strings.TrimSuffix(name, suffix)
				}
				if _, ok := shown[name]; !ok && strings.HasPrefix(name, "artel_") {
					t.Errorf("%s asks for %s, which does not exist", p.Title, name)
				}
				shown[name] = true
			}
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%s: %s is not closed", p.Title, target.Expr)
			}
		}
	}
	if asked < 20 {
		t.Errorf("the dashboard has only %d queries", asked)
	}
	for name, is := range shown {
		if !is && strings.HasPrefix(name, "artel_") {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
