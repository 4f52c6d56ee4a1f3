//go:build e2e && linux

package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const diskCheck = "claudeops://demo/home-cluster/file/checks/disk.md"

// The story of one change, played by each of the real clients: its model reads the file, proposes, is reviewed on a
// line, reads what its branch has, revises with a reply, and sees the change merged.
func TestEachClientReadsProposesAnswersAReviewAndSeesItMerged(t *testing.T) {
	for name, converse := range map[string]func(t *testing.T, w *world, m model) []seenResult{
		"claude": func(t *testing.T, w *world, m model) []seenResult { return agent{world: w}.converse(t, m).results },
		"codex":  codex().tell,
		"gemini": gemini().tell,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "2")
			o := operator{w, w.home}
			w.mounts(t)
			converse(t, w, proposesWhatItRead(t))

			o.review(t, "request-changes", "--line", "checks/disk.md:3:Say at which figure it becomes urgent.")
			answered := converse(t, w, answersTheReview(t))
			if last := answered[len(answered)-1].text; !strings.Contains(last, `"revised":true`) {
				t.Errorf("the review was answered by %s", last)
			}
			said := run(t, program{path: claudeops(t), args: []string{"pr", "status", "1", "--repo", "demo/home-cluster"},
				dir: w.home, env: w.environment()})
			if !strings.Contains(said.stdout, "At 95 %, as the new line says.") {
				t.Errorf("the reply is not on the pull request: %s%s", said.stdout, said.stderr)
			}

			o.review(t, "approve")
			o.review(t, "merge")
			seen := converse(t, w, scripted(use("get_pr_status", ofFirstPR())))
			if !strings.Contains(seen[0].text, `"merged"`) {
				t.Errorf("the model was told %s", seen[0].text)
			}
			if got := w.git(t, "", "show", "main:checks/disk.md"); got != "# Disk\n\nWarn at 85 %, urgent at 95 %.\n" {
				t.Errorf("main has %q", got)
			}
		})
	}
}

// mounts makes the working copy from which the server knows the files of the repository: the Gemini CLI reads no
// resource that a server does not list.
func (w *world) mounts(t *testing.T) {
	t.Helper()
	w.git(t, "", "clone", "--quiet", w.repo, filepath.Join(w.vars["CLAUDEOPS_REPOS_DIR"], "demo", "home-cluster"))
}

// tell is one conversation in which no call is refused.
func (c client) tell(t *testing.T, w *world, m model) []seenResult {
	t.Helper()
	_, results, got := c.converse(t, w, m)
	if got.code != 0 || len(results) == 0 {
		t.Fatalf("%s: exit %d, %d results: %s%s", c.name, got.code, len(results), got.stdout, got.stderr)
	}
	return results
}

// proposesWhatItRead replaces a part of the text that it was shown, and names the version that it read.
func proposesWhatItRead(t *testing.T) model {
	version := regexp.MustCompile(`checks/disk.md on the base branch: base_sha ([0-9a-f]{40})`)
	return func(results []seenResult) reply {
		switch len(results) {
		case 0:
			return free("ReadMcpResourceTool", map[string]any{"server": "claudeops", "uri": diskCheck})
		case 1:
			return use("create_pr", at(t, version, results[0], edited(nil, "Warn at 90 %.", "Warn at 85 %.")))
		}
		return say("done")
	}
}

// answersTheReview finds the pull request that waits for an answer, reads its file and the comment on its line, and
// answers both with a commit and with words.
func answersTheReview(t *testing.T) model {
	version := regexp.MustCompile(`"base_sha":"([0-9a-f]{40})"`)
	comment := regexp.MustCompile(`"id":"([^"]+)"`)
	return func(results []seenResult) reply {
		switch len(results) {
		case 0:
			list := ofRepository()
			list["state_of_review"] = "changes_requested"
			return use("list_prs", list)
		case 1:
			status := ofFirstPR()
			status["include"] = []string{"files"}
			return use("get_pr_status", status)
		case 2:
			revision := at(t, version, results[1], edited(1, "Warn at 85 %.", "Warn at 85 %, urgent at 95 %."))
			id := comment.FindStringSubmatch(results[1].text)
			if id == nil {
				t.Errorf("the comment has no id: %s", results[1].text)
				return say("done")
			}
			revision["replies"] = []any{map[string]any{"comment": id[1], "text": "At 95 %, as the new line says."}}
			return use("create_pr", revision)
		}
		return say("done")
	}
}

// at has a proposal say which version of its file it was made from, as a result told it.
func at(t *testing.T, version *regexp.Regexp, told seenResult, proposal map[string]any) map[string]any {
	found := version.FindStringSubmatch(told.text)
	if found == nil {
		t.Errorf("no version is told: %s", told.text)
		return proposal
	}
	proposal["files"].([]any)[0].(map[string]any)["base_sha"] = found[1]
	return proposal
}
