package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// StatusRequest asks for one pull request.
type StatusRequest struct {
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
	// Include asks for more about one of our own pull requests.
	Include []string `json:"include,omitempty" enum:"files,diff" maxItems:"2" doc:"Of ours: the files of its branch with base_sha, the difference" brief:"true" fix:"leave it out, or give files, diff or both"`
}

// StatusResult is the answer to a StatusRequest (design §4).
type StatusResult struct {
	Number    int           `json:"number"`
	Title     string        `json:"title"`
	URL       string        `json:"url"`
	State     string        `json:"state" enum:"open,closed,merged"`
	Mergeable *bool         `json:"mergeable" doc:"null: still being computed, or not open"`
	Reviews   []ReviewEntry `json:"reviews" brief:"true"`
	Checks    ChecksEntry   `json:"checks" brief:"true"`
	Revise    string        `json:"revise,omitempty" brief:"true" doc:"Whether create_pr with revises may add to it now, or why not"`
	Included  *Included     `json:"included,omitempty" brief:"true" doc:"What include asks for"`
	Untrusted string        `json:"untrusted"`
}

// ReviewEntry is one review.
type ReviewEntry struct {
	Author      string `json:"author"`
	State       string `json:"state" enum:"approved,changes_requested,commented,dismissed,pending"`
	Body        string `json:"body"`
	SubmittedAt string `json:"submitted_at,omitempty"` // RFC 3339, UTC

	Comments []LineEntry `json:"comments,omitempty" doc:"On lines of files"`
	LeftOut  int         `json:"comments_left_out,omitempty" doc:"How many older comments on lines the answer has no room for"`
}

// LineEntry is what a review says of one line of a file.
type LineEntry struct {
	ID       string `json:"id,omitempty" doc:"For replies of create_pr"`
	Path     string `json:"path"`
	Line     int    `json:"line" doc:"From 1; 0: the file as a whole"`
	Before   bool   `json:"before,omitempty" doc:"The line is one of the file as it was before the change"`
	Outdated bool   `json:"outdated,omitempty" doc:"The branch has moved since, so that the line may be another one by now"`
	Text     string `json:"text,omitempty" doc:"Of the line, where files or difference were asked for and it is known"`
	Resolved bool   `json:"resolved,omitempty" doc:"Somebody has marked the conversation as settled"`
	Author   string `json:"author,omitempty" doc:"If it is not the review's"`
	Body     string `json:"body"`
}

// ChecksEntry is the combined CI state and the contexts that fail.
type ChecksEntry struct {
	State   string   `json:"state" enum:"none,pending,success,failure"`
	Failing []string `json:"failing"`

	Details []CheckEntry `json:"details,omitempty" doc:"Of the failing ones, where files or difference were asked for"`
}

// CheckEntry is what a failing context says.
type CheckEntry struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	LogEnd  string `json:"log_end,omitempty" doc:"How its longer text ends, where the host has one"`
	URL     string `json:"url,omitempty"`
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
	if status.State == gitprovider.StateOpen && s.Authority.mayWrite() {
		result.Revise = reader.revise(ctx, resolution, status)
	}
	return result, nil
}

// statusWith is what is said of a pull request, with what the caller wants included.
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
	pr, adds := status.PullRequest, r.adds
	adds.checks = &status.Checks
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

// statusResult is what is said of a pull request. lineText is the text of the line that a comment is on; nil where none
// is known.
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
