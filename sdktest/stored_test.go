// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// TestStoredConversation: one conversation moves between OpenAI's SDK in its default mode, services
// of every dialect, the API of the page and Anthropic's SDK with a header, and each knows what came
// before.
func TestStoredConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	api := openOpenAI(w, 0)
	conversation, err := api.Conversations.New(ctx, conversations.ConversationNewParams{})
	if err != nil {
		t.Fatal(err)
	}
	said := []string{}
	knows := func(text string) {
		t.Helper()
		for _, s := range said {
			if !strings.Contains(text, s) {
				t.Fatalf("after %d turns, %q is not known:\n%s", len(said), s, text)
			}
		}
	}
	say := func() string {
		said = append(said, fmt.Sprintf("fact %d of mine", len(said)))
		return said[len(said)-1]
	}
	input := func(text string) responses.ResponseNewParamsInputUnion {
		return responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}
	}
	inConversation := responses.ResponseNewParamsConversationUnion{OfString: openai.String(conversation.ID)}
	previous := ""
	for _, u := range upstreams {
		// By its conversation, streamed; the next one by the id of the response.
		stream := api.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: u.id, Input: input(say()), Conversation: inConversation})
		text := ""
		for stream.Next() {
			switch e := stream.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				text += e.Delta
			case responses.ResponseCompletedEvent:
				previous = e.Response.ID
				if e.Response.Conversation.ID != conversation.ID || e.Response.OutputText() != text {
					t.Errorf("%s: the response is in the conversation %q and says %q", u.id, e.Response.Conversation.ID, e.Response.OutputText())
				}
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(u.id, err)
		}
		knows(text)
		r, err := api.Responses.New(ctx, responses.ResponseNewParams{Model: u.id, Input: input(say()), PreviousResponseID: openai.String(previous)})
		if err != nil {
			t.Fatal(u.id, err)
		}
		knows(r.OutputText())
	}
	// On the page, with an agent that has tools.
	id := "cnv_" + strings.TrimPrefix(conversation.ID, "conv_")
	body, _ := json.Marshal(map[string]any{"text": say(), "service": "chat"})
	resp, err := http.Post(w.url+"/api/v1/conversations/"+id+"/messages", "application/json", bytes.NewReader(body))
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	// In another dialect, by its header; it waits for the answer on the page.
	claude := anthropic.NewClient(anthropicoption.WithBaseURL(w.bases["Anthropic"]), anthropicoption.WithAPIKey("sk-anything"), anthropicoption.WithMaxRetries(0), anthropicoption.WithHeader("X-Artel-Conversation", id))
	message, err := claude.Messages.New(ctx, anthropic.MessageNewParams{Model: "gemini3", MaxTokens: 4000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(say()))}})
	if err != nil {
		t.Fatal(err)
	}
	knows(message.Content[0].Text)
	// And back, in the background.
	r, err := api.Responses.New(ctx, responses.ResponseNewParams{Model: "anthropic", Input: input(say()), Conversation: inConversation, Background: openai.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	for r.Status == responses.ResponseStatusQueued || r.Status == responses.ResponseStatusInProgress {
		if r, err = api.Responses.Get(ctx, r.ID, responses.ResponseGetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	knows(r.OutputText())
	items := api.Responses.InputItems.ListAutoPaging(ctx, r.ID, responses.InputItemListParams{})
	if !items.Next() || !strings.Contains(items.Current().RawJSON(), said[len(said)-1]) || items.Next() {
		t.Errorf("the items of the input are %s, %v", items.Current().RawJSON(), items.Err())
	}
	n := 0
	all := api.Conversations.Items.ListAutoPaging(ctx, conversation.ID, conversations.ItemListParams{Limit: openai.Int(7), Order: conversations.ItemListParamsOrderAsc})
	for all.Next() {
		n++
	}
	if all.Err() != nil || n != 2*len(said) {
		t.Errorf("the conversation has %d items, want %d: %v", n, 2*len(said), all.Err())
	}
	if err := api.Responses.Delete(ctx, r.ID); err != nil {
		t.Error(err)
	}
	if _, err := api.Responses.New(ctx, responses.ResponseNewParams{Model: "chat", Input: input("x"), PreviousResponseID: param.NewOpt(r.ID)}, option.WithMaxRetries(0)); statusOf(err) != http.StatusBadRequest {
		t.Errorf("after its deletion: %v", err)
	}
}
