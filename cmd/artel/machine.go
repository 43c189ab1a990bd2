// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strings"
)

// thisMachine returns the machine macros, in the usual names of systems and
// architectures. Unknown values are left out.
func thisMachine() map[string]string {
	m := map[string]string{"os": runtime.GOOS, "platform": runtime.GOOS, "arch": runtime.GOARCH}
	for key, names := range map[string]map[string]string{
		"os":       {"linux": "Linux", "darwin": "Darwin", "windows": "Windows_NT"},
		"platform": {"windows": "win32"},
		"arch":     {"amd64": "x86_64", "arm64": "aarch64", "386": "x86"},
	} {
		if name := names[m[key]]; name != "" {
			m[key] = name
		}
	}
	if name, err := os.Hostname(); err == nil {
		m["hostname"] = name
	}
	if version, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["osVersion"] = strings.TrimSpace(string(version))
	}
	return m
}
