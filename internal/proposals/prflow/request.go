package prflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/sanitize"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// CreateRequest is the body of create_pr and of POST /prs (design §4). It has no tier on purpose. A body has room for
// our footer within the 65,536 characters that GitHub stores.
type CreateRequest struct {
	RepoOwner  string        `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName   string        `json:"repo_name" required:"true" doc:"Repository name"`
	Title      string        `json:"title" required:"true" minLength:"1" maxLength:"72" doc:"What changes; needs a letter or digit" fix:"say in a few words what changes; details belong into the body"`
	Body       string        `json:"body" required:"true" minLength:"1" maxBytes:"60000" doc:"Markdown: observed, why, what, impact" fix:"say briefly what was observed, why the change helps, what it does, its impact"`
	Files      []FileRequest `json:"files" required:"true" maxItems:"100" doc:"Empty: only to reply" fix:"name at least one file"`
	CloneURL   string        `json:"clone_url,omitempty" doc:"Settles the provider"`
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
	Path    string  `json:"path" required:"true" doc:"From the repository's root"`
	Action  string  `json:"action" required:"true" enum:"create,update,delete" doc:"What to do"`
	Content *string `json:"content,omitempty" doc:"The whole new file"`
	// Edits are made one after the other, each on what those before it have left.
	Edits   []textedit.Edit `json:"edits,omitempty" maxItems:"100" doc:"For update, in place of content" fix:"give content, or at least one edit"`
	BaseSHA string          `json:"base_sha,omitempty" pattern:"^[0-9a-fA-F]{7,64}$" doc:"Git blob id of the file as you read it" fix:"give what git hash-object prints for the file, or leave it out"`
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

// createRequest holds a caller's request and everything derived from it alone.
type createRequest struct {
	id      string
	started time.Time
	// promoted is the dry run that a person opens; nil for what an agent asks.
	promoted *record.Proposal
	// acknowledged are the classes of facts that this person confirms to have seen.
	acknowledged []facts.Class

	asked     CreateRequest
	repo      gitprovider.RepoRef // zero if it is malformed
	malformed []fault.Violation   // what is wrong with the arguments
	text      outgoingText
	changes   gitprovider.ChangeSet // empty unless tier and scope agree
	excluded  []fault.Violation     // why they do not
	digests   digests
	edited    edited        // the result of the edits
	also      []FileRequest // what the pull request has beside the files, if the request adds to one
	// secretName says that the name of the repository or the branch looks like a secret: no provider is asked by it.
	secretName bool
}

// edited is the result of the edits of a request.
type edited struct {
	unfit  map[string]misfit // those that could not be made, by path
	behind []string          // files that have changed since they were read, and whose edits fit
}

// digests identify what a request does to files.
type digests struct {
	files     string // edits made
	requested string // as asked for, by which branches are named
}

// outgoingText is a title and a body as they leave, rewritten so that they do nothing but be read.
type outgoingText struct {
	title, body, reply string
	replies            []string // in the order of the request
	warnings           []string // what was changed
}

// decodeArguments reads the arguments strictly: duplicate keys, unknown or misspelled ones, wrong types are violations,
// all at once. With violations the request has what could be read, so that the other gates can be asked and the record
// can say what was wanted.
func (r *createRequest) decodeArguments(raw []byte, rules rules) {
	r.malformed = strictjson.DecodeSome(raw, &r.asked, strictjson.Options{}, func() []fault.Violation {
		r.asked.normalize()
		_, problems := parseRepo(r.asked.RepoOwner, r.asked.RepoName, r.asked.CloneURL)
		wrong := r.asked.withoutNeeds(append(r.asked.check(rules.Policy.Text.RequiredSections), problems...))
		// of who may not propose, texts are not parsed: they leave for nowhere
		isOfText := func(v fault.Violation) bool { return v.Path == "title" || v.Path == "body" }
		if rules.takesProposals() && !slices.ContainsFunc(wrong, isOfText) {
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
	r.digests.requested = askedDigest(r.asked.Files, r.digests.files)
}

// derive sets what follows from the files.
func (r *createRequest) derive(rules rules) {
	files := r.asked.fileChanges()
	r.digests.files = filesDigest(files)
	limits := gitprovider.Rules{Tier: rules.Tier, Limits: rules.Policy.Tiers, Scope: rules.Policy.Scope}
	if len(files) > 0 {
		r.changes, r.excluded = gitprovider.NewChangeSet(limits, files)
	}
}

// rewrite sets the texts that leave. One that is too long once it is rewritten is refused, so that what a dry run shows
// can be proposed as it is.
func (r *createRequest) rewrite(p policy.Policy) (out []fault.Violation) {
	rules := sanitize.Rules{Mentions: p.Text.Mentions, ClosingKeywords: p.Text.ClosingKeywords}
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
func (r *createRequest) inScope(scope gitprovider.Scope) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range r.asked.fileChanges() {
		if path, err := gitprovider.ParsePath(f.Path); err == nil && f.Action.Valid() && scope.Check(f.Path).Allowed {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

// paths returns the paths of the changes, as texts.
func (r *createRequest) paths() []string {
	out := make([]string, 0, r.changes.Len())
	for _, p := range r.changes.Paths() {
		out = append(out, p.String())
	}
	return out
}

// canonicalPaths lists those of paths that others may have chosen which can stand in an answer.
func canonicalPaths(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := gitprovider.ParsePath(p)
		return err != nil
	})
}

// allPaths returns the paths of the changes, and the pull request's further paths.
func (r *createRequest) allPaths() []string {
	out := r.paths()
	for _, f := range r.also {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// judged returns the request with all files that the pull request has then.
func (r *createRequest) judged() CreateRequest {
	out := r.asked
	out.Files = slices.Concat(r.asked.Files, r.also)
	return out
}

// overlap lists those of all paths that are among the given ones, letter case aside.
func (r *createRequest) overlap(paths []string) []string { return overlap(r.allPaths(), paths) }

// overlap lists those of the paths that are among the others, letter case aside.
func overlap(paths, others []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(other, p) })
	})
}

// excludedFor lists the violations of tier and scope with the codes that are wanted.
func (r *createRequest) excludedFor(wanted func(fault.Code) bool) (out []fault.Violation) {
	for _, v := range r.excluded {
		if wanted(v.Code) {
			out = append(out, v)
		}
	}
	return out
}

// rewriteReplies sets the answers as they leave. how says what to leave out of one that is too long then.
func (r *createRequest) rewriteReplies(rules sanitize.Rules, how string) (out []fault.Violation) {
	rewrite := func(at, text string, most int) string {
		if len(text) > most { // refused already
			return ""
		}
		rewritten, warnings := rules.Body(text)
		for _, w := range warnings {
			r.text.warnings = append(r.text.warnings, "in "+at+": "+w)
		}
		if len(rewritten) > most {
			out = append(out,
				invalid(at,
					fmt.Sprintf("`%s` has %d bytes when it is written so that it does and hides nothing; at most %d are accepted",
						at, len(rewritten), most), how))
		}
		return rewritten
	}
	if r.asked.Reply != "" {
		r.text.reply = rewrite("reply", r.asked.Reply, maxReplyBytes())
	}
	most := strictjson.Limit(reflect.TypeFor[ReplyRequest](), "text", "maxBytes")
	for i, reply := range r.asked.Replies[:min(len(r.asked.Replies), maxReplies())] {
		r.text.replies = append(r.text.replies, rewrite(fmt.Sprintf("replies[%d].text", i), reply.Text, most))
	}
	return out
}

// misfit says why edits of a file could not be made.
type misfit struct {
	violation fault.Violation
	near      []int // lines of the file that are like what the edits look for, from 1
}

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
		return []fault.Violation{invalid(at+".path", "`"+at+".path` is empty",
			"name the file by its path from the root of the repository")}
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

// requestText is something of a request that will be read by others: a file's content, the title, the body, a path.
type requestText struct {
	label  string // a file's path, "title" or "body"
	what   string // for messages
	value  string
	isPath bool // a path or another name: its characters are for others to judge
}

// texts lists all texts of a request, title and body first.
func (r CreateRequest) texts() []requestText {
	out := []requestText{{label: "title", what: "title", value: r.Title}, {label: "body", what: "body", value: r.Body}}
	for i, f := range r.Files {
		switch {
		case f.Content != nil:
			out = append(out, requestText{label: f.Path, what: "content of " + quote(f.Path), value: *f.Content})
		case len(f.Edits) > 0: // they could not be made
			out = append(out, requestText{label: f.Path, what: "edits of " + quote(f.Path), value: newTexts(f.Edits)})
		}
		at := fmt.Sprintf("files[%d].path", i)
		out = append(out, requestText{label: at, what: at, value: f.Path, isPath: true})
	}
	for _, n := range r.namedArguments() {
		out = append(out, requestText{label: n[0], what: n[0], value: n[1], isPath: true})
	}
	return append(out, r.replyTexts()...)
}

// namedArguments returns the arguments that are given that name something, with their values. A provider is asked by
// them.
func (r CreateRequest) namedArguments() (out [][2]string) {
	for _, n := range [][2]string{{"repo_owner", r.RepoOwner}, {"repo_name", r.RepoName}, {"base_branch", r.BaseBranch},
		{"change_type", r.ChangeType}} {
		if n[1] != "" {
			out = append(out, n)
		}
	}
	return out
}

// isName reports whether a text is one of names.
func isName(t requestText) bool { return t.isPath && !strings.HasPrefix(t.label, "files[") }

// newTexts joins the new texts of the edits, each on lines of its own.
func newTexts(edits []textedit.Edit) string {
	parts := make([]string, len(edits))
	for i, e := range edits {
		parts[i] = e.New
	}
	return strings.Join(parts, "\n")
}

// quote renders an untrusted name as printable ASCII, cut at 120 bytes.
func quote(s string) string {
	return fmt.Sprintf("%+q", s[:min(len(s), 120)])
}

// replyTexts returns the answers, for the gate of the content.
func (r CreateRequest) replyTexts() (out []requestText) {
	if r.Reply != "" {
		out = append(out, requestText{label: "reply", what: "reply", value: r.Reply})
	}
	for i, reply := range r.Replies {
		at := fmt.Sprintf("replies[%d].text", i)
		out = append(out, requestText{label: at, what: at, value: reply.Text})
	}
	return out
}

// isReply reports whether a text is one of replyTexts.
func isReply(t requestText) bool {
	return t.what == t.label && !t.isPath && t.what != "title" && t.what != "body"
}

// filesDigest identifies what a change does to files, whatever its title, its body and the order of its files:
// SHA-256 over the JSON list of [path, action, SHA-256 of the content], sorted by path, in hex.
func filesDigest(files []gitprovider.FileChange) string {
	entries := make([][3]string, len(files))
	for i, f := range files {
		sum := sha256.Sum256([]byte(f.Content))
		entries[i] = [3]string{f.Path, string(f.Action), hex.EncodeToString(sum[:])}
	}
	slices.SortFunc(entries, func(a, b [3]string) int { return strings.Compare(a[0], b[0]) })
	return hashJSON(entries)
}

// askedDigest tells requests apart before their edits are made: the digest of the files, with the edits.
func askedDigest(files []FileRequest, digest string) string {
	edits := map[string][]textedit.Edit{}
	for _, f := range files {
		if len(f.Edits) > 0 {
			edits[f.Path] = f.Edits
		}
	}
	if len(edits) == 0 {
		return digest
	}
	return hashJSON([]any{digest, edits})
}

// changeDigest identifies a change at a place: provider, repository (letter case aside), base branch and files. Two
// requests with the same digest are the same change.
func changeDigest(provider string, repo gitprovider.RepoRef, base, files string) string {
	return hashJSON([]string{provider, strings.ToLower(repo.Owner), strings.ToLower(repo.Name), base, files})
}

func hashJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // strings always marshal
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// contentDigest identifies what files are after a change: SHA-256 over the JSON list of [path, SHA-256 of the content],
// sorted by path, in hex; a file that is gone has "".
func contentDigest(changes []gitprovider.Change) string {
	entries := make([][2]string, len(changes))
	for i, c := range changes {
		entries[i][0] = c.Path.String()
		if c.Action != gitprovider.ActionDelete {
			sum := sha256.Sum256([]byte(c.Content))
			entries[i][1] = hex.EncodeToString(sum[:])
		}
	}
	slices.SortFunc(entries, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return hashJSON(entries)
}
