// SPDX-License-Identifier: Apache-2.0

// Package secret encrypts the secrets that are stored at rest, such as the keys of
// model services.
//
// Begin with [New]. A [Box] encrypts with AES-256-GCM; the purpose and the id of the
// row are authenticated with it, so that a ciphertext of one row does not decrypt in
// another. The key comes from a text, such as an environment variable, or from a file
// of mode 0600, which the first [Box.Seal] makes. A ciphertext begins with the id of
// its key: that of another key is reported as such ([ErrOtherKey]), not as damage.
package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

// Errors of [Box.Open] and [Box.Check], inside an [*artel.Error] of kind Unavailable.
var (
	// ErrNoKey means that something was encrypted and the key is missing.
	ErrNoKey = errors.New("the key of the stored secrets is missing")
	// ErrOtherKey means that something was encrypted with another key.
	ErrOtherKey = errors.New("the stored secrets were encrypted with another key")
)

// Variable is the environment variable that holds the key.
const Variable = "ARTEL_SECRET_KEY"

const (
	minText  = 32 // characters of a key that is given as a text
	keyBytes = 32
	idBytes  = 4   // of the id of a key, at the beginning of a ciphertext
	format   = '1' // the first byte of a ciphertext
)

// A Box encrypts and decrypts. It is safe for concurrent use.
type Box struct {
	path string // of the file; "": text
	text string

	mu  sync.Mutex
	key *key // nil: not read yet
}

type key struct {
	id   [idBytes]byte
	aead cipher.AEAD
}

// New returns a box with the key in text, or in the file at path if text is empty.
// A text needs at least 32 characters; a shorter one is an error of kind Invalid. The
// file is read, or made, when it is needed.
func New(text, path string) (*Box, error) {
	text = strings.TrimSpace(text)
	if n := len(text); n > 0 && n < minText {
		return nil, artel.Errorf(artel.Invalid, "secret.New", Variable, "it has %d characters; want at least %d random ones, as of: openssl rand -hex 32", n, minText)
	}
	return &Box{path: path, text: text}, nil
}

// Seal encrypts plain for the row with an id. Without a key yet, it makes one.
func (b *Box) Seal(purpose, id string, plain []byte) ([]byte, error) {
	k, err := b.read(true)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	out := append([]byte{format}, k.id[:]...)
	out = append(out, nonce...)
	return k.aead.Seal(out, nonce, plain, associated(purpose, id)), nil
}

// Open decrypts what [Box.Seal] returned for the same purpose and id. The error is of
// kind Unavailable with [ErrNoKey] or [ErrOtherKey], or of kind Internal if the
// ciphertext is damaged or belongs to another row.
func (b *Box) Open(purpose, id string, sealed []byte) ([]byte, error) {
	const op = "secret.Open"
	k, err := b.of(sealed)
	if err != nil {
		return nil, err
	}
	rest := sealed[1+idBytes:]
	n := k.aead.NonceSize()
	if len(rest) < n {
		return nil, artel.Errorf(artel.Internal, op, id, "the stored secret is damaged")
	}
	plain, err := k.aead.Open(nil, rest[:n], rest[n:], associated(purpose, id))
	if err != nil {
		return nil, artel.Errorf(artel.Internal, op, id, "the stored secret is damaged, or belongs to another entry")
	}
	return plain, nil
}

// Check reports whether sealed was encrypted with the key of b, like [Box.Open] but
// without decrypting it.
func (b *Box) Check(sealed []byte) error {
	_, err := b.of(sealed)
	return err
}

// of returns the key of a ciphertext.
func (b *Box) of(sealed []byte) (*key, error) {
	const op = "secret.Open"
	if len(sealed) < 1+idBytes || sealed[0] != format {
		return nil, artel.Errorf(artel.Internal, op, "", "the stored secret is damaged")
	}
	k, err := b.read(false)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(k.id[:], sealed[1:1+idBytes]) {
		return nil, artel.Errorf(artel.Unavailable, op, b.place(), "%w; restore that key, or enter the secrets again", ErrOtherKey)
	}
	return k, nil
}

// place names where the key comes from.
func (b *Box) place() string {
	if b.text != "" {
		return Variable
	}
	return b.path
}

// associated is what is authenticated with a ciphertext. No purpose has a zero byte.
func associated(purpose, id string) []byte { return []byte(purpose + "\x00" + id) }

// read returns the key. Only with create it is made if it is missing.
func (b *Box) read(create bool) (*key, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.key != nil {
		return b.key, nil
	}
	material := []byte(b.text)
	if b.text == "" {
		var err error
		if material, err = readFile(b.path, create); err != nil {
			return nil, err
		}
	}
	k, err := derive(material)
	if err != nil {
		return nil, artel.Errorf(artel.Internal, "secret.read", b.place(), "%w", err)
	}
	b.key = k
	return k, nil
}

func derive(material []byte) (*key, error) {
	secret, err := hkdf.Key(sha256.New, material, nil, "artel stored secrets: key", keyBytes)
	if err != nil {
		return nil, err
	}
	id, err := hkdf.Key(sha256.New, material, nil, "artel stored secrets: id of the key", idBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &key{[idBytes]byte(id), aead}, err
}

// readFile reads the file of the key, or makes it.
func readFile(path string, create bool) ([]byte, error) {
	const op = "secret.read"
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if create {
			return makeFile(path)
		}
		return nil, artel.Errorf(artel.Unavailable, op, path, "%w; restore the file, or set %s", ErrNoKey, Variable)
	}
	if err == nil && !info.Mode().IsRegular() { // the mode of what a link leads to would be changed
		return nil, artel.Errorf(artel.Unavailable, op, path, "it is a link or a folder; want a file with the key")
	}
	var src []byte
	if err == nil {
		src, err = os.ReadFile(path)
	}
	if err == nil {
		err = os.Chmod(path, 0o600) // a copy may have lost its mode
	}
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, op, path, "the key of the stored secrets cannot be read: %w", err)
	}
	material, err := hex.DecodeString(strings.TrimSpace(string(src)))
	if err != nil || len(material) != keyBytes {
		return nil, artel.Errorf(artel.Unavailable, op, path, "want %d hexadecimal digits; restore the file", 2*keyBytes)
	}
	return material, nil
}

// makeFile makes the file completely or not at all. If another process makes it at
// the same time, the key of one of them is used by both.
func makeFile(path string) (material []byte, err error) {
	material = make([]byte, keyBytes)
	_, _ = rand.Read(material)                                            // never fails
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err == nil {
		defer func() { _ = os.Remove(f.Name()) }()
		_, err = f.WriteString(hex.EncodeToString(material) + "\n")
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return readFile(path, false)
	}
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "secret.read", path, "the key of the stored secrets cannot be kept: %w", err)
	}
	return material, nil
}
