package definitions

import (
	"context"
	"errors"
	"strings"
)

// Selection says which definitions a person wants to see. The zero value is the first page of all.
type Selection struct {
	Kind   Kind   // "" for every kind
	Source Source // "" for every source
	Text   string // part of a name, a description or a tag, letter case aside
	Broken bool   // only those with problems
	Offset int
	Limit  int // default 100, at most 1000
}

// Listing is a page of definitions.
type Listing struct {
	Entries  []Summary
	Total    int // that were selected
	Problems Problems
}

// Select lists definitions for a person: agents before tools. Problems are files that could not be read, and registries
// that did not answer.
func (s *Service) Select(ctx context.Context, sel Selection) (Listing, error) {
	return timed(ctx, func(ctx context.Context) (Listing, error) { return s.selected(ctx, sel) })
}

// timed bounds what is done for a page like a call of a tool.
func timed[Out any](ctx context.Context, do func(ctx context.Context) (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := limited(ctx, func() (Out, error) { return do(ctx) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = faultOf(newError(NetworkError, "there was no answer within %s", callTimeout))
	}
	return out, err
}

func (s *Service) selected(ctx context.Context, sel Selection) (Listing, error) {
	v, err := s.open()
	if err != nil {
		return Listing{}, faultOf(err)
	}
	out := Listing{Problems: v.ignored()}
	for _, kind := range Kinds() {
		if sel.Kind != "" && sel.Kind != kind {
			continue
		}
		found, problems, err := v.catalog.List(ctx, kind, sel.Source)
		if err != nil {
			return Listing{}, faultOf(err)
		}
		for _, f := range found {
			if sel.selects(f) {
				out.Entries = append(out.Entries, f)
			}
		}
		out.Problems = append(out.Problems, problems...)
	}
	out.Total = len(out.Entries)
	limit := sel.Limit
	if limit <= 0 || limit > maxPage {
		limit = defaultPage
	}
	out.Entries = page(out.Entries, sel.Offset, limit)
	return out, nil
}

// maxPage bounds a page of definitions.
const maxPage = 1000

func (sel Selection) selects(f Summary) bool {
	if sel.Broken && f.Errors+f.Warnings == 0 {
		return false
	}
	text := strings.ToLower(sel.Text)
	return text == "" || strings.Contains(strings.ToLower(f.Name+"\n"+f.Description+"\n"+strings.Join(f.Tags, "\n")), text)
}

// Forked lists the forks of this machine for a person, and which registries did not say whether upstream has changed.
func (s *Service) Forked(ctx context.Context) ([]Fork, Problems, error) {
	var problems Problems
	forks, err := timed(ctx, func(ctx context.Context) ([]Fork, error) {
		v, err := s.open()
		if err != nil {
			return nil, faultOf(err)
		}
		forks, err := v.catalog.Forks(ctx, Kinds()...)
		problems = append(v.ignored(), failures(v.registries.troubles())...)
		return forks, faultOf(err)
	})
	if err != nil {
		return nil, nil, err
	}
	return forks, problems, nil
}

// ignored lists the settings of the configuration that are not used.
func (v *view) ignored() (out Problems) {
	for _, why := range v.config.Ignored {
		out = append(out, Problem{Message: why, Severity: SeverityWarning})
	}
	return out
}

// Detail is all that a person may want to know of one definition.
type Detail struct {
	*Found
	Problems     Problems // of the file, of what it refers to, and unknown fields
	Chain        []string // from the definition itself to the one that extends nothing
	ChainProblem string   // why what it extends cannot be merged in; "" if it can
	Fork         *Fork    // nil if it is not a fork
	Diff         string   // unified, from upstream to the fork
	DiffProblem  string   // why there is none
}

// Inspect reads one definition for a person. A reference without a range is resolved as everywhere.
func (s *Service) Inspect(ctx context.Context, kind Kind, ref Reference, source Source) (Detail, error) {
	return timed(ctx, func(ctx context.Context) (Detail, error) { return s.inspect(ctx, kind, ref, source) })
}

func (s *Service) inspect(ctx context.Context, kind Kind, ref Reference, source Source) (Detail, error) {
	v, err := s.open()
	if err != nil {
		return Detail{}, faultOf(err)
	}
	found, err := v.catalog.resolve(ctx, kind, ref, source)
	if err != nil {
		return Detail{}, faultOf(err)
	}
	out := Detail{Found: found, Problems: v.catalog.judged(ctx, found, true).Problems}
	merged, err := v.catalog.Merge(ctx, found)
	var broken *inheritanceError
	switch {
	case errors.As(err, &broken):
		out.Chain, out.ChainProblem = broken.Chain, broken.Why
	case err != nil:
		return Detail{}, faultOf(err)
	default:
		out.Chain = merged.Chain
	}
	origin, forked := originOf(found)
	if !forked {
		return out, nil
	}
	fork := v.catalog.forkOf(ctx, found, origin)
	out.Fork = &fork
	differences, err := v.catalog.Diff(ctx, fork)
	if err == nil {
		out.Diff, err = unified(fork, differences)
	}
	if err != nil {
		out.DiffProblem = messageOf(err)
	}
	return out, nil
}
