// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
)

func assetResolver() Processor {
	return Processor{
		ID:          AssetResolver,
		Name:        "Asset resolver",
		Description: "Replaces refs by the digests of their bytes, for the codec of the model's API.",
		Priority:    PriorityAssetResolver,
		Icon:        "🔗",
		Core:        true, Required: true, Always: true,
		Process: resolve,
	}
}

// resolve turns every media ref into a blob ref. Media without a decision (a
// plugin added them, or transcription is off) are decided here. The limiter did
// not count them, which is logged.
func resolve(ctx context.Context, d *Draft) error {
	conf, ok := Value[attaching](d)
	if !ok {
		conf.InlineLimit = defaultInline
	}
	late := attacher{d: d, conf: conf, resolving: true}
	d.unchanged = true
	for i := range d.Messages {
		if !slices.ContainsFunc(d.Messages[i].Parts, carriesMedia) {
			continue
		}
		d.unchanged = false
		parts, err := late.message(ctx, &d.Messages[i])
		if err != nil {
			return err
		}
		if late.late > 0 {
			d.Messages[i].Parts = parts
		}
	}
	if late.late > 0 {
		d.Log(Warn, "attachments were decided after the token limiter", map[string]any{"count": late.late})
	}
	if err := d.withinBudget(); err != nil || d.unchanged {
		return err
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		if !slices.ContainsFunc(m.Parts, carriesMedia) {
			continue
		}
		before := d.counter.count(m)
		parts, err := d.pin(m.Parts)
		if err != nil {
			return err
		}
		m.Parts = parts
		if after := d.counter.count(m); after != before {
			return artel.Errorf(artel.Internal, "pipeline.Build", m.ID, "resolving refs changed %d tokens to %d", before, after)
		}
	}
	return nil
}

func (d *Draft) pin(ps artel.Parts) (artel.Parts, error) {
	out := slices.Clone(ps)
	for i, p := range out {
		switch p := p.(type) {
		case artel.Media:
			digest, decided := d.sentDigests[p.Ref] // "" in a preview of a file whose bytes are unknown
			if !decided {
				return nil, artel.Errorf(artel.Internal, "pipeline.Build", p.Ref.String(), "the part has no decision")
			}
			p.Ref.Digest = digest // the ref keeps its artifact, for the codec's labels
			out[i] = p
		case artel.ToolResult:
			inner, err := d.pin(p.Parts)
			if err != nil {
				return nil, err
			}
			p.Parts = inner
			out[i] = p
		}
	}
	return out, nil
}
