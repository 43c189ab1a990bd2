// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

func TestKeysAreUpToDate(t *testing.T) {
	texts, err := os.ReadFile("../../internal/phrase/en.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := source(texts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../internal/phrase/keys.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("internal/phrase/keys.go differs from en.json: run go generate ./internal/phrase")
	}
}
