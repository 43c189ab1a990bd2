// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEditRetention(t *testing.T) {
	read := func(value string) (config, error) {
		path := filepath.Join(t.TempDir(), "artel.yaml")
		if err := os.WriteFile(path, []byte("artifacts:\n  edit_retention: "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return loadConfig(path)
	}
	for value, want := range map[string]time.Duration{"30d": 720 * time.Hour, "36h": 36 * time.Hour, "0d": 0, "1h30m": 90 * time.Minute, "'7d'": 168 * time.Hour} {
		c, err := read(value)
		got, e := parseAge(c.Artifacts.EditRetention)
		if err != nil || e != nil || got != want {
			t.Errorf("%s: got %v, %v, %v", value, got, err, e)
		}
	}
	for _, value := range []string{"30", "-1d", "-3h", "1.5d", "d", "a week", "99999999d", "[1d]"} {
		if _, err := read(value); err == nil || !strings.Contains(err.Error(), "artel.yaml") {
			t.Errorf("%s: got %v", value, err)
		}
	}
	if c, err := loadConfig(""); err != nil || c.Artifacts.EditRetention != "" {
		t.Errorf("by default: %q, %v", c.Artifacts.EditRetention, err)
	}
}
