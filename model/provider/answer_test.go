// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// reading says what became of an answer: what was read, and the error.
func reading(body string, open bool) (string, error) {
	f := provider.Failures{Op: "test.Read", Service: &model.Service{ID: "s"}}
	got := ""
	a := provider.Answer{
		Failures: f, Open: open,
		Whole: func(b *bufio.Reader) error {
			var v map[string]int
			_, err := f.ReadWhole(b, &v)
			got += "whole "
			return err
		},
		Event: func(name string, data []byte) (bool, error) {
			got += name + "=" + string(data) + " "
			return string(data) == "end", nil
		},
	}
	err := a.Read(iotest.OneByteReader(strings.NewReader(body)))
	return got, err
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, got, err string
		open           bool
	}{
		"JSON":              {body: "\ufeff \n{\"a\":1}", got: "whole "},
		"half JSON":         {body: `{"a":`, got: "whole ", err: "not valid JSON"},
		"events":            {body: "event: x\ndata: 1\n\ndata:  \n\ndata: end\n\ndata: more\n\n", got: "x=1 =end "},
		"events that break": {body: "data: 1\n\n", got: "=1 ", err: "the stream broke off"},
		"open events":       {body: "data: 1\n\n", got: "=1 ", open: true},
		"a page":            {body: " <html>", err: "a web page"},
		"nothing":           {body: " \n", err: "empty answer"},
		"anything":          {body: "hello", open: true, err: "neither JSON nor an event stream"},
	} {
		got, err := reading(c.body, c.open)
		if got != c.got || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: read %q with %v, want %q with %q", name, got, err, c.got, c.err)
		}
	}
}

// TestAnswerOfALostConnection hands on the connection's own error.
func TestAnswerOfALostConnection(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	err := provider.Answer{}.Read(io.MultiReader(strings.NewReader("  "), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) {
		t.Errorf("the error is %v", err)
	}
}

// TestAnswerThatIsTooLarge stops at the limit.
func TestAnswerThatIsTooLarge(t *testing.T) {
	t.Parallel()
	var v any
	_, err := provider.Failures{Service: &model.Service{}}.ReadWhole(endless{}, &v)
	if err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("the error is %v", err)
	}
}

type endless struct{}

// Read implements [io.Reader].
func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestAnswersOfOddUsage: an answer is whole, whatever is said of its tokens.
func TestAnswersOfOddUsage(t *testing.T) {
	t.Parallel()
	type usage struct {
		Tokens int64 `json:"tokens"`
	}
	type answer struct {
		Text  string `json:"text"`
		Usage *usage `json:"usage"`
		Inner struct {
			Meta usage `json:"usageMetadata"`
		} `json:"inner"`
	}
	f := provider.Failures{Op: "test.Read", Service: &model.Service{ID: "s"}}
	for data, ok := range map[string]bool{
		`{"usage":{"tokens":1.5e3},"text":"here"}`:                 true,
		`{"usage":"none","text":"here"}`:                           true,
		`{"inner":{"usageMetadata":{"tokens":"7"}},"text":"here"}`: true,
		`{"usage":{"tokens":1e99},"text":"here"}`:                  true,
		`{"usage":{},"text":7}`:                                    false,
		`{"usage":{},"text":"here"`:                                false,
	} {
		var a answer
		if err := f.ReadEvent([]byte(data), &a); (err == nil) != ok || ok && a.Text != "here" {
			t.Errorf("%s: read %+v, %v", data, a, err)
		}
		if _, err := f.ReadWhole(strings.NewReader(data), &a); (err == nil) != ok {
			t.Errorf("%s: read %+v, %v", data, a, err)
		}
	}
}
