// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// CheckReasoning refuses an effort at the field effortAt that a model of OpenAI does
// not take, and sampling that it does not take while it reasons.
func CheckReasoning(name, effortAt, effort string, sampling map[string]*float64) *provider.OpenAIError {
	if effort != "" {
		if !provider.OpenAIReasons(name) {
			return provider.BadRequest(effortAt, "unsupported_parameter", "Unsupported parameter: '%s' is not supported with this model.", effortAt)
		}
		if provider.OpenAIEffort(name, model.Effort(effort)) != model.Effort(effort) {
			return provider.BadRequest(effortAt, "unsupported_value", "Unsupported value: '%s' does not support '%s' with this model.", effortAt, effort)
		}
	}
	if !provider.OpenAIFixedSampling(name, model.Effort(effort)) {
		return nil
	}
	for _, field := range []string{"temperature", "top_p", "frequency_penalty", "presence_penalty"} {
		standard := 1.0
		if field != "temperature" && field != "top_p" {
			standard = 0
		}
		if value := sampling[field]; value != nil && *value != standard {
			return provider.BadRequest(field, "unsupported_value", "Unsupported value: '%s' does not support %v with this model. Only the default (%v) value is supported.", field, *value, standard)
		}
	}
	return nil
}
