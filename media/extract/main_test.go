// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/artelhq/artel/media/pdf"
)

// engine opens the PDFs of all tests. Compiling takes seconds, so the compiled code is
// kept where other runs find it.
var engine = pdf.New(pdf.Options{})

func TestMain(m *testing.M) {
	code := m.Run()
	err := engine.Close()
	if code == 0 && err == nil {
		err = goleak.Find()
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
