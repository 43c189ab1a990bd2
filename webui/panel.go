// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
)

// A Panel is shown beside the thread: the list of artifacts, or one of them.
type Panel struct {
	Conversation artel.ConversationID
	Artifacts    Artifacts
	Viewer       *Viewer // nil: the list
	Shown        bool    // explicitly requested: covers the thread on narrow screens
	self         string  // URL of the viewer
}

// Self is the URL of the panel's content.
func (p Panel) Self() string {
	switch {
	case p.Viewer == nil && p.Shown:
		return p.URL()
	case p.Viewer == nil:
		return p.ThreadURL()
	}
	return p.self
}

// URL is the address of the list.
func (p Panel) URL() string { return conversationURL(p.Conversation) + "/a" }

// ThreadURL is the address without the panel.
func (p Panel) ThreadURL() string { return conversationURL(p.Conversation) }

// Artifacts is the list, with the plan on top.
type Artifacts struct {
	Plan    *Plan
	Items   []Item
	Deleted []Item
}

// Count is the number of artifacts, including the plan.
func (a Artifacts) Count() int {
	if a.Plan == nil {
		return len(a.Items)
	}
	return len(a.Items) + 1
}

// A Plan is the task plan with its progress.
type Plan struct {
	URL         string
	Body        Blocks
	Done, Total int
	Next        string // first open step; "": none
	Version     int
	Live        bool
}

// An Item is an artifact of the list.
type Item struct {
	artel.Artifact
	URL, Icon, Thumb string
	SizeText         string
	By               string
	Shown            int // number of the version for people; see [withoutUndone]
}

// panel builds the panel of the path: a viewer for /c/{cid}/a/{id}, otherwise
// the list.
func (ui *handler) panel(r *http.Request, id artel.ConversationID) (Panel, error) {
	v := view{handler: ui, conversation: id, locale: locale(r)}
	p := Panel{Conversation: id, Shown: strings.Contains(r.URL.Path, "/a"), self: r.URL.RequestURI()}
	var err error
	if p.Artifacts, err = v.artifacts(r.Context()); err != nil || r.PathValue("id") == "" {
		return p, err
	}
	if p.Viewer, err = v.viewer(r); err == nil {
		p.Viewer.Live = p.Artifacts.live(p.Viewer.ID)
	}
	return p, err
}

// live reports whether a run is writing an artifact.
func (a Artifacts) live(id artel.ArtifactID) bool {
	if a.Plan != nil && id == artel.TaskPlan {
		return a.Plan.Live
	}
	return slices.ContainsFunc(a.Items, func(i Item) bool { return i.ID == id && i.Live })
}

func (v view) artifacts(ctx context.Context) (Artifacts, error) {
	var out Artifacts
	list, err := v.app.Artifacts.List(ctx, v.conversation, "")
	if err != nil {
		return out, err
	}
	for _, a := range list {
		if a.ID == artel.TaskPlan && !a.Binary {
			a, text, err := v.app.Artifacts.Find(ctx, v.conversation, a.ID, "")
			if err != nil {
				return out, err
			}
			out.Plan = v.plan(*text, a.Version, a.Live)
			continue
		}
		item := Item{
			Artifact: a, URL: artifactURL(v.conversation, artel.Ref{Artifact: a.ID}), Icon: iconOf(a.Kind, a.MediaType),
			SizeText: phrase.Size(a.Size), By: v.madeBy(a.Source, a.LastEditor),
		}
		item.Thumb = v.thumb(a.MediaPart())
		if item.Shown = a.Version; a.Version > 1 && a.LastEditor == authorUser && !a.Live { // it may have been restored
			versions, err := v.app.Versions.List(ctx, v.conversation, a.ID)
			if err != nil {
				return out, err
			}
			_, shown := withoutUndone(versions)
			item.Shown = shown(a.Version)
		}
		out.Items = append(out.Items, item)
	}
	deleted, err := v.app.Artifacts.Deleted(ctx, v.conversation, "")
	for _, a := range deleted {
		out.Deleted = append(out.Deleted, Item{
			Artifact: a, URL: artifactURL(v.conversation, artel.Ref{Artifact: a.ID}), Icon: iconOf(a.Kind, a.MediaType),
		})
	}
	return out, err
}

func (v view) plan(text string, version int, live bool) *Plan {
	p := &Plan{
		URL:  artifactURL(v.conversation, artel.Ref{Artifact: artel.TaskPlan}),
		Body: v.blocks("plan-body", text), Version: version, Live: live,
	}
	p.Done, p.Total = artel.PlanProgress(text)
	for line := range strings.Lines(text) {
		if done, total := artel.PlanProgress(line); total == 1 && done == 0 {
			_, step, _ := strings.Cut(line, "]")
			p.Next = strings.TrimSpace(step)
			break
		}
	}
	return p
}

// madeBy names the author of an artifact or version.
func (v view) madeBy(source artel.Source, author string) string {
	switch {
	case source == artel.SourceUserUpload, source == artel.SourceUser, author == authorUser:
		return v.locale.Say(phrase.PageByUser, nil)
	case author == "" || author == "lead_agent":
		return v.locale.Say(phrase.PageByAgent, nil)
	}
	return v.locale.Say(phrase.PageBy, map[string]any{"Name": author})
}

const authorUser = "user" // as versions name the user

func artifactURL(c artel.ConversationID, ref artel.Ref) string {
	if ref.Conversation != "" {
		c = ref.Conversation
	}
	u := conversationURL(c) + "/a/" + url.PathEscape(string(ref.Artifact))
	if ref.Version > 0 {
		u += "?v=" + itoa(ref.Version)
	}
	return u
}

// A Viewer shows one artifact: the newest content, or one version.
type Viewer struct {
	ID        artel.ArtifactID
	Title     string
	Number    int  // of the shown version
	Shown     int  // Number for people; see [withoutUndone]
	Latest    int  // Shown of the newest version
	Follows   bool // follows the newest version
	Live      bool // a run is writing it
	Media     artel.MediaInfo
	Icon      string
	SizeText  string
	By        string
	Value     Value
	Blocks    Blocks     // Markdown, instead of Value
	Cut       string     // size of the shown beginning; "": all
	Extracted phrase.Key // what Blocks is, if it is text extracted from a document
	Problem   string     // why a document has no text; "": it has, or it was not requested
	Tabs      []Tab
	FileURL   string // of the bytes
	TextURL   string // of the text as JSON; "": not a text
	Newest    string // URL of the newest version
	Versions  []Listing
	Compare   *Comparison // instead of Value
	Editing   *Editing    // instead of Value
	EditURL   string      // of the editor; "": not editable here
	Exports   []Export
}

// URL is the address that actions on the artifact post to.
func (v Viewer) URL() string { return v.Newest }

// IsNewest reports whether the newest content is shown.
func (v Viewer) IsNewest() bool { return v.Follows || !v.Live && v.Shown == v.Latest }

// Old reports whether something else than the newest version is shown or edited.
func (v Viewer) Old() bool {
	return !v.IsNewest() || v.Editing != nil && v.Editing.Base != v.Number
}

// Index is the position of the shown content among all versions, oldest first.
func (v Viewer) Index() int {
	for i, l := range v.Versions {
		if l.Current {
			return len(v.Versions) - 1 - i
		}
	}
	return v.Last()
}

// Last is the greatest Index. While a run is writing, its content counts as one
// more version.
func (v Viewer) Last() int {
	if v.Live {
		return len(v.Versions)
	}
	return len(v.Versions) - 1
}

// An Export is a download format of a text.
type Export struct{ Name, URL string }

// A Tab is a view of a text.
type Tab struct {
	Name    phrase.Key
	URL     string
	Current bool
}

// A Listing is an entry of the list of versions.
type Listing struct {
	artel.Version
	URL     string
	By, Did string
	Newest  bool
	Current bool
}

// The views of a text; the first that fits is the default.
const (
	tabPreview = "preview"
	tabCode    = "code"
	tabPlain   = "plain"
	tabDiff    = "diff"
	tabEdit    = "edit"
)

func (v view) viewer(r *http.Request) (*Viewer, error) {
	ctx, c := r.Context(), v.conversation
	id, err := artel.ParseArtifactID(r.PathValue("id"))
	if err != nil {
		return nil, noArtifact(r)
	}
	out := &Viewer{ID: id}
	var text *string
	asked := 0
	if s := r.URL.Query().Get("v"); s != "" {
		if asked, err = strconv.Atoi(s); err != nil || asked < 1 {
			return nil, artel.Errorf(artel.NotFound, "webui", artel.Shorten(s, 40), "a version is a number from 1")
		}
		var of artel.Version
		of, text, err = v.app.Versions.Find(ctx, c, id, asked)
		out.Title, out.Number, out.Media, out.By = of.Title, of.Number, of.MediaInfo, v.madeBy(of.Provenance, of.Author)
	} else {
		var a artel.Artifact
		a, text, err = v.app.Artifacts.Find(ctx, c, id, "")
		out.Title, out.Number, out.Media, out.By = a.Title, a.Version, a.MediaInfo, v.madeBy(a.Source, a.LastEditor)
		out.Live, out.Follows = a.Live, true
	}
	if err != nil {
		return nil, err
	}
	out.SizeText, out.Icon = phrase.Size(out.Media.Size), iconOf(out.Media.Kind, out.Media.MediaType)
	out.FileURL = app.FileURL(artel.Ref{Conversation: c, Artifact: id, Version: asked})
	out.Newest = artifactURL(c, artel.Ref{Artifact: id})
	tab := r.URL.Query().Get("view")
	var shown func(int) int
	if out.Versions, shown, err = v.versions(ctx, id, asked, tab); err != nil {
		return nil, err
	}
	if out.Shown, out.Latest = shown(out.Number), out.Number; len(out.Versions) > 0 {
		out.Latest = out.Versions[0].Number
	}
	if text == nil {
		return out, v.showFile(ctx, out, asked, tab)
	}
	out.TextURL = v.textURL(id, asked)
	out.Exports = []Export{
		{"DOCX", v.exportURL(id, asked, "docx")}, {"HTML", v.exportURL(id, asked, "html")}, {"Markdown", v.exportURL(id, asked, "md")},
	}
	if out.Follows && len(*text) <= maxEdited {
		out.EditURL = out.Newest + "?view=" + tabEdit
	}
	switch {
	case tab == tabEdit && out.EditURL != "":
		out.Editing = &Editing{Text: *text, Base: out.Number}
	case tab == tabDiff:
		to := asked
		if asked == 0 && out.Shown != out.Number { // otherwise all of it is new since the deletion
			to = out.Shown
		}
		out.Compare, err = v.compare(ctx, id, to, r.URL.Query())
	}
	v.showText(out, *text, asked, tab)
	return out, err
}

// exportURL is the API's URL of a text in another format.
func (v view) exportURL(id artel.ArtifactID, number int, format string) string {
	u := "/api/v1/conversations/" + string(v.conversation) + "/artifacts/" + url.PathEscape(string(id)) + "/export?format=" + format
	if number > 0 {
		u += "&version=" + itoa(number)
	}
	return u
}

// textURL is the API's URL of the decoded text.
func (v view) textURL(id artel.ArtifactID, number int) string {
	u := "/api/v1/conversations/" + string(v.conversation) + "/artifacts/" + url.PathEscape(string(id))
	if number > 0 {
		u += "/versions/" + itoa(number)
	}
	return u
}

// showText fills in the text in the selected view.
func (v view) showText(out *Viewer, text string, number int, tab string) {
	tabs := tabsOf(out.Media.MediaType, out.Live)
	if len(out.Versions) > 1 || out.Live {
		tabs = append(tabs, tabDiff)
	}
	current := max(0, slices.Index(tabs, tab))
	if out.Editing != nil {
		current = -1
	}
	out.Tabs = v.tabs(out.ID, number, tabs, current)
	if out.Compare != nil || out.Editing != nil {
		return
	}
	shown, cut := shorten(text)
	out.Cut = cut
	switch tabs[current] {
	case tabPreview:
		v.preview(out, shown)
	case tabCode:
		out.Value = Value{Kind: valueHTML, HTML: render.Code(shown, render.LanguageOf(string(out.ID), out.Media.MediaType))}
	default:
		out.Value = v.plain(shown)
	}
}

// tabsOf lists the views of a media type. Browsers fetch the content of frames
// and pictures, which is impossible for content that is still being written.
func tabsOf(mediaType string, live bool) []string {
	switch mediaType {
	case "text/markdown", "application/json", "text/csv", "text/tab-separated-values":
		return []string{tabPreview, tabCode, tabPlain}
	case "text/html", "image/svg+xml":
		if live {
			return []string{tabCode, tabPlain}
		}
		return []string{tabPreview, tabCode, tabPlain}
	case "text/plain":
		return []string{tabPlain, tabCode}
	}
	return []string{tabCode, tabPlain}
}

func (v view) preview(out *Viewer, text string) {
	switch out.Media.MediaType {
	case "text/markdown":
		out.Blocks = v.blocks("viewer-body", text)
	case "text/html":
		out.Value = Value{Kind: valueFrame, URL: template.URL(out.FileURL + "?preview=true"), Name: out.Title} //nolint:gosec // made of a ref
		out.Cut = ""
	case "image/svg+xml":
		out.Value = Value{Kind: valueImage, URL: template.URL(out.FileURL), Name: out.Title} //nolint:gosec // made of a ref
		out.Cut = ""
	case "application/json":
		out.Value = v.text(text, "json", "", "")
	default:
		out.Value = v.text(text, "table", "", "")
	}
}

// withoutUndone returns the versions without deletions that were undone, and a
// function that maps each number to that of the version with this content which
// is left.
func withoutUndone(all []artel.Version) (left []artel.Version, shown func(int) int) {
	same := map[int]int{}
	for _, v := range all {
		last := len(left) - 1
		if v.Update == artel.UpdateRestore && last > 0 && left[last].Update == artel.UpdateDelete &&
			left[last-1].Digest == v.Digest && left[last-1].Title == v.Title {
			left = left[:last]
			same[v.Number] = left[last-1].Number
			continue
		}
		left = append(left, v)
	}
	return left, func(n int) int { return cmp.Or(same[n], n) }
}

// versions lists the versions, newest first; tab is the view kept in their
// links. A deletion that was undone is left out; see [withoutUndone].
func (v view) versions(ctx context.Context, id artel.ArtifactID, asked int, tab string) ([]Listing, func(int) int, error) {
	list, err := v.app.Versions.List(ctx, v.conversation, id)
	if err != nil {
		return nil, nil, err
	}
	list, shown := withoutUndone(list)
	if tab == tabEdit {
		tab = ""
	}
	out := make([]Listing, len(list))
	for i, ver := range list {
		address := artifactURL(v.conversation, artel.Ref{Artifact: id, Version: ver.Number})
		if tab != "" {
			address += "&view=" + url.QueryEscape(tab)
		}
		out[len(list)-1-i] = Listing{
			Version: ver, URL: address,
			By: v.madeBy("", ver.Author), Did: v.locale.Say(cmp.Or(updateNames[ver.Update], phrase.PageEdited), nil),
			Newest: i == len(list)-1, Current: asked > 0 && ver.Number == shown(asked),
		}
	}
	return out, shown, nil
}

// updateNames describe the kinds of changes; others are edits.
var updateNames = map[artel.UpdateType]phrase.Key{
	artel.UpdateCreate:  phrase.PageCreated,
	artel.UpdateRewrite: phrase.PageRewritten,
	artel.UpdateRestore: phrase.PageRestored,
	artel.UpdateRename:  phrase.PageRenamed,
	artel.UpdateDelete:  phrase.PageRemoved,
}
