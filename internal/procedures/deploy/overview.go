package deploy

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/system/change"

	"github.com/aymanbagabas/go-udiff"
)

// Overview describes the deployments of a machine to a person.
type Overview struct {
	Project  string
	Roots    []change.RootHealth
	Plan     *change.Plan
	Drift    []DriftDiff
	Warnings []string
}

// DriftDiff is a file that is not as it was deployed, and how.
type DriftDiff struct {
	change.Drift
	Unified *string // from the deployed version to the present one; nil for files that are not text or too large
}

// Look says what would change, what has drifted, and how.
func (s *Service) Look(ctx context.Context) (o Overview, err error) {
	o.Project = s.Project()
	doctor, warnings, err := s.Doctor(ctx, Request{})
	if err != nil {
		return o, faultOf(err)
	}
	o.Roots, o.Warnings = doctor.Roots, warnings
	if o.Plan, err = s.fullPlan(ctx, Request{}); err != nil {
		return o, faultOf(err)
	}
	_, list, warnings, err := s.Status(ctx, Request{})
	if err != nil {
		return o, faultOf(err)
	}
	o.Warnings = append(o.Warnings, warnings...)
	total := 0
	for _, item := range list {
		one := DriftDiff{Drift: item}
		before, after := deployed(s.engine.State(), item), current(o.Plan, item)
		if notDiffed(before, after, total) == "" {
			text := driftText(item, before, after)
			one.Unified, total = &text, total+len(text)
		}
		o.Drift = append(o.Drift, one)
	}
	return o, nil
}

// driftText returns a difference with its header, as a file of a larger one.
func driftText(item change.Drift, before, after []byte) string {
	from, to := "a"+item.PathPosix, "b"+item.PathPosix
	if item.Expected == nil {
		from = "/dev/null"
	}
	if item.Actual == nil {
		to = "/dev/null"
	}
	return fmt.Sprintf("diff --git a%s b%s\n", item.PathPosix, item.PathPosix) +
		udiff.Unified(from, to, string(before), string(after))
}

// deployed returns the content that a drifted file had; nil if it is not kept.
func deployed(s change.State, item change.Drift) []byte {
	if item.Expected == nil {
		return nil
	}
	content, err := s.Kept((*item.Expected)[len("sha256:"):])
	if err != nil {
		return nil
	}
	return content
}

// current returns the content that a drifted file has; nil if it cannot be read.
func current(p *change.Plan, item change.Drift) []byte {
	if item.Actual == nil {
		return nil
	}
	content, err := p.Read(item.Path)
	if err != nil {
		return nil
	}
	return content
}
