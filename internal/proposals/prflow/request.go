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
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// request holds a caller's request and everything derived from it alone.
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

// paths returns the paths of the changes, as texts.
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

// allPaths returns the paths of the changes, and the pull request's further paths.
func (r *request) allPaths() []string {
	out := r.paths()
	for _, f := range r.also {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// judged returns the request with all files that the pull request has then.
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

// rewriteReplies sets the answers as they leave. how says what to leave out of one that is too long then.
func (r *request) rewriteReplies(rules outgoing.Rules, how string) (out []fault.Violation) {
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
