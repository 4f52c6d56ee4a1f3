package prflow

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// repositoryGate denies repositories and base branches that the operator does not allow. It notes what the change does
// to where later proposals go; see manifestNote.
func repositoryGate() gate {
	return gate{
		Name: record.GateRepository, Phase: phaseRepository,
		Asks:  "whether a provider serves the repository, and the operator allows it and the base branch",
		Judge: judgeRepository,
	}
}

func judgeRepository(_ context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	if e.unresolved != nil {
		v := fault.Violation{
			Code: e.unresolved.Code, Rule: "provider", Message: e.unresolved.Message,
			Final: e.unresolved.Code != fault.ProviderUnresolved,
		}
		return ruling{violations: []fault.Violation{v}}, nil
	}
	provider, snapshot := e.resolution.Provider, e.snapshot
	if provider == nil {
		return ruling{skipped: true}, nil
	}
	if v := notListed(on.Policy, provider.Name(), e.resolution.Repo); v != nil {
		return ruling{violations: []fault.Violation{*v}}, nil
	}
	if snapshot == nil {
		return ruling{skipped: true}, nil
	}
	out := ruling{
		violations: checkBase(on.Policy, provider.Name(), snapshot, e.resolution.BaseBranch),
		detail:     provider.Name() + ":" + snapshot.Repo.String() + ", settled by " + e.resolution.Via,
	}
	if rev := e.revision; rev != nil && rev.why != nil && rev.why.Rule == ruleTarget { // which says it better
		out.violations = slices.DeleteFunc(out.violations, isAboutBase)
	}
	if note := manifestNote(on.Policy, snapshot, r.inScope(on.Policy.Scope.At(on.Tier))); note != "" {
		out.warnings = []string{on.secrets.Redact(note)}
	}
	return out, nil
}

// checkBase says which branch may be targeted, and whether anything may be.
func checkBase(p policy.Policy, provider string, snap *gitprovider.Snapshot, manifestBase string) []fault.Violation {
	var out []fault.Violation
	if v := notListed(p, provider, snap.Repo); v != nil {
		out = append(out, *v) // the host knows the repository by another name than the one asked for
	}
	if snap.Archived {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "archived", Final: true,
			Message:    fmt.Sprintf("the repository %s is archived and takes no changes", snap.Repo),
			Suggestion: "ask a person which repository took its place",
		})
	}
	if snap.Fork && !p.Targets.AllowForks {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "allow_forks", Final: true,
			Message:    fmt.Sprintf("the repository %s is a fork", snap.Repo),
			Suggestion: "propose to the repository that it was forked from, or ask the operator to set allow_forks in the policy",
		})
	}
	if strings.HasPrefix(snap.Base, gitprovider.BranchPrefix) {
		return append(out, baseDenied(snap.Base, "is a branch of another proposal", snap.DefaultBranch))
	}
	pin, pinned := p.PinFor(snap.Repo.Owner, snap.Repo.Name)
	if pinned {
		out = append(out, pinViolations(pin, provider, snap)...)
	}
	if pin.BaseBranch == "" && !p.AllowsBase(snap.Base, snap.DefaultBranch, manifestBase) {
		out = append(out, baseDenied(snap.Base, "may not be targeted under the operator's policy", snap.DefaultBranch))
	}
	return out
}

// pinViolations holds what is asked for against what the policy pins for the repository, as the host knows it: neither
// a manifest nor a clone URL, another name of the repository nor the record of a dry run leads past a pin.
func pinViolations(pin policy.RepoPin, provider string, snap *gitprovider.Snapshot) (out []fault.Violation) {
	if pin.Provider != "" && pin.Provider != provider {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "pins", Final: true,
			Message: fmt.Sprintf("the operator's policy pins the repository %s to the provider %s, not %s", snap.Repo,
				pin.Provider, provider),
			Suggestion: "propose it at that provider, or ask the operator",
		})
	}
	if pin.BaseBranch != "" && pin.BaseBranch != snap.Base {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Path: "base_branch", Rule: "pins",
			Message: fmt.Sprintf("the operator's policy pins the repository %s to the base branch %s, not %s", snap.Repo,
				quote(pin.BaseBranch), quote(snap.Base)),
			Suggestion: "leave base_branch out",
		})
	}
	return out
}

func baseDenied(base, why, defaultBranch string) fault.Violation {
	return fault.Violation{
		Code: fault.RepoNotAllowed, Path: "base_branch", Rule: "base_branches",
		Message:    fmt.Sprintf("the base branch %s %s", quote(base), why),
		Suggestion: "leave base_branch out for the default branch " + defaultBranch,
	}
}

// baseTreeGate denies what does not fit the base commit; gitprovider.Tree.Mismatch has the rule, which every Commit
// asks again. It warns of files that are replaced as a whole by somebody who does not say which text they have read.
func baseTreeGate() gate {
	return gate{
		Name: record.GateBaseTree, Phase: phaseRepository,
		Asks: "whether each file matches the action and base_sha, is a plain file without a filter in `.gitattributes`, " +
			"and would change",
		Judge: judgeBaseTree,
	}
}

func judgeBaseTree(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	target := e.comparedSnapshot()
	if target == nil {
		return ruling{skipped: true}, nil
	}
	out := ruling{detail: "base " + target.Base + " at " + short(target.BaseCommit)}
	var lacks []lacking
	for _, change := range r.inScope(on.Policy.Scope.At(on.Tier)) {
		v := r.mismatch(change, target.Tree)
		if v == nil && change.Action != gitprovider.ActionDelete {
			v = filtered(change.Path.String(), e.attributes)
		}
		if v == nil && e.revision != nil {
			v = blockedOnBase(change, e.snapshot.Tree)
		}
		if v == nil {
			continue
		}
		if e.revision != nil {
			*v = v.Map(func(text string) string {
				return strings.ReplaceAll(text, "the base branch", "the branch of the pull request")
			})
		}
		lack := lacking{path: change.Path, near: r.edited.unfit[change.Path.String()].near, more: resourceAddress{
			owner: target.Repo.Owner, repo: target.Repo.Name, pull: r.asked.Revises, path: change.Path.String()}.String()}
		if v.Rule == ruleBaseSHA {
			lack.diff = e.changedSince(ctx, on, r.baseSHA(change.Path), change.Path)
		}
		out.violations, lacks = append(out.violations, *v), append(lacks, lack)
	}
	showPresent(target, out.violations, lacks)
	if pointers := lfsPointers(r.inScope(on.Policy.Scope.At(on.Tier)), target); len(pointers) > 0 {
		out.warnings = append(out.warnings,
			"Changes pointers of Git LFS, and not the files that they stand for: "+joinPaths(pointers)+".")
	}
	for _, change := range r.inScope(on.Policy.Scope.At(on.Tier)) {
		if path.Base(change.Path.String()) == "SKILL.md" && change.Action != gitprovider.ActionDelete {
			problems, _ := strictyaml.SkillProblems(change.Content)
			for _, problem := range problems {
				out.warnings = append(out.warnings, fmt.Sprintf("%s may not be used as a skill: %s.", change.Path, problem))
			}
		}
	}
	if ends := otherEnds(r.inScope(on.Policy.Scope.At(on.Tier)), target); len(ends) > 0 {
		out.warnings = append(out.warnings, "Changes the ends of all lines from CR and LF to LF: "+joinPaths(ends)+
			". Edits would keep them.")
	}
	if blind := r.blind(e.lines, target.BaseCommit); len(blind) > 0 {
		out.warnings = append(out.warnings, "Replaces whole files, and nothing says which version of them was read "+
			"(base_sha), so that newer lines may be lost: "+joinPaths(blind)+".")
	}
	if len(r.edited.behind) > 0 {
		out.warnings = append(out.warnings,
			"Changed since it was read, and the parts that the edits replace are as they were: "+joinPaths(r.edited.behind)+".")
	}
	return out, nil
}

// ruleBaseSHA is the rule of a file that is another one than base_sha says.
const ruleBaseSHA = "base-sha"

// baseSHA is the version of a file that the request names; "" for none.
func (r *createRequest) baseSHA(path gitprovider.Path) string {
	for _, f := range r.asked.Files {
		if f.Path == path.String() {
			return strings.ToLower(f.BaseSHA)
		}
	}
	return ""
}

// changedSince is the difference between the version of a file that was named and the one that is there; "" if the
// former cannot be had, and if it may not be shown.
func (e *evidence) changedSince(ctx context.Context, on rules, sha string, path gitprovider.Path) string {
	target := e.comparedSnapshot()
	reader, can := e.resolution.Provider.(gitprovider.BlobReader)
	now, known := target.Contents[path]
	if !can || !known || !utf8.Valid(now) || len(sha) != len(target.BaseCommit) {
		return ""
	}
	was, err := reader.ReadBlob(ctx, target.Repo, sha)
	if err != nil || !utf8.Valid(was) {
		return "" // the refusal has what is there now
	}
	found, err := on.secrets.Secrets(ctx, path.String(), string(was))
	if err != nil || len(found) > 0 || on.secrets.Redact(string(was)) != string(was) {
		return "" // it may have been taken out since
	}
	diff := textedit.Unified(short(sha), short(target.Tree[path.String()].ID), string(was), string(now))
	return clean(diff, len(diff))
}

// filtered refuses a file that git stores as something else than was proposed; nil if it does not.
func filtered(path string, attributes gitprovider.Attributes) *fault.Violation {
	filter := attributes.Filter(path)
	if filter == "" {
		return nil
	}
	return &fault.Violation{
		Code: fault.ContentDenied, Path: path, Rule: "filter", Final: true,
		Message: fmt.Sprintf("%s goes through the filter %s (%s), so that what is stored would not be what was judged",
			path, quote(clean(filter, maxName)), gitprovider.AttributesName),
		Suggestion: "leave this file out and report what should change in it, for a person; the operator can take the path " +
			"out of " + gitprovider.AttributesName,
	}
}

// lfsPointers lists the files that are pointers of Git LFS on the target branch.
func lfsPointers(changes []gitprovider.Change, target *gitprovider.Snapshot) (out []string) {
	for _, c := range changes {
		if strings.HasPrefix(string(target.Contents[c.Path]), "version https://git-lfs.github.com/spec/") {
			out = append(out, c.Path.String())
		}
	}
	return out
}

// otherEnds lists the files whose lines end with CR and LF on the target branch, and with LF alone in a change.
func otherEnds(changes []gitprovider.Change, target *gitprovider.Snapshot) (out []string) {
	for _, c := range changes {
		was := string(target.Contents[c.Path])
		if textedit.OnlyCRLF(was) && strings.Contains(c.Content, "\n") && !strings.Contains(c.Content, "\r\n") {
			out = append(out, c.Path.String())
		}
	}
	return out
}

// readAttributes reads the files of attributes above the paths of a request, of which most repositories have none.
func (e *evidence) readAttributes(ctx context.Context, changes []gitprovider.Change) error {
	reader, can := e.resolution.Provider.(gitprovider.BlobReader)
	if !can {
		return nil
	}
	target := e.comparedSnapshot()
	for _, change := range changes {
		for _, folder := range append(change.Path.Ancestors(), "") {
			name := strings.TrimPrefix(folder+"/"+gitprovider.AttributesName, "/")
			entry, exists := target.Tree[name]
			if _, read := e.attributes[folder]; read || !exists || entry.Kind != gitprovider.KindFile {
				continue
			}
			text, err := reader.ReadBlob(ctx, target.Repo, entry.ID)
			if err != nil {
				return err
			}
			if e.attributes == nil {
				e.attributes = gitprovider.Attributes{}
			}
			e.attributes[folder] = string(text)
		}
	}
	return nil
}

// showPresent gives the conflicts among violations what the branch has at their files.
func showPresent(target *gitprovider.Snapshot, violations []fault.Violation, files []lacking) {
	var shown []lacking
	var of []int
	for i, v := range violations {
		if v.Code == fault.Conflict {
			shown, of = append(shown, files[i]), append(of, i)
		}
	}
	for i, present := range presents(target, shown) {
		violations[of[i]].Present = present
	}
}

// blockedOnBase says what on the base branch would keep a revised file from being merged as a plain one: a link or a
// folder at its path or above it.
func blockedOnBase(change gitprovider.Change, base gitprovider.Tree) *fault.Violation {
	if v := base.Mismatch(change); v != nil && v.Code == fault.ScopeDenied {
		return v
	}
	return nil
}

// mismatch says why a change does not fit the base commit; nil if it does.
func (r *createRequest) mismatch(change gitprovider.Change, tree gitprovider.Tree) *fault.Violation {
	name := change.Path.String()
	if misfit, unfit := r.edited.unfit[name]; unfit {
		return &misfit.violation
	}
	if v := tree.Mismatch(change); v != nil {
		return v
	}
	at := slices.IndexFunc(r.asked.Files, func(f FileRequest) bool { return f.Path == name })
	f := r.asked.Files[at]
	if entry, exists := tree[name]; exists {
		if len(f.Edits) > 0 {
			return nil // which knew what they were made from
		}
		return f.stale(entry.ID)
	}
	if f.BaseSHA != "" {
		return &fault.Violation{
			Code: fault.Conflict, Path: name, Rule: ruleBaseSHA,
			Message:    fmt.Sprintf("%s does not exist on the base branch, and base_sha says that it does", name),
			Suggestion: "leave base_sha out to create the file",
		}
	}
	return nil
}

// blind lists the files of which whole new contents remove lines, although nothing says what they replace: no base_sha,
// and no dry run on the same commit.
func (r *createRequest) blind(lines []FileLines, baseCommit string) (out []string) {
	if r.promoted != nil && r.promoted.BaseCommit == baseCommit {
		return nil
	}
	for _, l := range lines {
		isBlind := func(f FileRequest) bool {
			return f.Path == l.Path && f.Action == string(gitprovider.ActionUpdate) && len(f.Edits) == 0 && f.BaseSHA == ""
		}
		if l.Removed > 0 && slices.ContainsFunc(r.asked.Files, isBlind) {
			out = append(out, fmt.Sprintf("%s (lines removed: %d)", l.Path, l.Removed))
		}
	}
	return out
}
