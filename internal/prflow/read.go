package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// ListRequest asks for the open pull requests of a repository.
type ListRequest struct {
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
}

// ListResult is the answer to a ListRequest (design §4).
type ListResult struct {
	PRs       []PRSummary `json:"prs" brief:"true"`
	Untrusted string      `json:"untrusted"`
	Warnings  []string    `json:"warnings,omitempty"` // which of them lack the label
}

// PRSummary is one open pull request.
type PRSummary struct {
	Number    int      `json:"number"`
	Title     string   `json:"title"`
	URL       string   `json:"url"`
	Branch    string   `json:"branch"`
	CreatedAt string   `json:"created_at"` // RFC 3339, UTC
	Files     []string `json:"files"`
	Ours      bool     `json:"ours,omitempty" brief:"true" doc:"Has our mark: create_pr may revise it after a review"`
}

// List returns the open pull requests that carry the label claude-ops, and those that lack it and have our mark, complete,
// oldest first. raw is the JSON object of a ListRequest. Every tier may call it.
func (s *Service) List(ctx context.Context, raw []byte) (ListResult, error) {
	var req ListRequest
	reader := s.Reader()
	violations := strictjson.DecodeWithinLimits(raw, &req, strictjson.Options{})
	if len(violations) > 0 {
		return ListResult{}, reader.failed(fault.Refusal(violations))
	}
	resolution, err := reader.find(req.RepoOwner, req.RepoName, req.CloneURL, s.Registry.Resolve)
	if err != nil {
		return ListResult{}, reader.failed(err)
	}
	prs, err := reader.list(ctx, resolution)
	if err != nil {
		return ListResult{}, reader.failed(err)
	}
	marks, err := reader.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return ListResult{}, reader.failed(err)
	}
	result := ListResult{PRs: make([]PRSummary, 0, len(prs)), Untrusted: untrustedList}
	for _, pr := range prs {
		if !isLabelled(pr) {
			result.Warnings = append(result.Warnings, fmt.Sprintf("#%d lacks the label %s and was found by the mark in its body; "+
				"the same create_pr again puts the label back, if the repository has it", pr.Number, gitprovider.LabelOurs))
		}
		_, ours := marks.read(pr)
		result.PRs = append(result.PRs, PRSummary{
			Ours:   ours,
			Number: pr.Number, Title: clean(pr.Title, maxTitle), URL: pr.URL, Branch: clean(pr.Branch, maxTitle),
			CreatedAt: timestamp(pr.CreatedAt), Files: cleanAll(pr.Paths, gitprovider.MaxPathBytes),
		})
	}
	return result, nil
}

// StatusRequest asks for one pull request.
type StatusRequest struct {
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
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
	Untrusted string        `json:"untrusted"`
}

// ReviewEntry is one review.
type ReviewEntry struct {
	Author      string `json:"author"`
	State       string `json:"state" enum:"approved,changes_requested,commented,dismissed,pending"`
	Body        string `json:"body"`
	SubmittedAt string `json:"submitted_at,omitempty"` // RFC 3339, UTC

	Comments []LineEntry `json:"comments,omitempty" doc:"On lines of files, where the provider tells them"`
}

// LineEntry is what a review says of one line of a file.
type LineEntry struct {
	Path     string `json:"path"`
	Line     int    `json:"line" doc:"From 1"`
	Before   bool   `json:"before,omitempty" doc:"The line is one of the file as it was before the change"`
	Outdated bool   `json:"outdated,omitempty" doc:"The branch has moved since, so that the line may be another one by now"`
	Body     string `json:"body"`
}

// ChecksEntry is the combined CI state and the contexts that fail.
type ChecksEntry struct {
	State   string   `json:"state" enum:"none,pending,success,failure"`
	Failing []string `json:"failing"`
}

// Status returns one pull request. raw is the JSON object of a StatusRequest. Every tier may call it.
func (s *Service) Status(ctx context.Context, raw []byte) (StatusResult, error) {
	var req StatusRequest
	reader := s.Reader()
	violations := strictjson.DecodeWithinLimits(raw, &req, strictjson.Options{})
	if len(violations) > 0 {
		return StatusResult{}, reader.failed(fault.Refusal(violations))
	}
	resolution, err := reader.find(req.RepoOwner, req.RepoName, req.CloneURL, s.Registry.Resolve)
	if err != nil {
		return StatusResult{}, reader.failed(err)
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, req.PRNumber)
	if err != nil {
		return StatusResult{}, reader.failed(err)
	}
	result := statusResult(status)
	if status.State == gitprovider.StateOpen && s.Authority.mayWrite() {
		result.Revise = reader.revise(ctx, resolution, status.PullRequest)
	}
	return result, nil
}

// revise says whether an open pull request may be added to; "" for one that is not ours, and if that cannot be seen.
func (r Reader) revise(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest) string {
	if !gitprovider.HasMark(pr) {
		return ""
	}
	standing, err := r.adds.of(ctx, at.Provider, at.Repo, pr)
	switch {
	case err != nil:
		r.log.warn("not seen whether a pull request may be revised", err, "pr", pr.Number)
		return ""
	case standing.why != nil:
		return "no: " + standing.why.Message
	}
	return fmt.Sprintf("yes: revises %d", pr.Number)
}

func statusResult(st gitprovider.Status) StatusResult {
	out := StatusResult{
		Number: st.Number, Title: clean(st.Title, maxTitle), URL: st.URL, State: string(st.State), Mergeable: st.Mergeable,
		Reviews: make([]ReviewEntry, 0, len(st.Reviews)), Untrusted: untrustedStatus,
		Checks: ChecksEntry{State: string(st.Checks.State), Failing: cleanAll(st.Checks.Failing, maxName)},
	}
	for _, r := range st.Reviews {
		out.Reviews = append(out.Reviews, ReviewEntry{
			Author: clean(r.Author, maxName), State: string(r.State), Body: clean(r.Body, maxReview),
			SubmittedAt: timestamp(r.SubmittedAt), Comments: lineEntries(r.Comments, st.HeadCommit),
		})
	}
	return out
}

func lineEntries(comments []gitprovider.LineComment, head string) (out []LineEntry) {
	for _, c := range comments {
		out = append(out, LineEntry{
			Path: clean(c.Path, gitprovider.MaxPathBytes), Line: c.Line, Before: c.Before, Outdated: c.Commit != head, Body: clean(c.Body, maxReview),
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
