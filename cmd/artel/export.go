// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/card"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/httpapi"
)

const formatZIP = "zip"

// exportOptions holds the arguments of artel export.
type exportOptions struct{ format, output string }

func exportCommand(g *globals) *cobra.Command {
	var e exportOptions
	cmd := &cobra.Command{
		Use: "export REF|CONVERSATION", Short: "Export a text as a document, or a whole conversation as a ZIP", Args: usage(cobra.ExactArgs(1)),
		Long: `Exports a text artifact, artifact:CONVERSATION/ID[@VERSION], as a Word document
(docx), a page (html) or Markdown (md), including pictures that are artifacts.
A conversation is exported as a ZIP with all messages, files and versions.`,
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, g, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&e.format, "format", "", "docx, html or md for a text (default docx), zip for a conversation")
	flags.StringVarP(&e.output, "output", "o", "", "write to this file, which must not exist; default: the standard output")
	return cmd
}

func (e exportOptions) run(cmd *cobra.Command, g *globals, of string) error {
	if g.json && e.output == "" {
		return usageError{errors.New("--json describes the written file: give --output FILE")}
	}
	d, err := e.open(cmd, g.client(), of)
	if err != nil {
		return err
	}
	defer d.Close()
	if e.output == "" {
		_, err = io.Copy(cmd.OutOrStdout(), d)
		return err
	}
	count := &counter{r: d}
	if err := writeFile("export", e.output, count); err != nil {
		return err
	}
	return g.print(cmd, exported{File: e.output, Filename: d.Filename, MediaType: d.MediaType, Version: d.Version, Size: count.n}, func(w printer) {
		w.line(e.output)
	})
}

// exported is the output of artel export --json.
type exported struct {
	File      string `json:"file"`
	Filename  string `json:"filename"` // the server's
	MediaType string `json:"media_type"`
	Version   int    `json:"version,omitempty"`
	Size      int64  `json:"size"`
}

func (e exportOptions) open(cmd *cobra.Command, client *httpapi.Client, of string) (httpapi.Download, error) {
	if id, err := artel.ParseConversationID(of); err == nil {
		if e.format != "" && e.format != formatZIP {
			return httpapi.Download{}, usageError{fmt.Errorf("--format %s: a conversation is exported as %s; documents are made of one artifact, artifact:%s/ID", e.format, formatZIP, id)}
		}
		return client.ExportConversation(cmd.Context(), id)
	}
	ref, err := longRef(of)
	if err != nil {
		return httpapi.Download{}, err
	}
	if e.format == "" {
		e.format = app.FormatDOCX
	}
	if formats := []string{app.FormatDOCX, app.FormatHTML, app.FormatMarkdown}; !slices.Contains(formats, e.format) {
		return httpapi.Download{}, usageError{fmt.Errorf("--format %s: a text is exported as %s", e.format, strings.Join(formats, ", "))}
	}
	return client.Export(cmd.Context(), ref, e.format)
}

// A counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements [io.Reader].
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func importCommand(g *globals) *cobra.Command {
	zip, scripts, file := importZIP(g), importSillyTavern(g), importFile(g)
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import exports of Artel and of other programs", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Imports a file by what it is: a ZIP of artel export as a new conversation, a character
card as an agent, a world book, a preset, regex scripts of SillyTavern as rules. The
commands below say it themselves.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			head, err := beginning(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			switch {
			case bytes.HasPrefix(head, []byte("PK")) && !strings.EqualFold(filepath.Ext(args[0]), ".charx"):
				return zip.RunE(cmd, args)
			case !card.Known(head):
				return artel.Errorf(artel.Unsupported, "import", args[0], "it is neither a ZIP of artel export nor a character card, world book, preset or list of regex scripts")
			}
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			switch found, err := card.Read(raw, filepath.Base(args[0])); {
			case err != nil:
				return err
			case found.Kind == card.Rules:
				return scripts.RunE(cmd, args) // it needs no server
			}
			return file.RunE(cmd, args)
		},
	}
	cmd.Flags().AddFlagSet(file.Flags())
	cmd.AddCommand(zip, scripts, file)
	return cmd
}

// beginning returns the first bytes of a file without leading white space.
func beginning(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 512))
	return bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"), err
}

func importZIP(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "zip FILE", Short: "Import a conversation from a ZIP of artel export", Args: usage(cobra.ExactArgs(1)),
		Long: `Imports a ZIP of artel export as a new conversation, completely or not at all.
The ZIP may be twenty times as large as the server's artifacts.upload_limit.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "import", args[0], "cannot be read: %w", err)
			}
			defer f.Close()
			size := int64(-1)
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				size = info.Size()
			}
			done, err := g.client().Import(cmd.Context(), f, size)
			if err != nil {
				return err
			}
			return g.print(cmd, done, func(w printer) {
				w.linef("%s\t%d messages\t%d artifacts\t%d versions\t%s", done.Conversation.ID, done.Messages, done.Artifacts, done.Versions, artel.Shorten(done.Conversation.Title, 60))
			})
		},
	}
}
