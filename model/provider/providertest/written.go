// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"encoding/base64"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// written: a request that is only written equals the one that is sent.
func written(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("nice"))
	m := s.media("image/png", artel.KindImage, "a.png", picture(1))
	r := s.request(
		say(artel.RoleSystem, artel.Text{Text: "Be brief."}),
		say(artel.RoleUser, artel.Text{Text: "look"}, m),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "seen"}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	)
	w, ok := s.provider.(model.Writer)
	c.Want(ok, "the provider is no model.Writer")
	body, err := w.Write(r)
	c.Must("Write", err)
	if n := len(s.requests()); n != 0 {
		c.Stopf("%d requests were sent by writing one", n)
	}
	s.ask(r)
	sent := s.requests()
	c.Want(len(sent) == 1, "%d requests were sent, want one", len(sent))
	whole := bytes.ReplaceAll(body.Redacted(), []byte(artel.BlobRef(m.Ref.Digest).String()), []byte(base64.StdEncoding.EncodeToString(picture(1))))
	if !bytes.Equal(whole, sent[0]) || body.Len() != int64(len(sent[0])) {
		c.Stopf("what was written is not what was sent: %d bytes of %d, %.300q", body.Len(), len(sent[0]), body.Redacted())
	}
}
