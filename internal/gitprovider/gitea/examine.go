package gitea

import (
	"context"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Examine implements gitprovider.Examiner. It costs up to twelve requests in three rounds. Scopes are known only of a token that
// lacks one; see examineScopes.
//
// ChecksRun is true if Actions are on and the branch has a workflow, or if the branch's tip has a status already, which
// another CI may have set.
func (p *Provider) Examine(ctx context.Context, repo gitprovider.RepoRef, base string, labels []string) (gitprovider.Access,
	error) {
	var access gitprovider.Access
	var from *gitea.Repository
	err := together(
		func() (err error) {
			from, err = p.repository(ctx, repo)
			return err
		},
		func() error {
			access.User = p.user(ctx)
			return nil
		},
	)
	if err != nil {
		return access, p.judge(err, repo, "")
	}
	access.Base = base
	if base == "" {
		access.Base = from.DefaultBranch
	}
	access.Archived, access.Fork = from.Archived, from.Fork
	if from.Permissions != nil {
		access.CanPush = &from.Permissions.Push
	}
	p.examineScopes(ctx, repo, &access)
	var branchErr error
	err = together(
		func() error {
			branchErr = p.examineBranch(ctx, repo, &access)
			return nil
		},
		func() error {
			access.ChecksRun = p.checksRun(ctx, repo, access.Base, from.HasActions)
			return nil
		},
		func() (err error) {
			access.MissingLabels, err = p.missingLabels(ctx, repo, from, labels)
			if lacksScope(err) { // which LacksForLabels says already
				access.MissingLabels, err = nil, nil
			}
			return err
		},
	)
	if isMissing(branchErr) {
		return access, fault.Wrap(branchErr, fault.NotFound, "the base branch %s does not exist in %s; name an existing one",
			access.Base, repo)
	}
	return access, p.judge(err, repo, "")
}

// user is "" when the token may not read its own user (scope read:user), which nothing else needs.
func (p *Provider) user(ctx context.Context) string {
	user, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.User, *gitea.Response, error) { return c.GetMyUserInfo() })
	if err != nil {
		return ""
	}
	return user.UserName
}

func (p *Provider) examineBranch(ctx context.Context, repo gitprovider.RepoRef, access *gitprovider.Access) error {
	branch, err := p.branch(ctx, repo, access.Base)
	if err != nil {
		return err
	}
	access.BaseProtected = &branch.Protected
	scoped := len(access.Lacks) == 0 // what the server says is about the token's user
	push, merge := branch.UserCanPush && scoped, branch.UserCanMerge && scoped
	access.CanPushToBase, access.CanMerge = &push, &merge
	return nil
}

// missingLabels looks among the labels of the repository and then, for what is missing, of the organization that owns it.
func (p *Provider) missingLabels(ctx context.Context, repo gitprovider.RepoRef, from *gitea.Repository, wanted []string) (
	[]string, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	have, err := p.repoLabels(ctx, repo)
	missing := without(wanted, have)
	if err != nil || len(missing) == 0 {
		return missing, err
	}
	owner := repo.Owner
	if from.Owner != nil {
		owner = from.Owner.UserName
	}
	var shared []*gitea.Label
	if _, err := p.get(ctx, p.endpoint("orgs", owner, "labels"), atPage(1), &shared); err != nil {
		return missing, nil // a person has no such list, and a token may lack read:organization
	}
	return without(missing, present(shared)), nil
}

// without gives the names that no label has.
func without(names []string, labels []*gitea.Label) []string {
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(labels, func(l *gitea.Label) bool { return l.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// checksRun is nil when it could not be found out.
func (p *Provider) checksRun(ctx context.Context, repo gitprovider.RepoRef, base string, actions bool) *bool {
	if actions {
		if has := p.hasWorkflow(ctx, repo, base); has == nil || *has {
			return has
		}
	}
	tip, err := p.branchCommit(ctx, repo, base)
	if err != nil {
		return nil
	}
	checks, err := p.checks(ctx, repo, tip)
	if err != nil {
		return nil
	}
	reported := checks.State != gitprovider.ChecksNone
	return &reported
}

// hasWorkflow looks into the folders that Gitea and Forgejo take workflows from.
func (p *Provider) hasWorkflow(ctx context.Context, repo gitprovider.RepoRef, base string) *bool {
	folders := [...]string{".gitea", ".forgejo", ".github"}
	var found, unknown [len(folders)]bool
	reads := make([]func() error, 0, len(folders))
	for i, folder := range folders {
		reads = append(reads, func() error {
			files, _, err := call(ctx, p, func(c *gitea.Client) ([]*gitea.ContentsResponse, *gitea.Response, error) {
				return c.ListContents(repo.Owner, repo.Name, base, folder+"/workflows")
			})
			unknown[i] = err != nil && !isMissing(err)
			found[i] = slices.ContainsFunc(present(files), func(f *gitea.ContentsResponse) bool {
				return strings.HasSuffix(f.Name, ".yml") || strings.HasSuffix(f.Name, ".yaml")
			})
			return nil
		})
	}
	if together(reads...) != nil {
		return nil
	}
	has := slices.Contains(found[:], true)
	if !has && slices.Contains(unknown[:], true) {
		return nil
	}
	return &has
}
