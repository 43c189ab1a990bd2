// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// archive returns a tar.gz with a program that prints a version.
func archive(t *testing.T) []byte {
	t.Helper()
	program := "#!/bin/sh\necho artel 0.1.0\n"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "artel", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tools makes a folder with links to these programs of the machine, for a PATH with nothing
// else.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%s is not there: install it", name)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The script installs what the checksums of the release say, and otherwise nothing.
func TestInstallScript(t *testing.T) {
	script, err := filepath.Abs("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	file, names := archive(t), []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}
	basic := []string{"sh", "uname", "mktemp", "grep", "head", "cut", "tar", "gzip", "mkdir", "cp", "chmod", "mv", "rm", "sha256sum"}
	fake := func(system, machine string) string {
		return fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -s ] && echo %s || echo %s\n", system, machine)
	}
	for _, x := range []struct {
		name, fetch   string
		version       string
		uname         string // a program in place of that of the machine
		sum           string // of every archive; "": the right one
		inPath, fails bool
		says          string
	}{
		{name: "with curl", fetch: "curl", inPath: true, says: "now run: artel serve"},
		{name: "with wget", fetch: "wget", inPath: true, says: "artel 0.1.0"},
		{name: "a version", fetch: "curl", version: "v0.1.0", inPath: true, says: "artel 0.1.0"},
		{name: "a folder that is not in the path", fetch: "curl", says: "is not in PATH; add this line"},
		{name: "an ARM machine", fetch: "curl", uname: fake("Darwin", "arm64"), inPath: true, says: "fetching artel_0.1.0_darwin_arm64.tar.gz"},
		{name: "a wrong checksum", fetch: "curl", sum: strings.Repeat("0", 64), fails: true, says: "nothing was installed"},
		{name: "a version that does not exist", fetch: "curl", version: "9.9.9", fails: true, says: "cannot be fetched"},
		{name: "an unknown system", fetch: "curl", uname: fake("Plan9", "amd64"), fails: true, says: "go install github.com/artelhq/artel/cmd/artel@latest"},
		{name: "an unknown processor", fetch: "curl", uname: fake("Linux", "mips"), fails: true, says: "there is no archive for mips"},
		{name: "nothing to fetch with", fetch: "cat", fails: true, says: "neither curl nor wget is there"},
	} {
		t.Run(x.name, func(t *testing.T) {
			sum := x.sum
			if sum == "" {
				sum = fmt.Sprintf("%x", sha256.Sum256(file))
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				dir, name := filepath.Split(r.URL.Path)
				switch {
				case dir != "/latest/download/" && dir != "/download/v0.1.0/":
					http.NotFound(w, r)
				case name == "checksums.txt":
					for _, n := range names {
						fmt.Fprintf(w, "%s  artel_0.1.0_%s.tar.gz\n", sum, n)
					}
				default:
					_, _ = w.Write(file)
				}
			}))
			defer server.Close()
			programs := tools(t, append(slices.Clone(basic), x.fetch)...)
			if x.uname != "" {
				path := filepath.Join(programs, "uname")
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(x.uname), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			home := t.TempDir()
			bin := filepath.Join(home, ".local", "bin")
			path := programs
			if x.inPath {
				path += ":" + bin
			}
			cmd := exec.Command(filepath.Join(programs, "sh"), script)
			cmd.Env = []string{"HOME=" + home, "PATH=" + path, "TMPDIR=" + t.TempDir(), "ARTEL_RELEASES=" + server.URL, "ARTEL_VERSION=" + x.version}
			out, err := cmd.CombinedOutput()
			if (err != nil) != x.fails || !strings.Contains(string(out), x.says) {
				t.Errorf("%v\n%s\nwant %q", err, out, x.says)
			}
			if _, err := os.Stat(filepath.Join(bin, "artel")); (err != nil) != x.fails {
				t.Errorf("the program: %v", err)
			}
		})
	}
}
