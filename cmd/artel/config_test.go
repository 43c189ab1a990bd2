// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "files: {retention: 7d}": 7 * 24 * time.Hour, "files: {retention: 36h}": 36 * time.Hour, "files: {retention: 0}": -1, "files: {retention: 0d}": -1,
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(text)); err != nil || c.retention() != want {
			t.Errorf("%s: got %v, %v", text, c.retention(), err)
		}
	}
	for _, text := range []string{
		"files: {retention: week}", "files: {retention: -1h}", "files: {retention: 1.5d}", "files: {retention: -2d}",
		"files: {public_base: cdn.example}", "files: {public_base: 'ftp://cdn.example'}", "files: {public_base: 'https://cdn.example/?x=1'}", "files: {public_base: 'https://me:secret@cdn.example'}",
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "files.") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
