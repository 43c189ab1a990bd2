// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		ok   bool
		want string
	}{
		{
			name: "all well", ok: true,
			in: []string{
				`{"Action":"start","Package":"a"}`,
				`{"Action":"output","Package":"a","Test":"TestX","Output":"noise\n"}`,
				`{"Action":"pass","Package":"a","Test":"TestX/sub","Elapsed":0.1}`,
				`{"Action":"pass","Package":"a","Test":"TestX","Elapsed":0.1}`,
				`{"Action":"pass","Package":"a","Test":"ExampleY","Elapsed":0}`,
				`{"Action":"pass","Package":"a","Elapsed":1.5}`,
				`{"Action":"skip","Package":"b","Elapsed":0}`,
			},
			want: "ok       1.50s  a\n2 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "slow ones", ok: true,
			in: []string{
				`{"Action":"pass","Package":"a","Test":"TestX","Elapsed":5}`,
				`{"Action":"pass","Package":"a","Test":"TestY/sub","Elapsed":9}`,
				`{"Action":"pass","Package":"a","Test":"TestY","Elapsed":9.5}`,
				`{"Action":"pass","Package":"a","Test":"TestZ","Elapsed":0.9}`,
			},
			want: "slow     9.50s  a TestY\nslow     5.00s  a TestX\n3 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "progress", ok: true,
			in: []string{
				`{"Time":"2026-01-02T03:04:00Z","Action":"start","Package":"a"}`,
				`{"Time":"2026-01-02T03:04:00Z","Action":"start","Package":"b"}`,
				`{"Time":"2026-01-02T03:04:19Z","Action":"pass","Package":"a","Test":"TestX"}`,
				`{"Time":"2026-01-02T03:04:20Z","Action":"pass","Package":"a"}`,
				`{"Time":"2026-01-02T03:04:41.5Z","Action":"pass","Package":"b"}`,
			},
			want: "...     20.00s  1 passed, 0 failed; running: a b\nok       0.00s  a\n...     41.50s  1 passed, 0 failed; running: b\nok       0.00s  b\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "a failed test",
			in: []string{
				`{"Action":"pass","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Test":"TestY/sub","Output":"want 1\n"}`,
				`{"Action":"fail","Package":"a","Test":"TestY/sub","Elapsed":0.25}`,
				`{"Action":"fail","Package":"a","Test":"TestY","Elapsed":0.5}`,
				`{"Action":"fail","Package":"a","Elapsed":1}`,
			},
			want: "FAIL     0.25s  a TestY/sub\n    want 1\nFAIL     0.50s  a TestY\nFAIL     1.00s  a\nFAIL  a TestY/sub\nFAIL  a TestY\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a failed test that said much",
			in:   append(slices.Repeat([]string{`{"Action":"output","Package":"a","Test":"TestX","Output":"x\n"}`}, most+2), `{"Action":"fail","Package":"a","Test":"TestX"}`),
			want: "FAIL     0.00s  a TestX\n" + strings.Repeat("    x\n", first) + "    (2 lines more)\n" + strings.Repeat("    x\n", most-first) + "FAIL  a TestX\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a test that did not end",
			in: []string{
				`{"Action":"output","Package":"a","Test":"TestX","Output":"panic: test timed out\n"}`,
				`{"Action":"output","Package":"ab","Test":"TestZ","Output":"at work\n"}`,
				`{"Action":"fail","Package":"a","Elapsed":1}`,
				`{"Action":"pass","Package":"ab","Test":"TestZ"}`,
			},
			want: "FAIL     1.00s  a\n  a TestX did not end\n    panic: test timed out\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a skipped test",
			in: []string{
				`{"Action":"pass","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Test":"TestY/sub","Output":"no browser\n"}`,
				`{"Action":"skip","Package":"a","Test":"TestY/sub"}`,
				`{"Action":"pass","Package":"a","Test":"TestY"}`,
				`{"Action":"pass","Package":"a","Elapsed":1}`,
			},
			want: "SKIP     0.00s  a TestY/sub\n    no browser\nok       1.00s  a\nSKIP  a TestY/sub\n2 passed, 0 failed, 1 skipped\n",
		},
		{
			name: "a package that does not build",
			in: []string{
				`{"Action":"build-output","ImportPath":"a [a.test]","Output":"x.go:1: no\n"}`,
				`{"Action":"build-fail","ImportPath":"a [a.test]"}`,
				`{"Action":"output","Package":"a","Output":"FAIL a [build failed]\n"}`,
				`{"Action":"fail","Package":"a","FailedBuild":"a [a.test]"}`,
				`{"Action":"pass","Package":"b","Test":"TestX"}`,
			},
			want: "FAIL     0.00s  a\n    x.go:1: no\n    FAIL a [build failed]\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a package that dies outside of its tests",
			in: []string{
				`{"Action":"pass","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Output":"found unexpected goroutines\n"}`,
				`{"Action":"fail","Package":"a","Elapsed":2}`,
			},
			want: "FAIL     2.00s  a\n    found unexpected goroutines\n1 passed, 1 failed, 0 skipped\n",
		},
		{name: "nothing", want: "nothing was tested\n0 passed, 0 failed, 0 skipped\n"},
		{name: "no event", in: []string{"go: no such module"}, want: "go: no such module\nnothing was tested\n0 passed, 0 failed, 0 skipped\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			ok, err := summarize(strings.NewReader(strings.Join(tt.in, "\n")), &out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" || ok != tt.ok {
				t.Errorf("ok is %v; -want +got\n%s", ok, diff)
			}
		})
	}
}
