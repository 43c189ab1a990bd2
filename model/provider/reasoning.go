// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel/model"
)

// EffortOf returns the effort that r asks for: the stated one, or the one nearest to
// its budget of tokens; "" if it states neither.
func EffortOf(r model.Reasoning) model.Effort {
	switch {
	case r.Effort != "" || r.Budget <= 0:
		return r.Effort
	case r.Budget <= 2_000:
		return model.EffortLow
	case r.Budget <= 10_000:
		return model.EffortMedium
	}
	return model.EffortHigh
}

// NearestEffort returns the lowest of allowed, which are in the order of [model.Efforts],
// that is not below e; if there is none, the highest. It returns "" if e is not an
// effort.
func NearestEffort(e model.Effort, allowed ...model.Effort) model.Effort {
	all := model.Efforts()
	at := slices.Index(all, e)
	if at < 0 {
		return ""
	}
	for _, a := range allowed {
		if slices.Index(all, a) >= at {
			return a
		}
	}
	return allowed[len(allowed)-1]
}

var openAIFamily = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^gpt-(\d+)(?:\.(\d+))?`) })

// OpenAIEffort returns the effort nearest to e that a model of OpenAI's dialects
// takes; "" if the model does not reason, or e is "none" and the model is unknown.
//
// Source: reasoning_effort in OpenAI's API reference, and the model pages.
func OpenAIEffort(name string, e model.Effort) model.Effort {
	name = strings.ToLower(path.Base(name))
	low := model.Efforts()[2:5]
	m := openAIFamily().FindStringSubmatch(name)
	switch {
	case !OpenAIReasons(name):
		return ""
	case m == nil && !isOSeries(name):
		if e == model.EffortNone {
			return ""
		}
		return NearestEffort(e, low...)
	case m == nil:
		return NearestEffort(e, low...)
	case m[1] == "5" && m[2] == "":
		switch {
		case strings.Contains(name, "pro"):
			return NearestEffort(e, model.EffortHigh)
		case strings.Contains(name, "codex"):
			return NearestEffort(e, low...)
		}
		return NearestEffort(e, model.Efforts()[1:5]...)
	case strings.Contains(name, "-chat"): // takes its default alone
		if e == model.EffortNone {
			return ""
		}
		return NearestEffort(e, model.EffortMedium)
	case strings.Contains(name, "-pro"):
		return NearestEffort(e, model.Efforts()[3:6]...)
	case m[1] == "5" && m[2] == "1" && !strings.Contains(name, "max"):
		return NearestEffort(e, append([]model.Effort{model.EffortNone}, low...)...)
	}
	return NearestEffort(e, append([]model.Effort{model.EffortNone}, model.Efforts()[2:6]...)...)
}

// OpenAIReasons reports whether a model of OpenAI's dialects may reason. Models of
// OpenAI that do not reason refuse the settings of reasoning.
func OpenAIReasons(name string) bool {
	name = strings.ToLower(path.Base(name))
	for _, family := range []string{"gpt-3.5", "gpt-4", "chatgpt-4o", "gpt-5-chat"} {
		if strings.HasPrefix(name, family) {
			return false
		}
	}
	return true
}

// OpenAIFixedSampling reports whether a model of OpenAI is known to refuse
// temperature, top_p and penalties at an effort: reasoning models do, unless they
// reason not at all.
//
// Source: "Using GPT-5.2" of OpenAI's documentation.
func OpenAIFixedSampling(name string, e model.Effort) bool {
	name = strings.ToLower(path.Base(name))
	m := openAIFamily().FindStringSubmatch(name)
	if m == nil {
		return isOSeries(name)
	}
	n, _ := strconv.Atoi(m[1]) // digits
	if n < 5 || !OpenAIReasons(name) {
		return false
	}
	none := e == model.EffortNone || e == ""
	return !none || n == 5 && m[2] == ""
}

func isOSeries(name string) bool {
	return len(name) > 1 && name[0] == 'o' && name[1] >= '1' && name[1] <= '9' && (len(name) == 2 || name[2] == '-')
}
