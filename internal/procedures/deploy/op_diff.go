package deploy

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// maxDiffed bounds the files that are compared line by line, in bytes; and all differences of an answer together.
const (
	maxDiffed = 100 << 10
	maxDiffs  = 16 << 20
)

// FileDiff is the change of a file.
type FileDiff struct {
	Target     change.TargetName `json:"target"`
	Root       string            `json:"root"`
	Path       string            `json:"path"`
	Op         change.Op         `json:"op"`
	BeforeHash *string           `json:"before_hash" doc:"sha256:HEX"`
	AfterHash  *string           `json:"after_hash"`
	Unified    *string           `json:"unified" doc:"Unified diff; null for files that are no text or too large"`
}

// DiffData is a plan with what changes in each file.
type DiffData struct {
	Profile string              `json:"profile"`
	Targets []change.TargetName `json:"targets"`
	Changes []change.Change     `json:"changes"`
	Summary change.Summary      `json:"summary"`
	Files   []FileDiff          `json:"files"`
}

func (s set) diff() operation.Operation {
	o := named(ToolDiff, "Show what a deployment would change", "Show the lines that a deployment would change",
		"The same as plan, with a unified diff for each file in files[].unified. Changes nothing.")
	way := operation.Way[PlanRequest]{Check: PlanRequest.check, Timeout: readTimeout}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in PlanRequest) (out Envelope[DiffData], err error) {
			service := s.service()
			p, err := s.planned(ctx, call, service, in)
			if err != nil {
				return out, faultOf(err)
			}
			files, warnings, err := Diff(p)
			if err != nil {
				return out, faultOf(err)
			}
			data := dataOf(in.profile(), p)
			return enveloped(ToolDiff, service.version, DiffData{data.Profile, data.Targets, data.Changes, data.Summary, files},
				append(p.Warnings, warnings...)), nil
		})
}

// Diff shows what changes in each file, in the plan's order. A warning names each that is not shown.
func Diff(p *change.Plan) (files []FileDiff, warnings []string, err error) {
	files = []FileDiff{}
	total := 0
	for _, c := range p.Changes {
		one := FileDiff{Target: c.Target, Path: c.Path, Root: p.Root(c), Op: c.Op, BeforeHash: prefixed(c.Before),
			AfterHash: prefixed(c.After)}
		var before, after []byte
		if c.Before != nil {
			if before, err = p.Read(c.Path); err != nil {
				return nil, nil, err
			}
		}
		if c.After != nil {
			if after, err = c.Content().Bytes(); err != nil {
				return nil, nil, err
			}
		}
		switch why := notDiffed(before, after, total); why {
		case "":
			text := unified(c, before, after)
			total += len(text)
			one.Unified = &text
		default:
			warnings = append(warnings, fmt.Sprintf("%s is not shown: %s", c.PathPosix, why))
		}
		files = append(files, one)
	}
	return files, warnings, nil
}

func unified(c change.Change, before, after []byte) string {
	from, to := "a"+c.PathPosix, "b"+c.PathPosix
	if c.Before == nil {
		from = "/dev/null"
	}
	if c.After == nil {
		to = "/dev/null"
	}
	return udiff.Unified(from, to, string(before), string(after))
}

func notDiffed(before, after []byte, total int) string {
	switch {
	case total > maxDiffs:
		return fmt.Sprintf("the differences before it have more than %d MiB", maxDiffs>>20)
	case len(before) > maxDiffed || len(after) > maxDiffed:
		return fmt.Sprintf("it has more than %d KiB", maxDiffed>>10)
	case !isText(before) || !isText(after):
		return "it is no text"
	}
	return ""
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

func prefixed(hash *string) *string {
	if hash == nil {
		return nil
	}
	text := "sha256:" + *hash
	return &text
}
