package cli

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// online asks the providers of the repositories what our tokens may do there. Without names it asks about those of the
// allowlist that are written out.
func (p *parts) online(ctx context.Context, names []string) ([]finding, error) {
	repos, err := p.reposToAsk(names)
	if err != nil {
		return nil, err
	}
	if len(repos) == 0 {
		return []finding{{Name: "online", Status: "off",
			Detail: "no repository is named; give --repo owner/name, or name them in CLAUDEOPS_REPOS"}}, nil
	}
	var out []finding
	for _, repo := range repos {
		out = append(out, p.ask(ctx, repo)...)
	}
	return out, nil
}

func (p *parts) reposToAsk(names []string) ([]gitprovider.RepoRef, error) {
	var out []gitprovider.RepoRef
	for _, name := range names {
		repo, err := parseRepo(name)
		if err != nil {
			return nil, err
		}
		out = append(out, repo)
	}
	if len(names) > 0 {
		return out, nil
	}
	for _, r := range p.policy.AllRepositories() {
		if repo, problems := gitprovider.NewRepoRef(r.Owner, r.Name, ""); problems == nil { // else it is a pattern
			out = append(out, repo)
		}
	}
	return out, nil
}

// ask examines our access to one repository.
func (p *parts) ask(ctx context.Context, repo gitprovider.RepoRef) []finding {
	name := "repository " + repo.String()
	resolution, err := p.registry.Resolve(repo)
	if err != nil {
		return []finding{{Name: name, Status: "problem", Blocks: true, Detail: fault.From(err).Message}}
	}
	provider, can := resolution.Provider.(gitprovider.Examiner)
	if !can {
		return []finding{{Name: name, Status: "off", Detail: "the provider " + resolution.Provider.Name() + " needs no token"}}
	}
	access, err := provider.Examine(ctx, resolution.Repo, resolution.BaseBranch, p.policy.Labels)
	if err != nil {
		return []finding{{Name: name, Status: "problem", Blocks: true, Detail: p.scanner.Redact(fault.From(err).Message)}}
	}
	return p.accessFindings(name, access)
}

// accessFindings judges what a token may do: enough to propose, and no more.
func (p *parts) accessFindings(name string, a gitprovider.Access) []finding {
	who := "the host does not say whom it takes us for"
	if a.User != "" {
		who = "the token is " + a.User + "'s"
	}
	if len(a.Scopes) > 0 {
		who += ", with the scopes " + strings.Join(a.Scopes, ", ")
	}
	if a.Installation != nil {
		who = installed(a)
	}
	out := []finding{{Name: name, Status: "ok", Detail: who + "; the base branch is " + a.Base}}
	add := func(applies bool, status, detail string) {
		if applies {
			out = append(out, finding{Name: name, Status: status, Blocks: status == "problem", Detail: detail})
		}
	}
	add(a.Archived, "problem", "it is archived and takes no changes")
	add(a.Fork && !p.policy.AllowForks, "problem", "it is a fork; set allow_forks in the policy if it may be targeted")
	add(is(a.CanPush, false), "problem", "the token may not push, so no branch can be made; give it write access")
	add(is(a.CanPushToBase, true), "warning",
		"the token may write to "+a.Base+" without a pull request; it should not: protect the branch, or give another token")
	add(is(a.CanMerge, true), "warning",
		"the token may merge pull requests into "+a.Base+"; it should not: a person merges. Require a review there, or give another token")
	add(is(a.BaseProtected, false), "warning", a.Base+" is not protected; protect it, so that changes come by pull requests alone")
	add(len(a.MissingLabels) > 0 && !p.policy.Pulls.CreateLabels, "warning", "it lacks the labels "+strings.Join(a.MissingLabels, ", ")+
		"; create them, or set pull_requests.create_labels in the policy")
	add(is(a.ChecksRun, false), "warning", "no CI is set up to run on our pull requests")
	return out
}

// is reports whether the host said so.
func is(said *bool, want bool) bool { return said != nil && *said == want }
