//go:build e2e && linux

package e2e

import (
	"slices"
	"strings"
	"testing"
)

func TestClaude(t *testing.T) {
	t.Run("loads our definitions by tool search", claudeLoadsDefinitions)
	t.Run("opens, reuses, lists and reads a pull request", claudeProposes)
	t.Run("corrects a proposal that was refused for its scope", claudeCorrects)
	t.Run("gets a preview in a dry run", claudePreviews)
}

func claudeLoadsDefinitions(t *testing.T) {
	c := agent{world: newWorld(t, "2")}.converse(t, scripted())
	c.connected(t)
	create := c.offered(t, "create_pr")
	schema := decode[struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
		Additional *bool          `json:"additionalProperties"`
	}](t, string(create.InputSchema))
	required := []string{"repo_owner", "repo_name", "title", "body", "files"}
	if !slices.Equal(schema.Required, required) || schema.Additional == nil || *schema.Additional {
		t.Errorf("the model gets another input schema than ours: %s", create.InputSchema)
	}
	if _, found := schema.Properties["tier"]; found || create.Description == "" {
		t.Errorf("the definition has a tier or no description: %+v", create)
	}
	c.offered(t, "get_pr_status")
	c.offered(t, "list_prs")
	if !strings.Contains(c.seen.everything(),
		"This server has tier 2: at most 3 files in one pull request. Paths: checks/*.md") {
		t.Error("the server's instructions did not reach the model")
	}
}

func claudeProposes(t *testing.T) {
	w := newWorld(t, "2")
	agent{world: w}.proposesOnce(t)
	w.assertProposed(t, quieterDiskBranch, quieterDisk())
}

// proposesOnce has the model propose twice what becomes one pull request, and look at it.
func (a agent) proposesOnce(t *testing.T) {
	t.Helper()
	p := quieterDisk()
	c := a.converse(t, scripted(
		use("create_pr", p), use("create_pr", p), use("list_prs", ofRepository()), use("get_pr_status", ofFirstPR()),
	))
	c.connected(t)
	assertOpened(t, c.success(t, 0), p)
	assertReused(t, c.success(t, 1))
	assertListed(t, c.success(t, 2), p)
	assertOpen(t, c.success(t, 3), p)
}

// The model drops the files that the refusal names. Of a result with isError it sees the text and not the structured
// content (Claude Code 2.1.329), so the text must say all of it.
func claudeCorrects(t *testing.T) {
	w, wrong := newWorld(t, "3"), outOfScope()
	c := agent{world: w}.converse(t, func(results []seenResult) reply {
		switch {
		case len(results) == 0:
			return use("create_pr", wrong)
		case len(results) == 1 && results[0].isError:
			corrected := wrong
			corrected.Files = slices.DeleteFunc(slices.Clone(wrong.Files), func(f fileChange) bool {
				return strings.Contains(results[0].text, f.Path)
			})
			return use("create_pr", corrected)
		}
		return say("done")
	})
	if len(c.results) != 2 || !strings.HasPrefix(c.results[0].text, "[scope_denied] ") {
		t.Fatalf("not a refusal and a correction: %+v", c.results)
	}
	assertOpened(t, c.success(t, 1), quieterDisk())
	w.assertProposed(t, quieterDiskBranch, quieterDisk())
}

func claudePreviews(t *testing.T) {
	w := newWorld(t, "2")
	w.vars["CLAUDEOPS_DRY_RUN"] = "true"
	c := agent{world: w}.converse(t, scripted(use("create_pr", quieterDisk())))
	preview := c.success(t, 0)
	if !preview.DryRun || !strings.Contains(preview.Preview.Diff, "+Warn at 85 %, alarm at <95 % & rising.") {
		t.Errorf("not a preview: %s", c.results[0].text)
	}
	w.assertUntouched(t)
}

func TestClaudeAtTierOneIsToldToEscalate(t *testing.T) {
	tests := []struct {
		name   string
		vars   func(vars map[string]string)
		config func(string) string
	}{
		{name: "when the tier is 1", vars: func(vars map[string]string) { vars["CLAUDEOPS_TIER"] = "1" }},
		{name: "when the tier is no number", vars: func(vars map[string]string) { vars["CLAUDEOPS_TIER"] = "highest" }},
		{name: "when the tier is unset", vars: func(vars map[string]string) { delete(vars, "CLAUDEOPS_TIER") }},
		{
			name: "when the server gets an unexpanded placeholder",
			vars: func(vars map[string]string) { delete(vars, "CLAUDEOPS_TIER") },
			config: func(c string) string {
				return replaceOnce(t, c, "${CLAUDEOPS_TIER:-1}", "${CLAUDEOPS_TIER}")
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "3")
			test.vars(w.vars)
			c := agent{world: w, config: test.config}.converse(t,
				scripted(use("create_pr", quieterDisk()), use("list_prs", ofRepository())))
			c.connected(t) // create_pr is listed all the same
			if len(c.results) == 0 || !c.results[0].isError || !strings.HasPrefix(c.results[0].text, "[tier_denied] ") {
				t.Fatalf("not a refusal for the tier: %+v", c.results)
			}
			if list := c.success(t, 1); list.PRs == nil || len(list.PRs) > 0 {
				t.Errorf("reading is open to every tier, but list_prs gave %s", c.results[1].text)
			}
			w.assertUntouched(t)
		})
	}
}
