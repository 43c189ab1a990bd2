// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	set := []debug.BuildSetting{{Key: "vcs.revision", Value: "7b24e36"}, {Key: "vcs.time", Value: "2026-11-27T01:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, x := range []struct {
		name, linked, module string
		settings             []debug.BuildSetting
		want                 build
	}{
		{"a release", "0.1.0", "v0.0.0-20261127010000-7b24e36", set, build{"0.1.0", "7b24e36", true, "2026-11-27T01:00:00Z", "go1.26"}},
		{"a tag as it is", "v0.1.0", "", nil, build{Version: "0.1.0", Go: "go1.26"}},
		{"go install with a version", "", "v0.1.0", nil, build{Version: "0.1.0", Go: "go1.26"}},
		{"a test", "", "(devel)", nil, build{Version: "dev", Go: "go1.26"}},
		{"nothing recorded", "", "", nil, build{Version: "dev", Go: "go1.26"}},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: x.module}, Settings: x.settings}
		if got := buildOf(x.linked, info); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

// The program says of itself what artel version says.
func TestVersion(t *testing.T) {
	cmd := exec.Command("artel", "version", "--json")
	cmd.Env = bareEnvironment(filepath.Join(t.TempDir(), "home"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got build
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Version != version || got.Go != runtime.Version() {
		t.Errorf("%s", out)
	}
}
