// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
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

// TestServicesAreDocumented: the documented entry of a service is understood
// whole and sets every quirk.
func TestServicesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n## Services\n")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	t.Setenv("OUR_KEY", "sk-1")
	t.Setenv("CF_SECRET", "s")
	var c config
	if err := c.parse("docs/configuration.md", []byte(text)); err != nil {
		t.Fatal(err)
	}
	services, findings, err := c.configured()
	if err != nil || len(services) != 1 || len(findings[0].Warnings()) > 0 {
		t.Fatalf("%d services, %v: %v", len(services), err, findings)
	}
	for name, quirk := range reflect.ValueOf(services[0].QuirkSettings).Fields() {
		if quirk.FieldByName("Source").String() != string(model.FromOperator) {
			t.Errorf("the quirk %s is not in it", name.Name)
		}
	}
}

// TestConfigurationIsDocumented holds the document to the keys that there are,
// and to what holds where nothing is said.
func TestConfigurationIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var c, nothing config
	if err := c.parse("docs/configuration.md", []byte(text)); err != nil {
		t.Fatal(err)
	}
	var look func(of reflect.Type, indent string)
	look = func(of reflect.Type, indent string) {
		for f := range of.Fields() {
			key := f.Tag.Get("yaml")
			if key != "" && !strings.Contains("\n"+text, "\n"+indent+key+":") {
				t.Errorf("%s%s is not in it", indent, key)
			}
			if f.Type.Kind() == reflect.Struct && key != "" {
				look(f.Type, indent+"  ")
			}
		}
	}
	look(reflect.TypeFor[config](), "")
	a, f := c.Artifacts, c.Files
	if *c.limits() != *nothing.limits() || a.UploadLimit != artifact.DefaultMaxBytes || c.retention() != app.DefaultRetention ||
		f.InlineLimit != tool.DefaultShownBytes || f.ModelLimit != tool.DefaultShownCharacters || c.Transcription.UploadLimit != model.MaxRecording {
		t.Errorf("other defaults than there are: %+v", c)
	}
}
