package prflow

import (
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// checkKinds lets the validators of kinds of files judge what would be written. tooLarge are the violations so far: a
// file that is too large is not parsed.
func checkKinds(scope gitprovider.Scope, files []FileRequest, tooLarge []fault.Violation) []fault.Violation {
	var out []fault.Violation
	for _, f := range files {
		kind := scope.KindOf(f.Path)
		if kind == nil || f.Content == nil || slices.ContainsFunc(tooLarge,
			func(v fault.Violation) bool { return v.Path == f.Path || v.Path == "" }) {
			continue
		}
		for _, p := range kind.Validate(f.Path, *f.Content) {
			where := ""
			if p.Line > 0 {
				where = fmt.Sprintf(" at line %d, column %d", p.Line, p.Column)
			}
			out = append(out, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "kind:" + kind.Name,
				Message: fmt.Sprintf("%s is broken%s: %s", quote(f.Path), where, p.Message), Suggestion: p.Suggestion,
			})
		}
	}
	return out
}
