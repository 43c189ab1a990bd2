// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// pdfiumDigest is the SHA-256 of what scripts/pdfium made of pdfium, unpacked.
const pdfiumDigest = "7fa0b441c09ade6c30ca9b338cc944daed3f361c50e94c96791cf41e7367d3a7"

const pageSize = 64 << 10 // bytes of a page of WebAssembly memory

var (
	//go:embed pdfium.wasm.zst
	packedPdfium []byte
	//go:embed glue.wasm
	glueCode []byte
)

// A sandbox is a WebAssembly runtime with the compiled code of pdfium.
type sandbox struct {
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	pdfium  wazero.CompiledModule
	glue    wazero.CompiledModule
}

// startSandbox compiles pdfium, or loads what an earlier start compiled.
func startSandbox(o Options) (*sandbox, error) {
	code, err := unpacked()
	if err != nil {
		return nil, err
	}
	if dir, err := o.cacheDir(); err == nil {
		for range 2 {
			if s, err := compile(o, code, dir); err == nil {
				removeOld(dir)
				return s, nil
			}
			_ = os.RemoveAll(dir) // damaged, or it cannot be written
		}
	}
	return compile(o, code, "")
}

// keepCode is how long code of another version of pdfium is kept after its last use.
const keepCode = 30 * 24 * time.Hour

// removeOld removes the folders beside dir with code that other versions of the program
// have compiled and no longer use. What cannot be removed stays.
func removeOld(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
	all, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return
	}
	for _, e := range all {
		raw, err := hex.DecodeString(e.Name())
		if err != nil || len(raw) != 8 || !e.IsDir() || e.Name() == filepath.Base(dir) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keepCode {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name()))
		}
	}
}

// cacheDir returns the folder of the code that was compiled from this version of pdfium.
func (o Options) cacheDir() (string, error) {
	dir := o.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "artel", "pdfium")
	}
	return filepath.Join(dir, pdfiumDigest[:16]), nil
}

func unpacked() ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	code, err := z.DecodeAll(packedPdfium, nil)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != pdfiumDigest {
		return nil, errors.New("the embedded pdfium is not the pinned version")
	}
	return code, nil
}

// compile makes the runtime. Compiled code is kept in dir, or nowhere if it is "".
func compile(o Options, code []byte, dir string) (_ *sandbox, err error) {
	ctx := context.Background()
	s := &sandbox{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	cfg := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(uint32(min(max(o.MaxMemory/pageSize, 1), 1<<16))).
		WithCloseOnContextDone(true)
	if dir != "" {
		if s.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return s, err
		}
		cfg = cfg.WithCompilationCache(s.cache)
	}
	s.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err != nil {
		return s, err
	}
	if s.pdfium, err = s.runtime.CompileModule(ctx, code); err != nil {
		return s, err
	}
	if s.glue, err = s.runtime.CompileModule(ctx, glueCode); err != nil {
		return s, err
	}
	return s, s.provide(ctx)
}

// provide makes the functions of the host: one that reads the document. The others are
// for callbacks that nothing here asks for, and return 0.
func (s *sandbox) provide(ctx context.Context) error {
	host := s.runtime.NewHostModuleBuilder("env")
	for _, f := range s.pdfium.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != "env" {
			continue
		}
		answer := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			if len(stack) > 0 {
				stack[0] = 0
			}
		})
		if name == "FPDF_FILEACCESS_CB" {
			answer = readBlock
		}
		host = host.NewFunctionBuilder().WithGoModuleFunction(answer, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

// readBlock reads bytes of the document that the context has. Its arguments are a
// parameter, the position, where the bytes go, and how many; it returns 0 for a failure.
func readBlock(ctx context.Context, m api.Module, stack []uint64) {
	at, to, n := uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	stack[0] = 0
	d, ok := ctx.Value(documentKey{}).(*Document)
	if !ok {
		return
	}
	buf, ok := m.Memory().Read(to, n)
	if !ok {
		return
	}
	if got, err := d.at.ReadAt(buf, int64(at)); got < len(buf) {
		d.failed = err
		return
	}
	stack[0] = 1
}

// close returns all memory, which is some tens of megabytes, to the system.
func (s *sandbox) close() {
	ctx := context.Background()
	if s.runtime != nil {
		_ = s.runtime.Close(ctx)
	}
	if s.cache != nil {
		_ = s.cache.Close(ctx)
	}
	debug.FreeOSMemory()
}
