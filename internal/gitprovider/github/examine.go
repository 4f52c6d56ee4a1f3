package github

import (
	"context"
	"strings"

	gogithub "github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Examine implements gitprovider.Examiner with three requests side by side (who the token is, what GitHub lets it do in
// the repository, whether there are workflows) and a fourth for the rulesets of the base branch; for a token that names no
// scopes two more, see lacking. Protections are read as
// far as GitHub shows them to somebody who may not administer the repository: a rule that this token alone may bypass is
// not told apart from one that binds it.
func (p *Provider) Examine(ctx context.Context, repo gitprovider.RepoRef, base string, labels []string) (
	gitprovider.Access, error) {
	ctx = about(ctx, repo)
	var (
		who       identity
		node      *accessNode
		workflows *bool
	)
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		who, err = p.whoAmI(inner, repo)
		return err
	})
	group.Go(func() (err error) {
		node, err = p.accessNode(inner, repo, base, labels)
		return err
	})
	group.Go(func() (err error) {
		workflows, err = p.hasWorkflows(inner, repo)
		return err
	})
	if err := group.Wait(); err != nil {
		return gitprovider.Access{}, publish(err)
	}
	access := gitprovider.Access{
		User: who.login, Scopes: who.scopes, Installation: who.installation(), Base: base, Archived: node.IsArchived, Fork: node.IsFork,
		MissingLabels: node.missing(labels),
	}
	if base == "" && node.DefaultBranchRef != nil {
		access.Base = node.DefaultBranchRef.Name
	}
	var rules []branchRule
	ruled := false
	group, inner = errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		rules, ruled, err = p.branchRules(inner, repo, access.Base)
		return err
	})
	if node.writable() && who.scopes == nil {
		group.Go(func() (err error) {
			access.Lacks, err = p.lacking(inner, repo)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return gitprovider.Access{}, publish(err)
	}
	access.ChecksRun = node.checksRun(workflows)
	node.judge(&access, who, rules, ruled)
	return access, nil
}

// identity is whom GitHub takes the token for. scopes is nil for a fine-grained token: it has permissions instead. grant is
// what an app was given, nil for a user's token.
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

// whoAmI asks for the token's user, or what the app may do in the repository. An installation's token that stands in
// GITHUB_TOKEN has no user, which is no error.
func (p *Provider) whoAmI(ctx context.Context, repo gitprovider.RepoRef) (identity, error) {
	if p.app != nil {
		return p.appIdentity(ctx, repo)
	}
	var user gogithub.User
	resp, err := p.get(ctx, transport.URL(p.api, "user"), needMetadata, &user)
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
func (p *Provider) hasWorkflows(ctx context.Context, repo gitprovider.RepoRef) (*bool, error) {
	var list gogithub.Workflows
	_, err := p.get(ctx, page(p.repoURL(repo, "actions", "workflows"), 1), needActions, &list)
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
func (p *Provider) branchRules(ctx context.Context, repo gitprovider.RepoRef, branch string) (rules []branchRule, ok bool,
	err error) {
	_, err = p.get(ctx, page(p.repoURL(repo, "rules", "branches", branch), 1), needMetadata, &rules)
	if refused(err) != nil {
		return nil, false, nil
	}
	return rules, err == nil, err
}

func (p *Provider) accessNode(ctx context.Context, repo gitprovider.RepoRef, base string, labels []string) (*accessNode,
	error) {
	q := newQuery(repo)
	q.add("isArchived isFork isPrivate viewerPermission")
	if base == "" {
		q.add("defaultBranchRef { " + accessFields + " }")
	} else {
		q.variable("base", "String!", branchRef(base))
		q.add("base: ref(qualifiedName: $base) { " + accessFields + " }")
	}
	if len(labels) > 0 {
		q.add("labels(first: 100) { pageInfo { hasNextPage endCursor } nodes { name } }")
	}
	q.tolerate = func(e graphError) bool { return e.Type == "FORBIDDEN" && len(e.Path) > 1 }
	var data struct{ Repository *accessNode }
	if err := p.graphql(ctx, q.operation(needMetadata), &data); err != nil {
		return nil, err
	}
	node := data.Repository
	switch {
	case node == nil:
		return nil, p.notFound()
	case base != "" && node.Base == nil:
		return nil, fault.New(fault.NotFound, "the repository %s has no branch %s; name an existing base branch", repo,
			clean(base))
	case node.Labels == nil || !node.Labels.PageInfo.HasNextPage:
		return node, nil
	}
	found, err := p.lookUpLabels(ctx, repo, node.missing(labels))
	for name := range found {
		node.Labels.Nodes = append(node.Labels.Nodes, struct{ Name string }{name})
	}
	return node, err
}
