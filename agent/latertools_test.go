// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
)

// TestToolsThatComeDuringARun: a tool that comes after the first model call is offered with
// the next one, behind those that the model knows; one that goes stays in the list, so
// that the beginning of the request does not change, and its calls say that it is gone.
func TestToolsThatComeDuringARun(t *testing.T) {
	made := func(name string, gone *bool) tool.Tool {
		return tool.Func("mail_"+name, "Does "+name+".", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
			if *gone {
				return tool.Failed("%s is gone", name), nil
			}
			return tool.Result{Content: name + " is done"}, nil
		})
	}
	var readGone, never bool
	b := newBench(t, []turn{
		{call("1", "echo", `{"text":"a"}`), tools},
		{call("2", "mail_send", `{}`), call("3", "mail_read", `{}`), tools},
		{say("Done."), end},
	})
	set := func(of ...tool.Tool) *tool.Set {
		s, err := tool.NewSet(append([]tool.Tool{tool.Func("echo", "Says it again.", echo)}, of...)...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b.in.Tools = set(made("read", &readGone))
	b.in.Agent.Tools = []string{"echo", "mail_*"}
	b.in.Current = func() *tool.Set {
		readGone = true
		return set(made("send", &never))
	}
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := func(r *model.Request) (out []string) {
		for _, s := range r.Tools {
			out = append(out, s.Name)
		}
		return out
	}
	for i, want := range [][]string{{"echo", "mail_read"}, {"echo", "mail_read", "mail_send"}, {"echo", "mail_read", "mail_send"}} {
		if got := names(b.requests[i]); !slices.Equal(got, want) {
			t.Errorf("call %d has %v, want %v", i+1, got, want)
		}
	}
	events, err := json.Marshal(all)
	if err != nil || !strings.Contains(string(events), "send is done") || !strings.Contains(string(events), "read is gone") {
		t.Errorf("%v: %s", err, events)
	}
}

// TestStandIns: a tool that stands for others is given to who may call one of them, until
// they are there.
func TestStandIns(t *testing.T) {
	stand := tool.Func("mail_connect", "Connects.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) { return tool.Result{}, nil })
	stand.StandsFor = "mail_"
	send := tool.Func("mail_send", "Sends.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) { return tool.Result{}, nil })
	for what, tt := range map[string]struct {
		all  []tool.Tool
		want []string
	}{
		"not connected": {[]tool.Tool{stand}, []string{"mail_connect"}},
		"connected":     {[]tool.Tool{send}, []string{"mail_send"}},
		"both":          {[]tool.Tool{stand, send}, []string{"mail_send"}},
	} {
		s, err := tool.NewSet(tt.all...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Only("mail_send", "other").Names(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", what, got, tt.want)
		}
	}
}
