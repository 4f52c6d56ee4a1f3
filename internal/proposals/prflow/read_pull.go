package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ReadDiffRequest asks for the difference of one of our own pull requests.
type ReadDiffRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled"`
}

// PullDiff is the difference of one of our own pull requests, against its base branch as it is now.
type PullDiff struct {
	Number     int      `json:"number"`
	Base       string   `json:"base"`
	BaseCommit string   `json:"base_commit"`
	Branch     string   `json:"branch"`
	Commit     string   `json:"commit"`
	Diff       string   `json:"diff" doc:"Unified"`
	Notes      []string `json:"notes,omitempty" doc:"What is left out, and what the base branch has changed since"`
	Untrusted  string   `json:"untrusted"`
}

// maxDiffAnswer bounds, in bytes of JSON, the difference that ReadDiff gives.
const maxDiffAnswer = 256 << 10

// pullDiff reads what one of our own pull requests changes. Every tier may ask for it; files that may not be read are
// named and left out. not_found for one that is not ours, conflict for one that is not open.
func (f fileReader) pullDiff(ctx context.Context, req ReadDiffRequest) (PullDiff, error) {
	at, err := f.at(req.RepoOwner, req.RepoName, req.CloneURL)
	if err != nil {
		return PullDiff{}, err
	}
	status, err := at.Provider.Status(ctx, at.Repo, req.PRNumber)
	if err != nil {
		return PullDiff{}, err
	}
	contents, err := f.contents(ctx, at, status.PullRequest)
	if err != nil {
		return PullDiff{}, err
	}
	out := PullDiff{
		Number: req.PRNumber, Base: clean(status.Base, maxTitle), BaseCommit: contents.base.BaseCommit,
		Branch: clean(status.Branch, maxTitle),
		Commit: contents.head.BaseCommit, Notes: contents.notes, Untrusted: untrustedFiles,
	}
	diff, leftOut := contents.diff(maxDiffAnswer)
	out.Diff, out.Notes = diff, append(out.Notes, leftOut...)
	return out, nil
}

// Values of StatusRequest.Include.
const (
	includeFiles = "files"
	includeDiff  = "diff"
)

// Bounds of what a status includes, in bytes of JSON.
const (
	maxIncludedFile = 64 << 10
	maxIncluded     = 240 << 10 // all texts together, so that the answer stays below 256 KiB
)

// included says what to include in a status, and the room for it in bytes of JSON.
type included struct {
	what []string
	room int
}

// include reads what a status is asked to include, and gives what finds the text of the line that a comment is on. Of a
// pull request that is not ours, or not open, a note says that there is nothing.
func (f fileReader) include(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest, want included) (
	*Included, func(gitprovider.LineComment) string, error,
) {
	out := &Included{Untrusted: untrustedFiles}
	if why := f.authority.Unknown; why != "" {
		out.Notes = []string{"nothing is included: " + why}
		return out, nil, nil
	}
	contents, err := f.contents(ctx, at, pr)
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound || code == fault.Conflict:
		out.Notes = []string{"nothing is included: " + fault.From(err).Message}
		return out, nil, nil
	case err != nil:
		return nil, nil, err
	}
	out.Commit, out.Notes = contents.head.BaseCommit, contents.notes
	room := want.room
	if slices.Contains(want.what, includeDiff) {
		share := room
		if slices.Contains(want.what, includeFiles) {
			share /= 2
		}
		diff, leftOut := contents.diff(share)
		out.Diff, out.Notes = diff, append(out.Notes, leftOut...)
		room -= jsonLength(diff)
	}
	if slices.Contains(want.what, includeFiles) {
		contents.include(out, room, pr.Number)
	}
	return out, contents.lineText, nil
}

// ToAnswer returns the status of a pull request of ours whose review waits for an answer from an agent of the tier.
// Files and difference are included as far as room bytes of JSON allow. It is nil if no review waits, or the tier may
// not answer. status is the provider's answer.
func (s *Service) ToAnswer(ctx context.Context, tier gitprovider.Tier, at record.PullKey, status gitprovider.Status,
	room int) (*StatusResult, error) {
	rules := s.CurrentAuthority()
	mayPropose := rules.ReadOnly == "" && rules.Policy.Tiers.MaxFiles(tier) > 0
	if !mayPropose || status.State != gitprovider.StateOpen || !gitprovider.HasMark(status.PullRequest) {
		return nil, nil
	}
	f := s.files()
	f.authority.Tier = tier
	resolution, err := f.Reader.at(at.Provider, at.Owner, at.Repo)
	if err != nil {
		return nil, f.failed(err)
	}
	adds := f.adds()
	adds.checks, adds.base = &status.Checks, resolution.BaseBranch
	stands, err := adds.of(ctx, resolution.Provider, resolution.Repo, status.PullRequest)
	if err != nil {
		return nil, f.failed(err)
	}
	if stands.why != nil || stands.asks == nil && len(stands.red) == 0 {
		return nil, nil
	}
	out, err := s.statusWith(ctx, f, resolution, status, included{[]string{includeFiles, includeDiff}, room})
	if err != nil {
		return nil, f.failed(err)
	}
	out.Revise = mayRevise(status.Number)
	return &out, nil
}

// include adds the files as far as there is room.
func (c *pullContents) include(out *Included, room, number int) {
	for _, f := range c.files {
		one := PullFile{Path: f.path, BaseSHA: f.id, Deleted: f.id == "", Text: f.after.text, Lacks: f.after.lacks}
		size := jsonLength(one.Text)
		if size > min(room, maxIncludedFile) {
			size, one.Text = 0, ""
			one.Lacks = append(one.Lacks, fmt.Sprintf("the text: it has %d bytes; read it alone, at pull/%d/file/%s",
				len(f.after.text), number, f.path))
		}
		room -= size
		out.Files = append(out.Files, one)
	}
}
