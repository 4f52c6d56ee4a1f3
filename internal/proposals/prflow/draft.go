package prflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
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
	return fmt.Sprintf(footerOpening+"at tier %s. Request `%s`, policy `%s`, change `%s`. Files: `%s`.\n\n%s",
		c.rules.Tier, c.request.id,
		c.rules.Policy.Hash(), digest[:12], strings.Join(c.request.allPaths(), "`, `"), &warnings)
}

// suffixLength is the number of hex digits of the digest that are appended to a branch name when the plain name is
// taken.
const suffixLength = 8

// branchNames returns the names that the branch may take, in order of preference: the plain one, one with a digest of
// the change, one with a digest of this very request. nil if the title gives none.
func branchNames(r *request) []string {
	plain, err := gitprovider.BranchName(gitprovider.ChangeType(r.asked.ChangeType), r.text.title)
	if err != nil {
		return nil
	}
	return []string{
		plain,
		gitprovider.BranchWithSuffix(plain, r.digests.asked[:suffixLength]),
		gitprovider.BranchWithSuffix(plain, hashJSON([]string{r.digests.asked, r.id})[:suffixLength]),
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
