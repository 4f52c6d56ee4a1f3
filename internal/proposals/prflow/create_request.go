package prflow

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// CreateRequest is the body of create_pr and of POST /prs (design §4). It has no tier on purpose. A body has room for
// our footer within the 65,536 characters that GitHub stores.
type CreateRequest struct {
	RepoOwner  string        `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName   string        `json:"repo_name" required:"true" doc:"Repository name"`
	Title      string        `json:"title" required:"true" minLength:"1" maxLength:"72" doc:"What changes, with at least one letter or digit" fix:"say in a few words what changes; details belong into the body"`
	Body       string        `json:"body" required:"true" minLength:"1" maxBytes:"60000" doc:"Markdown: observed, why, what, impact" fix:"say briefly what was observed, why the change helps, what it does, its impact"`
	Files      []FileRequest `json:"files" required:"true" maxItems:"100" doc:"Empty: only to reply" fix:"name at least one file"`
	CloneURL   string        `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled"`
	BaseBranch string        `json:"base_branch,omitempty" doc:"Default: the repository's default branch"`
	Revises    int           `json:"revises,omitempty" minimum:"1" doc:"Our open PR to add to, after review; edits need base_sha" fix:"give the number of an open pull request of ours, or leave it out"`
	// Reply and Replies are posted with the commit of a revision, or, without files, alone.
	Reply      string         `json:"reply,omitempty" maxBytes:"8000" doc:"With revises: answers the review" fix:"answer in fewer words"`
	Replies    []ReplyRequest `json:"replies,omitempty" maxItems:"50" doc:"To comments on lines"`
	ChangeType string         `json:"change_type,omitempty" enum:"check,playbook,skill,manifest,fix" default:"fix" fix:"leave it out for fix" doc:"Kind of change"`
	// Preview says how much of the change the answer of a dry run repeats. It does not belong to the change.
	Preview string `json:"preview,omitempty" enum:"summary,full" doc:"In a dry run: full adds body and diff" fix:"leave it out for the summary"`
}

// FileRequest is one file of a CreateRequest. Content is a pointer, since an empty file is not a missing one.
type FileRequest struct {
	Path    string  `json:"path" required:"true" doc:"From the repository's root, such as checks/disk.md"`
	Action  string  `json:"action" required:"true" enum:"create,update,delete" doc:"What to do"`
	Content *string `json:"content,omitempty" doc:"The whole new file"`
	// Edits are made one after the other, each on what those before it have left.
	Edits   []textedit.Edit `json:"edits,omitempty" maxItems:"100" doc:"For update, in place of content" fix:"give content, or at least one edit"`
	BaseSHA string          `json:"base_sha,omitempty" pattern:"^[0-9a-fA-F]{7,64}$" doc:"Git blob id of the file as you read it" fix:"give what git hash-object says of the file, or leave it out"`
}

// MaxTitleRunes returns the maximum number of characters of a title.
func MaxTitleRunes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "title", "maxLength")
}

// MaxBodyBytes returns the maximum number of bytes of a body.
func MaxBodyBytes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "body", "maxBytes")
}

// parseRepo checks the repository's arguments.
func parseRepo(owner, name, cloneURL string) (gitprovider.RepoRef, []fault.Violation) {
	ref, problems := gitprovider.NewRepoRef(owner, name, cloneURL)
	var out []fault.Violation
	for _, argument := range []string{"repo_owner", "repo_name", "clone_url"} {
		if err := problems[argument]; err != nil {
			out = append(out, invalid(argument, fmt.Sprintf("`%s` %s", argument, err), ""))
		}
	}
	return ref, out
}

// normalize sets defaults and drops spaces around the title.
func (r *CreateRequest) normalize() {
	r.Title = strings.TrimSpace(r.Title)
	if r.ChangeType == "" {
		r.ChangeType = string(gitprovider.TypeFix)
	}
}

// fileChanges returns the request's files in the domain's form.
func (r *CreateRequest) fileChanges() []gitprovider.FileChange {
	out := make([]gitprovider.FileChange, len(r.Files))
	for i, f := range r.Files {
		out[i] = gitprovider.FileChange{Path: f.Path, Action: gitprovider.Action(f.Action)}
		if f.Content != nil {
			out[i].Content = *f.Content
		}
	}
	return out
}

// ReplyRequest answers one comment on a line.
type ReplyRequest struct {
	Comment string `json:"comment" required:"true" minLength:"1" doc:"Its id" fix:"give the id of a comment on a line, as get_pr_status has it"`
	Text    string `json:"text" required:"true" minLength:"1" maxBytes:"4000" fix:"answer in a few words" doc:"Your answer"`
}
