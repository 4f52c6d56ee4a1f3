package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
)

// tierProblems says which entries of the policy's tools.tiers do nothing. Scripts are looked for only if a name is left
// that nothing else has.
func (a *App) tierProblems(ctx context.Context) (out []string) {
	rules := a.Wire(Needs{}).Rules.Now().Policy
	if len(rules.Agents.ToolTiers) == 0 {
		return nil
	}
	var unknown []string
	for _, t := range rules.Agents.ToolTiers {
		switch set := a.toolsetOf(ctx, t.Tool); set {
		case "":
			unknown = append(unknown, t.Tool)
		case "pr":
			out = append(out, fmt.Sprintf("tools.tiers in %s names %s, whose tiers are set under tiers; it does nothing there",
				rules.Source, t.Tool))
		}
	}
	if len(unknown) > 0 {
		out = append(out, fmt.Sprintf("tools.tiers in %s names tools that no enabled toolset has: %s", rules.Source,
			strings.Join(unknown, ", ")))
	}
	return out
}

// toolsetOf returns the toolset of a tool, or "". Tools that are found while the program runs count where their toolset
// is enabled.
func (a *App) toolsetOf(ctx context.Context, tool string) string {
	named := func(o operation.Operation) bool { return o.Name == tool }
	for _, set := range a.Toolsets() {
		if slices.ContainsFunc(set.Operations, func(o operation.Operation) bool { return named(o) && o.Tool.Title != "" }) ||
			set.Found != nil && a.enabled(set.Name) && slices.ContainsFunc(set.Found(ctx), named) {
			return set.Name
		}
	}
	return ""
}
