// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
)

// putOptions holds the arguments of artel put.
type putOptions struct {
	conversation, to, name, declared string
	always, keepMarkers              bool
}

func putCommand(g *globals) *cobra.Command {
	var put putOptions
	cmd := &cobra.Command{
		Use: "put FILE…", Short: "Upload files as artifacts, or as new versions of artifacts", Args: usage(cobra.MinimumNArgs(1)),
		Long: `Uploads files into a new conversation, or into the one of -c. There, a file
becomes the next version of the artifact that has its name, or a new artifact if
none has. With --to it becomes the next version of that artifact, whatever its
name; a version in the ref must be the newest.`,
		RunE: func(cmd *cobra.Command, args []string) error { return put.run(cmd, g, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&put.conversation, "conversation", "c", "", "upload into this conversation")
	flags.StringVar(&put.to, "to", "", "upload as the next version of this artifact (artifact:CONVERSATION/ID)")
	flags.BoolVar(&put.always, "new", false, "make a new artifact also where one has the name")
	flags.StringVar(&put.name, "name", "", "file name to upload under")
	flags.StringVar(&put.declared, "type", "", "declared media type")
	flags.BoolVar(&put.keepMarkers, "keep-markers", false, "save a text with marks of unresolved conflicts")
	return cmd
}

func (put putOptions) run(cmd *cobra.Command, g *globals, args []string) error {
	switch {
	case put.name != "" && len(args) > 1:
		return usageError{fmt.Errorf("--name goes with one file, not %d", len(args))}
	case put.to != "" && len(args) > 1:
		return usageError{fmt.Errorf("--to goes with one file, not %d", len(args))}
	case put.to != "" && (put.conversation != "" || put.always || put.name != ""):
		return usageError{errors.New("--to names the artifact, and goes with neither --conversation nor --new nor --name")}
	case put.always && put.conversation == "":
		return usageError{errors.New("--new goes with --conversation; a new conversation has no artifacts")}
	}
	for _, path := range args {
		if _, err := os.Stat(path); err != nil {
			return artel.Errorf(artel.Invalid, "put", path, "cannot be read: %w", err)
		}
	}
	ctx, client := cmd.Context(), g.client()
	list := httpapi.List[artel.Artifact]{}
	var refs []string // as they are printed
	save := func(ref artel.Ref, path string) error {
		a, err := put.save(ctx, client, ref, path)
		list.Items, refs = append(list.Items, a), append(refs, fmt.Sprintf("%s@%d", a.Ref, a.Version))
		return err
	}
	if put.to != "" {
		ref, err := longRef(put.to)
		if err == nil {
			err = save(ref, args[0])
		}
		if err != nil {
			return err
		}
	} else {
		id, there, err := put.target(ctx, client, args[0])
		if err != nil {
			return err
		}
		for _, path := range args {
			if ref, ok := sameName(there, cmp.Or(put.name, filepath.Base(path))); ok {
				err = save(ref, path)
			} else {
				var a artel.Artifact
				a, err = upload(ctx, client, id, path, put.name, put.declared)
				list.Items, refs = append(list.Items, a), append(refs, a.Ref.String())
			}
			if err != nil {
				return err
			}
		}
	}
	return g.print(cmd, list, func(w printer) {
		for _, ref := range refs {
			w.line(ref)
		}
	})
}

// target returns the conversation to upload into, and its artifacts that may get
// new versions. A new conversation has the name of the first file.
func (put putOptions) target(ctx context.Context, client *httpapi.Client, first string) (artel.ConversationID, []artel.Artifact, error) {
	if put.conversation == "" {
		c, err := client.CreateConversation(ctx, httpapi.NewConversation{Title: artel.Shorten(cmp.Or(put.name, filepath.Base(first)), 256)})
		return c.ID, nil, err
	}
	id, err := artel.ParseConversationID(put.conversation)
	if err != nil || put.always {
		return id, nil, err
	}
	list, err := client.Artifacts(ctx, id)
	return id, list.Items, err
}

// sameName finds the artifact that was uploaded under a file name; of several,
// the one changed last.
func sameName(list []artel.Artifact, name string) (ref artel.Ref, ok bool) {
	var newest time.Time
	for _, a := range list {
		if a.Filename == name && a.Source == artel.SourceUserUpload && (!ok || a.UpdatedAt.After(newest)) {
			ref, ok, newest = artel.Ref{Conversation: a.Conversation, Artifact: a.ID, Version: a.Version}, true, a.UpdatedAt
		}
	}
	return ref, ok
}

// save uploads a file as the next version of an artifact.
func (put putOptions) save(ctx context.Context, client *httpapi.Client, ref artel.Ref, path string) (artel.Artifact, error) {
	f, err := openUpload(path)
	if err != nil {
		return artel.Artifact{}, err
	}
	defer f.Close()
	a, err := client.SaveFile(ctx, ref, put.declared, put.keepMarkers, f.File, f.size)
	if p, ok := errors.AsType[*httpapi.Problem](err); ok && p.Code == artifact.CodeMarkers {
		detail, _, _ := strings.Cut(p.Detail, "; ")
		err = artel.Errorf(artel.Invalid, "put", path, "%s; --keep-markers saves it with them", detail)
	}
	return a, err
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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
				if len(all.Items) == 0 {
					w.line("No conversations yet; artel put FILE makes one")
				}
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
