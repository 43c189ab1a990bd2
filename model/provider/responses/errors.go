// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"github.com/artelhq/artel/model/provider"
)

// An APIError is a refusal in the API's own form. Its Error is the message.
type APIError = provider.OpenAIError

// Bad makes the API's "invalid_request_error" of status 400. An empty param or
// code is null.
func Bad(param, code, format string, args ...any) *APIError {
	return provider.BadRequest(param, code, format, args...)
}
