// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What spares prose the library's walk hides no name that it would have found.
func TestMayBeNamedHidesNothing(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "testdata", "files", "*"))
	if err != nil || len(names) < 100 {
		t.Fatal(names, err)
	}
	texts := [][]byte{
		[]byte("WEBVTT"), []byte("WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n"), []byte("WARC/1.1\r\nWARC-Type: response\r\n"), []byte("BEGIN:VCARD\nVERSION:4.0\n"),
		[]byte("From: a@example.org\nSubject: x\nDate: y\n\n"), []byte("Return-Path: <a@example.org>\nReceived: by x\n"), []byte("0 HEAD\n1 SOUR x\n"),
		[]byte("P3\n2 2\n255\n0 0 0\n"), []byte("#!/usr/bin/lua\n"), []byte("/* XPM */\n"), []byte("--[[ x ]]\n"), []byte("<?php echo 1;"),
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b[:min(len(b), contentSample)])
	}
	for _, b := range texts {
		body := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\uFEFF")), " \t\r\n")
		found, ok := lookUp(b)
		if !ok {
			t.Fatal("the library broke")
		}
		name, _, _ := strings.Cut(found.String(), ";")
		if !mayBeNamed(body) && isText(Canonical(name)) && !strings.HasPrefix(name, "text/plain") && name != "text/csv" && name != "text/tab-separated-values" {
			t.Errorf("%.40q would be %s", b, name)
		}
	}
}
