// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

const imageAbout = "A JPEG of the folder of blobs goes through the provider of each dialect and the caller to a model in another process, on this machine; Anthropic gets a PDF, since its API takes no image of these sizes, and to the fake none of 50 MB, since it takes no request of more than 32 MiB. " +
	"The sink is a model that reads the request and looks at nothing; the fake is the real fake of package fake, which checks, decodes and hashes, and so has most of the work. " +
	"Memory is that of the calling process above idle, in its first call. " +
	"The anchor reads the file, encodes it as base64 into a request of the dialect, marshals that with encoding/json and posts it."

// The question in all requests.
const (
	aModel   = "fake-1"
	question = "What is in the file?"
)

func measureImage(ctx context.Context, l *lab) (results []result) {
	models := map[string]*process{}
	var running processes
	defer running.stop()
	for _, name := range []string{"sink", "fake"} {
		models[name] = running.startRole(ctx, name)
	}
	for _, d := range dialectCases() {
		var memory, times []result
		for _, size := range []int64{5e6, 20e6, 50e6} {
			for _, to := range []string{"sink", "fake"} {
				if to == "fake" && d.most > 0 && size > d.most {
					continue
				}
				var m, t result
				during(fmt.Sprintf("%s, %d bytes to the %s", d.title, size, to), func() { m, t = sendFile(ctx, l, d, size, models[to].url) })
				m.work = d.title + ", memory above idle"
				t.work = d.title + ", time of a call to the " + to
				if size == 50e6 {
					m.target = target{limit: 10e6}
					if to == "sink" {
						t.target = target{ratio: 1.0 / 8}
					}
				}
				if to == "sink" {
					memory = append(memory, m)
				}
				times = append(times, t)
			}
		}
		results = append(append(results, memory...), times...)
	}
	return results
}

// sendFile measures each way of sending a file in a process of its own.
func sendFile(ctx context.Context, l *lab, d dialectCase, size int64, to string) (memory, took result) {
	dir := l.folder()
	defer os.RemoveAll(dir)
	var running processes
	defer running.stop()
	var above []int64
	var samples []sample
	for _, how := range []string{"artel", "naive"} {
		p := running.startRole(ctx, "caller", "--data", filepath.Join(dir, how))
		p.post(ctx, fmt.Sprintf("/file?dialect=%s&size=%d", d.dialect, size))
		call := fmt.Sprintf("/call?how=%s&dialect=%s&to=%s", how, d.dialect, url.QueryEscape(to))
		time.Sleep(100 * time.Millisecond)
		above = append(above, p.aboveIdle(func() error { p.post(ctx, call); return nil }))
		samples = append(samples, func() float64 { return must(strconv.ParseFloat(p.post(ctx, call), 64)) })
	}
	m := interleave(l.rounds(5), samples...)
	text := bytesOf(size)
	memory = result{size: text, unit: megabytes(), artel: float64(above[0]), anchor: float64(above[1])}
	took = result{size: text, unit: millis(), artel: m[0], anchor: m[1]}
	return memory, took
}

// callModels is the calling process: POST /file creates the file, POST /call sends it
// and answers with the duration in seconds.
func callModels(_ context.Context, mux *http.ServeMux, dir string) io.Closer {
	blobs := must(blob.OpenDir(dir))
	o := provider.Options{Client: fetch.NewClient(fetch.Options{AllowPrivate: true}), Blobs: blobs}
	caller := model.NewCaller(map[model.Dialect]model.Provider{
		model.OpenAI: openai.New(o), model.OpenAIResponses: responses.New(o), model.Anthropic: anthropic.New(o), model.Gemini: gemini.New(o),
	}, model.CallerOptions{})
	var file blob.Info // set once, before the calls
	handle(mux, "POST /file", func(r *http.Request) (string, error) {
		d, err := dialectCaseOf(r)
		if err != nil {
			return "", err
		}
		size, err := number(r, "size")
		if err == nil {
			file, err = blobs.Put(r.Context(), d.file(size), 0)
		}
		return "", err
	})
	handle(mux, "POST /call", func(r *http.Request) (string, error) {
		d, err := dialectCaseOf(r)
		if err != nil {
			return "", err
		}
		began := time.Now()
		to := r.URL.Query().Get("to") + d.base
		if r.URL.Query().Get("how") == "naive" {
			err = callNaively(r.Context(), d, blobs, file.Digest, to)
		} else {
			err = call(r.Context(), d, caller, file, to)
		}
		return strconv.FormatFloat(time.Since(began).Seconds(), 'g', -1, 64), err
	})
	return blobs
}

func call(ctx context.Context, d dialectCase, caller *model.Caller, file blob.Info, to string) error {
	media := artel.Media{Ref: artel.Ref{Digest: file.Digest}, MediaType: d.mediaType, Kind: d.kind, Filename: d.filename, Size: file.Size}
	request := &model.Request{
		Service:  model.Service{ID: "bench", Dialect: d.dialect, BaseURL: to, Model: aModel, APIKey: "any", Capabilities: seeing()},
		Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: question}, media}}},
	}
	var end model.Delta
	for d, err := range caller.Call(ctx, request) {
		if err != nil {
			return err
		}
		end = d
	}
	if _, ok := end.(model.Finish); !ok {
		return errors.New("the answer has no end")
	}
	return nil
}

// seeing are the capabilities of a model that accepts images and documents.
func seeing() model.Capabilities {
	c := model.TextOnly()
	c.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator}
	return c
}

// callNaively is the anchor.
func callNaively(ctx context.Context, d dialectCase, blobs blob.Store, digest artel.Digest, to string) error {
	f, err := blobs.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	body, err := json.Marshal(d.naive(base64.StdEncoding.EncodeToString(data)))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to+d.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range d.header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return discard(resp, http.StatusOK)
}

// serveFake is a model of every dialect.
func serveFake(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	mux.Handle("/v1/", fake.OpenAI(fake.Options{}))
	mux.Handle("/v1/messages", fake.Anthropic(fake.Options{}))
	mux.Handle("/v1beta/", fake.Gemini(fake.Options{}))
	return closers{}
}

// serveSink is a model of every dialect that discards its input.
func serveSink(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	for _, d := range dialectCases() {
		path, _, _ := strings.Cut(d.base+d.path, "?")
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 256<<10)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, d.stream)
		})
	}
	return closers{}
}
