package gitea

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// The scopes that a proposal needs: the first one for branch, commit and pull request, the second for its labels.
const (
	scopeRepository = "write:repository"
	scopeIssue      = "write:issue"
)

// examiner finds out what the token may do in a repository.
type examiner struct {
	api      *api
	branches branches
	labels   labels
}

func (e examiner) examine(ctx context.Context, repo gitprovider.RepoRef, base string,
	labels []string) (gitprovider.Access,
	error) {
	var access gitprovider.Access
	var from *gitea.Repository
	err := forge.Together(
		forge.Into(&from, func() (*gitea.Repository, error) { return e.api.readRepository(ctx, repo) }),
		func() error {
			access.User = e.user(ctx)
			return nil
		},
	)
	if err != nil {
		return access, err
	}
	access.Base = base
	if base == "" {
		access.Base = from.DefaultBranch
	}
	access.Archived, access.Fork = from.Archived, from.Fork
	if from.Permissions != nil {
		access.CanPush = &from.Permissions.Push
	}
	e.scopes(ctx, repo, &access)
	owner := repo.Owner
	if from.Owner != nil {
		owner = from.Owner.UserName
	}
	var branchErr error
	err = forge.Together(
		func() error {
			branchErr = e.branch(ctx, repo, &access)
			return nil
		},
		func() error {
			access.ChecksRun = e.checksRun(ctx, repo, access.Base, from.HasActions)
			return nil
		},
		func() (err error) {
			access.MissingLabels, err = e.labels.missingLabels(ctx, repo, owner, labels)
			if lacksScope(err) { // which LacksForLabels says already
				access.MissingLabels, err = nil, nil
			}
			return err
		},
		func() error {
			access.Unsigned = e.unsigned(ctx, repo, access.Base)
			return nil
		},
	)
	if isMissing(branchErr) && from.Empty {
		return access, forge.NoFirstCommit(repo)
	}
	if isMissing(branchErr) {
		return access, forge.NoBase(repo, access.Base, from.DefaultBranch)
	}
	return access, err
}

// user returns the token's user; "" when the token may not read its own user (scope read:user), which nothing else
// needs.
func (e examiner) user(ctx context.Context) string {
	user, err := callSDK(ctx, e.api, func(c *gitea.Client) (*gitea.User, *gitea.Response, error) {
		return c.GetMyUserInfo()
	})
	if err != nil {
		return ""
	}
	return user.UserName
}

// scopes finds out which scopes the token lacks, regardless of its user's rights. The server does not tell a token its
// scopes, but it looks at them before anything else, and names them where one is missing. So it sends two requests that
// need the scopes and have no effect: an empty request for reviews and an empty list of labels, both for number 0,
// which is neither a pull request nor an issue. With the scope the answer is a 404.
func (e examiner) scopes(ctx context.Context, repo gitprovider.RepoRef, access *gitprovider.Access) {
	probe := func(told *error, body string, at ...string) func() error {
		return func() error {
			*told = e.api.post(ctx, e.api.repoURL(repo, at...), map[string][]string{body: {}}, nil)
			return nil
		}
	}
	var forRepository, forIssues error
	_ = forge.Together( // neither returns an error
		probe(&forRepository, "reviewers", "pulls", "0", "requested_reviewers"),
		probe(&forIssues, "labels", "issues", "0", "labels"),
	)
	if lacksScope(forRepository) {
		no := false
		access.Lacks, access.CanPush = []string{scopeRepository}, &no
	}
	if lacksScope(forIssues) {
		access.LacksForLabels = []string{scopeIssue}
	}
	for _, err := range []error{forRepository, forIssues} {
		if told := toldScopes(err); told != nil {
			access.Scopes = told
		}
	}
}

// toldScopes returns the token's scopes as a refusal tells them; nil if it does not. Forgejo and older versions do not.
func toldScopes(err error) []string {
	if !lacksScope(err) {
		return nil
	}
	m := regexp.MustCompile(`token scope=([a-z:,-]+)`).FindStringSubmatch(asRefusal(err).message)
	if m == nil {
		return nil
	}
	scopes := strings.Split(m[1], ",")
	slices.Sort(scopes)
	return scopes
}

func (e examiner) branch(ctx context.Context, repo gitprovider.RepoRef, access *gitprovider.Access) error {
	branch, err := e.branches.fetchBranch(ctx, repo, access.Base)
	if err != nil {
		return err
	}
	access.BaseProtected, access.Reviewed = &branch.Protected, branch.Protected && branch.RequiredApprovals > 0
	scoped := len(access.Lacks) == 0 // what the server says is about the token's user
	push, merge := branch.UserCanPush && scoped, branch.UserCanMerge && scoped
	access.CanPushToBase, access.CanMerge = &push, &merge
	return nil
}

// unsigned says what of a proposal the server would not sign although a rule demands it; "" for nothing, and where the
// rules cannot be read: that takes an administrator of the repository.
func (e examiner) unsigned(ctx context.Context, repo gitprovider.RepoRef, base string) string {
	var rules []*gitea.BranchProtection
	if _, err := e.api.get(ctx, e.api.repoURL(repo, "branch_protections"), nil, &rules); err != nil {
		return ""
	}
	rules = withoutNulls(rules)
	onOurs, onBase := demandsSignature(rules, gitprovider.BranchPrefix+"x"), demandsSignature(rules, base)
	if !onOurs && !onBase || e.signs(ctx, repo) {
		return ""
	}
	if onOurs {
		return "the commits of proposals"
	}
	return "the merge commits on " + base
}

// demandsSignature reports whether the first rule that fits a branch demands signed commits.
func demandsSignature(rules []*gitea.BranchProtection, branch string) bool {
	for _, rule := range rules {
		if name := cmp.Or(rule.RuleName, rule.BranchName); name == branch || branchPattern(name).MatchString(branch) {
			return rule.RequireSignedCommits
		}
	}
	return false
}

// branchPattern reads the pattern of a rule: * and ? stay within a segment, ** does not.
func branchPattern(pattern string) *regexp.Regexp {
	expr := strings.NewReplacer(`\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("^" + expr + "$")
}

// signs reports whether the server has a key for the commits that it makes; true if it does not say.
func (e examiner) signs(ctx context.Context, repo gitprovider.RepoRef) bool {
	_, err := e.api.get(ctx, e.api.repoURL(repo, "signing-key.gpg"), nil, nil)
	return !isMissing(err)
}

// checksRun returns true if Actions are on and the branch has a workflow, or if the branch's tip has a status already,
// which another CI may have set; nil if that is not known.
func (e examiner) checksRun(ctx context.Context, repo gitprovider.RepoRef, base string, actions bool) *bool {
	if actions {
		if has := e.hasWorkflow(ctx, repo, base); has == nil || *has {
			return has
		}
	}
	tip, err := e.branches.commit(ctx, repo, base)
	if err != nil {
		return nil
	}
	checks, err := e.api.checks(ctx, repo, tip)
	if err != nil {
		return nil
	}
	reported := checks.State != gitprovider.ChecksNone
	return &reported
}

// hasWorkflow looks into the folders that Gitea and Forgejo take workflows from.
func (e examiner) hasWorkflow(ctx context.Context, repo gitprovider.RepoRef, base string) *bool {
	folders := []string{".gitea", ".forgejo", ".github"}
	found, unknown := make([]bool, len(folders)), make([]bool, len(folders))
	_ = forge.Each(ctx, folders, func(ctx context.Context, i int, folder string) error { // none fails
		files, err := callSDK(ctx, e.api, func(c *gitea.Client) ([]*gitea.ContentsResponse, *gitea.Response, error) {
			return c.ListContents(repo.Owner, repo.Name, base, folder+"/workflows")
		})
		unknown[i] = err != nil && !isMissing(err)
		found[i] = slices.ContainsFunc(withoutNulls(files), func(f *gitea.ContentsResponse) bool {
			return strings.HasSuffix(f.Name, ".yml") || strings.HasSuffix(f.Name, ".yaml")
		})
		return nil
	})
	has := slices.Contains(found, true)
	if !has && slices.Contains(unknown, true) {
		return nil
	}
	return &has
}

// ping asks for the version, which needs no scope; a token that the server does not know is refused there as
// everywhere.
func (a *api) ping(ctx context.Context) error {
	version, err := a.version(ctx)
	if below := a.found(ctx, version, err); below != "" {
		return fault.New(fault.ProviderDisabled, "%s has no API at /, and one below %s; set %s to %s", a.base.Host, below,
			urlVariable, a.base.JoinPath(below))
	}
	if err == nil && version == "" {
		return fault.New(fault.UpstreamError,
			"%s does not tell its version; check that %s is the address of a Gitea or Forgejo",
			a.base.Host, urlVariable)
	}
	return err
}

func (a *api) version(ctx context.Context) (string, error) {
	return callSDK(ctx, a, func(c *gitea.Client) (string, *gitea.Response, error) { return c.ServerVersion() })
}

// found looks for the path below which the server is installed, after a failure to find its API at the root of the
// host; "" if it is at none of the usual ones.
func (a *api) found(ctx context.Context, version string, failure error) string {
	var noJSON *json.SyntaxError
	elsewhere := failure == nil && version == "" || lacksRoute(failure) || errors.As(failure, &noJSON)
	if !elsewhere || strings.Trim(a.base.Path, "/") != "" {
		return ""
	}
	for _, below := range []string{"/git/", "/gitea/", "/forgejo/"} {
		there := api{base: a.base.JoinPath(below), http: a.http}
		if version, err := there.version(ctx); err == nil && version != "" {
			return below
		}
	}
	return ""
}
