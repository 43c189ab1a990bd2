// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
)

// A pdfCrypt opens what is encrypted so that everybody can read it: with an
// empty password, as documents are that only forbid printing or copying.
type pdfCrypt struct {
	key  []byte
	text string // how strings are encrypted: "", "V2", "AESV2", "AESV3"
	data string // how streams are
}

const passwordPad = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

// decrypt prepares for an encrypted document, and fails for one that asks for
// a password.
func (f *pdfFile) decrypt() error {
	o, ok := f.trailer["Encrypt"]
	if !ok {
		return nil
	}
	e := f.dict(o)
	version, _ := f.get(e["V"]).(int)
	revision, _ := f.get(e["R"]).(int)
	owner, _ := f.get(e["O"]).(pdfString)
	user, _ := f.get(e["U"]).(pdfString)
	flags, _ := f.get(e["P"]).(int)
	bits, _ := f.get(e["Length"]).(int)
	if f.name(e["Filter"]) != "Standard" {
		return encryptedPDF()
	}
	c := &pdfCrypt{text: "V2", data: "V2"}
	switch version {
	case 1:
		bits = 40
	case 2, 3:
	case 4, 5:
		method := func(key pdfName) string {
			name := f.name(e[key])
			if name == "" || name == "Identity" {
				return ""
			}
			filter := f.dict(f.dict(e["CF"])[pdfName(name)])
			return f.name(filter["CFM"])
		}
		c.text, c.data = method("StrF"), method("StmF")
		if bits = 128; version == 5 {
			bits = 256
		}
	default:
		return encryptedPDF()
	}
	if bits == 0 {
		bits = 40
	}
	if bits < 40 || bits > 256 || bits%8 != 0 {
		return encryptedPDF()
	}
	if version == 5 {
		envelope, _ := f.get(e["UE"]).(pdfString)
		c.key = openEnvelope([]byte(user), []byte(envelope), revision)
	} else {
		var id pdfString
		if ids := f.list(f.trailer["ID"]); len(ids) > 0 {
			id, _ = ids[0].(pdfString)
		}
		clear := f.get(e["EncryptMetadata"]) == false
		c.key = oldKey(string(owner), string(user), string(id), flags, bits/8, revision, clear)
	}
	if c.key == nil {
		return encryptedPDF()
	}
	f.crypt = c
	clear(f.kept) // what was read so far is still encrypted
	clear(f.packs)
	if r, ok := o.(pdfRef); ok {
		f.kept[r.num] = e
	}
	return nil
}

// oldKey returns the key of an empty password, or nil if that does not open
// the document.
func oldKey(owner, user, id string, flags, size, revision int, clearMetadata bool) []byte {
	h := md5.New()
	h.Write([]byte(passwordPad))
	h.Write([]byte(owner))
	_ = binary.Write(h, binary.LittleEndian, uint32(int64(flags)))
	h.Write([]byte(id))
	if revision >= 4 && clearMetadata {
		h.Write([]byte{255, 255, 255, 255})
	}
	key := h.Sum(nil)
	size = min(size, 16)
	if revision >= 3 {
		for range 50 {
			sum := md5.Sum(key[:size])
			key = sum[:]
		}
	}
	key = key[:size]
	if revision < 3 {
		out := []byte(passwordPad)
		stream(key, out)
		if string(out) != user {
			return nil
		}
		return key
	}
	sum := md5.Sum([]byte(passwordPad + id))
	out := sum[:]
	for i := range 20 {
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		stream(k, out)
	}
	if len(user) < 16 || string(out) != user[:16] {
		return nil
	}
	return key
}

func stream(key, data []byte) {
	if c, err := rc4.NewCipher(key); err == nil {
		c.XORKeyStream(data, data)
	}
}

// openEnvelope returns the key of a document of the newest kind for an empty
// password, or nil.
func openEnvelope(user, envelope []byte, revision int) []byte {
	if len(user) < 48 || len(envelope) < 32 {
		return nil
	}
	hash := func(salt []byte) []byte {
		if revision >= 6 {
			return hash2B(salt)
		}
		sum := sha256.Sum256(salt)
		return sum[:]
	}
	if !bytes.Equal(hash(user[32:40]), user[:32]) {
		return nil
	}
	block, err := aes.NewCipher(hash(user[40:48]))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, 16)).CryptBlocks(key, envelope[:32])
	return key
}

// hash2B is algorithm 2.B of ISO 32000-2 for an empty password.
func hash2B(salt []byte) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	for i := 0; ; i++ {
		e := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		mod := 0
		for _, b := range e[:16] {
			mod += int(b)
		}
		switch mod % 3 {
		case 0:
			s := sha256.Sum256(e)
			k = s[:]
		case 1:
			s := sha512.Sum384(e)
			k = s[:]
		default:
			s := sha512.Sum512(e)
			k = s[:]
		}
		if i >= 63 && int(e[len(e)-1]) <= i-32 {
			return k[:32]
		}
	}
}

// bytes decrypts a string or a stream of an object.
func (c *pdfCrypt) bytes(data []byte, ref pdfRef, isStream bool) []byte {
	method := c.text
	if isStream {
		method = c.data
	}
	if method == "" || method == "None" {
		return data
	}
	key := c.key
	if method != "AESV3" {
		salted := append(bytes.Clone(key), byte(ref.num), byte(ref.num>>8), byte(ref.num>>16), byte(ref.gen), byte(ref.gen>>8))
		if method == "AESV2" {
			salted = append(salted, "sAlT"...)
		}
		sum := md5.Sum(salted)
		key = sum[:min(len(key)+5, 16)]
	}
	if method == "V2" {
		out := bytes.Clone(data)
		stream(key, out)
		return out
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(data) < 32 {
		return nil
	}
	iv, body := data[:16], bytes.Clone(data[16:len(data)&^15])
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(body, body)
	if pad := int(body[len(body)-1]); pad >= 1 && pad <= 16 {
		body = body[:len(body)-pad]
	}
	return body
}

// strings decrypts the strings in an object.
func (c *pdfCrypt) strings(o any, ref pdfRef, depth int) any {
	if depth > pdfDepth {
		return o
	}
	switch o := o.(type) {
	case pdfString:
		return pdfString(c.bytes([]byte(o), ref, false))
	case []any:
		for i := range o {
			o[i] = c.strings(o[i], ref, depth+1)
		}
	case pdfDict:
		for k, v := range o {
			o[k] = c.strings(v, ref, depth+1)
		}
	case *pdfStream:
		c.strings(o.dict, ref, depth+1)
	}
	return o
}
