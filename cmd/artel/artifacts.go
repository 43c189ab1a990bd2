// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
)

func putCommand(g *globals) *cobra.Command {
	var conversation, name, declared string
	cmd := &cobra.Command{
		Use: "put FILE…", Short: "Upload files as artifacts, into a new conversation or -c", Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name != "" && len(args) > 1 {
				return usageError{fmt.Errorf("--name goes with one file, not %d", len(args))}
			}
			for _, path := range args {
				if _, err := os.Stat(path); err != nil {
					return artel.Errorf(artel.Invalid, "put", path, "cannot be read: %w", err)
				}
			}
			ctx, client := cmd.Context(), g.client()
			id := artel.ConversationID(conversation)
			if conversation == "" {
				c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
				if err != nil {
					return err
				}
				id = c.ID
			} else if _, err := artel.ParseConversationID(conversation); err != nil {
				return err
			}
			list := httpapi.List[artel.Artifact]{}
			for _, path := range args {
				a, err := upload(ctx, client, id, path, name, declared)
				if err != nil {
					return err
				}
				list.Items = append(list.Items, a)
			}
			return g.print(cmd, list, func(w printer) {
				for _, a := range list.Items {
					w.line(a.Ref.String())
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&conversation, "conversation", "c", "", "upload into this conversation")
	flags.StringVar(&name, "name", "", "file name to upload under")
	flags.StringVar(&declared, "type", "", "declared media type")
	return cmd
}

// getOptions holds the arguments of artel get.
type getOptions struct {
	to    string
	width int
	sign  time.Duration
}

func getCommand(g *globals) *cobra.Command {
	var get getOptions
	cmd := &cobra.Command{
		Use: "get REF", Short: "Download the bytes of an artifact or blob", Args: usage(cobra.ExactArgs(1)),
		Long: `Downloads the bytes of a ref, and verifies their digest. With --width it downloads
a smaller version of a picture. With --sign it prints a signed URL of the current
file instead, which works without a login.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := artel.ParseRef(args[0])
			if err != nil {
				return err
			}
			if get.sign != 0 {
				return get.address(cmd, g, ref)
			}
			return get.run(cmd, g, ref)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&get.to, "output", "o", "", "write to this file, which must not exist; default: the standard output")
	flags.IntVar(&get.width, "width", 0, "download a smaller version of a picture, at least this many pixels wide")
	flags.DurationVar(&get.sign, "sign", 0, "print a signed URL that is valid for this long, at most 168h")
	return cmd
}

func (get getOptions) run(cmd *cobra.Command, g *globals, ref artel.Ref) (err error) {
	var body io.ReadCloser
	if get.width != 0 {
		body, err = g.client().Thumbnail(cmd.Context(), ref, get.width)
	} else {
		body, err = g.client().Open(cmd.Context(), ref)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	if get.to == "" {
		_, err = io.Copy(cmd.OutOrStdout(), body)
		return err
	}
	return writeFile("get", get.to, body)
}

func (get getOptions) address(cmd *cobra.Command, g *globals, ref artel.Ref) error {
	if get.to != "" || get.width != 0 {
		return usageError{errors.New("--sign prints an address, and goes with neither --output nor --width")}
	}
	if get.sign < app.MinSigned || get.sign > app.MaxSigned {
		return usageError{fmt.Errorf("--sign %s: want %s to %s", get.sign, app.MinSigned, app.MaxSigned)}
	}
	signed, err := g.client().Sign(cmd.Context(), ref, get.sign)
	if err != nil {
		return err
	}
	return g.print(cmd, signed, func(w printer) { w.line(signed.URL) })
}

// writeFile writes a new file for a verb, and removes it on failure.
func writeFile(verb, path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return artel.Errorf(artel.Invalid, verb, path, "cannot be written: %w", err)
	}
	_, err = io.Copy(f, r)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

func lsCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls [CONVERSATION]", Short: "List conversations, or the artifacts of one", Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				id, err := artel.ParseConversationID(args[0])
				if err != nil {
					return err
				}
				return g.listArtifacts(cmd, id)
			}
			all := httpapi.List[artel.Conversation]{Items: []artel.Conversation{}}
			for cursor := ""; ; {
				page, err := g.client().Conversations(cmd.Context(), cursor, 500)
				if err != nil {
					return err
				}
				all.Items = append(all.Items, page.Items...)
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			return g.print(cmd, all, func(w printer) {
				for _, c := range all.Items {
					w.linef("%s\t%s\t%s", c.ID, c.UpdatedAt.Local().Format("2006-01-02 15:04"), artel.Shorten(c.Title, 60))
				}
			})
		},
	}
}

func (g *globals) listArtifacts(cmd *cobra.Command, id artel.ConversationID) error {
	list, err := g.client().Artifacts(cmd.Context(), id)
	if err != nil {
		return err
	}
	return g.print(cmd, list, func(w printer) {
		for _, a := range list.Items {
			w.linef("%s\tv%d\t%s\t%s\t%s\t%s", a.ID, a.Version, a.Kind, phrase.Size(a.Size), a.Source, artel.Shorten(a.Title, 60))
		}
	})
}

func catCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "cat REF", Short: "Print the newest text of an artifact, or a version (artifact:CONVERSATION/ID[@VERSION])", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := longRef(args[0])
			if err != nil {
				return err
			}
			a, err := g.client().Artifact(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if a.Content == nil && !g.json {
				return artel.Errorf(artel.Unsupported, "cat", ref.String(), "it is %s, not text; artel get downloads it", a.MediaType)
			}
			if g.json {
				return g.print(cmd, a, nil)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), *a.Content)
			return err
		},
	}
}
