// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

// A Finding is one place where models were looked for, and the outcome. It holds
// codes and values, which the faces translate. It never holds a key or the value
// of an environment variable.
type Finding struct {
	Source FindingSource `json:"source"`
	// Place is the configuration file, the environment variable that enables the
	// service, or the address on this machine; empty: built in.
	Place     string            `json:"place,omitempty"`
	Line      int               `json:"line,omitempty"` // in the file, from 1; 0: not known
	Name      string            `json:"name,omitempty"` // an entry's id, "OpenAI", "Ollama"
	Found     Outcome           `json:"found"`
	Problem   Problem           `json:"problem,omitempty"` // why the outcome is not better; may be set with callable services
	Detail    string            `json:"detail,omitempty"`  // of Problem; see the constants
	Variables []Variable        `json:"variables,omitempty"`
	Flaws     []Flaw            `json:"flaws,omitempty"` // of an entry of the configuration
	Services  []artel.ServiceID `json:"services"`        // in order of preference
	Marks     int               `json:"marks,omitempty"` // number of marks of its services; see [Mark]
}

// A FindingSource is a kind of place to look for models.
type FindingSource string

// The sources, in order of preference.
const (
	InConfiguration FindingSource = "configuration"
	Stored          FindingSource = "stored" // added by an administrator at run time
	InEnvironment   FindingSource = "environment"
	OnMachine       FindingSource = "machine" // servers on this machine
	BuiltIn         FindingSource = "built_in"
)

// An Outcome is the result for one place.
type Outcome string

// The outcomes.
const (
	FoundReady   Outcome = "ready"        // a callable service
	FoundRouting Outcome = "routing_only" // services with capabilities that cannot be called
	FoundNothing Outcome = "nothing"
	FoundLater   Outcome = "asking" // no answer yet
)

// A Problem says why a place gave nothing, or less than expected.
type Problem string

// The problems.
const (
	NoProblem        Problem = ""
	NotSet           Problem = "not_set"            // the variable is empty
	NoModel          Problem = "no_model"           // none is named, and the endpoint lists none
	TooManyModels    Problem = "too_many_models"    // the first have become services; Detail: how many have not
	NoAddress        Problem = "no_base_url"        // the entry is for routing only
	DialectNotSpoken Problem = "dialect_not_spoken" // Detail: the dialect
	DialectUnknown   Problem = "dialect_unknown"    // Detail: the value
	NoObject         Problem = "no_object"          // the entry is left out
	NoID             Problem = "no_id"              // the entry is left out
	IDTaken          Problem = "id_taken"           // Detail: the id of an earlier finding
	NotListening     Problem = "not_listening"      // connection refused
	NotAllowed       Problem = "not_allowed"        // the key is refused; Detail: the status
	BadAnswer        Problem = "bad_answer"         // unexpected response; Detail: the status if not 2xx
	OtherServer      Problem = "other_server"       // another program at the address
	Untrusted        Problem = "untrusted"          // the file is not trusted; Detail: the settings in it that are not used
	Unreadable       Problem = "unreadable"         // the file cannot be read now; its last content still applies; Detail: why
	SecretUnreadable Problem = "secret_unreadable"  // the stored key cannot be decrypted; Detail: why
	Disabled         Problem = "disabled"           // an administrator has switched the service off
	NoAnswer         Problem = "no_answer"          // timeout or failed connection; Detail: the error
)

// A Variable is an environment variable, without its value.
type Variable struct {
	Name string `json:"name"`
	Set  bool   `json:"set"`
}

// A Flaw is an ignored key or value in an entry of the configuration.
type Flaw struct {
	Code  FlawCode `json:"code"`
	Key   string   `json:"key"`             // path of the key in the entry, separated by points
	Value string   `json:"value,omitempty"` // see the codes
}

// A FlawCode is a kind of flaw.
type FlawCode string

// The codes.
const (
	UnknownKey    FlawCode = "unknown_key"    // Value: the nearest known key, or empty
	WrongType     FlawCode = "wrong_type"     // Value: the expected type: text, texts, entries, object, flag, number or dollars
	EmptyVariable FlawCode = "empty_variable" // Value: the name of the variable
	UnknownWord   FlawCode = "unknown_word"   // Value: the ignored word
	NoMediaType   FlawCode = "no_media_type"  // Value: the ignored value
	OnlyInFiles   FlawCode = "only_in_files"  // refused of [ParseEntry]; Value: the name of a variable, or empty
	Program       FlawCode = "program"        // a command, or what belongs to one, in an entry that is not of a file
)

// String returns f in English, for logs.
func (f Flaw) String() string {
	switch f.Code {
	case UnknownKey:
		if f.Value != "" {
			return fmt.Sprintf("has the unknown key %q; the nearest known one is %q", f.Key, f.Value)
		}
		return fmt.Sprintf("has the unknown key %q", f.Key)
	case WrongType:
		return fmt.Sprintf("%s is not %s and counts as not given", f.Key, wanted(f.Value))
	case EmptyVariable:
		return fmt.Sprintf("%s: the environment variable %s is empty", f.Key, f.Value)
	case UnknownWord:
		return fmt.Sprintf("%s: %q is not one of the words for it and is left out", f.Key, f.Value)
	case NoMediaType:
		return fmt.Sprintf("%s: %q is no media type and is left out", f.Key, f.Value)
	case Program:
		return fmt.Sprintf("%s: a command can only be configured in artel.yaml on the machine of the server, because it runs there; an address that begins with http:// or https:// can be given here", f.Key)
	case OnlyInFiles:
		if f.Value != "" {
			return fmt.Sprintf("%s: variables of the environment such as %s can only be used in artel.yaml; give the value itself", f.Key, f.Value)
		}
		return fmt.Sprintf("%s can only be set in artel.yaml, because it uses the credentials of the machine", f.Key)
	}
	return string(f.Code) + " " + f.Key
}

// Flaws are the flaws of one entry, as the error of [ParseEntry].
type Flaws []Flaw

// Error lists them.
func (f Flaws) Error() string {
	all := make([]string, len(f))
	for i, one := range f {
		all[i] = one.String()
	}
	return strings.Join(all, "; ")
}

func wanted(kind string) string {
	switch kind {
	case wantAddress:
		return "an address like https://api.example/v1, without a user and a query,"
	case wantTexts:
		return "a list of texts"
	case wantEntries:
		return "a list of objects"
	case wantObject:
		return "an object"
	case wantFlag:
		return "true or false"
	case wantNumber:
		return "a whole number from 0"
	case wantHeader:
		return "a field of an HTTP header"
	case wantDollars:
		return "US dollars for a million tokens, as a number from 0; input and output are needed"
	}
	return "a text"
}

// The values of a [Flaw] of code [WrongType].
const (
	wantText    = "text"
	wantTexts   = "texts"
	wantEntries = "entries"
	wantObject  = "object"
	wantFlag    = "flag"
	wantNumber  = "number"
	wantDollars = "dollars"
	wantHeader  = "header"
	wantAddress = "address"
)

// Warnings returns the problem and flaws of a configuration entry in English, for
// logs.
func (f Finding) Warnings() []string {
	label := "an entry"
	if f.Name != "" {
		label = fmt.Sprintf("service %q", f.Name)
	}
	if f.Line > 0 {
		label = fmt.Sprintf("line %d: %s", f.Line, label)
	}
	var out []string
	switch f.Problem {
	case NoObject:
		out = append(out, "is no object and is left out")
	case NoID:
		out = append(out, "has no id and is left out")
	case IDTaken:
		out = append(out, "has the id of an earlier entry and is left out")
	case DialectUnknown:
		out = append(out, fmt.Sprintf("dialect %q is not one of %q; it serves for routing only", f.Detail, Dialects()))
	}
	for _, flaw := range f.Flaws {
		out = append(out, flaw.String())
	}
	for i := range out {
		out[i] = f.Place + ": " + label + " " + out[i]
	}
	return out
}

// SetProblem sets the problem of f from the error of a query.
func (f *Finding) SetProblem(err error) {
	f.Detail = ""
	status, answered := errors.AsType[*statusError](err)
	switch {
	case answered && (status.code == 401 || status.code == 403):
		f.Problem, f.Detail = NotAllowed, status.line
	case answered:
		f.Problem, f.Detail = BadAnswer, status.line
	case errors.Is(err, errNoModels):
		f.Problem = NoModel
	case errors.Is(err, errOther):
		f.Problem = BadAnswer
	case artel.KindOf(err) == artel.Canceled:
		f.Problem = NoAnswer
	case fetch.Unreachable(err):
		f.Problem = NotListening
	default:
		f.Problem = NoAnswer
		if u, ok := errors.AsType[*url.Error](err); ok { // the text of *url.Error contains the address
			f.Detail = artel.Shorten(u.Err.Error(), quoted)
		}
	}
}

// clone returns a deep copy of f whose Services is never null in JSON.
func (f Finding) clone() Finding {
	f.Variables = slices.Clone(f.Variables)
	f.Flaws = slices.Clone(f.Flaws)
	f.Services = append([]artel.ServiceID{}, f.Services...)
	return f
}

// resolveFindings computes the outcome of every finding. A service belongs to the
// first finding that names it.
func (s *snapshot) resolveFindings(findings []Finding) []Finding {
	out := make([]Finding, 0, len(findings)+1)
	taken := map[artel.ServiceID]bool{}
	builtIn := Finding{Source: BuiltIn, Services: []artel.ServiceID{DemoID}}
	for _, f := range append(slices.Clip(findings), builtIn) {
		f = f.clone()
		if len(f.Services) > 0 {
			s.resolveFinding(&f, taken)
		}
		out = append(out, f)
	}
	return out
}

func (s *snapshot) resolveFinding(f *Finding, taken map[artel.ServiceID]bool) {
	named := f.Services
	f.Services = slices.DeleteFunc(slices.Clone(named), func(id artel.ServiceID) bool {
		_, known := s.byID[id]
		return taken[id] || !known
	})
	if len(f.Services) == 0 {
		f.Found, f.Problem, f.Detail = FoundNothing, IDTaken, string(named[0])
		return
	}
	f.Found, f.Marks = FoundRouting, 0
	for _, id := range f.Services {
		taken[id] = true
		f.Marks += len(s.marks[s.byID[id]])
		service := s.services[s.byID[id]]
		if service.Callable() {
			f.Found = FoundReady
		}
		if service.Callable() || f.Problem != NoProblem {
			continue
		}
		if f.Problem = NoAddress; service.BaseURL != "" {
			f.Problem = NoModel
		}
	}
}
