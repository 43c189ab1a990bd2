// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/pipeline/plugin"
)

func TestPluginSchema(t *testing.T) {
	b := newBench(t, "")
	got := b.object(b.do("GET", "/pipeline/plugin-schema", nil), 200)
	var want map[string]any
	if err := json.Unmarshal(plugin.Schema(), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
