package prflow

import (
	"github.com/claudeops/claudeops/internal/records/record"
)

// CreateResult is the answer to a proposal (design §4). In a dry run Number is 0 and URL empty.
type CreateResult struct {
	Number   int         `json:"number,omitempty"`
	URL      string      `json:"url,omitempty"`
	Branch   string      `json:"branch"`
	Commit   string      `json:"commit,omitempty"`
	Files    []string    `json:"files"`
	Lines    []FileLines `json:"lines,omitempty" brief:"true" doc:"Added and removed, by file"`
	Reused   bool        `json:"reused,omitempty" brief:"true" doc:"The same change was open already"`
	Revised  bool        `json:"revised,omitempty" brief:"true" doc:"The pull request that revises names has the commit, or, without files, the replies"`
	Replies  int         `json:"replies,omitempty" brief:"true" doc:"How many answers to the review were posted"`
	DryRun   bool        `json:"dry_run,omitempty" doc:"Nothing was written"`
	Warnings []string    `json:"warnings,omitempty"`
	Preview  *Preview    `json:"preview,omitempty" brief:"true"`

	RequestID string `json:"-"`
}

// Created reports whether a pull request was opened: by none of a dry run, of one that was open already, and of a
// revision.
func (r CreateResult) Created() bool { return !r.DryRun && !r.Reused && !r.Revised }

// Preview describes what a dry run would have done. The record has all of it, for people (design §3, gate 10); the
// caller sent the change, so its answer repeats it only on request.
type Preview struct {
	Base   string           `json:"base"`
	Title  string           `json:"title"`
	Body   string           `json:"body,omitempty" doc:"Of a full preview: as it would be, without the mark"`
	Labels []string         `json:"labels"`
	Diff   string           `json:"diff,omitempty" doc:"Of a full preview: unified, against the base commit"`
	Gates  []record.Verdict `json:"gates" brief:"true"`
	Calls  []string         `json:"calls"` // what would have been done, in order
}

// FileLines counts the lines of a file that a change adds and removes.
type FileLines struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	// Unknown says that the file on the base branch is too large to be compared, so that nothing was counted.
	Unknown bool `json:"unknown,omitempty" doc:"The file on the base branch is too large to be compared"`
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

// LineEntry is a review comment on one line of a file.
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

// CheckEntry describes a failing check.
type CheckEntry struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	LogEnd  string `json:"log_end,omitempty" doc:"How its longer text ends, where the host has one"`
	URL     string `json:"url,omitempty"`
}

// Included holds the contents of a pull request of ours that a status request asked for.
type Included struct {
	Commit    string     `json:"commit,omitempty"` // of the branch
	Files     []PullFile `json:"files,omitempty"`
	Diff      string     `json:"diff,omitempty"`
	Notes     []string   `json:"notes,omitempty"` // what is left out, and what the base branch has changed since
	Untrusted string     `json:"untrusted"`
}

// PullFile is a file of a pull request as its branch has it. Pass BaseSHA as base_sha in create_pr with revises.
type PullFile struct {
	Path    string   `json:"path"`
	Deleted bool     `json:"deleted,omitempty"`
	BaseSHA string   `json:"base_sha,omitempty"`
	Text    string   `json:"text"`
	Lacks   []string `json:"lacks,omitempty"` // what was taken out of the text
}
