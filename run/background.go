// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// BackgroundTasks are small model calls beside those of agents. They never fail a
// run.
type BackgroundTasks struct {
	// Titles is the service that gives conversations their titles, after the
	// first answer; [OwnService] is the one that has answered. "": the first
	// words of the first message stay the title.
	Titles artel.ServiceID
	// Selector is the service that picks one for a run whose service is
	// [model.AutoService], where several can take what the message holds. "": the first
	// of them is taken.
	Selector artel.ServiceID
}

const (
	// OwnService stands for the service of the run.
	OwnService artel.ServiceID = "own"
)

// backgroundTimeout is the limit of one task.
const backgroundTimeout = 30 * time.Second

// ask makes a call with an instruction and a text, and returns the answer and its
// usage, also that of an answer that broke off.
func (k *Config) ask(ctx context.Context, s model.Service, instruction, text string) (said string, usage artel.Usage, err error) {
	ctx, stop := context.WithTimeout(ctx, backgroundTimeout)
	defer stop()
	request := &model.Request{Service: s, Messages: []model.Message{
		{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: instruction}}},
		{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}}},
	}}
	answer, err := k.Caller.CallText(ctx, request)
	if answer.Started {
		usage = k.Engine.Usage(request, answer.End.Usage, artel.Parts{artel.Text{Text: answer.Text}}, 0)
	}
	return strings.TrimSpace(answer.Text), usage, err
}
