// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
)

func skillsCommand(g *globals) *cobra.Command {
	list := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List your skills and those of the deployment", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Skills(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, s := range all.Items {
					w.linef("%s\t%s\t%d files\t%s", s.Name, offered(s), s.Files, artel.Shorten(s.Description, 80))
				}
			})
		},
	}
	cmd := &cobra.Command{
		Use: "skills", Short: "List, import, show and export skills", Args: usage(cobra.NoArgs),
		Long: `A skill is a folder with SKILL.md: instructions for one kind of task, with further
files. Agents see its name and description, and open it when they need it. Scripts in
a skill are never run. Without a verb, lists the skills.`,
		RunE: list.RunE,
	}
	cmd.AddCommand(list, g.importSkill(), g.showSkill(), g.offerSkill(), g.exportSkill(), &cobra.Command{
		Use: "rm NAME", Short: "Delete a skill with all versions", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return g.client().DeleteSkill(cmd.Context(), args[0]) },
	})
	return cmd
}

// offered says which version agents can open.
func offered(s httpapi.SkillView) string {
	switch {
	case s.ReadOnly:
		return "of the deployment"
	case s.Offered == 0:
		return "not offered"
	case s.Offered < s.Newest:
		return fmt.Sprintf("version %d of %d", s.Offered, s.Newest)
	}
	return fmt.Sprint("version ", s.Offered)
}

func (g *globals) importSkill() *cobra.Command {
	var hold bool
	cmd := &cobra.Command{
		Use: "import DIR|ZIP", Short: "Import a skill as a new version", Args: usage(cobra.ExactArgs(1)),
		Long: `Imports a folder with SKILL.md, or a ZIP of one, and offers it to agents from their
next run on. A skill tells agents what to do: read one of others first, or import it
with --hold, which offers it to none until artel skills offer.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			zip, err := skillZIP(args[0])
			if err != nil {
				return err
			}
			defer zip.Close()
			done, err := g.client().ImportSkill(cmd.Context(), zip, !hold)
			if err != nil {
				return err
			}
			return g.print(cmd, done, func(w printer) {
				state := "imported"
				if !done.New {
					state = "has this content already"
				}
				w.linef("%s\tversion %d\t%s\t%d files, %s", done.Name, done.Version, state, done.Files, phrase.Size(done.Bytes))
				if done.Offered != done.Version {
					w.linef("agents do not get it yet: read it (artel skills show %s --version %d), then run artel skills offer %s %d", done.Name, done.Version, done.Name, done.Version)
				}
				for _, n := range done.Notes {
					w.line("note: " + n.Message)
				}
				for _, n := range done.Removed {
					w.linef("removed: version %d, the oldest of more than 20", n)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&hold, "hold", false, "do not offer this version to agents yet")
	return cmd
}

// skillZIP opens a ZIP, or makes one of a folder, whose mistakes are found here.
func skillZIP(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "skills import", path, "cannot be read: %w", err)
	}
	if !info.IsDir() {
		f, err := os.Open(path)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "skills import", path, "cannot be read: %w", err)
		}
		return f, nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "skills import", path, "cannot be read: %w", err)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	f, err := skill.ReadFS(root.FS(), filepath.Base(full))
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	r, w := io.Pipe()
	go func() {
		err := skill.WriteZIP(w, filepath.Base(full), f.Files)
		w.CloseWithError(errors.Join(err, root.Close()))
	}()
	return r, nil
}

func (g *globals) showSkill() *cobra.Command {
	var version int
	cmd := &cobra.Command{
		Use: "show NAME [PATH]", Short: "Print the instructions and the files of a skill, or one file", Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				d, err := g.client().SkillFile(cmd.Context(), args[0], version, args[1])
				if err != nil {
					return err
				}
				_, err = io.Copy(cmd.OutOrStdout(), d)
				return errors.Join(err, d.Close())
			}
			s, err := g.client().Skill(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			return g.print(cmd, s, func(w printer) {
				w.linef("%s\t%s\t%s", s.Name, offered(s.SkillView), s.Description)
				for _, f := range s.Contents {
					w.linef("%s\t%s\t%s", f.Path, f.MediaType, phrase.Size(f.Size))
				}
				for _, n := range s.Notes {
					w.line("note: " + n.Message)
				}
				w.line("")
				w.line(s.Text)
			})
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "a version; default: the one that agents get, or the newest")
	return cmd
}

func (g *globals) offerSkill() *cobra.Command {
	return &cobra.Command{
		Use: "offer NAME VERSION", Short: "Choose the version that agents get; 0: none", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return artel.Errorf(artel.Invalid, "skills offer", args[1], "is no version; want a number, or 0 for none")
			}
			s, err := g.client().OfferSkill(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			return g.print(cmd, s, func(w printer) { w.linef("%s\t%s", s.Name, offered(s)) })
		},
	}
}

func (g *globals) exportSkill() *cobra.Command {
	var version int
	var to string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write a skill as a ZIP", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := g.client().ExportSkill(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			defer d.Close()
			if to == "-" {
				_, err := io.Copy(cmd.OutOrStdout(), d)
				return err
			}
			if to == "" {
				to = args[0] + ".zip"
			}
			f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return artel.Errorf(artel.Invalid, "skills export", to, "cannot be written: %w", err)
			}
			_, err = io.Copy(f, d)
			if err = errors.Join(err, f.Close()); err != nil {
				return errors.Join(err, os.Remove(to))
			}
			return g.print(cmd, map[string]string{"file": to}, func(w printer) { w.line(to) })
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "a version; default: the one that agents get, or the newest")
	cmd.Flags().StringVarP(&to, "output", "o", "", "file to write, or - for standard output; default: NAME.zip")
	return cmd
}
