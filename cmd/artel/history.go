// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
)

// longRef parses an artifact ref that includes its conversation.
func longRef(s string) (artel.Ref, error) {
	ref, err := artel.ParseRef(s)
	if err == nil && ref.Conversation == "" {
		err = usageError{fmt.Errorf("%s: name the conversation: artifact:CONVERSATION/ID", s)}
	}
	return ref, err
}

func versionsCommand(g *globals) *cobra.Command {
	var live, edits bool
	cmd := &cobra.Command{
		Use: "versions REF", Short: "List the versions of an artifact, oldest first", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := longRef(args[0])
			if err != nil {
				return err
			}
			scope := artifact.Visible
			switch {
			case edits:
				scope = artifact.Journal
			case live:
				scope = artifact.WithLive
			}
			list, err := g.client().Versions(cmd.Context(), ref, scope)
			if err != nil {
				return err
			}
			return g.print(cmd, list, func(w printer) {
				for _, v := range list.Items {
					w.linef("v%d\t%s\t%s\t%s\t%s\t%s\t%s", v.Number, v.CreatedAt.Local().Format("2006-01-02 15:04"), v.Author, v.Update,
						phrase.Size(v.Size), stateOf(v), artel.Shorten(v.Title, 60))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "include the edits of an active run")
	cmd.Flags().BoolVar(&edits, "edits", false, "list single edits instead of the versions made of them")
	return cmd
}

// stateOf describes an entry's state other than being a version.
func stateOf(v artifact.Entry) string {
	switch {
	case v.Live:
		return "live"
	case !v.Visible:
		return "edit"
	}
	return "version"
}

func diffCommand(g *globals) *cobra.Command {
	var from, to int
	var live bool
	cmd := &cobra.Command{
		Use: "diff REF", Short: "Show the differences between two versions of an artifact, as a patch", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := longRef(args[0])
			if err != nil {
				return err
			}
			if ref.Version > 0 && to > 0 {
				return usageError{errors.New("--to and a version in the ref exclude each other")}
			}
			d, err := g.client().Diff(cmd.Context(), ref, from, max(to, ref.Version), live)
			if err != nil {
				return err
			}
			if g.json {
				return g.print(cmd, d, nil)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), d.Unified)
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&from, "from", 0, "the older version; default: the parent of the newer one")
	flags.IntVar(&to, "to", 0, "the newer version; default: the newest")
	flags.BoolVar(&live, "live", false, "include the edits of an active run")
	return cmd
}

func restoreCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "restore REF", Short: "Restore a version of an artifact (artifact:CONVERSATION/ID@VERSION), or a deleted artifact",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := longRef(args[0])
			if err != nil {
				return err
			}
			a, err := g.client().Restore(cmd.Context(), ref)
			if err != nil {
				return err
			}
			return g.print(cmd, a, func(w printer) { w.linef("%s@%d", a.Ref, a.Version) })
		},
	}
}

// editOptions holds the arguments of artel edit.
type editOptions struct {
	old, replacement, mode string
	all, indent, write     bool
}

func editCommand(g *globals) *cobra.Command {
	var e editOptions
	cmd := &cobra.Command{
		Use: "edit FILE|REF", Short: "Replace text in a file or an artifact by approximate match", Args: usage(cobra.ExactArgs(1)),
		Long: `Finds the old text in a file, or in an artifact (artifact:CONVERSATION/ID), as the
tools for models do, and prints all of it with the new text in its place. With
--write the file is written, or the artifact gets its next version. Old and new
text are given as they are, or as @FILE, which is taken to the last byte.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"old", "new"} {
				if !cmd.Flags().Changed(name) {
					return usageError{fmt.Errorf("--%s is missing: give a text, or @FILE", name)}
				}
			}
			return e.run(cmd, g, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.old, "old", "", "the text to replace, or @FILE")
	flags.StringVar(&e.replacement, "new", "", "the text to put there, or @FILE")
	flags.StringVar(&e.mode, "mode", string(edit.Auto), "how exact a match must be: auto, normalized or exact")
	flags.BoolVar(&e.all, "all", false, "replace every place, not just one")
	flags.BoolVar(&e.indent, "indent", false, "ignore indentation")
	flags.BoolVar(&e.write, "write", false, "write the file or the next version instead of printing the text")
	return cmd
}

// An edited is what artel edit reads and writes: a file or an artifact.
type edited struct {
	text  string
	write func(text string) (name string, err error)
}

func (e editOptions) open(cmd *cobra.Command, g *globals, name string) (edited, error) {
	if !strings.HasPrefix(name, "artifact:") {
		text, err := os.ReadFile(name)
		if err != nil {
			return edited{}, artel.Errorf(artel.Invalid, "edit", name, "cannot be read: %w", err)
		}
		return edited{string(text), func(text string) (string, error) { return name, replaceFile(name, text) }}, nil
	}
	ref, err := longRef(name)
	if err != nil {
		return edited{}, err
	}
	a, err := g.client().Artifact(cmd.Context(), ref)
	if err == nil && a.Content == nil {
		err = artel.Errorf(artel.Unsupported, "edit", ref.String(), "it is %s, not text", a.MediaType)
	}
	if err != nil {
		return edited{}, err
	}
	ref.Version = a.Version // if it changes meanwhile, nothing is written
	return edited{*a.Content, func(text string) (string, error) {
		a, err := g.client().Save(cmd.Context(), ref, httpapi.SavedArtifact{Content: &text})
		return fmt.Sprintf("%s@%d", a.Ref, a.Version), err
	}}, nil
}

func (e editOptions) run(cmd *cobra.Command, g *globals, path string) error {
	target, err := e.open(cmd, g, path)
	if err != nil {
		return err
	}
	var change edit.Edit
	if change.Old, err = given(e.old); err != nil {
		return err
	}
	if change.New, err = given(e.replacement); err != nil {
		return err
	}
	change.ReplaceAll = e.all
	conf, err := loadConfig(g.config)
	if err != nil {
		return err
	}
	done, err := httpapi.EditedOf(edit.Apply(cmd.Context(), target.text, []edit.Edit{change}, edit.Options{
		Mode: edit.Mode(e.mode), Limits: conf.limits(), Indent: e.indent,
	}))
	if err != nil {
		return err
	}
	if done.OK && e.write {
		if path, err = target.write(*done.Content); err != nil {
			return err
		}
	}
	switch {
	case g.json:
		err = g.print(cmd, done, nil)
	case done.OK && e.write:
		hit := done.Edits[0]
		err = g.print(cmd, nil, func(w printer) {
			w.linef("%s\t%s\t%d replaced\t%.1f%% alike", path, hit.Layer, hit.Count, 100*hit.Similarity)
		})
	case done.OK:
		_, err = io.WriteString(cmd.OutOrStdout(), *done.Content)
	}
	if err == nil && !done.OK {
		err = artel.Errorf(artel.Invalid, "edit", path, "%s", done.Error.Message)
	}
	return err
}

// given returns a text of the command line, or the content of the file that it
// names.
func given(s string) (string, error) {
	path, ok := strings.CutPrefix(s, "@")
	if !ok {
		return s, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", artel.Errorf(artel.Invalid, "edit", path, "cannot be read: %w", err)
	}
	return string(b), nil
}

// replaceFile replaces a file's content atomically. The file keeps its
// permissions, and a symbolic link its target.
func replaceFile(path, text string) (err error) {
	defer func() {
		if err != nil {
			err = artel.Errorf(artel.Invalid, "edit", path, "cannot be written: %w", err)
		}
	}()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(real), ".artel-edit-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), real)
}
