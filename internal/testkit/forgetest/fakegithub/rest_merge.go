package fakegithub

import (
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func mergeRoutes() map[string]handler {
	return map[string]handler{
		"PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge": withPull("pull_number", putMerge),
	}
}

// putMerge merges by a commit with two parents, which is GitHub's default.
func putMerge(p *place, a *exchange, pr *memhost.PR) {
	var in struct {
		SHA     string
		Title   string `json:"commit_title"`
		Message string `json:"commit_message"`
		Method  string `json:"merge_method"`
	}
	if !a.decode(&in) || !p.rights().mayWrite(a, "contents", "write") {
		return
	}
	if in.Method != "" && in.Method != "merge" {
		p.s.t.Errorf("the fake GitHub cannot merge by %s", in.Method)
	}
	base := p.tip(pr.Base)
	files, ok := p.repo.Merge(base, pr.HeadCommit)
	switch {
	case pr.State != gitprovider.StateOpen || !ok:
		a.fail(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case p.pull(pr).draft:
		a.fail(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case p.rules().needsReview(pr) && p.rules().decision(pr) != "APPROVED":
		a.fail(http.StatusMethodNotAllowed, "At least 1 approving review is required by reviewers with write access.")
	case in.SHA != "" && in.SHA != pr.HeadCommit:
		a.fail(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	default:
		if in.Title == "" {
			owner, branch := p.headOf(pr)
			in.Title = fmt.Sprintf("Merge pull request #%d from %s/%s", pr.Number, owner, branch)
		}
		if in.Message == "" {
			in.Message = pr.Title
		}
		id := p.repo.Add(&memhost.Commit{
			Parents: []string{base, pr.HeadCommit}, Files: files, Message: in.Title + "\n\n" + in.Message,
		})
		p.details[id] = p.byGitHub()
		p.repo.Branches[pr.Base] = id
		p.changed()
		a.reply(http.StatusOK, object{"sha": id, "merged": true, "message": "Pull Request successfully merged"})
	}
}

// byGitHub returns the details of a commit that GitHub makes now for the owner of the token.
func (p *place) byGitHub() commitDetails {
	at := p.s.host.Now()
	return commitDetails{
		author:    signature{viewer, viewer + "@users.noreply.github.example", at},
		committer: signature{signer, "noreply@github.example", at},
	}
}
