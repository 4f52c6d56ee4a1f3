package github

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// examiner finds out what the token may do in a repository. Protections are read as far as GitHub shows them to
// somebody who may not administer the repository: a rule that this token may bypass looks like one that binds it.
type examiner struct {
	api    *api
	labels labels
	app    *githubapp.App // nil for a token of a user
}

func (e examiner) examine(ctx context.Context, repo gitprovider.RepoRef, base string,
	labels []string) (gitprovider.Access,
	error) {
	var (
		who       identity
		node      *accessNode
		workflows *bool
		access    gitprovider.Access
	)
	err := forge.Together(
		forge.Into(&who, func() (identity, error) { return e.whoAmI(ctx, repo) }),
		func() (err error) {
			node, access.MissingLabels, err = e.readRepository(ctx, repo, base, labels)
			return err
		},
		forge.Into(&workflows, func() (*bool, error) { return e.hasWorkflows(ctx, repo) }),
	)
	if fault.CodeOf(err) == fault.NotFound && who.sees() == "public" {
		return gitprovider.Access{}, fault.Wrap(err, fault.NotFound,
			"the repository %s is not to be seen: it does not exist, or it is private, and "+
				"%s has no scope for private ones; check the name, or give the token the scope repo", repo, tokenVariable)
	}
	if err != nil {
		return gitprovider.Access{}, err
	}
	access.User, access.Scopes, access.Installation = who.login, who.scopes, who.installation()
	access.Base, access.Archived, access.Fork = base, node.IsArchived, node.IsFork
	if base == "" && node.DefaultBranchRef != nil {
		access.Base = node.DefaultBranchRef.Name
	}
	var rules, ours []branchRule
	ruled := false
	err = forge.Together(
		func() (err error) {
			rules, ruled, err = e.branchRules(ctx, repo, access.Base)
			return err
		},
		func() (err error) { // GitHub tells it of branches that do not exist, too
			ours, _, err = e.branchRules(ctx, repo, anyBranch)
			return err
		},
		func() (err error) {
			if node.writable() && who.scopes == nil {
				access.Lacks, err = e.lacking(ctx, repo)
			}
			return err
		},
	)
	if err != nil {
		return gitprovider.Access{}, err
	}
	access.ChecksRun = node.checksRun(workflows)
	for _, rule := range ours {
		if words := rule.restricts(anyBranch); words != "" && !slices.Contains(access.BranchRules, words) {
			access.BranchRules = append(access.BranchRules, words)
		}
	}
	if node.signed() || slices.ContainsFunc(append(ours, rules...), branchRule.signed) {
		access.Unsigned = "a commit that updates an executable file"
	}
	node.permissions(&access, who, rules, ruled)
	return access, nil
}

// identity describes the token's owner as GitHub reports it. scopes is nil for a fine-grained token, which has
// permissions instead. grant is what an app was granted, nil for a user's token.
type identity struct {
	login  string
	scopes []string
	grant  *githubapp.Grant
}

// mayWrite reports whether the scopes are enough to write to a repository; a token without scopes may be fine-grained.
func (i identity) mayWrite(private bool) bool {
	for _, scope := range i.scopes {
		if scope == "repo" || scope == "public_repo" && !private {
			return true
		}
	}
	return i.scopes == nil
}

// sees returns "public" for a classic token that sees only public repositories; "" if that is not known.
func (i identity) sees() string {
	if i.scopes == nil || slices.Contains(i.scopes, "repo") {
		return ""
	}
	return "public"
}

// installation returns the app's installation for Examine; nil for a user's token.
func (i identity) installation() *gitprovider.Installation {
	if i.grant == nil {
		return nil
	}
	return &gitprovider.Installation{
		Permissions: i.grant.Permissions, AllRepositories: i.grant.All, Settings: i.grant.Settings,
	}
}

// whoAmI reads the token's user, or what the app may do in the repository. An installation's token in GITHUB_TOKEN has
// no user, which is not an error.
func (e examiner) whoAmI(ctx context.Context, repo gitprovider.RepoRef) (identity, error) {
	if e.app != nil {
		grant, err := e.app.Grant(ctx, repo.Owner, repo.Name)
		return identity{login: grant.Login, grant: &grant}, err
	}
	var user gogithub.User
	resp, err := e.api.get(ctx, transport.URL(e.api.root, "user"), needMetadata, &user)
	if asRefusal(err) != nil {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, err
	}
	out := identity{login: user.GetLogin()}
	if given, named := resp.Header["X-Oauth-Scopes"]; named {
		out.scopes = []string{}
		for _, scope := range strings.Split(strings.Join(given, ","), ",") {
			if scope = strings.TrimSpace(scope); scope != "" {
				out.scopes = append(out.scopes, scope)
			}
		}
	}
	return out, nil
}

// hasWorkflows tells whether an active GitHub Actions workflow exists; nil if the token may not see them.
func (e examiner) hasWorkflows(ctx context.Context, repo gitprovider.RepoRef) (*bool, error) {
	var list gogithub.Workflows
	_, err := e.api.get(ctx, pageURL(e.api.repoURL(repo, "actions", "workflows"), 1), needActions, &list)
	if asRefusal(err) != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	active := false
	for _, workflow := range list.Workflows {
		active = active || workflow.GetState() == "active"
	}
	return &active, nil
}

// branchRules reads the rules that rulesets make for a branch; ok is false if GitHub does not show them.
func (e examiner) branchRules(ctx context.Context, repo gitprovider.RepoRef, branch string) (rules []branchRule,
	ok bool,
	err error) {
	_, err = e.api.get(ctx, pageURL(e.api.repoURL(repo, "rules", "branches", branch), 1), needMetadata, &rules)
	if asRefusal(err) != nil {
		return nil, false, nil
	}
	return rules, err == nil, err
}

// readRepository reads GraphQL's facts about the repository and its base branch, and which of the labels it lacks.
func (e examiner) readRepository(ctx context.Context, repo gitprovider.RepoRef, base string,
	names []string) (node *accessNode,
	missing []string, err error) {
	q := newQuery(repo)
	q.selectField("isArchived isFork isPrivate viewerPermission")
	if base == "" {
		q.selectField("defaultBranchRef { " + accessFields + " }")
	} else {
		q.textVariable("base", branchRef(base))
		q.selectField("defaultBranchRef { name } base: ref(qualifiedName: $base) { " + accessFields + " }")
	}
	if len(names) > 0 {
		q.selectField("labels(first: 100) { pageInfo { hasNextPage endCursor } nodes { name } }")
	}
	q.tolerate = func(e graphError) bool { return e.Type == "FORBIDDEN" && len(e.Path) > 1 }
	node, err = queryRepository[accessNode](ctx, e.api, q, needMetadata)
	switch {
	case err != nil:
		return nil, nil, err
	case node.Base == nil && node.DefaultBranchRef == nil:
		return nil, nil, forge.NoFirstCommit(repo)
	case base != "" && node.Base == nil:
		return nil, nil, forge.NoBase(repo, base, "")
	}
	missing = lacking(labelKeys(node.Labels.names()), names)
	if node.Labels != nil && node.Labels.PageInfo.HasNextPage {
		missing, err = e.labels.absent(ctx, repo, missing)
	}
	return node, missing, err
}

// anyBranch stands for the branches that proposals are made on.
const anyBranch = gitprovider.BranchPrefix + "fix/x"

// impossible is neither a valid branch name nor an object id for git, so a request that names it can create nothing.
const impossible = ".."

// lacking gives the permissions that a proposal needs and that the token was not granted, whatever its user may do.
// GitHub does not list a fine-grained token's permissions, but it looks at them before the body of a request. So a
// branch and a pull request are asked for that cannot exist: with the permission the request is invalid (422), without
// it forbidden. Classic tokens say their scopes, and are not asked; see identity.mayWrite.
func (e examiner) lacking(ctx context.Context, repo gitprovider.RepoRef) ([]string, error) {
	type probe struct {
		need need
		path []string
		body any
	}
	probes := []probe{
		{needContents, []string{"git", "refs"}, map[string]string{"ref": impossible, "sha": impossible}},
		{needPulls, []string{"pulls"}, map[string]string{"title": "claudeops doctor", "head": impossible,
			"base": impossible}},
	}
	denied := make([]bool, len(probes))
	err := forge.Each(ctx, probes, func(ctx context.Context, i int, p probe) error {
		err := e.api.post(ctx, e.api.repoURL(repo, p.path...), p.need, p.body, nil)
		no := asRefusal(err)
		if no == nil {
			return err
		}
		denied[i] = no.status == http.StatusForbidden && fault.CodeOf(no.fault) == fault.ProviderDisabled
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for i, p := range probes {
		if denied[i] {
			out = append(out, string(p.need))
		}
	}
	return out, nil
}

// ping asks for the rate limit, which does not count against the limit and which every token may ask. An app, which has
// no token of its own, asks for itself. An Enterprise Server without limits answers 404 and says why, but to known
// tokens alone.
func (e examiner) ping(ctx context.Context) error {
	if e.app != nil {
		return e.app.Ping(ctx)
	}
	answer := struct{ Resources *gogithub.RateLimits }{}
	_, err := e.api.get(ctx, transport.URL(e.api.root, "rate_limit"), needMetadata, &answer)
	if no := asRefusal(err); no != nil && no.status == http.StatusNotFound && no.says("rate limiting is not enabled") {
		return nil
	}
	if err == nil && answer.Resources == nil {
		return notJSON(errors.New("the answer to /rate_limit has no resources"))
	}
	return err
}

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
