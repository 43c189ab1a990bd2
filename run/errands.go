// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Errands are small model calls beside those of agents. None of them keeps a
// run waiting for long, or fails it.
type Errands struct {
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

// errandTime is how long an errand may take.
const errandTime = 30 * time.Second

// errand asks a service one thing, and returns its answer and what that took.
func (k *Config) errand(ctx context.Context, s model.Service, instruction, text string) (said string, usage artel.Usage, err error) {
	ctx, stop := context.WithTimeout(ctx, errandTime)
	defer stop()
	request := &model.Request{Service: s, Messages: []model.Message{
		{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: instruction}}},
		{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}}},
	}}
	said, end, err := k.Caller.CallText(ctx, request)
	if err != nil {
		return "", usage, err
	}
	usage = end.Usage
	usage.Calls, usage.Cost = 1, s.Cost(usage)
	return strings.TrimSpace(said), usage, nil
}
