// SPDX-License-Identifier: Apache-2.0

// Command plugincommand is a plugin of the context pipeline: it reads a draft
// from its standard input and writes an answer to its standard output. It
// explains the words of a glossary that the newest message of the user has.
//
//	go build -o glossary ./examples/plugincommand
//
// and in artel.yaml:
//
//	pipeline:
//	  plugins:
//	    - id: glossary
//	      command: [./glossary]
//	      after: injection-assembler
//	      options: {fathom: "six feet", knot: "one nautical mile in an hour"}
//
// It uses nothing of Artel, as a plugin can be written in any language.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

type draft struct {
	Version  int               `json:"version"`
	Options  map[string]string `json:"options"` // the glossary
	Messages []struct {
		ID    string `json:"id"`
		Role  string `json:"role"`
		Parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"messages"`
}

type message struct {
	ID   string `json:"id"`
	Role string `json:"role,omitempty"`
	Text string `json:"text,omitempty"`
}

type answer struct {
	Version  int       `json:"version"`
	Messages []message `json:"messages"`
}

func main() {
	if err := explain(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err) // the record of the build quotes it
	}
}

func explain(in io.Reader, out io.Writer) error {
	var d draft
	if err := json.NewDecoder(in).Decode(&d); err != nil {
		return err
	}
	if d.Version != 1 {
		return fmt.Errorf("version %d is not known", d.Version)
	}
	a := answer{Version: 1}
	asked := ""
	for _, m := range d.Messages {
		a.Messages = append(a.Messages, message{ID: m.ID}) // as it was
		if m.Role == "user" {
			asked = ""
			for _, p := range m.Parts {
				asked += strings.ToLower(p.Text) + "\n"
			}
		}
	}
	var lines []string
	for word, meaning := range d.Options {
		if strings.Contains(asked, strings.ToLower(word)) {
			lines = append(lines, word+": "+meaning)
		}
	}
	if slices.Sort(lines); len(lines) > 0 {
		note := message{ID: "glossary", Role: "system", Text: "Glossary:\n" + strings.Join(lines, "\n")}
		last := max(0, len(a.Messages)-1)
		a.Messages = slices.Insert(a.Messages, last, note) // what stands before stays in the provider's cache
	}
	return json.NewEncoder(out).Encode(a)
}
