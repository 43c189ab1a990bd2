// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"github.com/artelhq/artel"
)

// inMemory is the most bytes of a spool that are in memory.
const inMemory = 128 << 10

// A spool holds bytes that are written once and read at any place: in memory, or beyond
// inMemory in a temporary file that ends with the process. Close it.
type spool struct {
	mem  []byte
	file *os.File
	size int64
	path string // of a file that could not be removed while it is open
}

func spoolOf(b []byte) *spool { return &spool{mem: b, size: int64(len(b))} }

// Write implements [io.Writer].
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(p) <= inMemory {
		s.mem = append(s.mem, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "artel-mcp-")
		if err != nil {
			return 0, err
		}
		s.file = f
		if os.Remove(f.Name()) != nil {
			s.path = f.Name()
		}
		if _, err := f.Write(s.mem); err != nil {
			return 0, err
		}
		s.mem = nil
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

// WriteString implements [io.StringWriter].
func (s *spool) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

// ReadAt implements [io.ReaderAt].
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	if off >= int64(len(s.mem)) {
		return 0, io.EOF
	}
	n := copy(p, s.mem[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// reader returns the bytes of a span.
func (s *spool) reader(at span) *io.SectionReader {
	return io.NewSectionReader(s, at.from, at.to-at.from)
}

// all returns the span of everything.
func (s *spool) all() span { return span{0, s.size} }

// bytes returns the bytes of a span, of at most limit.
func (s *spool) bytes(at span, limit int64) ([]byte, error) {
	if at.to-at.from > limit {
		return nil, artel.Errorf(artel.TooLarge, "mcpproxy", "", "%d bytes are more than the %d that are read at once", at.to-at.from, limit)
	}
	b := make([]byte, at.to-at.from)
	_, err := io.ReadFull(s.reader(at), b)
	return b, err
}

// copyTo writes the bytes of a span to w.
func (s *spool) copyTo(w io.Writer, at span) error {
	const short = 4 << 10 // without the buffer of io.Copy
	if at.size() > short {
		_, err := io.Copy(w, s.reader(at))
		return err
	}
	b, err := s.bytes(at, short)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// digest returns the digest of a span.
func (s *spool) digest(at span) (artel.Digest, error) {
	h := sha256.New()
	_, err := io.Copy(h, s.reader(at))
	return artel.NewDigest([32]byte(h.Sum(nil))), err
}

// Close implements [io.Closer].
func (s *spool) Close() error {
	s.mem, s.size = nil, 0
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.path != "" {
		err = errors.Join(err, os.Remove(s.path))
	}
	s.file = nil
	return err
}
