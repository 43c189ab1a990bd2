// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// written: a request that is only written equals the one that is sent.
func written(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("nice"), end(model.StopEnd))))
	defer s.close()
	m, err := s.media(ctx, "image/png", artel.KindImage, "a.png", picture(1))
	if err != nil {
		return err
	}
	r := s.request(
		say(artel.RoleSystem, artel.Text{Text: "Be brief."}),
		say(artel.RoleUser, artel.Text{Text: "look"}, m),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "seen"}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	)
	w, ok := s.provider.(model.Writer)
	if !ok {
		return errors.New("the provider is no model.Writer")
	}
	body, err := w.Write(r)
	if err != nil {
		return err
	}
	if n := len(s.requests()); n != 0 {
		return fmt.Errorf("%d requests were sent by writing one", n)
	}
	if _, err := s.ask(ctx, r); err != nil {
		return err
	}
	sent := s.requests()
	if len(sent) != 1 {
		return fmt.Errorf("%d requests were sent, want one", len(sent))
	}
	whole := bytes.ReplaceAll(body.Redacted(), []byte(artel.BlobRef(m.Ref.Digest).String()), []byte(base64.StdEncoding.EncodeToString(picture(1))))
	if !bytes.Equal(whole, sent[0]) || body.Len() != int64(len(sent[0])) {
		return fmt.Errorf("what was written is not what was sent: %d bytes of %d, %.300q", body.Len(), len(sent[0]), body.Redacted())
	}
	return nil
}
