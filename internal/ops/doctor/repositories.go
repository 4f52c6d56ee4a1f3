package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// checkAllowlist judges the allowlist: an entry that no repository can match is a mistake in spelling.
func (d *Doctor) checkAllowlist() (out []Finding) {
	const name = "allowlist"
	if d.Rules.ReposProblem != "" {
		return []Finding{blocks(name, d.Rules.ReposProblem, "correct CLAUDEOPS_REPOS")}
	}
	var names []string
	for _, r := range d.Rules.Policy.AllRepositories() {
		names = append(names, r.String())
		if problem := d.entryProblem(r); problem != "" {
			out = append(out, blocks(name, r.String()+": "+problem, ""))
		}
	}
	for _, problem := range d.disjoint() {
		out = append(out, blocks(name, problem, ""))
	}
	switch {
	case len(out) > 0:
		return out
	case len(names) == 0:
		return []Finding{{Name: name, Status: Off,
			Detail: "CLAUDEOPS_REPOS is not set: every repository that a provider serves"}}
	}
	return []Finding{{Name: name, Status: OK, Detail: strings.Join(names, ", ")}}
}

// entryProblem says why nothing can come of an entry of the allowlist, or "".
func (d *Doctor) entryProblem(r policy.RepoPattern) string {
	if r.Provider == "" {
		return ""
	}
	var names []string
	for _, e := range d.Registry.Entries() {
		if names = append(names, e.Name); e.Name == r.Provider {
			if e.Provider == nil {
				return "the provider " + e.Name + " is disabled: " + d.whyDisabled(e)
			}
			return ""
		}
	}
	return fmt.Sprintf("there is no provider %q; %s are", r.Provider, strings.Join(names, ", "))
}

// whyDisabled returns why a provider is disabled, or where that is said: what is configured has a finding of its own.
func (d *Doctor) whyDisabled(e gitprovider.Registration) string {
	for _, f := range d.Config.Forges.All {
		if f.Configured && f.Driver.Name == e.Name {
			return "see provider " + e.Name
		}
	}
	return e.Disabled
}

// disjoint names the entries of CLAUDEOPS_REPOS that the policy's own list shuts out: a repository must be on both.
func (d *Doctor) disjoint() (out []string) {
	if len(d.Rules.Policy.Targets.Repositories) == 0 {
		return nil
	}
	for _, r := range d.Rules.Policy.Targets.EnvRepositories {
		if _, one := exact(r); !one {
			continue
		}
		if !slices.ContainsFunc(d.Rules.Policy.Targets.Repositories, func(p policy.RepoPattern) bool {
			return (r.Provider == "" || p.Provider == "" || p.Provider == r.Provider) && p.Matches(p.Provider, r.Owner, r.Name)
		}) {
			out = append(out, r.String()+" is in CLAUDEOPS_REPOS and not in the policy's repositories: it must be in both")
		}
	}
	return out
}

// exact returns the one repository that an entry names; one is false for a pattern.
func exact(r policy.RepoPattern) (repo gitprovider.RepoRef, one bool) {
	repo, problems := gitprovider.NewRepoRef(r.Owner, r.Name, "")
	return repo, problems == nil
}

// exactRepositories returns the repositories that the allowlist writes out, once each.
func (d *Doctor) exactRepositories() (out []gitprovider.RepoRef) {
	for _, r := range d.Rules.Policy.AllRepositories() {
		repo, one := exact(r)
		if one && !slices.ContainsFunc(out,
			func(o gitprovider.RepoRef) bool { return strings.EqualFold(o.String(), repo.String()) }) {
			out = append(out, repo)
		}
	}
	return out
}

// defaultProvider judges CLAUDEOPS_DEFAULT_PROVIDER; nothing if it is not set.
func (d *Doctor) defaultProvider() Finding {
	name := d.Config.Forges.DefaultProvider
	if name == "" {
		return Finding{}
	}
	if problem := d.entryProblem(policy.RepoPattern{Provider: name}); problem != "" {
		return blocks("default provider", "CLAUDEOPS_DEFAULT_PROVIDER: "+problem, "")
	}
	return Finding{Name: "default provider", Status: OK, Detail: name}
}

// providerOf names the provider that serves a repository; "" if nothing settles it.
func (d *Doctor) providerOf(repo gitprovider.RepoRef) string {
	resolution, err := d.Registry.Resolve(repo)
	if err != nil {
		return ""
	}
	return resolution.Provider.Name()
}

// Online asks every provider whether it serves us, and looks up the repositories: those given, and those of the
// allowlist that are written out, but for those of the local provider, which Look looks up.
func (d *Doctor) Online(ctx context.Context, repos []gitprovider.RepoRef) []Finding {
	out := d.askSignIns(ctx)
	for _, e := range d.Registry.Entries() {
		if pinger, can := e.Provider.(gitprovider.Pinger); can && e.Name != "local" {
			out = append(out, d.ping(ctx, e.Name, pinger))
		}
	}
	asked := slices.Clone(repos)
	for _, repo := range d.exactRepositories() {
		given := slices.ContainsFunc(repos,
			func(o gitprovider.RepoRef) bool { return strings.EqualFold(o.String(), repo.String()) })
		if !given && d.providerOf(repo) != "local" {
			asked = append(asked, repo)
		}
	}
	if len(asked) == 0 && len(d.exactRepositories()) == 0 {
		out = append(out, Finding{Name: "online", Status: Off,
			Detail: "no repository is named", Do: "give --repo owner/name, or name them in CLAUDEOPS_REPOS"})
	}
	for _, repo := range asked {
		out = append(out, d.examineRepository(ctx, repo)...)
	}
	return d.fit(out)
}

func (d *Doctor) ping(ctx context.Context, name string, pinger gitprovider.Pinger) Finding {
	if err := pinger.Ping(ctx); err != nil {
		e := fault.From(err)
		return ProviderDown(name, e.Code, e.Message)
	}
	return ProviderUp(name)
}

// ProviderUp is the finding about a provider that answers.
func ProviderUp(name string) Finding {
	f := Finding{Name: "provider " + name, Status: OK, Detail: "it answers, and takes our token"}
	if name == "local" { // which has none
		f.Detail = "its folder can be read"
	}
	return f
}

// ProviderDown is the finding about a provider that does not serve us: the code of the failure of a call, and the
// reason.
func ProviderDown(name string, code fault.Code, reason string) Finding {
	f := blocks("provider "+name, reason, "")
	switch code {
	case fault.ProviderDisabled:
		f.Title, f.Do = "The forge "+name+" refuses our token", "give the server a valid token"
	case fault.RateLimited:
		f.Title, f.Do = "The forge "+name+" asks us to wait", "wait; proposals there go on by themselves"
	default:
		f.Title, f.Do = "The forge "+name+" does not answer", "see that it runs and that this machine reaches it"
	}
	return f
}

// examineRepository examines our access to one repository.
func (d *Doctor) examineRepository(ctx context.Context, repo gitprovider.RepoRef) []Finding {
	name := "repository " + repo.String()
	resolution, err := d.Registry.Resolve(repo)
	if err != nil {
		return []Finding{blocks(name, fault.From(err).Message, "")}
	}
	provider := resolution.Provider
	if _, listed := d.Rules.Policy.AllowsRepo(provider.Name(), repo.Owner, repo.Name); !listed {
		return []Finding{blocks(name, "it is not on the operator's list at "+provider.Name(),
			"add it to CLAUDEOPS_REPOS and to the policy's repositories, whichever is set")}
	}
	examiner, can := provider.(gitprovider.Examiner)
	if !can {
		return []Finding{{Name: name, Status: Off, Detail: "the provider " + provider.Name() + " cannot tell"}}
	}
	access, err := examiner.Examine(ctx, resolution.Repo, resolution.BaseBranch, d.Rules.Policy.Labels)
	if err != nil {
		return []Finding{blocks(name, fault.From(err).Message, "")}
	}
	filters, err := filteredPaths(ctx, provider, resolution.Repo, access.Base)
	if err != nil {
		return append(d.checkAccess(name, provider.Name(), access), Finding{Name: name, Status: Warning,
			Detail: "its " + gitprovider.AttributesName + " could not be read: " + fault.From(err).Message})
	}
	if len(filters) > 0 {
		access.Defects = append(access.Defects, gitprovider.Defect{What: "a filter of " + gitprovider.AttributesName +
			" takes " + strings.Join(filters, ", ") + ": changes of such files are refused",
			Do: "take out of it what agents should change"})
	}
	return append(d.checkAccess(name, provider.Name(), access), d.checkScope(ctx, name, resolution)...)
}

// checkScope says that none of a repository's files is in the scope, and where its procedures are instead; nothing if
// one is, or if the files cannot be listed.
func (d *Doctor) checkScope(ctx context.Context, name string, at gitprovider.Resolution) []Finding {
	listed, complete, err := places.List(ctx, at)
	scope := d.Rules.Policy.Scope.At(max(d.Config.Permissions.Tier, gitprovider.TierInvestigate))
	if err != nil || !complete || slices.ContainsFunc(listed,
		func(f gitprovider.ListedFile) bool { return scope.Check(f.Path).Allowed }) {
		return nil
	}
	var known []string
	for _, p := range places.Find(at.Repo, listed) {
		if p.Known {
			known = append(known, p.Words())
		}
	}
	if len(known) == 0 {
		return []Finding{{Name: name, Status: OK, Detail: "agents may change none of the files that it has, and may add some"}}
	}
	return []Finding{{Name: name, Status: Warning,
		Detail: "agents may change none of the files that it has, which are elsewhere (" + strings.Join(known, ", ") + ")",
		Do:     "open a folder in the policy; claudeops policy suggest --repo " + at.Repo.String() + " prints one"}}
}

// filteredPaths are the patterns that the attributes at the root of a branch give a filter, such as Git LFS; at most
// ten.
func filteredPaths(ctx context.Context, provider gitprovider.Provider, repo gitprovider.RepoRef,
	base string) ([]string, error) {
	reader, can := provider.(gitprovider.BlobReader)
	if !can {
		return nil, nil
	}
	snapshot, err := provider.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: repo, Base: base, FilesOnly: true})
	if err != nil {
		return nil, err
	}
	entry := snapshot.Tree[gitprovider.AttributesName]
	if entry.Kind != gitprovider.KindFile {
		return nil, nil
	}
	text, err := reader.ReadBlob(ctx, snapshot.Repo, entry.ID)
	if err != nil {
		return nil, err
	}
	const most = 10
	filters := gitprovider.Attributes{"": string(text)}.Filtered("")
	if len(filters) > most {
		filters = append(filters[:most:most], "and others")
	}
	return filters, nil
}

// checkAccess says what we may do in a repository: enough to propose, and no more.
func (d *Doctor) checkAccess(name, provider string, a gitprovider.Access) []Finding {
	out := []Finding{{Name: name, Status: OK, Detail: whose(provider, a) + "; the base branch is " + a.Base}}
	stops := func(applies bool, detail, do string) {
		if applies {
			out = append(out, blocks(name, detail, do))
		}
	}
	warns := func(applies bool, detail, do string) {
		if applies {
			out = append(out, Finding{Name: name, Status: Warning, Detail: detail, Do: do})
		}
	}
	stops(a.Archived, "it is archived and takes no changes", "unarchive it, or take it off the list")
	stops(a.Fork && !d.Rules.Policy.Targets.AllowForks, "it is a fork",
		"set allow_forks in the policy if it may be targeted")
	stops(len(a.Lacks) > 0, "the token lacks "+strings.Join(a.Lacks, ", ")+", so no pull request can be opened",
		"give the token "+strings.Join(a.Lacks, ", "))
	stops(len(a.Lacks) == 0 && isSet(a.CanPush, false), "the token's user may not push, so no branch can be made",
		"give that user write access")
	warns(len(a.LacksForLabels) > 0,
		"the token lacks "+strings.Join(a.LacksForLabels, ", ")+", so pull requests get no labels",
		"give the token "+strings.Join(a.LacksForLabels, ", "))
	warns(isSet(a.CanPushToBase, true), "the token may write to "+a.Base+" without a pull request; it should not",
		"protect the branch, or give another token")
	warns(isSet(a.CanMerge, true) && !a.Reviewed,
		"the token may merge pull requests into "+a.Base+"; it should not: a person merges",
		"require a review there, or give another token")
	warns(isSet(a.CanMerge, true) && a.Reviewed,
		"the token may merge pull requests into "+a.Base+" once they are approved; it should not: a person merges",
		"leave its user out of those who may merge there, or give another token")
	warns(isSet(a.BaseProtected, false), a.Base+" is not protected",
		"protect it, so that changes come by pull requests alone")
	warns(len(a.MissingLabels) > 0 && !d.Rules.Policy.Pulls.CreateLabels,
		"it lacks the labels "+strings.Join(a.MissingLabels, ", "),
		"create them, or set pull_requests.create_labels in the policy")
	warns(len(a.BranchRules) > 0, "rules for the branches "+gitprovider.BranchPrefix+"** restrict "+
		strings.Join(a.BranchRules, ", ")+": a proposal is refused unless the token may bypass them",
		"have these branches exempted")
	warns(a.Unsigned != "", "commits must be signed, and "+a.Unsigned+" would not be; such a proposal is refused, or "+
		"cannot be merged", "have the forge sign them, or exempt "+gitprovider.BranchPrefix+"** from the rule")
	warns(d.namesTeam() && a.Installation != nil && !slices.ContainsFunc(a.Installation.Permissions, isMembers),
		"the policy names a team as a reviewer, and the installation lacks \"Members: read\", so no team is asked",
		"add it in the app's settings, and have the owner accept it")
	for _, d := range a.Defects {
		stops(d.Stops, d.What, d.Do)
		warns(!d.Stops, d.What, d.Do)
	}
	warns(isSet(a.ChecksRun, false), "no CI is set up to run on our pull requests", "")
	return out
}

// namesTeam reports whether the policy asks a team for reviews.
func (d *Doctor) namesTeam() bool {
	isTeam := func(name string) bool { return strings.Contains(name, "/") }
	return slices.ContainsFunc(d.Rules.Policy.Pulls.Reviewers, isTeam)
}

func isMembers(permission string) bool { return strings.HasPrefix(permission, "members: ") }

// whose says in whose name we act.
func whose(provider string, a gitprovider.Access) string {
	switch {
	case provider == "local":
		return "it is there, and can be written"
	case a.Installation != nil:
		return installed(a)
	case a.User == "":
		return "the host does not say whom it takes us for" + scopesOf(a)
	}
	return "the token is " + a.User + "'s" + scopesOf(a)
}

// installed says in whose name an app acts, and what its installation grants.
func installed(a gitprovider.Access) string {
	which := "chosen repositories"
	if a.Installation.AllRepositories {
		which = "all repositories of the owner"
	}
	out := "we act as " + a.User + ", whose installation grants for " + which + ": " +
		strings.Join(a.Installation.Permissions, ", ")
	if a.Installation.Settings != "" {
		out += " (" + a.Installation.Settings + ")"
	}
	return out
}

func scopesOf(a gitprovider.Access) string {
	if len(a.Scopes) == 0 {
		return ""
	}
	return ", with the scopes " + strings.Join(a.Scopes, ", ")
}

// isSet reports whether the host said so.
func isSet(said *bool, want bool) bool { return said != nil && *said == want }
