package fakegithub

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// What GitHub takes at most of a pull request, in characters.
const (
	maxTitle = 256
	maxBodyC = 65_536
)

// newPull is a request to open a pull request.
type newPull struct {
	title, body, head, base string
	draft                   bool
}

// problem is an error of a request: a field and a code, or a sentence about it.
type problem struct{ field, code, message string }

// openPull opens a pull request, or says why not.
func (r *pullRules) openPull(req newPull) (*memhost.PR, []problem) {
	who, branch, named := strings.Cut(req.head, ":")
	if !named {
		who, branch = r.at.repo.Ref.Owner, req.head
	}
	head := branch
	if lower(who) != lower(r.at.repo.Ref.Owner) {
		head = memhost.ForkBranch(who, branch)
	}
	tip, base := r.at.repo.Branches[head], r.at.tip(req.base)
	var problems []problem
	add := func(bad bool, x problem) {
		if bad {
			problems = append(problems, x)
		}
	}
	add(strings.TrimSpace(req.title) == "", problem{field: "title", code: "missing_field"})
	add(utf8.RuneCountInString(req.title) > maxTitle,
		problem{field: "title", code: "custom",
			message: fmt.Sprintf("title is too long (maximum is %d characters)", maxTitle)})
	add(utf8.RuneCountInString(req.body) > maxBodyC,
		problem{field: "body", code: "custom", message: fmt.Sprintf("body is too long (maximum is %d characters)", maxBodyC)})
	add(tip == "", problem{field: "head", code: "invalid"})
	add(base == "", problem{field: "base", code: "invalid"})
	if len(problems) > 0 {
		return nil, problems
	}
	add(r.isOpen(head, req.base), problem{code: "custom",
		message: fmt.Sprintf("A pull request already exists for %s:%s.", who, branch)})
	add(r.at.repo.Contains(base, tip), problem{code: "custom",
		message: fmt.Sprintf("No commits between %s and %s", req.base, branch)})
	add(req.draft && r.at.set.NoDrafts, problem{code: "custom",
		message: "Draft pull requests are not supported in this repository."})
	if len(problems) > 0 {
		return nil, problems
	}
	pr := r.at.s.host.Open(r.at.repo, gitprovider.PullRequestSpec{
		Repo: r.at.repo.Ref, Base: req.base, Head: head, Title: req.title, Body: req.body,
	})
	r.at.pull(pr).draft = req.draft
	return pr, nil
}

func (r *pullRules) isOpen(head, base string) bool {
	for _, pr := range r.at.repo.PRs {
		if pr.State == gitprovider.StateOpen && pr.Branch == head && pr.Base == base {
			return true
		}
	}
	return false
}
