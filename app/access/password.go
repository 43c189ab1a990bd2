// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/artelhq/artel"
)

// The cost of a password: the second choice of RFC 9106 with less memory, as
// OWASP recommends for servers.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// maxHashing bounds the passwords that are hashed at once, each of which takes 19
// MiB.
const maxHashing = 2

// Limits of a password: code points at least, bytes at most.
const (
	MinPassword = 10
	MaxPassword = 1024
)

func checkPassword(op, password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || len(password) > MaxPassword {
		return artel.Errorf(artel.Invalid, op, "password", "want %d characters or more, and at most %d bytes", MinPassword, MaxPassword)
	}
	return nil
}

// hashPassword returns a password's hash in the PHC string format.
func (k *core) hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails
	key, err := k.derive(ctx, password, salt, argonTime, argonMemory, argonThreads)
	if err != nil {
		return "", err
	}
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, b.EncodeToString(salt), b.EncodeToString(key)), nil
}

// matches reports whether hash is that of password. It takes as long for the empty
// hash of a user who is unknown, disabled or without a password.
func (k *core) matches(ctx context.Context, hash, password string) (bool, error) {
	var version int
	var memory, time uint32
	var threads uint8
	var encodedSalt, encodedKey string
	salt, want := make([]byte, argonSalt), []byte(nil)
	memory, time, threads = argonMemory, argonTime, argonThreads
	if hash != "" {
		_, err := fmt.Sscanf(replaceDollars(hash), " argon2id v=%d m=%d,t=%d,p=%d %s %s", &version, &memory, &time, &threads, &encodedSalt, &encodedKey)
		if err == nil {
			salt, err = base64.RawStdEncoding.DecodeString(encodedSalt)
		}
		if err == nil {
			want, err = base64.RawStdEncoding.DecodeString(encodedKey)
		}
		if err != nil || version != argon2.Version {
			return false, artel.Errorf(artel.Internal, "access.Sessions.Login", "", "the stored password cannot be read")
		}
	}
	got, err := k.derive(ctx, password, salt, time, memory, threads)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// replaceDollars makes the fields of a PHC string words.
func replaceDollars(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '$' {
			b[i] = ' '
		}
	}
	return string(b)
}

func (k *core) derive(ctx context.Context, password string, salt []byte, time, memory uint32, threads uint8) ([]byte, error) {
	select {
	case k.hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, artel.Errorf(artel.Canceled, "access.Sessions.Login", "", "%w", ctx.Err())
	}
	defer func() { <-k.hashing }()
	return k.argon([]byte(password), salt, time, memory, threads, argonKey), nil
}
