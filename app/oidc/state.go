// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/artelhq/artel"
)

// StateLife is how long a login at a provider may take.
const StateLife = 10 * time.Minute

const (
	maxNext   = 1000   // bytes
	maxSealed = 4096   // bytes, which browsers keep of a cookie
	maxUsed   = 10_000 // states that are remembered
)

// A state is what a browser keeps, sealed, while it is at the provider.
type state struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Redirect string    `json:"r"`
	Next     string    `json:"x,omitempty"`
	Issuer   string    `json:"i"`
	Ends     time.Time `json:"e"`
}

func (p *Provider) newState(redirect, next string) state {
	if len(next) > maxNext {
		next = ""
	}
	return state{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), redirect, next, p.o.Issuer, p.now().Add(StateLife)}
}

func (p *Provider) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(p.sealK)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts and signs a state.
func (p *Provider) seal(s state) (string, error) {
	src, err := json.Marshal(s)
	if err != nil {
		return "", artel.Errorf(artel.Internal, "oidc.Provider.Start", "", "%w", err)
	}
	a, err := p.aead()
	if err != nil {
		return "", artel.Errorf(artel.Internal, "oidc.Provider.Start", "", "%w", err)
	}
	return base64.RawURLEncoding.EncodeToString(a.Seal(nil, nil, src, nil)), nil
}

// open reads a sealed state that is valid now and of this provider.
func (p *Provider) open(sealed string) (s state, err error) {
	expired := failure(CodeExpired, "the cookie of this login is missing, or has ended")
	if sealed == "" || len(sealed) > maxSealed {
		return s, expired
	}
	src, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return s, expired
	}
	a, err := p.aead()
	if err != nil {
		return s, artel.Errorf(artel.Internal, "oidc.Provider.Finish", "", "%w", err)
	}
	text, err := a.Open(nil, nil, src, nil)
	if err != nil {
		return s, expired
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Issuer != p.o.Issuer || !p.now().Before(s.Ends) {
		return state{}, expired
	}
	return s, nil
}

func equal(a, b string) bool {
	return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// usedStates remembers the states of finished logins until they end by themselves. Each
// process has its own: a state that is used again at another process fails there too,
// because the provider takes its code once.
type usedStates struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// take reports whether a state is used for the first time.
func (u *usedStates) take(name string, now, ends time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.until[name]; ok {
		return false
	}
	if len(u.until) >= maxUsed {
		for other, end := range u.until {
			if !now.Before(end) {
				delete(u.until, other)
			}
		}
	}
	if len(u.until) >= maxUsed { // of many clients at once; the provider takes no code twice either
		for other := range u.until {
			delete(u.until, other)
			break
		}
	}
	u.until[name] = ends
	return true
}
