package github

import (
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// accessFields selects the fields of the base branch: the classic protection, as shown to everybody who may read, and
// whether anything has ever reported on its commit.
const accessFields = `name refUpdateRule { viewerCanPush requiredApprovingReviewCount requiresSignatures }
  target { ... on Commit { statusCheckRollup { state } } }`

// accessNode is a repository as GraphQL answers Examine's query.
type accessNode struct {
	IsArchived, IsFork, IsPrivate bool
	ViewerPermission              string // "" when GitHub does not say
	DefaultBranchRef, Base        *accessRef
	Labels                        *labelList
}

type accessRef struct {
	Name          string
	RefUpdateRule *struct {
		ViewerCanPush                bool
		RequiredApprovingReviewCount *int
		RequiresSignatures           bool
	}
	Target *struct{ StatusCheckRollup *struct{ State string } }
}

// branchRule is one rule of a ruleset that holds for a branch.
type branchRule struct {
	Type       string
	Parameters struct {
		Approvals         int `json:"required_approving_review_count"`
		Operator, Pattern string
		Negate            bool
	}
}

func (r branchRule) signed() bool { return r.Type == "required_signatures" }

// restricts says what a rule for a branch of ours forbids of a proposal, "" for nothing.
func (r branchRule) restricts(branch string) string {
	pattern := " (" + r.Parameters.Operator + " " + forge.Clean(r.Parameters.Pattern) + ")"
	switch r.Type {
	case "creation":
		return "their creation"
	case "update":
		return "their update"
	case "deletion":
		return "their removal"
	case "pull_request":
		return "changes without a pull request"
	case "required_status_checks", "workflows":
		return "commits that no check has passed"
	case "commit_message_pattern":
		return "the messages of commits" + pattern
	case "commit_author_email_pattern", "committer_email_pattern":
		return "the addresses of who commits" + pattern
	case "branch_name_pattern":
		if !r.fits(branch) {
			return "their names" + pattern
		}
	}
	return ""
}

// fits reports whether a name is one that a rule about names allows; one that cannot be read allows it.
func (r branchRule) fits(name string) bool {
	fits := true
	switch pattern := r.Parameters.Pattern; r.Parameters.Operator {
	case "starts_with":
		fits = strings.HasPrefix(name, pattern)
	case "ends_with":
		fits = strings.HasSuffix(name, pattern)
	case "contains":
		fits = strings.Contains(name, pattern)
	case "regex":
		expression, err := regexp.Compile(pattern)
		if err != nil {
			return true
		}
		fits = expression.MatchString(name)
	}
	return fits != r.Parameters.Negate
}

// signed reports whether the classic protection of the base asks for signatures.
func (n *accessNode) signed() bool {
	ref := n.ref()
	return ref != nil && ref.RefUpdateRule != nil && ref.RefUpdateRule.RequiresSignatures
}

func (n *accessNode) ref() *accessRef {
	if n.Base != nil {
		return n.Base
	}
	return n.DefaultBranchRef
}

// writable reports whether the token's user may write to the repository.
func (n *accessNode) writable() bool {
	switch n.ViewerPermission {
	case "ADMIN", "MAINTAIN", "WRITE":
		return !n.IsArchived
	}
	return false
}

// checksRun tells whether CI can be expected on a pull request: there is a workflow, or something has reported on the
// base.
func (n *accessNode) checksRun(workflows *bool) *bool {
	ref, yes := n.ref(), true
	if ref != nil && ref.Target != nil && ref.Target.StatusCheckRollup != nil {
		return &yes
	}
	return workflows
}

// permissions fills in what the token may do. rules are those of the rulesets; ruled is false if they could not be
// read.
func (n *accessNode) permissions(access *gitprovider.Access, who identity, rules []branchRule, ruled bool) {
	if n.ViewerPermission == "" && who.grant == nil {
		return
	}
	administers := n.ViewerPermission == "ADMIN"
	if n.writable() && !who.mayWrite(n.IsPrivate) {
		access.Lacks = []string{"repo"}
	}
	push := n.writable() && len(access.Lacks) == 0
	if who.grant != nil { // GitHub tells an app no permission of a viewer
		push = who.grant.CanPropose && !n.IsArchived
	}
	access.CanPush = &push
	ref := n.ref()
	if ref == nil {
		return
	}
	protected, direct, reviewed := ref.protection(rules)
	access.Reviewed = reviewed
	merge := push && (!reviewed || administers) && (direct || reviewed || ref.RefUpdateRule == nil)
	direct = push && direct
	if ruled || protected {
		access.BaseProtected = &protected
	}
	if ruled || !direct {
		access.CanPushToBase = &direct
	}
	if ruled || !merge {
		access.CanMerge = &merge
	}
}

// protection sums up the rules of a branch: whether there are any, whether it may be pushed to all the same, and
// whether a merge needs somebody's approval.
func (r *accessRef) protection(rules []branchRule) (protected, direct, reviewed bool) {
	direct = true
	if rule := r.RefUpdateRule; rule != nil {
		protected, direct = true, rule.ViewerCanPush
		reviewed = rule.RequiredApprovingReviewCount != nil && *rule.RequiredApprovingReviewCount > 0
	}
	for _, rule := range rules {
		protected = true
		switch rule.Type {
		case "pull_request":
			direct = false
			reviewed = reviewed || rule.Parameters.Approvals > 0
		case "update", "lock_branch", "merge_queue":
			direct = false
		}
	}
	return protected, direct, reviewed
}
