package prflow

import (
	"context"
	"fmt"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/sanitize"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// draftOn sets the draft to one for the branch.
func (c *creation) draftOn(branch string) (err error) {
	c.draft, err = c.draftFor(branch)
	return err
}

// draftFor makes the draft for a branch, which the mark in the body names.
func (c *creation) draftFor(branch string) (draft, error) {
	key, err := c.service.Proof.Key()
	if err != nil {
		return draft{}, err
	}
	d := draft{branch: branch, title: c.request.text.title, digest: c.evidence.digest(&c.request), head: c.draft.head}
	m := mark{
		Provider: c.evidence.resolution.Provider.Name(), Repo: strings.ToLower(c.evidence.snapshot.Repo.String()),
		RepoID: c.evidence.snapshot.RepoID, Branch: branch,
		Digest: d.digest, Request: c.request.id, Contents: fingerprints(c.request.changes.Changes()), Audit: d.head,
	}
	if rev := c.evidence.revision; rev != nil {
		m.Request, m.Revision, m.RevisedBy, m.Heard = rev.mark.Request, rev.made+1, c.request.id, replying{c}.heard()
		m.Contents = fingerprints(changesIn(rev.net))
		d.answers = replying{c}.answers()
	}
	if c.request.asked.repliesOnly() {
		return replying{c}.draftOfReplies(d, m, key)
	}
	signed, err := m.sign(key)
	d.body = c.request.text.body + c.footer(d.digest) + signed + "\n"
	return d, err
}

// footerOpening begins the footer.
const footerOpening = "\n\n---\n\nProposed by an agent through Claude Ops "

// footer returns the text between the agent's body and the mark: it tells people where the pull request comes from.
func (c *creation) footer(digest string) string {
	var warnings strings.Builder
	if rev := c.evidence.revision; rev != nil {
		fmt.Fprintf(&warnings, "Revision %d of what request `%s` has opened.\n\n", rev.made+1, rev.mark.Request)
		if note := RedirectNote(rev.pr.Body); note != "" && !slices.ContainsFunc(c.request.changes.Paths(), isManifest) {
			warnings.WriteString(note + "\n\n")
		}
	}
	for _, warning := range c.verdicts.warnings() {
		warnings.WriteString(warning + "\n\n")
	}
	warnings.WriteString(factsNote(c.evidence.facts))
	notes, _ := sanitize.Rules{}.Body(warnings.String()) // bots and CI read code, too
	if notes != "" {
		notes += "\n\n"
	}
	return fmt.Sprintf(footerOpening+"at tier %s. Request `%s`, policy `%s`, change `%s`. Files: `%s`.\n\n%s",
		c.rules.Tier, c.request.id,
		c.rules.Policy.Hash(), digest[:12], strings.Join(c.request.allPaths(), "`, `"), notes)
}

// suffixLength is the number of hex digits of the digest that are appended to a branch name when the plain name is
// taken.
const suffixLength = 8

// branchNames returns the names that the branch may take, in order of preference: the plain one, one with a digest of
// the change, one with a digest of this very request. nil if the title gives none.
func branchNames(r *createRequest) []string {
	plain, err := gitprovider.BranchName(gitprovider.ChangeType(r.asked.ChangeType), r.text.title)
	if err != nil {
		return nil
	}
	return []string{
		plain,
		gitprovider.BranchWithSuffix(plain, r.digests.requested[:suffixLength]),
		gitprovider.BranchWithSuffix(plain, hashJSON([]string{r.digests.requested, r.id})[:suffixLength]),
	}
}

// freeBranch returns the first name that is free in the snapshot.
func (c *creation) freeBranch() string {
	if rev := c.evidence.revision; rev != nil {
		return rev.pr.Branch
	}
	names := branchNames(&c.request)
	for _, name := range names {
		if _, taken := c.evidence.snapshot.Tips[name]; !taken {
			return name
		}
	}
	return names[len(names)-1]
}

// draftTitle begins the titles of drafts where a host knows them by that alone.
const draftTitle = "WIP: "

// preview answers a dry run with everything but the writing, and records the proposal so that a person can look at it.
func (c *creation) preview(ctx context.Context) (CreateResult, error) {
	provider, snapshot := c.evidence.resolution.Provider, c.evidence.snapshot
	usage, err := c.service.History.Usage(ctx, provider.Name(), snapshot.Repo.Owner, snapshot.Repo.Name,
		c.evidence.claim())
	if err != nil {
		return CreateResult{}, err
	}
	c.evidence.usage = usage
	if _, err := c.runGates(ctx, phaseReserve); err != nil {
		return CreateResult{}, err
	}
	if err := c.admitted(ctx); err != nil {
		return CreateResult{}, err
	}
	proposal := c.proposal(record.StateDryRun)
	if err := c.recordRow(ctx, c.auditRow(record.OutcomeDryRun, nil), &proposal); err != nil {
		return CreateResult{}, err
	}
	shown := Preview{Base: snapshot.Base, Title: c.draft.title, Labels: c.rules.Policy.Labels, Gates: c.verdicts.all(),
		Calls: c.calls()}
	if c.request.asked.Preview == PreviewFull {
		shown.Body = withoutMark(c.draft.body)
		shown.Diff = c.shownDiff(ctx)
	}
	return CreateResult{
		Branch: c.draft.branch, Files: c.request.paths(), Lines: c.evidence.lines, Facts: factLines(c.evidence.facts),
		DryRun:  true,
		Revised: proposal.Revises > 0, Warnings: c.allWarnings(),
		Preview: &shown,
	}, nil
}

// shownDiff returns the difference without lines that look like they hold secrets: they may stand on the base branch,
// where the agent is not shown them either.
func (c *creation) shownDiff(ctx context.Context) string {
	out := shownText{text: changesDiff(c.request.changes.Changes(), c.evidence.comparedSnapshot())}
	if err := (textShower{secrets: c.rules.secrets}).redact(ctx, "the difference", &out); err != nil {
		return "[not shown: it holds what looks like secrets]\n"
	}
	return capped(out.text)
}

// PreviewFull is the value of CreateRequest.Preview that asks for body and diff.
const PreviewFull = "full"

// withoutMark returns a body as people see it: the mark at its end is an HTML comment.
func withoutMark(body string) string {
	return strings.TrimRight(markForm().ReplaceAllLiteralString(body, ""), "\n") + "\n"
}

// calls says what would be done.
func (c *creation) calls() []string {
	repo := c.evidence.resolution.Provider.Name() + ":" + c.evidence.snapshot.Repo.String()
	if rev := c.evidence.revision; rev != nil && c.request.asked.repliesOnly() {
		return replying{c}.replyCalls(rev.pr.Number)
	} else if rev != nil {
		return append([]string{
			fmt.Sprintf("add one commit of %s to the branch %s in %s at %s", fault.CountFiles(c.request.changes.Len()), c.draft.branch, repo,
				short(c.evidence.parent())),
			fmt.Sprintf("set title and body of #%d", rev.pr.Number),
			fmt.Sprintf("answer in a comment on #%d", rev.pr.Number),
		}, replying{c}.lineCalls(rev.pr.Number)...)
	}
	calls := []string{
		fmt.Sprintf("create the branch %s in %s at %s (%s) with one commit of %s",
			c.draft.branch, repo, short(c.evidence.snapshot.BaseCommit), c.evidence.snapshot.Base,
			fault.CountFiles(c.request.changes.Len())),
		fmt.Sprintf("open the pull request %q from %s into %s", c.draft.title, c.draft.branch, c.evidence.snapshot.Base),
		"label it " + strings.Join(c.rules.Policy.Labels, ", "),
	}
	if people := c.rules.Policy.Pulls.Reviewers; len(people) > 0 {
		calls = append(calls, "ask "+strings.Join(people, ", ")+" for a review")
	}
	if people := c.rules.Policy.Pulls.Assignees; len(people) > 0 {
		calls = append(calls, "assign "+strings.Join(people, ", "))
	}
	return calls
}

// changesDiff returns the unified diff of the changes against the base commit.
func changesDiff(changes []gitprovider.Change, snapshot *gitprovider.Snapshot) string {
	var b strings.Builder
	for _, change := range changes {
		b.WriteString(fileDiff(change, snapshot))
	}
	return b.String()
}

// capped cuts a diff at maxDiff.
func capped(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	return strings.ToValidUTF8(diff[:maxDiff], "") + fmt.Sprintf("\n[cut: the diff has %d bytes]\n", len(diff))
}

func fileDiff(change gitprovider.Change, snap *gitprovider.Snapshot) string {
	path := change.Path.String()
	oldName, newName := "a/"+path, "b/"+path
	switch change.Action {
	case gitprovider.ActionCreate:
		oldName = "/dev/null"
	case gitprovider.ActionDelete:
		newName = "/dev/null"
	}
	before, known := snap.Contents[change.Path]
	if !known && change.Action != gitprovider.ActionCreate {
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: the file on the base branch is larger than %d bytes]\n",
			oldName, newName, gitprovider.MaxContentRead)
	}
	return textedit.Unified(oldName, newName, string(before), change.Content)
}

// maxDiff bounds the diff in a preview, in bytes, so that an answer stays readable for a model.
const maxDiff = 64 << 10

// What follows watches the section "## Git Provider" of the manifest. Once such a change is merged and the working copy
// that is mounted has it, it decides where later proposals go, so that people have to know. It refuses nothing: a
// person decides by merging. What the policy pins holds whatever the manifest says.

// redirectOpening begins the text of manifestNote in the footer and in the record.
const redirectOpening = "Changes where later proposals go: "

// manifestNote says how the changes alter the section; "" if they do not.
func manifestNote(p policy.Policy, snapshot *gitprovider.Snapshot, changes []gitprovider.Change) string {
	for _, c := range changes {
		if !isManifest(c.Path) {
			continue
		}
		before, known := snapshot.Contents[c.Path]
		if _, exists := snapshot.Tree[c.Path.String()]; exists && !known {
			return redirectOpening + "the section Git Provider of " + gitprovider.ManifestFile +
				" may differ; the file on the base branch is " +
				"too large to compare." + pinNote(p, snapshot)
		}
		now := c.Content
		if c.Action == gitprovider.ActionDelete {
			now = ""
		}
		if changed := manifestChanges(string(before), now); len(changed) > 0 {
			return redirectOpening + "the section Git Provider of " + gitprovider.ManifestFile + " gets " +
				strings.Join(changed, ", ") + "." +
				pinNote(p, snapshot)
		}
	}
	return ""
}

func isManifest(path gitprovider.Path) bool {
	return strings.EqualFold(path.String(), gitprovider.ManifestFile)
}

// manifestChanges lists what differs in the sections of two manifests.
func manifestChanges(before, now string) (out []string) {
	was, wasErr := gitprovider.ParseManifest(before)
	is, isErr := gitprovider.ParseManifest(now)
	if isErr != nil {
		if wasErr != nil && before == now {
			return nil
		}
		return []string{"unreadable: calls about a repository that is mounted with it will fail"}
	}
	for _, f := range []struct{ name, was, is string }{
		{"provider", was.Provider, is.Provider}, {"remote", was.Remote, is.Remote}, {"owner", was.Owner, is.Owner},
		{"repo", was.Repo, is.Repo}, {"base_branch", was.BaseBranch, is.BaseBranch},
	} {
		if f.was == f.is {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s (was %s)", f.name, declared(f.is), declared(f.was)))
	}
	if wasErr != nil && len(out) == 0 {
		return []string{"readable again"}
	}
	return out
}

// declared returns a value of the section for a text that we write: it cannot end its code span, nor the line.
func declared(value string) string {
	const most = 60 // bytes; the whole then fits into a sentence of the record
	if value == "" {
		return "not set"
	}
	plain := strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '`' || r == '<' || r == '>' {
			return '?'
		}
		return r
	}, value)
	if len(plain) > most {
		plain = plain[:most] + "..."
	}
	return "`" + plain + "`"
}

// pinNote says what of the section cannot take effect.
func pinNote(p policy.Policy, snapshot *gitprovider.Snapshot) string {
	pin, found := p.PinFor(snapshot.Repo.Owner, snapshot.Repo.Name)
	if !found {
		return ""
	}
	return " The operator's policy keeps " + pin.String() + " all the same."
}
