package prflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/outgoing"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// CreateRequest is the body of create_pr and of POST /prs (design §4). It has no tier on purpose. A body has room for
// our footer within the 65,536 characters that GitHub stores.
type CreateRequest struct {
	RepoOwner  string        `json:"repo_owner" required:"true"`
	RepoName   string        `json:"repo_name" required:"true"`
	Title      string        `json:"title" required:"true" minLength:"1" maxLength:"72" doc:"What changes, in one line" fix:"say in a few words what changes; details belong into the body"`
	Body       string        `json:"body" required:"true" minLength:"1" maxBytes:"60000" doc:"Markdown: observed, why, what, impact" fix:"say briefly what was observed, why the change helps, what it does, its impact"`
	Files      []FileRequest `json:"files" required:"true" maxItems:"100" doc:"Empty: only to reply" fix:"name at least one file"`
	CloneURL   string        `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled"`
	BaseBranch string        `json:"base_branch,omitempty" doc:"Default: the repository's default branch"`
	Revises    int           `json:"revises,omitempty" minimum:"1" doc:"Our open PR to add to, after review; edits need base_sha" fix:"give the number of an open pull request of ours, or leave it out"`
	// Reply and Replies are posted with the commit of a revision, or, without files, alone.
	Reply      string         `json:"reply,omitempty" maxBytes:"8000" doc:"With revises: answers the review" fix:"answer in fewer words"`
	Replies    []ReplyRequest `json:"replies,omitempty" maxItems:"50" doc:"To comments on lines"`
	ChangeType string         `json:"change_type,omitempty" enum:"check,playbook,skill,manifest,fix" default:"fix" fix:"leave it out for fix"`
	// Preview says how much of the change the answer of a dry run repeats. It is no part of the change.
	Preview string `json:"preview,omitempty" enum:"summary,full" doc:"In a dry run: full adds body and diff" fix:"leave it out for the summary"`
}

// FileRequest is one file of a CreateRequest. Content is a pointer, since an empty file is not a missing one.
type FileRequest struct {
	Path    string  `json:"path" required:"true" doc:"From the repository's root, such as checks/disk.md"`
	Action  string  `json:"action" required:"true" enum:"create,update,delete"`
	Content *string `json:"content,omitempty" doc:"The whole new file"`
	// Edits are made one after the other, each on what those before it have left.
	Edits   []textedit.Edit `json:"edits,omitempty" minItems:"1" maxItems:"100" doc:"For update, in place of content" fix:"give content, or at least one edit"`
	BaseSHA string          `json:"base_sha,omitempty" pattern:"^[0-9a-fA-F]{7,64}$" doc:"Git blob id of the file as you read it" fix:"give what git hash-object says of the file, or leave it out"`
}

// MaxTitleRunes is how many characters a title may have.
func MaxTitleRunes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "title", "maxLength")
}

// MaxBodyBytes is how many bytes a body may have.
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

// request is what is asked for, and what follows from that alone.
type request struct {
	id      string
	started time.Time
	// promoted is the dry run that a person opens; nil for what an agent asks.
	promoted *record.Proposal

	asked     CreateRequest
	repo      gitprovider.RepoRef // zero if it is malformed
	malformed []fault.Violation   // what is wrong with the arguments
	text      outgoingText
	changes   gitprovider.ChangeSet // empty unless tier and scope agree
	excluded  []fault.Violation     // why they do not
	digests   digests
	edited    edited        // what became of edits
	also      []FileRequest // what the pull request has beside the files, if the request adds to one
}

// edited is what became of the edits of a request.
type edited struct {
	unfit  map[string]misfit // those that could not be made, by path
	behind []string          // files that have changed since they were read, and whose edits fit
}

// digests identify what a request does to files.
type digests struct {
	files string // edits made
	asked string // as asked for, by which branches are named
}

// outgoingText is a title and a body as they leave, rewritten so that they do nothing but be read.
type outgoingText struct {
	title, body, reply string
	replies            []string // in the order of the request
	warnings           []string // what was changed
}

// decode reads the arguments strictly: duplicate keys, unknown or misspelled ones, wrong types are violations, all at
// once. With violations the request has what could be read, so that the other gates can be asked and the record can say
// what was wanted.
func (r *request) decode(raw []byte, rules rules) {
	r.malformed = strictjson.DecodeSome(raw, &r.asked, strictjson.Options{}, func() []fault.Violation {
		r.asked.normalize()
		_, problems := parseRepo(r.asked.RepoOwner, r.asked.RepoName, r.asked.CloneURL)
		wrong := r.asked.withoutNeeds(append(r.asked.check(rules.Policy.Text.RequiredSections), problems...))
		if !slices.ContainsFunc(wrong, func(v fault.Violation) bool { return v.Path == "title" || v.Path == "body" }) {
			wrong = append(wrong, r.rewrite(rules.Policy)...)
		}
		return wrong
	})
	r.malformed = r.asked.withoutNeeds(r.malformed)
	r.asked.normalize()
	if repo, problems := parseRepo(r.asked.RepoOwner, r.asked.RepoName, r.asked.CloneURL); len(problems) == 0 {
		r.repo = repo
	}
	r.derive(rules)
	r.digests.asked = askedDigest(r.asked.Files, r.digests.files)
}

// derive sets what follows from the files.
func (r *request) derive(rules rules) {
	files := r.asked.fileChanges()
	r.digests.files = filesDigest(files)
	limits := gitprovider.Rules{Tier: rules.Tier, Limits: rules.Policy.Tiers, Scope: rules.Policy.Scope}
	if len(files) > 0 {
		r.changes, r.excluded = gitprovider.NewChangeSet(limits, files)
	}
}

// rewrite sets the texts that leave. One that is too long once it is rewritten is refused, so that what a dry run shows
// can be proposed as it is.
func (r *request) rewrite(p policy.Policy) (out []fault.Violation) {
	rules := outgoing.Rules{Mentions: p.Text.Mentions, ClosingKeywords: p.Text.ClosingKeywords}
	title, aboutTitle := rules.Title(r.asked.Title)
	body, aboutBody := rules.Body(r.asked.Body)
	r.text = outgoingText{title: title, body: body, warnings: append(aboutTitle, aboutBody...)}
	const how = "leave out what the pull request shall only show and not do: mentions, keywords that close issues, " +
		"switches of CI, HTML"
	if n := utf8.RuneCountInString(title); n > MaxTitleRunes() {
		out = append(out, invalid("title",
			fmt.Sprintf("`title` has %d characters when it is written so that it does nothing (%+q); "+
				"at most %d are accepted", n, title, MaxTitleRunes()), how))
	}
	if len(body) > MaxBodyBytes() {
		out = append(out, invalid("body",
			fmt.Sprintf("`body` has %d bytes when it is written so that it does and hides nothing; "+
				"at most %d are accepted", len(body), MaxBodyBytes()), how))
	}
	return append(out, r.rewriteReplies(rules, how)...)
}

// inScope lists the files whose paths are in scope, also when others are not: the gate of the base tree judges all it
// can.
func (r *request) inScope(scope gitprovider.Scope) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range r.asked.fileChanges() {
		if path, err := gitprovider.ParsePath(f.Path); err == nil && f.Action.Valid() && scope.Check(f.Path).Allowed {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

// paths are those of the changes, as texts.
func (r *request) paths() []string {
	out := make([]string, 0, r.changes.Len())
	for _, p := range r.changes.Paths() {
		out = append(out, p.String())
	}
	return out
}

// canonical lists those of paths that others may have chosen which can stand in an answer.
func canonical(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := gitprovider.ParsePath(p)
		return err != nil
	})
}

// allPaths are those of the changes, and those that the pull request has beside them.
func (r *request) allPaths() []string {
	out := r.paths()
	for _, f := range r.also {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// judged is the request with all files that the pull request has then.
func (r *request) judged() CreateRequest {
	out := r.asked
	out.Files = slices.Concat(r.asked.Files, r.also)
	return out
}

// overlap lists those of all paths that are among the given ones, letter case aside.
func (r *request) overlap(paths []string) []string { return overlap(r.allPaths(), paths) }

// overlap lists those of the paths that are among the others, letter case aside.
func overlap(paths, others []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(other, p) })
	})
}

// excludedFor lists the violations of tier and scope with the codes that are wanted.
func (r *request) excludedFor(wanted func(fault.Code) bool) (out []fault.Violation) {
	for _, v := range r.excluded {
		if wanted(v.Code) {
			out = append(out, v)
		}
	}
	return out
}
