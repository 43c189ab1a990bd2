// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/phrase"
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

func getCommand(g *globals) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "get REF", Short: "Download the bytes of an artifact or blob", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := artel.ParseRef(args[0])
			if err != nil {
				return err
			}
			body, err := g.client().Open(cmd.Context(), ref)
			if err != nil {
				return err
			}
			defer body.Close()
			if to == "" {
				_, err = io.Copy(cmd.OutOrStdout(), body)
				return err
			}
			return writeFile("get", to, body)
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "write to this file, which must not exist; default: the standard output")
	return cmd
}

// writeFile writes a new file for a verb, and leaves none behind when that
// fails.
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
		Use: "cat REF", Short: "Print the text of an artifact as it is now, or of a version (artifact:CONVERSATION/ID[@VERSION])", Args: usage(cobra.ExactArgs(1)),
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
