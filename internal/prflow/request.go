package prflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// CreateRequest is the body of create_pr and of POST /prs (design §4). It has no tier on purpose. A body has room for our
// footer within the 65,536 characters that GitHub stores.
type CreateRequest struct {
	RepoOwner  string        `json:"repo_owner" required:"true"`
	RepoName   string        `json:"repo_name" required:"true"`
	Title      string        `json:"title" required:"true" minLength:"1" maxLength:"72" doc:"What changes, in one line" fix:"say in a few words what changes; details belong into the body"`
	Body       string        `json:"body" required:"true" minLength:"1" maxBytes:"60000" doc:"Markdown: observed, why, what, impact" fix:"say briefly what was observed, why the change helps, what it does, its impact"`
	Files      []FileRequest `json:"files" required:"true" minItems:"1" maxItems:"100" fix:"name at least one file"`
	CloneURL   string        `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled"`
	BaseBranch string        `json:"base_branch,omitempty" doc:"Default: the repository's default branch"`
	ChangeType string        `json:"change_type,omitempty" enum:"check,playbook,skill,manifest,fix" default:"fix" fix:"leave it out for fix"`

	withheld bool // title or paths hold what looks like a secret, so no record may repeat them
}

// FileRequest is one file of a CreateRequest. Content is a pointer, since an empty file is not a missing one.
type FileRequest struct {
	Path    string  `json:"path" required:"true" doc:"From the repository's root, such as checks/disk.md"`
	Action  string  `json:"action" required:"true" enum:"create,update,delete"`
	Content *string `json:"content,omitempty" doc:"The whole new file; leave out for delete"`
}

// ListRequest asks for the open pull requests of a repository.
type ListRequest struct {
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
}

// StatusRequest asks for one pull request.
type StatusRequest struct {
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled" brief:"true"`
}

// MaxTitleRunes is how many characters a title may have.
func MaxTitleRunes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "title", "maxLength")
}

// MaxBodyBytes is how many bytes a body may have.
func MaxBodyBytes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "body", "maxBytes")
}

// decode reads arguments strictly: duplicate keys, unknown or misspelled ones, wrong types are violations, all at once, and
// so is what is beyond the limits that the type states.
func decode(raw []byte, dst any) []fault.Violation {
	return strictjson.DecodeWithinLimits(raw, dst, strictjson.Options{})
}

// decodeSome reads a proposal as decode does. With violations r has what could be read, so that the other gates can speak
// and the record can say what was asked; that never leads to a proposal.
func decodeSome(raw []byte, r *CreateRequest) []fault.Violation {
	return strictjson.DecodeSome(raw, r, strictjson.Options{})
}

// refuseArguments wraps violations of a read request.
func refuseArguments(violations []fault.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	return fault.Refusal(violations)
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

func invalid(argument, message, suggestion string) fault.Violation {
	return fault.Violation{Code: fault.InvalidArgument, Path: argument, Message: message, Suggestion: suggestion}
}

// normalize sets defaults and drops spaces around the title.
func (r *CreateRequest) normalize() {
	r.Title = strings.TrimSpace(r.Title)
	if r.ChangeType == "" {
		r.ChangeType = string(gitprovider.TypeFix)
	}
}

// check is the part of gate 1 that the decoder cannot see: lengths, known values, what belongs together.
func (r *CreateRequest) check(requiredSections []string) []fault.Violation {
	out := strictjson.Limits(r)
	within := func(argument string) bool {
		return !slices.ContainsFunc(out, func(v fault.Violation) bool { return v.Path == argument })
	}
	if within("title") {
		out = append(out, checkTitle(r.Title)...)
	}
	if within("body") {
		out = append(out, checkBody(r.Body, requiredSections)...)
	}
	if r.BaseBranch != "" {
		if err := gitprovider.CheckBranchName(r.BaseBranch); err != nil {
			out = append(out, invalid("base_branch", "`base_branch` "+err.Error(), "leave it out for the default branch"))
		}
	}
	for i, f := range r.Files {
		out = append(out, f.check(fmt.Sprintf("files[%d]", i))...)
	}
	return out
}

func checkTitle(title string) []fault.Violation {
	if strings.ContainsAny(title, "\n\r\t") {
		return []fault.Violation{invalid("title", "`title` has a line break or a tab", "give one line")}
	}
	if _, err := gitprovider.Slug(title); err != nil {
		return []fault.Violation{invalid("title", "`title` has no letter a-z and no digit, so no branch can be named after it",
			"describe the change with at least one plain word")}
	}
	return nil
}

func checkBody(body string, required []string) []fault.Violation {
	if strings.TrimSpace(body) == "" {
		return []fault.Violation{invalid("body", "`body` is empty", "say what was observed, why the change helps, what it does, its impact")}
	}
	var out []fault.Violation
	headings := headingsOf(body)
	for _, section := range required {
		if !slices.Contains(headings, strings.ToLower(section)) {
			out = append(out, fault.Violation{
				Code: fault.InvalidArgument, Path: "body", Rule: "required-section",
				Message:    fmt.Sprintf("`body` lacks the section %q, which the operator's policy requires", section),
				Suggestion: "add the heading \"## " + section + "\" with its text",
			})
		}
	}
	return out
}

// headingsOf lists a markdown text's ATX headings, folded to lower case.
func headingsOf(body string) []string {
	var out []string
	for _, line := range strings.Split(body, "\n") {
		line = strings.TrimSpace(line)
		if title := strings.TrimLeft(line, "#"); len(title) < len(line) {
			out = append(out, strings.ToLower(strings.TrimSpace(strings.TrimRight(title, "# \t"))))
		}
	}
	return out
}

func (f FileRequest) check(at string) []fault.Violation {
	action := gitprovider.Action(f.Action)
	switch {
	case f.Path == "":
		return []fault.Violation{invalid(at+".path", "`"+at+".path` is empty", "name the file, such as checks/disk.md")}
	case !action.Valid(): // beyond the limits, and told already
		return nil
	case action == gitprovider.ActionDelete && f.Content != nil:
		return []fault.Violation{invalid(at+".content", "`"+at+".content` was given for a delete", "leave content out, or use update")}
	case action != gitprovider.ActionDelete && f.Content == nil:
		return []fault.Violation{invalid(at+".content", "`"+at+".content` is missing", "give the file's whole new content")}
	}
	return nil
}

// fileChanges are the request's files in the domain's form.
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
