// SPDX-License-Identifier: Apache-2.0

package model

// An Auth says how requests to a service are authorised other than by its key: with
// the credentials of the machine for a cloud.
type Auth struct {
	Kind   AuthKind
	Region string // of AWS; empty: that of the host, or else of the credentials
}

// An AuthKind names a cloud.
type AuthKind string

// The clouds.
const (
	AuthKey    AuthKind = ""       // the key of the service
	AuthAWS    AuthKind = "aws"    // Amazon Bedrock: Signature Version 4
	AuthAzure  AuthKind = "azure"  // Azure OpenAI and Foundry: a token of Entra ID
	AuthGoogle AuthKind = "google" // Vertex AI: a token of Google Cloud
)

// auth reads a word, or an object with type and region.
func (e *entry) auth() Auth {
	v, ok := e.value("auth")
	if !ok {
		return Auth{}
	}
	a := Auth{}
	if word, is := v.(string); is {
		a.Kind = AuthKind(word)
	} else if o, is := e.object("auth"); is {
		a = Auth{AuthKind(o.text("type")), o.text("region")}
		o.rest()
	}
	switch a.Kind {
	case AuthKey, AuthAWS, AuthAzure, AuthGoogle:
		return a
	}
	e.flaw(UnknownWord, "auth", string(a.Kind))
	return Auth{}
}
