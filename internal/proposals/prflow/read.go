package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// StatusRequest asks for one pull request.
type StatusRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
	// Include asks for more about one of our own pull requests.
	Include []string `json:"include,omitempty" enum:"files,diff" maxItems:"2" doc:"Of ours: the files of its branch with base_sha, the difference" brief:"true" fix:"leave it out, or give files, diff or both"`
}

// status returns one pull request. Every tier may ask for it.
func (s *Service) status(ctx context.Context, req StatusRequest) (StatusResult, error) {
	reader := s.Reader()
	resolution, err := reader.find(req.RepoOwner, req.RepoName, req.CloneURL, s.Registry.Resolve)
	if err != nil {
		return StatusResult{}, err
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, req.PRNumber)
	if err != nil {
		return StatusResult{}, err
	}
	result, err := s.statusWith(ctx, s.files(), resolution, status, included{what: req.Include, room: maxIncluded})
	if err != nil {
		return StatusResult{}, err
	}
	if status.State == gitprovider.StateOpen && s.CurrentAuthority().mayWrite() {
		result.Revise = reader.revise(ctx, resolution, status)
	}
	return result, nil
}

// statusWith returns the status of a pull request, with the contents that the caller asked to include.
func (s *Service) statusWith(ctx context.Context, f fileReader, at gitprovider.Resolution, status gitprovider.Status,
	want included) (StatusResult, error) {
	if len(want.what) == 0 {
		return statusResult(status, nil), nil
	}
	more, lineText, err := f.include(ctx, at, status.PullRequest, want)
	if err != nil {
		return StatusResult{}, err
	}
	result := statusResult(status, lineText)
	result.Checks.Details = f.shower.checks(ctx, status.Checks.Details)
	result.Included = more
	return result, nil
}

// revise says whether an open pull request may be added to; "" for one that is not ours, and if that cannot be seen.
func (r Reader) revise(ctx context.Context, at gitprovider.Resolution, status gitprovider.Status) string {
	pr, adds := status.PullRequest, r.adds()
	adds.checks, adds.base = &status.Checks, at.BaseBranch
	if !gitprovider.HasMark(pr) {
		return ""
	}
	standing, err := adds.of(ctx, at.Provider, at.Repo, pr)
	switch {
	case err != nil:
		r.log.warn("not seen whether a pull request may be revised", err, "pr", pr.Number)
		return ""
	case standing.why != nil:
		return "no: " + standing.why.Message
	}
	return mayRevise(pr.Number)
}

func mayRevise(number int) string { return fmt.Sprintf("yes: revises %d", number) }

// statusResult converts the status of a pull request for the answer. lineText returns the text of the line that a
// comment is on; it is nil where no text is known.
func statusResult(st gitprovider.Status, lineText func(gitprovider.LineComment) string) StatusResult {
	out := StatusResult{
		Number: st.Number, Title: clean(st.Title, maxTitle), URL: st.URL, State: string(st.State), Mergeable: st.Mergeable,
		Reviews: make([]ReviewEntry, 0, len(st.Reviews)), Untrusted: untrustedStatus,
		Checks: ChecksEntry{State: string(st.Checks.State), Failing: cleanAll(st.Checks.Failing, maxName)},
	}
	lines, left := lineEntries(st.Reviews, st.HeadCommit, lineText)
	for i, r := range st.Reviews {
		out.Reviews = append(out.Reviews, ReviewEntry{
			Author: clean(r.Author, maxName), State: string(r.State), Body: clean(r.Body, maxReview),
			SubmittedAt: timestamp(r.SubmittedAt), Comments: lines[i], LeftOut: left[i],
		})
	}
	return out
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func cleanAll(texts []string, runes int) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		out = append(out, clean(t, runes))
	}
	return out
}
