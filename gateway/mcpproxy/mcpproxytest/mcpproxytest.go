// SPDX-License-Identifier: Apache-2.0

// Package mcpproxytest has an MCP server whose results are as large and as many as servers
// may return, and a store in memory. It is for tests and measurements of the proxy.
package mcpproxytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/mcpproxy"
)

// Arguments are those of every tool.
type Arguments struct {
	Size int    `json:"size,omitempty"` // of the result
	Data string `json:"data,omitempty" jsonschema:"content in base64"`
	Text string `json:"text,omitempty"`
	Page string `json:"page,omitempty" jsonschema:"a data URI"`
}

// Hashes is what the tool hash returns.
func Hashes(in Arguments) string {
	return fmt.Sprintf("%x %x %x", sha256.Sum256([]byte(in.Data)), sha256.Sum256([]byte(in.Text)), sha256.Sum256([]byte(in.Page)))
}

// Picture is a PNG of that many pixels on each side, with its own color.
func Picture(side, n int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	for x := range side {
		m.Set(x, (x*7+n)%side, color.RGBA{uint8(n), uint8(x), 9, 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// JSON is a document of at least that many bytes.
func JSON(size int) string {
	var b strings.Builder
	b.WriteString(`{"total":7,"items":[`)
	for i := 0; b.Len() < size-40; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"item \"%d\" äöü","tags":["a","b"],"note":"%s"}`, i, i, "text that fills the document with words and more words")
	}
	b.WriteString(`],"next":null}`)
	return b.String()
}

// Log is a log of that many lines.
func Log(lines int) string {
	var b strings.Builder
	for i := range lines {
		level := "INFO"
		if i%1000 == 999 {
			level = "ERROR"
		}
		fmt.Fprintf(&b, "2026-01-02T03:04:05Z %s request %d done\n", level, i)
	}
	return b.String()
}

// Markdown is a document with a picture in base64 and headings.
func Markdown(n int) string {
	return "# Report\n\nBefore.\n\n![shot](data:image/png;base64," + base64.StdEncoding.EncodeToString(Picture(40, n)) + ")\n\n## Details\n\nAfter.\n"
}

// Sound is a recording of that many bytes.
func Sound(size int) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")
	for i := len(b); i < size; i++ {
		b = append(b, byte(i*31))
	}
	return b
}

// Server is the server, with that many tools more. It speaks these versions of the
// protocol; none: all.
func Server(more int, versions ...string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "hostile", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: versions, Instructions: "Be careful.", CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"done"}}}, nil
	}})
	add := func(name, about string, do func(context.Context, *sdk.CallToolRequest, Arguments) ([]sdk.Content, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, Title: name}}, func(ctx context.Context, r *sdk.CallToolRequest, in Arguments) (*sdk.CallToolResult, any, error) {
			content, err := do(ctx, r, in)
			return &sdk.CallToolResult{Content: content}, nil, err
		})
	}
	text := func(text string) ([]sdk.Content, error) { return []sdk.Content{&sdk.TextContent{Text: text}}, nil }
	add("echo", "Says what it got.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return text(in.Text)
	})
	add("hash", "Says the hashes of what it got.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return text(Hashes(in))
	})
	add("json", "Returns JSON.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return text(JSON(in.Size))
	})
	add("log", "Returns a log.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return text(Log(in.Size))
	})
	add("pictures", "Returns pictures.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) (out []sdk.Content, _ error) {
		for i := range in.Size {
			out = append(out, &sdk.ImageContent{Data: Picture(64, i), MIMEType: "image/png"})
		}
		return out, nil
	})
	add("large_picture", "Returns a picture.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return []sdk.Content{&sdk.ImageContent{Data: Picture(in.Size, 1), MIMEType: "image/png"}}, nil
	})
	add("audio", "Returns a recording.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return []sdk.Content{&sdk.AudioContent{Data: Sound(in.Size), MIMEType: "audio/wav"}}, nil
	})
	add("blob", "Returns bytes.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///x/data.bin", MIMEType: "application/octet-stream", Blob: bytes.Repeat([]byte{0, 1, 2, 255}, in.Size/4)}}}, nil
	})
	add("link", "Returns links.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) (out []sdk.Content, _ error) {
		for i := range in.Size {
			out = append(out, &sdk.ResourceLink{URI: fmt.Sprintf("file:///x/%d.txt", i), Name: fmt.Sprintf("file %d", i), MIMEType: "text/plain"})
		}
		return out, nil
	})
	add("markdown", "Returns Markdown.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return text(Markdown(in.Size))
	})
	add("texts", "Returns texts.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) (out []sdk.Content, _ error) {
		for i := range in.Size {
			out = append(out, &sdk.TextContent{Text: fmt.Sprintf("text %d %s", i, strings.Repeat("x", 100))})
		}
		return out, nil
	})
	add("slow", "Takes long.", func(ctx context.Context, r *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		for i := range in.Size {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.Size)}); err != nil {
				return nil, err
			}
		}
		return text("slow and done")
	})
	// The text is an address that gets a line when the call begins, and one when it is cancelled.
	add("hang", "Never ends.", func(ctx context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		c, err := net.Dial("tcp", in.Text)
		if err != nil {
			return nil, err
		}
		defer c.Close() //nolint:errcheck // everything was written
		if _, err := io.WriteString(c, "begun\n"); err != nil {
			return nil, err
		}
		<-ctx.Done()
		_, err = io.WriteString(c, "cancelled\n")
		return nil, err
	})
	add("die", "Ends the server.", func(context.Context, *sdk.CallToolRequest, Arguments) ([]sdk.Content, error) {
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(7)
		return nil, nil
	})
	add("fail", "Fails.", func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) ([]sdk.Content, error) {
		return nil, fmt.Errorf("failed: %s", strings.Repeat("why ", in.Size))
	})
	s.AddTool(&sdk.Tool{Name: "refuse", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32007, Message: "refused: " + strings.Repeat("because ", 5000) + "of that"}
	})
	type row struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	type rows struct {
		Rows []row  `json:"rows"`
		Note string `json:"note"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "structured", Description: "Returns rows."}, func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) (*sdk.CallToolResult, rows, error) {
		out := rows{Note: strings.Repeat("long ", 200)}
		for i := range in.Size {
			out.Rows = append(out.Rows, row{i, fmt.Sprintf("name %d", i)})
		}
		return nil, out, nil
	})
	for i := range more {
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprintf("service%d_do_%d", i%12, i), Description: fmt.Sprintf("Does the thing number %d of the service %d, with all the care that it takes.", i, i%12)}, func(_ context.Context, _ *sdk.CallToolRequest, in Arguments) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("did %d with %d", i, in.Size)}}}, nil, nil
		})
	}
	addResources(s)
	return s
}

func addResources(s *sdk.Server) {
	for name, content := range map[string]*sdk.ResourceContents{
		"long":  {Text: Log(1000), MIMEType: "text/plain"},
		"short": {Text: "short", MIMEType: "text/plain"},
		"bytes": {Blob: Sound(5000), MIMEType: "audio/wav"},
		"shot":  {Blob: Picture(30, 3), MIMEType: "image/png"},
	} {
		uri := "test://" + name
		s.AddResource(&sdk.Resource{URI: uri, Name: name}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			c := *content
			c.URI = uri
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		})
	}
	app := "ui://app"
	s.AddResource(&sdk.Resource{URI: app, Name: "app"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: app, MIMEType: "text/html;profile=mcp-app", Text: strings.Repeat("<p>app</p>", 2000)}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "plan", Arguments: []*sdk.PromptArgument{{Name: "of"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Plan " + r.Params.Arguments["of"]}}}}, nil
	})
}

// A Store is a [mcpproxy.Store] in memory.
type Store struct {
	mu    sync.Mutex
	files map[artel.Digest][]byte
	Kept  int // calls of Keep
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{files: map[artel.Digest][]byte{}} }

// Keep implements [mcpproxy.Store].
func (s *Store) Keep(_ context.Context, r io.Reader, f mcpproxy.File) error {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Kept++
	s.files[f.Digest] = b
	return err
}

// Open implements [mcpproxy.Store].
func (s *Store) Open(_ context.Context, d artel.Digest) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[d]
	if !ok {
		return nil, artel.Errorf(artel.NotFound, "mcpproxytest", string(d), "nothing is kept under it")
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Text joins all that a model reads of a result.
func Text(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		switch x := c.(type) {
		case *sdk.TextContent:
			all = append(all, x.Text)
		case *sdk.ImageContent:
		default:
			b, err := json.Marshal(c)
			if err != nil {
				panic(err) // it was read from JSON
			}
			all = append(all, string(b))
		}
	}
	if r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			panic(err) // likewise
		}
		all = append(all, string(b))
	}
	return strings.Join(all, "\n")
}
