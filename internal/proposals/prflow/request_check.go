package prflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// check finds what the decoder cannot see: lengths, known values, what belongs together.
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
	out = append(out, r.checkReplies()...)
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
		return []fault.Violation{invalid("title",
			"`title` has no letter a-z and no digit, so no branch can be named after it",
			"describe the change with at least one plain word")}
	}
	return nil
}

func checkBody(body string, required []string) []fault.Violation {
	if strings.TrimSpace(body) == "" {
		return []fault.Violation{invalid("body", "`body` is empty",
			"say what was observed, why the change helps, what it does, its impact")}
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
	case len(f.Edits) > 0 && action != gitprovider.ActionUpdate:
		return []fault.Violation{invalid(at+".edits", "`"+at+".edits` was given for a "+f.Action,
			"edits change a file that there is: leave them out, or use update")}
	case len(f.Edits) > 0 && f.Content != nil:
		return []fault.Violation{invalid(at+".edits", "`"+at+"` has both content and edits",
			"give one of them; edits change only what they name")}
	case action == gitprovider.ActionDelete && f.Content != nil:
		return []fault.Violation{invalid(at+".content", "`"+at+".content` was given for a delete",
			"leave content out, or use update")}
	case action == gitprovider.ActionUpdate && f.Content == nil && len(f.Edits) == 0:
		return []fault.Violation{invalid(at+".content", "`"+at+"` has neither content nor edits",
			"give edits, or the file's whole new content")}
	case action == gitprovider.ActionCreate && f.Content == nil:
		return []fault.Violation{invalid(at+".content", "`"+at+".content` is missing", "give the file's whole new content")}
	}
	return nil
}
