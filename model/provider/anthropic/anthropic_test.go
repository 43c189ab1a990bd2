// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func decode(t *testing.T, body string) *anthropic.Request {
	t.Helper()
	r, err := anthropic.Decode(t.Context(), strings.NewReader(body), provider.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProvider(t *testing.T) { providertest.Run(t, dialect(t)) }

// TestAnyHistory keeps what came from any service, and its order.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	providertest.Histories(t, dialect(t))
}

func dialect(t *testing.T) providertest.Dialect {
	return providertest.Dialect{
		Name: model.Anthropic,
		New: func(client *http.Client, blobs blob.Store) model.Provider {
			return anthropic.New(anthropic.Options{Client: client, Blobs: blobs})
		},
		Stream: func(w io.Writer, deltas iter.Seq2[model.Delta, error]) error {
			return anthropic.Answer{ID: "msg_1", Model: "kit-1"}.Stream(w, nil, deltas)
		},
		Failure: func(status int, message string) []byte {
			return anthropic.Refused(status, "%s", message).MarshalBody("req_1")
		},
		Validate: rules.ValidateJSON,
		Native: providertest.Native{
			Decode: func(body []byte) (*model.Request, error) {
				r, err := anthropic.Decode(t.Context(), bytes.NewReader(body), provider.DecodeOptions{})
				if err != nil {
					return nil, err
				}
				return r.Neutral(), nil
			},
			ToolTypes:    []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"},
			CallState:    json.RawMessage(`{"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}`),
			ThoughtState: json.RawMessage(`{"type":"thinking","signature":"EqQBCgIYAhIM+/="}`),
		},
	}
}

// served is a client of a server that plays bodies one after the other.
type served struct {
	*httptest.Server
	bodies []string
	asked  []string
	heads  []*http.Request
}

func serve(t *testing.T, mediaType string, bodies ...string) *served {
	t.Helper()
	s := &served{bodies: bodies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked = append(s.asked, string(body))
		s.heads = append(s.heads, r)
		if mediaType != "" {
			w.Header().Set("Content-Type", mediaType)
		}
		n := min(len(s.asked), len(s.bodies)) - 1
		_, _ = io.WriteString(w, s.bodies[n])
	}))
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		s.Close()
	})
	return s
}

func (s *served) service() model.Service {
	return model.Service{ID: "s", Dialect: model.Anthropic, BaseURL: s.URL + "/", Model: "m", APIKey: "sk-key-1"}
}

func user(text string) model.Message {
	return model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}}}
}

// told returns the answer on one line.
func (s *served) told(ctx context.Context) string {
	r := &model.Request{Service: s.service(), Messages: []model.Message{user("hi")}}
	return providertest.Line(anthropic.New(anthropic.Options{Client: s.Client()}).Generate(ctx, r))
}

// stream makes events, each from its JSON.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var head struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &head)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, e)
	}
	return b.String()
}

// The events that most streams have.
const (
	started = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1}}}`
	ping    = `{"type": "ping"}`
	stopped = `{"type":"message_stop"}`
)

func begin(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func delta(index int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
}

func over(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func ends(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":7,"output_tokens_details":{"thinking_tokens":4}}}`
}

// TestAnswers has what servers really send, right and wrong.
func TestAnswers(t *testing.T) {
	t.Parallel()
	text := stream(started, begin(0, `{"type":"text","text":""}`), ping, delta(0, `{"type":"text_delta","text":"Hi"}`), ping, delta(0, `{"type":"text_delta","text":"!"}`), over(0))
	for name, c := range map[string]struct{ body, want string }{
		"text":       {text + stream(ends("end_turn"), stopped), `"Hi" "!" end 33/7 cached=20 stored=3 thought=4`},
		"no stop":    {text + stream(ends("end_turn")), `"Hi" "!" !unavailable transient=true the stream broke off`},
		"no reason":  {text + stream(stopped), `"Hi" "!" !unavailable transient=true the stream broke off: it ended without a stop reason`},
		"overloaded": {text + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", `"Hi" "!" !unavailable transient=true Overloaded`},
		"refused":    {stream(started, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"I may not."}},"usage":{"output_tokens":1}}`, stopped), `"I may not." refusal 33/1 cached=20 stored=3 thought=0`},
		"cut":        {text + stream(begin(1, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), delta(1, `{"type":"input_json_delta","partial_json":"{\"a\""}`), over(1), ends("max_tokens"), stopped), `"Hi" "!" length 33/7 cached=20 stored=3 thought=4`},
		"window":     {text + stream(ends("model_context_window_exceeded"), stopped), `"Hi" "!" length 33/7 cached=20 stored=3 thought=4`},
		"tools": {
			stream(started, begin(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"thinking_delta","thinking":"Hm."}`), delta(0, `{"type":"signature_delta","signature":"c2ln"}`), over(0),
				begin(1, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`), over(1),
				begin(2, `{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}`), delta(2, `{"type":"input_json_delta","partial_json":""}`), delta(2, `{"type":"input_json_delta","partial_json":"{\"a\":"}`), delta(2, `{"type":"input_json_delta","partial_json":"1}"}`), over(2),
				begin(3, `{"type":"tool_use","id":"toolu_2","name":"g","input":{}}`), over(3),
				begin(4, `{"type":"tool_use","id":"toolu_3","name":"h","input":{}}`), delta(4, `{"type":"input_json_delta","partial_json":"{"}`), over(4),
				ends("tool_use"), stopped),
			`(Hm.) <{"type":"thinking","signature":"c2ln"}> <{"type":"redacted_thinking","data":"ZGF0YQ=="}> toolu_1:f{"a":1} toolu_2:g{} toolu_3:h"{" tools 33/7 cached=20 stored=3 thought=4`,
		},
		"of the service": {
			stream(started, begin(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`), over(0),
				begin(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"e"}]}`), over(1),
				begin(2, `{"type":"text","text":"It "}`), delta(2, `{"type":"citations_delta","citation":{"type":"x"}}`), delta(2, `{"type":"text_delta","text":"is."}`), over(2), ends("end_turn"), stopped),
			`<{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}> <{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"e"}]}> "It " "is." end 33/7 cached=20 stored=3 thought=4`,
		},
		"whole":             {`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"end_turn","usage":{"input_tokens":2,"output_tokens":3}}`, `(Hm.) <{"type":"thinking","signature":"s"}> "Hi" t:f{"a":1} tools 2/3`},
		"whole error":       {`{"type":"error","error":{"type":"invalid_request_error","message":"messages: no"}}`, `!invalid transient=false messages: no`},
		"without starts":    {stream(delta(0, `{"type":"text_delta","text":"Hi"}`), ends("stop_sequence"), stopped), `"Hi" end 0/7 cached=0 stored=0 thought=4`},
		"unknown events":    {text + stream(`{"type":"something_new","x":[1]}`, ends("end_turn"), stopped), `"Hi" "!" end 33/7 cached=20 stored=3 thought=4`},
		"unknown model":     {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: m\"}}\n\n", `!invalid transient=false model: m`},
		"nothing to say":    {stream(started, ends("end_turn"), stopped), `end 33/7 cached=20 stored=3 thought=4`},
		"a nameless call":   {stream(started, begin(0, `{"type":"tool_use","id":"x","input":{}}`), over(0)), `!unavailable transient=true the service sent a tool call without a name`},
		"a number block":    {stream(started, begin(0, `7`)), `!unavailable transient=true the answer has a block that cannot be read: json: cannot unmarshal number into Go value of type anthropic.block`},
		"input all at once": {stream(started, begin(0, `{"type":"tool_use","id":"x","name":"f","input":{"a":[1]}}`), over(0), ends("tool_use"), stopped), `x:f{"a":[1]} tools 33/7 cached=20 stored=3 thought=4`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := serve(t, "", c.body).told(t.Context()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// An answer that the service pauses is gone on with, with all that was said as
// it came.
func TestPauses(t *testing.T) {
	t.Parallel()
	first := stream(started, begin(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"thinking_delta","thinking":"Hm."}`), delta(0, `{"type":"signature_delta","signature":"c2ln"}`), over(0),
		begin(1, `{"type":"text","text":""}`), delta(1, `{"type":"text_delta","text":"I look. "}`), delta(1, `{"type":"citations_delta","citation":{"type":"x"}}`), over(1),
		begin(2, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), delta(2, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`), over(2), ends("pause_turn"), stopped)
	second := stream(started, begin(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"Found."}`), over(0), ends("end_turn"), stopped)
	s := serve(t, "", first, first, second)
	got := s.told(t.Context())
	if !strings.HasSuffix(got, `"Found." end 99/21 cached=60 stored=9 thought=12`) || strings.Count(got, "(Hm.)") != 2 {
		t.Errorf("got %s", got)
	}
	block := `{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"citations":[{"type":"x"}],"text":"I look. ","type":"text"},{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}`
	if len(s.asked) != 3 || !strings.Contains(s.asked[1], `,{"role":"assistant","content":[`+block+`]}],"stream":true}`) ||
		!strings.Contains(s.asked[2], `[`+block+`,`+block+`]}],"stream":true}`) {
		t.Errorf("asked %s", s.asked)
	}
	s = serve(t, "", first)
	if got := s.told(t.Context()); !strings.Contains(got, "!unavailable transient=false the service paused its answer more often") || len(s.asked) != 11 {
		t.Errorf("%d times: %s", len(s.asked), got)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"": "/v1/messages", "/": "/v1/messages", "/v1": "/v1/messages", "/v1/": "/v1/messages", "/claude": "/claude/v1/messages"} {
		s := serve(t, "", `{"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`)
		service := s.service()
		service.BaseURL = s.URL + base
		for _, err := range anthropic.New(anthropic.Options{Client: s.Client()}).Generate(t.Context(), &model.Request{Service: service, Messages: []model.Message{user("x")}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		h := s.heads[0]
		if h.URL.Path != want || h.Header.Get("X-Api-Key") != "sk-key-1" || h.Header.Get("Anthropic-Version") != "2023-06-01" || h.Header.Get("Authorization") != "" {
			t.Errorf("%s: %s %v", base, h.URL.Path, h.Header)
		}
	}
	s := serve(t, "", `{"input_tokens":7}`)
	body := provider.NewBody(nil)
	body.WriteString(`{"model":"x"}`)
	service := s.service()
	resp, err := anthropic.New(anthropic.Options{Client: s.Client()}).ForwardCount(t.Context(), &service, body, http.Header{
		"Anthropic-Beta": {"files-api-2025-04-14"}, "Anthropic-Version": {"2099-01-01"}, "X-Api-Key": {"theirs"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	h := s.heads[0]
	if h.URL.Path != "/v1/messages/count_tokens" || h.Header.Get("X-Api-Key") != "sk-key-1" ||
		h.Header.Get("Anthropic-Version") != "2099-01-01" || h.Header.Get("Anthropic-Beta") != "files-api-2025-04-14" || s.asked[0] != `{"model":"x"}` {
		t.Errorf("%s %v %s", h.URL.Path, h.Header, s.asked)
	}
}
