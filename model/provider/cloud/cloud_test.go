// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/cloud"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
)

// ask makes a call and returns the text of its answer.
func ask(t *testing.T, p model.Provider, s model.Service) (string, error) {
	t.Helper()
	s.ID, s.Capabilities = "cloud", model.TextOnly()
	r := &model.Request{Service: s, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hi"}}}}}
	text := ""
	for d, err := range p.Generate(t.Context(), r) {
		if err != nil {
			return text, err
		}
		if piece, ok := d.(model.TextDelta); ok {
			text += string(piece)
		}
	}
	return text, nil
}

// The events of an answer of the Messages API.
var answer = []string{
	`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`,
	`{"type":"message_stop"}`,
}

// writeFrame writes an event as Bedrock does.
func writeFrame(t *testing.T, w io.Writer, kind, name, payload string) {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(map[string]string{"event": ":event-type", "exception": ":exception-type"}[kind], eventstream.StringValue(name))
	if err := eventstream.NewEncoder().Encode(w, m); err != nil {
		t.Error(err)
	}
}

// signature computes a Signature Version 4 as the documentation of AWS IAM describes
// it ("Create a signed AWS API request"), for the headers that the request names.
func signature(r *http.Request, body []byte, secret string) (want, got string) {
	rest := strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	fields := map[string]string{}
	for f := range strings.SplitSeq(rest, ", ") {
		k, v, _ := strings.Cut(f, "=")
		fields[k] = v
	}
	_, scope, _ := strings.Cut(fields["Credential"], "/")
	var canonical strings.Builder
	// Each part of the path is encoded twice, for all services but S3.
	canonical.WriteString(r.Method + "\n")
	for _, c := range []byte(r.URL.EscapedPath()) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			canonical.WriteByte(c)
		} else {
			fmt.Fprintf(&canonical, "%%%02X", c)
		}
	}
	canonical.WriteString("\n" + r.URL.RawQuery + "\n")
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
		}
		canonical.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	sum := sha256.Sum256(body)
	canonical.WriteString("\n" + fields["SignedHeaders"] + "\n" + hex.EncodeToString(sum[:]))
	hashed := sha256.Sum256([]byte(canonical.String()))
	toSign := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + scope + "\n" + hex.EncodeToString(hashed[:])
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, toSign)), fields["Signature"]
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, text) // to memory
	return h.Sum(nil)
}

// TestBedrock: a request to Claude on Bedrock has the signature that AWS computes, and
// the body and the address of InvokeModel; its frames become the answer.
func TestBedrock(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-aws")
	t.Setenv("AWS_SESSION_TOKEN", "session-1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	var broken atomic.Bool
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("Content-Length", "") // set again below if it is signed
		if r.ContentLength > 0 {
			r.Header.Set("Content-Length", strings.TrimSpace(jsonNumber(r.ContentLength)))
		}
		if want, got := signature(r, body, "secret-of-aws"); want != got || !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/") ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/bedrock/aws4_request") || r.Header.Get("X-Amz-Security-Token") != "session-1" {
			t.Errorf("the signature is %s, want %s: %v", got, want, r.Header)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if want := "/model/anthropic.claude-test-v1%3A0/invoke-with-response-stream"; r.URL.EscapedPath() != want {
			t.Errorf("asked for %s, want %s", r.URL.EscapedPath(), want)
		}
		if gjson.GetBytes(body, "model").Exists() || gjson.GetBytes(body, "stream").Exists() || gjson.GetBytes(body, "anthropic_version").String() != "bedrock-2023-05-31" || gjson.GetBytes(body, "messages.#").Int() != 1 {
			t.Errorf("sent %s", body)
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		for i, e := range answer {
			if i == 3 && broken.Load() {
				writeFrame(t, w, "exception", "throttlingException", `{"message":"too many tokens"}`)
				return
			}
			writeFrame(t, w, "event", "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(e))+`","p":"abc"}`)
		}
	}))
	defer up.Close()
	p := anthropic.New(provider.Options{Cloud: cloud.New(up.Client())})
	s := model.Service{Dialect: model.Anthropic, BaseURL: up.URL, Model: "anthropic.claude-test-v1:0", Auth: model.Auth{Kind: model.AuthAWS, Region: "eu-west-1"}}
	if text, err := ask(t, p, s); err != nil || text != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	broken.Store(true)
	if _, err := ask(t, p, s); err == nil || !strings.Contains(err.Error(), "too many tokens") || artel.KindOf(err) != artel.Unavailable {
		t.Errorf("an exception in the stream: %v", err)
	}
}

func jsonNumber(n int64) string {
	b, _ := json.Marshal(n) // a number
	return string(b)
}

// TestFrames: a frame that is damaged or cut off ends the answer with an error.
func TestFrames(t *testing.T) {
	var whole bytes.Buffer
	writeFrame(t, &whole, "event", "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(answer[0]))+`"}`)
	damaged := bytes.Clone(whole.Bytes())
	damaged[len(damaged)/2] ^= 1
	for name, in := range map[string][]byte{"damaged": damaged, "cut off": whole.Bytes()[:whole.Len()-3]} {
		resp := &http.Response{Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, Body: io.NopCloser(bytes.NewReader(in))}
		cloud.New(nil).Adapt(resp)
		if out, err := io.ReadAll(resp.Body); err == nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestAzure: a request has the token that Entra ID gives for the configured client.
func TestAzure(t *testing.T) {
	asked := 0
	var up *httptest.Server
	up = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/tenant-1/v2.0/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]string{ // to a client that is there
				"token_endpoint": up.URL + "/tenant-1/oauth2/v2.0/token", "authorization_endpoint": up.URL + "/tenant-1/oauth2/v2.0/authorize", "issuer": up.URL + "/tenant-1/v2.0",
			})
		case "/tenant-1/oauth2/v2.0/token":
			asked++
			if r.FormValue("client_id") != "client-1" || r.FormValue("client_secret") != "secret-of-azure" || !slices.Contains(strings.Fields(r.FormValue("scope")), "https://cognitiveservices.azure.com/.default") {
				t.Errorf("the token was asked for with %v", r.Form)
			}
			_, _ = io.WriteString(w, `{"token_type":"Bearer","expires_in":3600,"access_token":"token-of-azure"}`)
		case "/openai/v1/chat/completions":
			if r.Header.Get("Authorization") != "Bearer token-of-azure" {
				t.Errorf("header %v", r.Header)
			}
			_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	defer up.Close()
	for name, value := range map[string]string{"AZURE_TENANT_ID": "tenant-1", "AZURE_CLIENT_ID": "client-1", "AZURE_CLIENT_SECRET": "secret-of-azure", "AZURE_AUTHORITY_HOST": up.URL + "/"} {
		t.Setenv(name, value)
	}
	p := openai.New(provider.Options{Client: up.Client(), Cloud: cloud.New(up.Client())})
	s := model.Service{Dialect: model.OpenAI, BaseURL: up.URL + "/openai/v1", Model: "gpt", Auth: model.Auth{Kind: model.AuthAzure}}
	for range 2 {
		if text, err := ask(t, p, s); err != nil || text != "hello" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if asked != 1 {
		t.Errorf("%d tokens were asked for", asked)
	}
}

// TestVertex: requests to Gemini and Claude on Vertex AI have the token that Google
// gives for the key of a service account, whose signature is checked.
func TestVertex(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const gemini3 = `{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP","index":0}]}`
	tokens := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/token" {
			tokens++
			checkAssertion(t, &key.PublicKey, string(body))
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"token-of-google","token_type":"Bearer","expires_in":3600}`)
			return
		}
		if r.Header.Get("Authorization") != "Bearer token-of-google" {
			t.Errorf("header %v", r.Header)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch r.URL.Path {
		case "/v1/projects/p/locations/l/publishers/google/models/gemini-3:streamGenerateContent":
			_, _ = io.WriteString(w, "data: "+gemini3+"\r\n\r\n")
		case "/v1/projects/p/locations/l/publishers/anthropic/models/claude-test@1:streamRawPredict":
			if gjson.GetBytes(body, "model").Exists() || gjson.GetBytes(body, "anthropic_version").String() != "vertex-2023-10-16" {
				t.Errorf("sent %s", body)
			}
			for _, e := range answer {
				_, _ = io.WriteString(w, "event: "+gjson.Get(e, "type").String()+"\ndata: "+e+"\n\n")
			}
		default:
			t.Errorf("asked for %s", r.URL)
		}
	}))
	defer up.Close()
	file := filepath.Join(t.TempDir(), "key.json")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key_id": "k1", "project_id": "p", "token_uri": up.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err == nil {
		err = os.WriteFile(file, account, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	o := provider.Options{Cloud: cloud.New(up.Client())}
	auth := model.Auth{Kind: model.AuthGoogle}
	base := up.URL + "/v1/projects/p/locations/l/publishers/"
	if text, err := ask(t, gemini.New(o), model.Service{Dialect: model.Gemini, BaseURL: base + "google", Model: "gemini-3", Auth: auth}); err != nil || text != "hello" {
		t.Errorf("Gemini: %q, %v", text, err)
	}
	if text, err := ask(t, anthropic.New(o), model.Service{Dialect: model.Anthropic, BaseURL: base + "anthropic", Model: "claude-test@1", Auth: auth}); err != nil || text != "hello" {
		t.Errorf("Claude: %q, %v", text, err)
	}
	if tokens != 1 {
		t.Errorf("%d tokens were asked for", tokens)
	}
}

// checkAssertion checks the assertion of RFC 7523 in a form.
func checkAssertion(t *testing.T, key *rsa.PublicKey, body string) {
	t.Helper()
	_, jwt, _ := strings.Cut(body, "assertion=")
	jwt, _, _ = strings.Cut(jwt, "&")
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		t.Errorf("no assertion in %s", body)
		return
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err == nil {
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig)
	}
	claims, err2 := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || err2 != nil || gjson.GetBytes(claims, "scope").String() != "https://www.googleapis.com/auth/cloud-platform" {
		t.Errorf("the assertion is wrong: %v, %v, %s", err, err2, claims)
	}
}

// TestWithoutCredentials: the error names the cloud, is final, and nothing is sent.
func TestWithoutCredentials(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request without credentials was sent") }))
	defer up.Close()
	s := model.Service{Dialect: model.Anthropic, BaseURL: up.URL, Model: "m", Auth: model.Auth{Kind: model.AuthAWS, Region: "x"}}
	if _, err := ask(t, anthropic.New(provider.Options{Cloud: cloud.New(up.Client())}), s); artel.KindOf(err) != artel.Denied || !strings.Contains(err.Error(), "no credentials of aws") {
		t.Error(err)
	}
	if _, err := ask(t, anthropic.New(provider.Options{}), s); artel.KindOf(err) != artel.Unsupported {
		t.Error(err)
	}
}

var _ provider.Cloud = (*cloud.Signer)(nil)
