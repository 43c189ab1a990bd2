// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
)

const mcpAbout = `An MCP server in Go is called by a client of the official SDK, through ` + "`artel mcp proxy`" + ` and directly, which is the
anchor. The proxy keeps results on a server that runs. Its memory is the peak after all results of these rows, 1,000,000 lines of log, 30 MB of
sound and 20 pictures.`

// serveMCP is the wrapped server, on standard input and output.
func serveMCP(ctx context.Context) error {
	return mcpproxytest.Server(0).Run(ctx, &sdk.StdioTransport{})
}

func measureMCP(ctx context.Context, l *lab) (results []result) {
	var ps processes
	defer ps.stop()
	data := l.folder()
	ps.start(ctx, l.program, "serve", "--data", data)
	self := must(os.Executable())
	session := func(program string, args ...string) (*sdk.ClientSession, *process) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = []string{"HOME=" + data, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
		cmd.Dir = filepath.Clean(data)
		client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
		return must(client.Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)), &process{cmd: cmd}
	}
	direct, _ := session(self, "mcp-server")
	defer shut(direct)
	through, proxy := session(l.program, "mcp", "proxy", "--data", data, "--", self, "mcp-server")
	defer shut(through)
	for _, s := range []*sdk.ClientSession{direct, through} {
		must(s.ListTools(ctx, nil))
	}
	call := func(s *sdk.ClientSession, tool string, in mcpproxytest.Arguments) error {
		r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: in})
		if err == nil && r.IsError {
			err = errors.New(mcpproxytest.Text(r))
		}
		return err
	}
	const calls = 50
	each := func(s *sdk.ClientSession, tool string, size int) sample {
		return func() float64 {
			began := time.Now()
			for range calls {
				check(call(s, tool, mcpproxytest.Arguments{Size: size}))
			}
			return time.Since(began).Seconds() / calls
		}
	}
	for _, c := range []struct {
		work, size, tool string
		n                int
		limit            float64
	}{
		{"a call", "1 line", "log", 1, 0.005},
		{"a call whose result is kept", "43 kB", "log", 1000, 0},
	} {
		m := interleave(l.rounds(5), each(through, c.tool, c.n), each(direct, c.tool, c.n))
		results = append(results, result{work: c.work, size: c.size, unit: millis(), artel: m[0], anchor: m[1], target: target{limit: c.limit}})
	}
	large := interleave(1, seconds(func() error { return call(through, "json", mcpproxytest.Arguments{Size: 50 << 20}) }))
	results = append(results, result{work: "a call whose result is kept", size: "50 MB of JSON", unit: millis(), artel: large[0]})
	for tool, n := range map[string]int{"log": 1_000_000, "audio": 30_000_000, "pictures": 20} {
		check(call(through, tool, mcpproxytest.Arguments{Size: n}))
	}
	return append(results,
		result{work: "peak of resident memory", size: "hostile results", unit: megabytes(), artel: float64(proxy.peak()), target: target{limit: 64e6}},
		result{work: "resident memory, its own", size: "afterwards", unit: megabytes(), artel: float64(proxy.memory("RssAnon:"))})
}
