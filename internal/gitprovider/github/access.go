package github

import (
	"context"
	"errors"
	"net/http"
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
			node, access.MissingLabels, err = e.repository(ctx, repo, base, labels)
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
	if refused(err) != nil {
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
	_, err := e.api.get(ctx, page(e.api.repoURL(repo, "actions", "workflows"), 1), needActions, &list)
	if refused(err) != nil {
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
	_, err = e.api.get(ctx, page(e.api.repoURL(repo, "rules", "branches", branch), 1), needMetadata, &rules)
	if refused(err) != nil {
		return nil, false, nil
	}
	return rules, err == nil, err
}

// repository reads GraphQL's facts about the repository and its base branch, and which of the labels it lacks.
func (e examiner) repository(ctx context.Context, repo gitprovider.RepoRef, base string,
	names []string) (node *accessNode,
	missing []string, err error) {
	q := newQuery(repo)
	q.add("isArchived isFork isPrivate viewerPermission")
	if base == "" {
		q.add("defaultBranchRef { " + accessFields + " }")
	} else {
		q.text("base", branchRef(base))
		q.add("defaultBranchRef { name } base: ref(qualifiedName: $base) { " + accessFields + " }")
	}
	if len(names) > 0 {
		q.add("labels(first: 100) { pageInfo { hasNextPage endCursor } nodes { name } }")
	}
	q.tolerate = func(e graphError) bool { return e.Type == "FORBIDDEN" && len(e.Path) > 1 }
	node, err = ask[accessNode](ctx, e.api, q, needMetadata)
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
		no := refused(err)
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
	if no := refused(err); no != nil && no.status == http.StatusNotFound && no.says("rate limiting is not enabled") {
		return nil
	}
	if err == nil && answer.Resources == nil {
		return notJSON(errors.New("the answer to /rate_limit has no resources"))
	}
	return err
}
