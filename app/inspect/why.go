// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// A Why answers whether and why a model saw something in a call.
type Why struct {
	record.ContextKey
	About    string       `json:"about"`
	Seen     bool         `json:"seen"` // any of it was sent; false for a file that was only described
	Findings []WhyFinding `json:"findings"`
}

// A WhyFinding is one reason.
type WhyFinding struct {
	Code      WhyCode                `json:"code"`
	Message   artel.MessageID        `json:"message_id,omitempty"`
	Processor string                 `json:"processor,omitempty"` // that did it
	Others    []string               `json:"others,omitempty"`    // as the code says
	Route     *artel.AttachmentRoute `json:"route,omitempty"`     // of an attachment
	Text      string                 `json:"text"`                // the whole finding in the user's language
}

// A WhyCode is a kind of WhyFinding.
type WhyCode string

// The codes.
const (
	WhySent       WhyCode = "sent"         // unchanged
	WhyChanged    WhyCode = "changed"      // Others: the processors that changed it
	WhyMerged     WhyCode = "merged"       // Others: the message in which it was sent
	WhyDropped    WhyCode = "dropped"      // it did not fit
	WhyCut        WhyCode = "cut"          // only its beginning fitted
	WhyRemoved    WhyCode = "removed"      // by Processor
	WhyMuted      WhyCode = "muted"        // by a user
	WhyBranch     WhyCode = "other_branch" // it is not on the path to what was answered
	WhyLater      WhyCode = "later"        // it came after the call
	WhySummarized WhyCode = "summarized"   // Others: the summary that stands for it
	WhyAgent      WhyCode = "other_agent"  // Others: its agent
	WhyBlank      WhyCode = "blank"        // it is empty
	WhyFile       WhyCode = "file"         // Route says how it was sent
	WhyUnattached WhyCode = "not_attached" // no message on the path has it; a tool can read it
	WhyNotHere    WhyCode = "not_here"     // it is not in the conversation
)

// Why returns why a model saw a message or a file in a call, or did not. about is
// the id of a message or of an artifact, a ref, or the name of a file. The texts
// are in the language of l.
func (cs *Contexts) Why(ctx context.Context, key record.ContextKey, about string, l phrase.Locale) (out Why, err error) {
	about = strings.TrimSpace(about)
	if about == "" || len(about) > 512 {
		return out, artel.Errorf(artel.Invalid, "inspect.Contexts.Why", "about", "want the id of a message, or the id, the ref or the name of a file")
	}
	service := ""
	out = Why{ContextKey: key, About: about, Findings: []WhyFinding{}}
	err = cs.with(ctx, key, func(tx store.Tx, s BuiltContext, c *record.Call) error {
		run, err := tx.Runs.Get(key.Run)
		if err != nil {
			return err
		}
		service = cmp.Or(s.Model, string(s.Service))
		w := query{tx: tx, context: s, run: run, out: &out}
		if m, err := tx.Messages.Get(artel.MessageID(about)); err == nil && m.Conversation == run.Conversation {
			return w.message(m)
		} else if err != nil && !errors.Is(err, artel.NotFound) {
			return err
		}
		if slices.ContainsFunc(s.Manifest.Messages, func(x pipeline.ManifestMessage) bool { return x.ID == about }) {
			w.sent(about)
			return nil
		}
		return w.file(about)
	})
	for i, f := range out.Findings {
		out.Findings[i].Text = f.say(l, service)
	}
	return out, err
}

// say returns the finding as a sentence.
func (f WhyFinding) say(l phrase.Locale, service string) string {
	args := map[string]any{"Processor": f.Processor, "Processors": strings.Join(f.Others, ", ")}
	if len(f.Others) > 0 {
		args["Message"], args["Agent"], args["ID"] = f.Others[0], f.Others[0], f.Others[0]
	}
	if f.Code != WhyFile {
		return l.Say(phrase.Key("why."+string(f.Code)), args)
	}
	args["Name"] = cmp.Or(f.Route.Filename, f.Route.Ref.String())
	text := l.Say(phrase.Key("why.file_"+string(f.Route.Step)), args)
	reason := phrase.Key("page.reason_" + string(f.Route.Reason))
	switch f.Route.Reason {
	case artel.ReasonNone, artel.ReasonText:
		return text
	case artel.ReasonCapabilityMissing:
		reason = phrase.Key("page.need_" + string(f.Route.Need))
	}
	return text + " " + l.Say(reason, map[string]any{"Model": service})
}

// A query is one question.
type query struct {
	tx      store.Tx
	context BuiltContext
	run     artel.Run
	out     *Why
}

func (w *query) find(f WhyFinding) { w.out.Findings = append(w.out.Findings, f) }

// sent adds the finding for a sent message, and reports whether it was sent.
func (w *query) sent(id string) bool {
	for _, x := range w.context.Manifest.Messages {
		switch {
		case x.ID == id:
			w.out.Seen = true
			added, changed := record.Authors(w.context.Record, id)
			f := WhyFinding{Code: WhySent, Message: artel.MessageID(id), Processor: added}
			if len(changed) > 0 {
				f.Code, f.Others = WhyChanged, changed
			}
			if slices.Contains(w.context.Tokens.Cut, id) {
				f.Code, f.Processor = WhyCut, pipeline.TokenLimiter
			}
			w.find(f)
			return true
		case slices.Contains(x.MergedFrom, id):
			w.out.Seen = true
			w.find(WhyFinding{Code: WhyMerged, Message: artel.MessageID(id), Processor: w.by(x.ID, added), Others: []string{x.ID}})
			return true
		}
	}
	return false
}

func added(s pipeline.Step) []string   { return s.Added }
func removed(s pipeline.Step) []string { return s.Removed }

// by returns the processor whose step names the message.
func (w *query) by(id string, in func(pipeline.Step) []string) string {
	for _, s := range w.context.Record.Processors {
		if slices.Contains(in(s), id) {
			return s.ID
		}
	}
	return ""
}

func (w *query) message(m artel.Message) error {
	id := string(m.ID)
	if w.sent(id) {
		w.attached(func(r artel.AttachmentRoute) bool { return r.Message == m.ID })
		return nil
	}
	f := WhyFinding{Message: m.ID}
	switch by := w.by(id, removed); {
	case slices.Contains(w.context.Tokens.Dropped, id):
		f.Code, f.Processor = WhyDropped, pipeline.TokenLimiter
	case by != "":
		f.Code, f.Processor = WhyRemoved, by
	default:
		return w.unloaded(m)
	}
	w.find(f)
	return nil
}

// unloaded says why a message was not among those that were loaded.
func (w *query) unloaded(m artel.Message) error {
	f := WhyFinding{Message: m.ID, Processor: pipeline.SessionLoader}
	path, err := w.path()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(path, func(x artel.Message) bool { return x.ID == m.ID })
	newest, covered := -1, -1
	for i, x := range path {
		if x.Summary && !x.Muted {
			newest, covered = i, i-1
			if c := slices.IndexFunc(path[:i], func(o artel.Message) bool { return o.ID == x.Covers }); c >= 0 {
				covered = c
			}
		}
	}
	switch {
	case m.CreatedAt.After(w.context.CreatedAt):
		f.Code = WhyLater
	case at < 0:
		f.Code = WhyBranch
	case m.Muted:
		f.Code = WhyMuted
	case at <= covered, at < newest && m.Summary:
		f.Code, f.Others = WhySummarized, []string{string(path[newest].ID)}
	case m.Agent != "" && m.Agent != w.context.Agent:
		f.Code, f.Others = WhyAgent, []string{string(m.Agent)}
	case w.context.Tokens.Older > 0 && (artel.TextOf(m.Parts) != "" || len(artel.MediaOf(m.Parts)) > 0):
		f.Code, f.Processor = WhyDropped, pipeline.TokenLimiter
	default:
		f.Code = WhyBlank
	}
	w.find(f)
	return nil
}

// path is the branch of the call: to the newest message of its run
// that was there.
func (w *query) path() ([]artel.Message, error) {
	leaf := w.run.Message
	for _, x := range slices.Backward(w.context.Manifest.Messages) {
		if m, err := w.tx.Messages.Get(artel.MessageID(x.ID)); err == nil && m.Run == w.run.ID {
			leaf = m.ID
			break
		}
	}
	return w.tx.Messages.Path(w.run.Conversation, leaf, 0)
}

// attached adds findings for the attachments that are meant, and reports whether there
// are any.
func (w *query) attached(meant func(artel.AttachmentRoute) bool) bool {
	any := false
	for _, d := range w.context.Record.Decisions {
		if !meant(d.AttachmentRoute) {
			continue
		}
		any = true
		r := d.AttachmentRoute
		f := WhyFinding{Code: WhyFile, Message: r.Message, Processor: pipeline.TranscriptionProcessor, Route: &r}
		if r.Dropped {
			f.Code, f.Processor = WhyDropped, pipeline.TokenLimiter
		} else if r.Step != artel.StepDescribed {
			w.out.Seen = true
		}
		w.find(f)
	}
	return any
}

func (w *query) file(about string) error {
	named := func(ref artel.Ref, filename string) bool {
		asked, err := artel.ParseRef(about)
		same := err == nil && asked.Artifact == ref.Artifact && (asked.Version == 0 || asked.Version == ref.Version) && !asked.IsBlob()
		return same || strings.EqualFold(filename, about) || ref.String() == about
	}
	if w.attached(func(r artel.AttachmentRoute) bool { return named(r.Ref, r.Filename) }) {
		return nil
	}
	all, err := w.tx.Artifacts.Heads(w.run.Conversation, w.run.Message)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !named(a.MediaPart().Ref, a.Filename) && string(a.ID) != about {
			continue
		}
		w.find(WhyFinding{Code: WhyUnattached, Processor: pipeline.SessionLoader, Others: []string{string(a.ID)}})
		return w.holders(a.ID)
	}
	w.find(WhyFinding{Code: WhyNotHere})
	return nil
}

// holders tells why messages were not sent that hold an artifact.
func (w *query) holders(id artel.ArtifactID) error {
	path, err := w.path()
	if err != nil {
		return err
	}
	for _, m := range path {
		holds := slices.ContainsFunc(artel.MediaOf(m.Parts), func(p artel.Media) bool { return p.Ref.Artifact == id })
		if holds {
			if err := w.message(m); err != nil {
				return err
			}
		}
	}
	return nil
}
