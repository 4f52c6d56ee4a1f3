package fakegithub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// listed lists the pull requests that the arguments of a connection ask for, in the order that they ask for.
func (r *pullRules) listed(in args) []*memhost.PR {
	states, labels := in.Strings("states"), in.Strings("labels")
	var out []*memhost.PR
	for _, pr := range r.at.repo.PRs {
		_, head := r.at.headOf(pr)
		switch {
		case len(states) > 0 && !slices.Contains(states, strings.ToUpper(string(pr.State))),
			len(labels) > 0 && !hasOneOf(pr.Labels, labels),
			in.Has("headRefName") && head != in.String("headRefName"),
			in.Has("headRefOid") && pr.HeadCommit != in.String("headRefOid"),
			in.Has("baseRefName") && pr.Base != in.String("baseRefName"):
		default:
			out = append(out, pr)
		}
	}
	order := in.Object("orderBy")
	if order.String("field") == "UPDATED_AT" {
		slices.SortStableFunc(out, func(a, b *memhost.PR) int { return r.at.pull(a).updated.Compare(r.at.pull(b).updated) })
	}
	if order.String("direction") == "DESC" {
		slices.Reverse(out)
	}
	return out
}

// hasOneOf reports whether one of the wanted labels is there, letter case aside.
func hasOneOf(have, wanted []string) bool {
	return slices.ContainsFunc(have, func(a string) bool {
		return slices.ContainsFunc(wanted, func(b string) bool { return lower(a) == lower(b) })
	})
}

// decision returns the overall result of the reviews, or nil if none are needed and none decide.
func (r *pullRules) decision(pr *memhost.PR) any {
	last := map[string]gitprovider.ReviewState{}
	for _, r := range pr.Reviews {
		if r.State == gitprovider.ReviewApproved || r.State == gitprovider.ReviewChangesRequested ||
			r.State == gitprovider.ReviewDismissed {
			last[r.Author] = r.State
		}
	}
	approved := false
	for _, state := range last {
		if state == gitprovider.ReviewChangesRequested {
			return "CHANGES_REQUESTED"
		}
		approved = approved || state == gitprovider.ReviewApproved
	}
	switch {
	case !r.needsReview(pr):
		return nil
	case approved:
		return "APPROVED"
	default:
		return "REVIEW_REQUIRED"
	}
}

func (r *pullRules) needsReview(pr *memhost.PR) bool {
	return r.at.set.Protection.RequireReview && (len(r.at.set.Protection.Protected) == 0 || r.at.set.protects(pr.Base))
}

// mergeState explains why a pull request can be merged, or not; ok is the value of mergeable.
func (r *pullRules) mergeState(pr *memhost.PR, ok *bool) string {
	switch {
	case ok == nil:
		return "UNKNOWN"
	case !*ok:
		return "DIRTY"
	case r.at.pull(pr).draft:
		return "DRAFT"
	case r.needsReview(pr) && r.decision(pr) != "APPROVED":
		return "BLOCKED"
	case !slices.Contains([]string{"", "SUCCESS"}, r.at.rollup(pr.HeadCommit)):
		return "UNSTABLE"
	default:
		return "CLEAN"
	}
}

// What GitHub takes at most of a pull request, in characters.
const (
	maxTitle = 256
	maxBodyC = 65_536
)

// newPull is a request to open a pull request.
type newPull struct {
	title, body, head, base string
	draft                   bool
}

// problem is an error of a request: a field and a code, or a sentence about it.
type problem struct{ field, code, message string }

// openPull opens a pull request, or says why not.
func (r *pullRules) openPull(req newPull) (*memhost.PR, []problem) {
	who, branch, named := strings.Cut(req.head, ":")
	if !named {
		who, branch = r.at.repo.Ref.Owner, req.head
	}
	head := branch
	if lower(who) != lower(r.at.repo.Ref.Owner) {
		head = memhost.ForkBranch(who, branch)
	}
	tip, base := r.at.repo.Branches[head], r.at.tip(req.base)
	var problems []problem
	add := func(bad bool, x problem) {
		if bad {
			problems = append(problems, x)
		}
	}
	add(strings.TrimSpace(req.title) == "", problem{field: "title", code: "missing_field"})
	add(utf8.RuneCountInString(req.title) > maxTitle,
		problem{field: "title", code: "custom",
			message: fmt.Sprintf("title is too long (maximum is %d characters)", maxTitle)})
	add(utf8.RuneCountInString(req.body) > maxBodyC,
		problem{field: "body", code: "custom", message: fmt.Sprintf("body is too long (maximum is %d characters)", maxBodyC)})
	add(tip == "", problem{field: "head", code: "invalid"})
	add(base == "", problem{field: "base", code: "invalid"})
	if len(problems) > 0 {
		return nil, problems
	}
	add(r.isOpen(head, req.base), problem{code: "custom",
		message: fmt.Sprintf("A pull request already exists for %s:%s.", who, branch)})
	add(r.at.repo.Contains(base, tip), problem{code: "custom",
		message: fmt.Sprintf("No commits between %s and %s", req.base, branch)})
	add(req.draft && r.at.set.NoDrafts, problem{code: "custom",
		message: "Draft pull requests are not supported in this repository."})
	if len(problems) > 0 {
		return nil, problems
	}
	pr := r.at.s.host.Open(r.at.repo, gitprovider.PullRequestSpec{
		Repo: r.at.repo.Ref, Base: req.base, Head: head, Title: req.title, Body: req.body,
	})
	r.at.pull(pr).draft = req.draft
	return pr, nil
}

func (r *pullRules) isOpen(head, base string) bool {
	for _, pr := range r.at.repo.PRs {
		if pr.State == gitprovider.StateOpen && pr.Branch == head && pr.Base == base {
			return true
		}
	}
	return false
}

// fileDiff is a pull request's change to one file.
type fileDiff struct {
	path, was            string // was is the former path of a renamed file
	status               string // added, removed, modified, renamed or changed (its mode only)
	additions, deletions int
	id                   string // of the blob; of a removed file the former one
}

// base finds the commit that a pull request's changes are counted from.
func (r *pullRules) base(pr *memhost.PR) string {
	if merge := r.mergeCommit(pr); merge != "" {
		return r.at.repo.MergeBase(r.at.repo.Commits[merge].Parents[0], pr.HeadCommit)
	}
	return r.at.repo.MergeBase(r.at.repo.Branches[pr.Base], pr.HeadCommit)
}

// mergeCommit returns the commit that merged a pull request, or "".
func (r *pullRules) mergeCommit(pr *memhost.PR) string {
	if pr.State != gitprovider.StateMerged {
		return ""
	}
	for id, c := range r.at.repo.Commits {
		if len(c.Parents) == 2 && c.Parents[1] == pr.HeadCommit && !r.at.trials[id] {
			return id
		}
	}
	return ""
}

// diff lists the files that a pull request changes, by path. A removed and an added file with half of their lines in
// common are one renamed file.
func (r *pullRules) diff(pr *memhost.PR) []fileDiff {
	before, after := r.at.repo.Tree(r.base(pr)), r.at.repo.Tree(pr.HeadCommit)
	var out []fileDiff
	removed := map[string]bool{}
	for path, f := range before {
		if _, kept := after[path]; !kept && f.Kind == gitprovider.KindFile {
			removed[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		f, was := after[path], before[path]
		switch {
		case f == was:
			continue
		case was.Path != "":
			d := newDiff("modified", path, was, f)
			if was.Content == f.Content {
				d.status = "changed"
			}
			out = append(out, d)
		default:
			d := newDiff("added", path, was, f)
			if old := renamedFrom(f, before, removed); old != "" {
				d = newDiff("renamed", path, before[old], f)
				d.was = old
				delete(removed, old)
			}
			out = append(out, d)
		}
	}
	for path, f := range before {
		if _, kept := after[path]; !kept && (removed[path] || f.Kind != gitprovider.KindFile) {
			out = append(out, newDiff("removed", path, f, memhost.File{}))
		}
	}
	slices.SortFunc(out, func(a, b fileDiff) int { return strings.Compare(a.path, b.path) })
	return out
}

func newDiff(status, path string, was, now memhost.File) fileDiff {
	d := fileDiff{path: path, status: status, id: gitprovider.BlobID([]byte(now.Content), "")}
	if status == "removed" {
		d.id = gitprovider.BlobID([]byte(was.Content), "")
	}
	same := sameLines(was.Content, now.Content)
	d.additions, d.deletions = len(lines(now.Content))-same, len(lines(was.Content))-same
	return d
}

// renamedFrom finds the removed file that an added one comes from: the one most like it, if it is like enough.
func renamedFrom(f memhost.File, before map[string]memhost.File, removed map[string]bool) string {
	best, most := "", 0
	for _, path := range slices.Sorted(maps.Keys(removed)) {
		a, b := before[path].Content, f.Content
		same := sameLines(a, b)
		if same > most && 2*same >= max(len(lines(a)), len(lines(b))) && f.Kind == gitprovider.KindFile {
			best, most = path, same
		}
	}
	return best
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
}

// sameLines counts the lines that two texts have in common, wherever they are.
func sameLines(a, b string) int {
	count := map[string]int{}
	for _, line := range lines(a) {
		count[strings.TrimSuffix(line, "\n")]++
	}
	same := 0
	for _, line := range lines(b) {
		line = strings.TrimSuffix(line, "\n")
		if count[line] > 0 {
			count[line]--
			same++
		}
	}
	return same
}

// mergeable tells whether a pull request can be merged: nil while that is not known, which it is not for the first
// reads after a change. Each call is one read. To know it GitHub tries the merge, and keeps the commit of the last
// success.
func (r *pullRules) mergeable(pr *memhost.PR) *bool {
	st := r.at.pull(pr)
	base := r.at.repo.Branches[pr.Base]
	if now := base + " " + pr.HeadCommit; st.mergeOf != now {
		st.mergeOf, st.unknown = now, r.at.set.Delays.MergeableReads
	}
	if pr.State != gitprovider.StateOpen {
		return nil
	}
	if st.unknown > 0 {
		st.unknown--
		return nil
	}
	files, ok := r.at.repo.Merge(base, pr.HeadCommit)
	if ok && st.trialOf != st.mergeOf {
		st.trialOf = st.mergeOf
		st.trial = r.at.repo.Add(&memhost.Commit{
			Parents: []string{base, pr.HeadCommit}, Files: files, Message: "Merge " + pr.HeadCommit + " into " + base,
		})
		r.at.trials[st.trial] = true
	}
	return &ok
}

// statuses returns the statuses of a commit: those of the settings, and those of memhost for the pull requests that
// have it as their head. Of several of one context only the newest counts.
func (p *place) statuses(commit string) []Status {
	var out []Status
	for _, st := range p.set.CI.Statuses[commit] {
		if !slices.ContainsFunc(out, func(have Status) bool { return have.Context == st.Context }) {
			out = append(out, st)
		}
	}
	for _, pr := range p.repo.PRs {
		if pr.HeadCommit != commit {
			continue
		}
		for _, name := range pr.Checks.Failing {
			out = append(out, Status{Context: name, State: "failure"})
		}
		switch pr.Checks.State {
		case gitprovider.ChecksPending:
			out = append(out, Status{Context: "ci", State: "pending"})
		case gitprovider.ChecksSuccess:
			out = append(out, Status{Context: "ci", State: "success"})
		}
	}
	return out
}

// runs returns the check runs of a commit.
func (p *place) runs(commit string) []CheckRun {
	out := slices.Clone(p.set.CI.CheckRuns[commit])
	for i := range out {
		if out[i].Status == "" {
			out[i].Status = "completed"
		}
		if out[i].Started.IsZero() {
			out[i].Started = epoch()
		}
	}
	return out
}

// combined returns the state of all statuses together, in REST's words.
func combined(statuses []Status) string {
	state := "success"
	for _, st := range statuses {
		switch st.State {
		case "failure", "error":
			return "failure"
		case "pending":
			state = "pending"
		}
	}
	if len(statuses) == 0 {
		return "pending"
	}
	return state
}

// rollup returns the state of all statuses and check runs together, in GraphQL's words; "" if there are none.
func (p *place) rollup(commit string) string {
	statuses, runs := p.statuses(commit), p.runs(commit)
	if len(statuses)+len(runs) == 0 {
		return ""
	}
	state := "SUCCESS"
	if len(statuses) > 0 {
		state = strings.ToUpper(combined(statuses))
	}
	for _, run := range runs {
		switch {
		case state == "FAILURE" || slices.Contains(harmless(), run.Conclusion):
		case run.Status != "completed":
			state = "PENDING"
		default:
			state = "FAILURE"
		}
	}
	return state
}

// harmless returns the conclusions of check runs that are not failures.
func harmless() []string { return []string{"success", "neutral", "skipped"} }
