// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/elicit"
	"github.com/artelhq/artel/httpapi"
)

// elicit asks the user what a tool server wants to know. If another client has already
// answered, that answer stands; without any more input, none is given.
func (t *chatSession) elicit(ctx context.Context, e artel.Event) error {
	var p artel.ElicitationRequested
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return err
	}
	form, err := elicit.Parse(p.Schema)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "? the tool server %s asks: %s\n", artel.Visible(p.Server), artel.Visible(p.Message))
	for a := t.elicitAnswer(p, form); ; a = t.elicitAnswer(p, form) {
		_, err := t.client.Elicit(ctx, e.Run, p.Elicitation, a)
		problem, ok := errors.AsType[*httpapi.Problem](err)
		if ok && problem.Status == http.StatusConflict {
			return nil
		}
		if !ok || problem.Status != http.StatusUnprocessableEntity || a.Action != artel.ElicitAccept {
			return err
		}
		fmt.Fprintf(t.out, "  not taken: %s\n", artel.Visible(problem.Detail))
	}
}

// elicitAnswer reads an answer line by line.
func (t *chatSession) elicitAnswer(p artel.ElicitationRequested, form elicit.Form) httpapi.NewElicitAnswer {
	none := httpapi.NewElicitAnswer{Action: artel.ElicitCancel}
	if p.Mode == artel.ElicitURL {
		host := p.URL
		if u, err := url.Parse(p.URL); err == nil {
			host = u.Host
		}
		fmt.Fprintf(t.out, "  it wants you to open a page at %s: %s\n", artel.Visible(host), artel.Visible(p.URL))
		fmt.Fprint(t.out, "  open it in your browser, then y; n to decline: ")
		return httpapi.NewElicitAnswer{Action: t.consent()}
	}
	content := map[string]any{}
	for _, f := range form.Fields {
		fmt.Fprintf(t.out, "  %s: ", artel.Visible(fieldLine(f)))
		if !t.in.Scan() {
			return none
		}
		texts := []string{t.in.Text()}
		if f.Kind == elicit.Choices {
			texts = strings.FieldsFunc(t.in.Text(), func(r rune) bool { return r == ',' || r == ' ' })
		}
		v := f.Read(texts)
		if f.Kind == elicit.Choice {
			v = chosen(f, t.in.Text())
		}
		if strings.TrimSpace(t.in.Text()) == "" && f.Default != nil {
			v = f.Default
		}
		if v != nil {
			content[f.Name] = v
		}
	}
	fmt.Fprintf(t.out, "  send this to %s? (y, n to decline, anything else gives no answer) ", artel.Visible(p.Server))
	a := httpapi.NewElicitAnswer{Action: t.consent()}
	if a.Action == artel.ElicitAccept {
		a.Content = content
	}
	return a
}

func (t *chatSession) consent() artel.ElicitAction {
	if t.in.Scan() {
		switch strings.ToLower(strings.TrimSpace(t.in.Text())) {
		case "y", "yes":
			return artel.ElicitAccept
		case "n", "no":
			return artel.ElicitDecline
		}
	}
	return artel.ElicitCancel
}

// chosen returns the option that a line names by its value or its title.
func chosen(f elicit.Field, line string) any {
	line = strings.TrimSpace(line)
	for _, o := range f.Options {
		if line == o.Value || strings.EqualFold(line, o.Title) {
			return o.Value
		}
	}
	if line == "" {
		return nil
	}
	return line
}

// fieldLine describes a field.
func fieldLine(f elicit.Field) string {
	line := f.Label()
	if f.Description != "" {
		line += " (" + f.Description + ")"
	}
	switch f.Kind {
	case elicit.Choice, elicit.Choices:
		names := make([]string, len(f.Options))
		for i, o := range f.Options {
			if names[i] = o.Value; o.Title != "" && o.Title != o.Value {
				names[i] += " = " + o.Title
			}
		}
		line += " [" + strings.Join(names, ", ") + "]"
	case elicit.Boolean:
		line += " [y, n]"
	default:
		if f.Format != "" {
			line += " [" + f.Format + "]"
		}
	}
	if f.Default != nil {
		line += fmt.Sprintf(" (empty: %v)", f.Default)
	} else if !f.Required {
		line += " (may be empty)"
	}
	return line
}
