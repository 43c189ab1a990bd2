// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A Provider is a company or a kind of server that a service can be of.
type Provider struct {
	ID, Name, Icon string
	Dialect        model.Dialect
	BaseURL        string // "": the user writes it
	KeysURL        string // where keys come from; "": none is needed
	Local          bool   // a program on this machine
}

// Own reports whether the address belongs into the form, not among the details.
func (p Provider) Own() bool { return p.Local || p.BaseURL == "" }

func providers() []Provider {
	keys := map[string]string{
		"openai": "https://platform.openai.com/api-keys", "anthropic": "https://console.anthropic.com/settings/keys",
		"gemini": "https://aistudio.google.com/apikey", "openrouter": "https://openrouter.ai/keys",
	}
	var out []Provider
	for _, v := range model.Vendors() {
		out = append(out, Provider{ID: v.ID, Name: v.Name, Icon: "key-round", Dialect: v.Dialect, BaseURL: v.BaseURL, KeysURL: keys[v.ID]})
	}
	return append(
		out,
		Provider{ID: "ollama", Name: "Ollama", Icon: "server", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Local: true},
		Provider{ID: "lmstudio", Name: "LM Studio", Icon: "server", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:1234/v1", Local: true},
		Provider{ID: "other", Icon: "plug", Dialect: model.OpenAI},
	)
}

// maxServiceForm bounds the form of a service in bytes.
const maxServiceForm = 256 << 10

// A ServiceForm is the form by which a service is added or changed.
type ServiceForm struct {
	Provider  Provider
	Stored    string // the id of the service that is changed; "": a new one
	Name      string
	Address   string
	Dialect   model.Dialect
	Dialects  []model.Dialect
	KeyEnds   string // how the stored key ends; "": unknown
	HasKey    bool   // a key is stored
	Key       string // that was sent, for a browser without script; it is never a stored one
	Disabled  bool
	Check     *ServiceCheck
	Models    []ModelChoice
	Manual    string // names of models, separated by commas, if the server has no list
	Error     string
	FreeWords bool // the models are written, not chosen
	Prices    []PriceField
}

// A PriceField is a price of a service, in US dollars per million tokens.
type PriceField struct {
	Key   string // in the entry
	Label phrase.Key
	Value string // "": not set
}

// pricesOf returns the fields of the prices of an entry.
func pricesOf(entry map[string]any) []PriceField {
	set, _ := entry["price"].(map[string]any)
	out := []PriceField{{Key: "input", Label: phrase.PageServicePriceInput}, {Key: "output", Label: phrase.PageServicePriceOutput}, {Key: "cache_read", Label: phrase.PageServicePriceCached}}
	for i, p := range out {
		switch v := set[p.Key].(type) {
		case nil:
		case float64:
			out[i].Value = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			out[i].Value = fmt.Sprint(v)
		}
	}
	return out
}

// readPrices puts the prices of the form into the entry. Without any, the prices of the
// catalogue count.
func readPrices(sent url.Values, entry map[string]any) {
	was, _ := entry["price"].(map[string]any)
	price, given := maps.Clone(was), false
	if price == nil {
		price = map[string]any{}
	}
	for _, p := range pricesOf(nil) {
		text := strings.TrimSpace(sent.Get("price_" + p.Key))
		delete(price, p.Key)
		if text == "" {
			continue
		}
		given = true
		if usd, err := strconv.ParseFloat(text, 64); err == nil {
			price[p.Key] = usd
		} else {
			price[p.Key] = text // which the validation refuses
		}
	}
	if delete(entry, "price"); given {
		entry["price"] = price
	}
}

// A ModelChoice is a model that a server lists.
type ModelChoice struct {
	ID     string
	Chosen bool
}

// A ServiceCheck is a check that runs or has run.
type ServiceCheck struct {
	Steps []CheckStep
	Done  bool
	OK    bool
	Base  string // the address that answered, if it is not the one that was written
}

// A CheckStep is a step of a check for the reader.
type CheckStep struct {
	Name, Icon, Class string
	Running           bool
	Says              string // the result, or its cause and the way out
	Quote             string // of the server or the model
}

// services shows the services and where each comes from.
func (ui *handler) services(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageServices, nil)
	stored, err := ui.app.Services.List(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	type row struct {
		entries.Service
		Name, Address, Model, Why string
	}
	var rows []row
	own := map[artel.ServiceID]bool{}
	for _, s := range stored {
		for _, id := range s.Services {
			own[id] = true
		}
		text := func(key string) string { v, _ := s.Fields[key].(string); return v }
		one := row{Service: s, Name: text("name"), Address: text("baseURL"), Model: strings.Join(modelsOf(s.Fields), ", ")}
		if one.Name == "" {
			one.Name = s.ID
		}
		if s.ID == r.URL.Query().Get("kept") {
			f.Toast = &Toast{ID: "toast-service", Text: locale(r).Say(phrase.PageServiceKept, map[string]any{"Name": one.Name})}
		}
		if s.Problem != "" && s.Problem != model.Disabled {
			one.Why = locale(r).Say(phrase.Key("page.why_"+string(s.Problem)), map[string]any{"Detail": s.Detail})
		}
		rows = append(rows, one)
	}
	ui.show(w, r, http.StatusOK, "services.html", struct {
		frame
		Stored    []row
		Others    []Choice
		Providers []Provider
	}{f, rows, slices.DeleteFunc(slices.Clone(f.Models.Choices), func(c Choice) bool { return own[c.ID] }), providers()})
}

// modelsOf returns the models of an entry; "*" stands for all.
func modelsOf(fields map[string]any) []string {
	var out []string
	if m, _ := fields["model"].(string); m != "" {
		out = append(out, m)
	}
	switch more := fields["models"].(type) {
	case string:
		out = append(out, "*")
	case []any:
		for _, m := range more {
			if s, ok := m.(string); ok && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// newService shows the form of a new service.
func (ui *handler) newService(w http.ResponseWriter, r *http.Request) {
	ui.serviceForm(w, r, http.StatusOK, formOfProvider(r.URL.Query().Get("provider")))
}

// formOfProvider returns an empty form.
func formOfProvider(id string) ServiceForm {
	all := providers()
	p := all[len(all)-1]
	if i := slices.IndexFunc(all, func(p Provider) bool { return p.ID == id }); i >= 0 {
		p = all[i]
	}
	return ServiceForm{Provider: p, Name: p.Name, Address: p.BaseURL, Dialect: p.Dialect, Dialects: dialects(), Prices: pricesOf(nil)}
}

func dialects() []model.Dialect {
	return slices.DeleteFunc(model.Dialects(), func(d model.Dialect) bool { return d == model.Demo })
}

// editService shows the form of a stored service.
func (ui *handler) editService(w http.ResponseWriter, r *http.Request) {
	s, err := ui.app.Services.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.serviceForm(w, r, http.StatusOK, formOfStored(s))
}

func formOfStored(s entries.Service) ServiceForm {
	f := formOfProvider("other")
	text := func(key string) string { v, _ := s.Fields[key].(string); return v }
	f.Stored, f.Name, f.Address, f.Disabled = s.ID, text("name"), text("baseURL"), s.Disabled
	if f.Address == "" {
		f.Address = text("base_url")
	}
	if d := model.Dialect(text("dialect")); d != "" {
		f.Dialect = d
	}
	if key, ok := s.Fields["apiKey"].(map[string]any); ok {
		f.HasKey = true
		f.KeyEnds, _ = key["ends_with"].(string)
	}
	for _, m := range modelsOf(s.Fields) {
		f.Models = append(f.Models, ModelChoice{m, true})
	}
	f.Prices = pricesOf(s.Fields)
	return f
}

func (ui *handler) serviceForm(w http.ResponseWriter, r *http.Request, status int, form ServiceForm) {
	if err := access.Require(r.Context(), store.ScopeAdmin); err != nil {
		ui.fail(w, r, err)
		return
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	l := locale(r)
	f.Title = l.Say(phrase.PageConnectTitle, nil)
	if form.Stored != "" {
		f.Title = l.Say(phrase.PageServiceChange, nil)
	}
	ui.show(w, r, status, "service.html", struct {
		frame
		Form      ServiceForm
		Providers []Provider
	}{f, form, providers()})
}

// readService reads the form, and returns the fields of the entry with it.
func (ui *handler) readService(w http.ResponseWriter, r *http.Request) (form ServiceForm, fields map[string]any, err error) {
	if err := access.Require(r.Context(), store.ScopeAdmin); err != nil {
		return form, nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxServiceForm)
	if err := r.ParseForm(); err != nil {
		return form, nil, brokenForm(r, err)
	}
	if strings.TrimSpace(r.PostForm.Get("address")) == "" {
		return form, nil, artel.Errorf(artel.Invalid, "webui", "", "%s", locale(r).Say(phrase.PageServiceAddressHint, nil))
	}
	get := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	form, fields = formOfProvider(get("provider")), map[string]any{}
	if id := get("stored"); id != "" {
		s, err := ui.app.Services.Get(r.Context(), id)
		if err != nil {
			return form, nil, err
		}
		form, fields = formOfStored(s), s.Fields
		delete(fields, "base_url")
	}
	form.Name, form.Address, form.Key, form.Manual = get("name"), get("address"), get("key"), get("manual")
	if base := get("base"); base != "" && get("base_of") == form.Address && model.SameOrigin(base, form.Address) {
		form.Address = base
	}
	form.Dialect = model.Dialect(get("dialect"))
	fields["dialect"], fields["baseURL"] = string(form.Dialect), form.Address
	if form.Name != "" {
		fields["name"] = form.Name
	}
	if form.Key != "" {
		fields["apiKey"] = form.Key
	}
	readPrices(r.PostForm, fields)
	form.Prices = pricesOf(fields)
	if form.Disabled {
		fields["disabled"] = true
	}
	chosen := r.PostForm["model"]
	for _, m := range strings.FieldsFunc(form.Manual, func(c rune) bool { return c == ',' || c == '\n' }) {
		if m = strings.TrimSpace(m); m != "" {
			chosen = append(chosen, m)
		}
	}
	delete(fields, "model")
	delete(fields, "models")
	form.Models = nil
	var more []any
	for i, m := range chosen {
		form.Models = append(form.Models, ModelChoice{m, true})
		switch {
		case m == "*":
			fields["models"] = "all"
		case i == 0:
			fields["model"] = m
		default:
			more = append(more, m)
		}
	}
	if fields["models"] == nil && len(more) > 0 {
		fields["models"] = more
	}
	return form, fields, nil
}

// checkService tries the service of the form and shows the result on the next page.
func (ui *handler) checkService(w http.ResponseWriter, r *http.Request) {
	form, fields, err := ui.readService(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	status := http.StatusOK
	report, err := ui.app.Services.Check(r.Context(), fields, nil)
	if err != nil {
		status, form.Error = ui.explain(r, err)
	} else {
		form.checked(report, locale(r))
	}
	ui.serviceForm(w, r, status, form)
}

// checkServiceLive is checkService that sends each step as it ends.
func (ui *handler) checkServiceLive(w http.ResponseWriter, r *http.Request) {
	form, fields, err := ui.readService(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	out, err := sse.NewWriter(w)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	l := locale(r)
	send := func(name string, data any) {
		var buf bytes.Buffer
		if err := ui.render(&buf, l, name, data); err != nil {
			ui.o.Log.ErrorContext(r.Context(), "a page could not be rendered", "page", name, "err", err)
			return
		}
		_ = out.Send(sse.Event{Data: buf.String()}) // the end of the connection ends the check
	}
	var steps []entries.CheckStep
	progress := func() {
		form.Check = &ServiceCheck{Steps: checkSteps(serviceSteps(), steps, false, l)}
		send("check", form)
	}
	progress()
	report, err := ui.app.Services.Check(r.Context(), fields, func(s entries.CheckStep) {
		steps = append(steps, s)
		progress()
	})
	form.Key = ""
	if err != nil {
		form.Check = nil
		_, form.Error = ui.explain(r, err)
		send("check", form)
		return
	}
	form.checked(report, l)
	send("check", form)
}

// checked puts a report into the form, with the models to choose from.
func (f *ServiceForm) checked(report entries.CheckReport, l phrase.Locale) {
	f.Check = &ServiceCheck{Steps: checkSteps(serviceSteps(), report.Items, true, l), Done: true, OK: report.OK}
	if report.BaseURL != "" && report.BaseURL != strings.TrimRight(f.Address, "/") {
		f.Check.Base = report.BaseURL
	}
	called := ""
	for _, s := range report.Items {
		if s.Name == entries.StepWord && s.State == entries.Passed {
			called = s.Model
		}
	}
	chosen := map[string]bool{}
	for _, m := range f.Models {
		chosen[m.ID] = m.Chosen
	}
	if len(chosen) == 0 && called != "" {
		chosen[called] = true
	}
	f.FreeWords = len(report.Models) == 0
	all := chosen["*"]
	var models []ModelChoice
	for _, m := range report.Models {
		models = append(models, ModelChoice{m, chosen[m] && !all})
		delete(chosen, m)
	}
	for _, m := range f.Models {
		if chosen[m.ID] && m.ID != "*" && !f.FreeWords { // of another name than in the list
			models = append([]ModelChoice{{m.ID, true}}, models...)
		}
	}
	if all {
		models = append([]ModelChoice{{"*", true}}, models...)
	}
	if !f.FreeWords {
		f.Models, f.Manual = models, ""
	}
}

// AllChosen reports whether all models are chosen, also later ones.
func (f ServiceForm) AllChosen() bool {
	return slices.ContainsFunc(f.Models, func(m ModelChoice) bool { return m.ID == "*" && m.Chosen })
}

// Listed returns the models without the word for all.
func (f ServiceForm) Listed() []ModelChoice {
	return slices.DeleteFunc(slices.Clone(f.Models), func(m ModelChoice) bool { return m.ID == "*" })
}

func serviceSteps() []entries.StepName {
	return []entries.StepName{entries.StepReach, entries.StepKey, entries.StepModels, entries.StepWord, entries.StepPicture}
}

// checkSteps returns the steps of a check, of which some have ended.
func checkSteps(names []entries.StepName, ended []entries.CheckStep, done bool, l phrase.Locale) []CheckStep {
	var out []CheckStep
	for i, name := range names {
		step := CheckStep{Name: l.Say(phrase.Key("page.check_"+string(name)), nil), Icon: "square"}
		if i < len(ended) {
			step.result(ended[i], l)
		} else if i == len(ended) && !done {
			step.Running, step.Icon = true, "loader-circle"
		}
		out = append(out, step)
	}
	return out
}

// result puts the result of a step into words.
func (c *CheckStep) result(s entries.CheckStep, l phrase.Locale) {
	values := map[string]any{"Model": s.Model, "Try": s.Try, "Seconds": strconv.FormatFloat(float64(s.Millis)/1000, 'f', 1, 64)}
	c.Quote = artel.Visible(strings.TrimSpace(s.Detail))
	switch s.State {
	case entries.Passed:
		c.Icon, c.Class = "circle-check", "good"
		if s.Name == entries.StepWord {
			c.Says = l.Say(phrase.PageCheckAnswered, values)
		}
		if s.Name == entries.StepPicture {
			c.Quote = ""
		}
		return
	case entries.Failed:
		c.Icon, c.Class = "circle-x", "bad"
	case entries.Unsure:
		c.Icon = "info"
	case entries.Skipped:
		c.Says, c.Quote = l.Say(phrase.PageCheckSkipped, nil), ""
		return
	}
	switch {
	case s.Cause != "":
		c.Says = l.Say(phrase.Key("page.trouble_"+string(s.Cause)), nil)
	case s.Name == entries.StepPicture:
		c.Icon, c.Class, c.Says = "info", "", l.Say(phrase.PageCheckBlind, nil)
	default:
		c.Says = l.Say(phrase.PageCheckUnsure, nil)
	}
	if s.Try != "" {
		c.Says += " " + l.Say(phrase.PageCheckTry, values)
	}
}

// saveService stores the service of the form.
func (ui *handler) saveService(w http.ResponseWriter, r *http.Request) {
	form, fields, err := ui.readService(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	id := form.Stored
	if id != "" {
		_, err = ui.app.Services.Update(r.Context(), id, fields)
	} else {
		id = ui.freeID(r, form)
		fields["id"] = id
		if u, err := url.Parse(form.Address); form.Name == "" && err == nil && u.Host != "" {
			fields["name"] = u.Host
		}
		_, err = ui.app.Services.Create(r.Context(), fields)
	}
	if err != nil {
		var status int
		status, form.Error = ui.explain(r, err)
		form.FreeWords = len(form.Models) == 0
		ui.serviceForm(w, r, status, form)
		return
	}
	if form.Stored == "" && ui.app.Models.Default(r.Context()).ID == artel.ServiceID(id) { // the first one: talk to it
		http.Redirect(w, r, "/?connected="+url.QueryEscape(id), http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, "/services?kept="+url.QueryEscape(id), http.StatusSeeOther)
}

// freeID returns an id for a new service.
func (ui *handler) freeID(r *http.Request, form ServiceForm) string {
	base := form.Provider.ID
	if u, err := url.Parse(form.Address); base == "other" && err == nil && u.Hostname() != "" {
		base = strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
				return c
			}
			return '-'
		}, u.Hostname())
	}
	taken := map[artel.ServiceID]bool{}
	for _, s := range ui.app.Models.Services(r.Context()) {
		taken[s.ID] = true
	}
	if stored, err := ui.app.Services.List(r.Context()); err == nil { // disabled ones too
		for _, s := range stored {
			taken[artel.ServiceID(s.ID)] = true
		}
	}
	id := base
	for n := 2; taken[artel.ServiceID(id)]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	return id
}

// switchService switches a stored service on or off.
func (ui *handler) switchService(w http.ResponseWriter, r *http.Request) {
	s, err := ui.app.Services.Get(r.Context(), r.PathValue("id"))
	to := r.FormValue("to")
	if err == nil && to != "on" && to != "off" {
		err = artel.Errorf(artel.Invalid, "webui", artel.Shorten(to, 40), "want on or off")
	}
	if err == nil {
		s.Fields["disabled"] = to == "off"
		_, err = ui.app.Services.Update(r.Context(), s.ID, s.Fields)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/services", http.StatusSeeOther)
}

// deleteService deletes a stored service.
func (ui *handler) deleteService(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Services.Delete(r.Context(), r.PathValue("id")); err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/services", http.StatusSeeOther)
}
