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
	"path/filepath"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/fake"
	"github.com/artelhq/artel/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider/openai"
)

const imageAbout = "A JPEG of the folder of blobs goes through the OpenAI provider and the caller to a model in another process, on this machine. " +
	"The sink is a model that reads the request and looks at nothing; the fake is the real fake of package fake, which checks, decodes and hashes, and so has most of the work. " +
	"Memory is that of the calling process above idle, in its first call. " +
	"The anchor reads the file, makes a data URL of it, marshals the request with encoding/json and posts it."

// aModel is what services and naive requests ask for.
const aModel = "fake-1"

func measureImage(ctx context.Context, l *lab) (results []result, err error) {
	models := map[string]*process{}
	var running processes
	defer func() { running.stop(&err) }()
	for _, name := range []string{"sink", "fake"} {
		p, err := startRole(ctx, name)
		if err != nil {
			return nil, err
		}
		running = append(running, p)
		models[name] = p
	}
	var memory, times []result
	for _, size := range []int64{5e6, 20e6, 50e6} {
		for _, to := range []string{"sink", "fake"} {
			m, t, err := sendImage(ctx, l, size, models[to].url)
			if err != nil {
				return nil, fmt.Errorf("%d bytes to the %s: %w", size, to, err)
			}
			t.work = "time of a call to the " + to
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
	return append(memory, times...), nil
}

// sendImage measures calls of a process of their own for each way.
func sendImage(ctx context.Context, l *lab, size int64, to string) (memory, took result, err error) {
	dir, err := l.folder()
	if err != nil {
		return memory, took, err
	}
	var running processes
	defer func() { running.stop(&err) }()
	var above []int64
	var samples []sample
	for _, how := range []string{"artel", "naive"} {
		p, err := startRole(ctx, "caller", "--data", filepath.Join(dir, how))
		if err != nil {
			return memory, took, err
		}
		running = append(running, p)
		if _, err := p.tell(ctx, fmt.Sprintf("/image?size=%d", size)); err != nil {
			return memory, took, err
		}
		call := fmt.Sprintf("/call?how=%s&to=%s", how, url.QueryEscape(to))
		time.Sleep(100 * time.Millisecond)
		rise, err := p.aboveIdle(func() error { _, err := p.tell(ctx, call); return err })
		if err != nil {
			return memory, took, err
		}
		above = append(above, rise)
		samples = append(samples, func() (float64, error) {
			text, err := p.tell(ctx, call)
			if err != nil {
				return 0, err
			}
			return strconv.ParseFloat(text, 64)
		})
	}
	m, err := interleave(l.rounds(5), samples...)
	if err != nil {
		return memory, took, err
	}
	text := bytesOf(size)
	memory = result{work: "memory above idle", size: text, unit: megabytes(), artel: float64(above[0]), anchor: float64(above[1])}
	took = result{size: text, unit: millis(), artel: m[0], anchor: m[1]}
	return memory, took, nil
}

// callModels is the calling process: POST /image makes the image, POST /call
// sends it and answers with the seconds that took.
func callModels(_ context.Context, mux *http.ServeMux, dir string) (io.Closer, error) {
	blobs, err := blob.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	client := fetch.NewClient(fetch.Options{AllowPrivate: true})
	caller := model.NewCaller(map[model.Dialect]model.Provider{
		model.OpenAI: openai.New(openai.Options{Client: client, Blobs: blobs}),
	}, model.CallerOptions{})
	var image blob.Info // set once, before the calls
	handle(mux, "POST /image", func(r *http.Request) (string, error) {
		size, err := number(r, "size")
		if err == nil {
			image, err = blobs.Put(r.Context(), jpeg(size), 0)
		}
		return "", err
	})
	handle(mux, "POST /call", func(r *http.Request) (string, error) {
		began := time.Now()
		var err error
		to := r.URL.Query().Get("to") + "/v1"
		if r.URL.Query().Get("how") == "naive" {
			err = callNaively(r.Context(), blobs, image.Digest, to)
		} else {
			err = call(r.Context(), caller, image, to)
		}
		return strconv.FormatFloat(time.Since(began).Seconds(), 'g', -1, 64), err
	})
	return blobs, nil
}

func call(ctx context.Context, caller *model.Caller, image blob.Info, to string) error {
	request := &model.Request{
		Service: model.Service{ID: "bench", Dialect: model.OpenAI, BaseURL: to, Model: aModel, APIKey: "any", Capabilities: seeing()},
		Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{
			artel.Text{Text: "What is in the picture?"},
			artel.Media{Ref: artel.Ref{Digest: image.Digest}, MediaType: "image/jpeg", Kind: artel.KindImage, Filename: "picture.jpg", Size: image.Size},
		}}},
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

// seeing are the capabilities of a model that takes images.
func seeing() model.Capabilities {
	c := model.TextOnly()
	c.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromOperator}
	return c
}

// callNaively is the anchor.
func callNaively(ctx context.Context, blobs blob.Store, d artel.Digest, to string) error {
	f, err := blobs.Open(ctx, d)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"model": aModel, "stream": true,
		"messages": []any{map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": "What is in the picture?"},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(data)}},
		}}},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return discard(resp, http.StatusOK)
}

func serveFake(_ context.Context, mux *http.ServeMux, _ string) (io.Closer, error) {
	mux.Handle("/v1/", fake.OpenAI(fake.Options{}))
	return closers{}, nil
}

func serveSink(_ context.Context, mux *http.ServeMux, _ string) (io.Closer, error) {
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 256<<10)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"fake-1","choices":[{"index":0,"delta":{"role":"assistant","content":"A cat."},"finish_reason":null}]}

data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"fake-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`)
	})
	return closers{}, nil
}
