package prflow

import (
	"context"
	"crypto/hmac"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// standing says whether a pull request of ours may be revised, and why not.
type standing struct {
	made int                 // revisions that it has
	asks *gitprovider.Remark // the newest remark that asks for another one; nil for none
	// lines are the comments on lines of all the remarks that ask for a revision; heard encodes the remarks that were
	// read, for the mark.
	lines []gitprovider.LineComment
	heard string
	red   []gitprovider.FailedCheck // failed checks that ask for another revision if no remark does
	// remarks are all that were read, and asking those of them that ask.
	remarks, asking []gitprovider.Remark
	why             *fault.Violation // why nothing may be added; nil if something may
}

// revisions tells which pull requests of ours may be added to.
type revisions struct {
	history History
	settler *settler
	policy  func() policy.Policy
	base    string              // base branch that the repository's manifest names; "" for none
	checks  *gitprovider.Checks // of the head, if they were read already
}

func (e *evidence) revisions(on rules) revisions {
	return revisions{history: e.history, settler: e.settler, base: e.resolution.BaseBranch,
		policy: func() policy.Policy { return on.Policy }}
}

// loadStanding reads what people have said about an open pull request, and whose commit its head is.
func (r revisions) loadStanding(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest) (standing, error) {
	marks, err := r.settler.marksOf(p.Name(), repo)
	if err != nil {
		return standing{}, err
	}
	if pr.Archived {
		return standing{why: notRevisable(pr, "archived", "is in a repository that is archived and takes no changes")}, nil
	}
	m, isTrue := marks.firstSigned(pr)
	if !isTrue || pr.Fork || gitprovider.CheckOurs(pr.Branch) != nil {
		return standing{why: notRevisable(pr, "mark", marks.whyNot(pr))}, nil
	}
	made, err := r.history.MadeOf(ctx, p.Name(), repo.Owner, repo.Name, pr.Number)
	if err != nil {
		return standing{}, err
	}
	out := standing{made: max(m.Revision, countRevisions(made))}
	if out.made >= r.policy().Revisions.Max {
		out.why = &fault.Violation{
			Code: fault.LimitReached, Path: "revises", Rule: "max_revisions", Final: true,
			Message: fmt.Sprintf("#%d was revised %s, and the policy allows %d", pr.Number,
				fault.Count(out.made, "time", "times"), r.policy().Revisions.Max),
			Suggestion: "report what is still asked for, so that a person makes the change or closes the pull request",
		}
		return out, nil
	}
	if out.why, err = r.retargeted(ctx, p, repo, pr, made); err != nil || out.why != nil {
		return out, err
	}
	foreign, err := r.foreignHead(ctx, p, repo, pr, m, made)
	switch {
	case err != nil:
		return out, err
	case foreign != nil:
		out.why = notRevisable(pr, "head", pushedBy(*foreign))
		return out, nil
	}
	return r.hear(ctx, p, repo, pr, out, lastHeard(marks, m, pr, made))
}

// hear adds the remarks on the pull request. before describes the last revision and which remarks had been read by
// then.
func (r revisions) hear(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest, out standing,
	before lastRevision,
) (standing, error) {
	reader, can := p.(gitprovider.RemarkReader)
	if !can {
		return out, fault.New(fault.ProviderDisabled, "the provider %s does not tell what reviewers have said", p.Name())
	}
	remarks, err := reader.Remarks(ctx, repo, pr.Number)
	if err != nil {
		return out, err
	}
	asks := before.unanswered(pr, remarks)
	out.heard, out.remarks, out.asking = heardOf(remarks), remarks, asks
	for _, remark := range asks {
		out.asks = &remark
		out.lines = append(out.lines, remark.Lines...)
	}
	if out.asks == nil {
		if out.red, err = r.redChecks(ctx, p, repo, pr); err != nil {
			return out, err
		}
	}
	approvals, objections := opinionsOf(remarks)
	switch {
	case approvals > 0 && objections == 0:
		out.why = notRevisable(pr, "approved",
			"is approved: what is added now would be merged under an approval that was given for another text")
		out.why.Suggestion = "leave it to be merged; who wants more asks for changes there"
	case out.asks == nil && len(out.red) == 0 && !r.policy().Revisions.Always && !r.isFresh(pr, out):
		out.why = &fault.Violation{
			Code: fault.DuplicatePR, Path: "revises", Rule: "reviewed", Final: true,
			Message: fmt.Sprintf(
				"#%d waits for its review: nobody who may write to the repository has asked for anything since it was %s",
				pr.Number, map[bool]string{true: "revised", false: "opened"}[out.made > 0]),
			Suggestion: "wait until somebody has reviewed or commented it",
		}
	}
	return out, nil
}

// isFresh reports whether the agent may correct a pull request that it opened before anybody has looked at it.
func (r revisions) isFresh(pr gitprovider.PullRequest, s standing) bool {
	looked := func(said gitprovider.Remark) bool { return said.MayWrite && !isOurAnswer(pr, said) }
	return r.policy().Revisions.Once && s.made == 0 && !slices.ContainsFunc(s.remarks, looked)
}

// ruleTarget is the rule of a pull request that goes into another branch than it was proposed for.
const ruleTarget = "target"

// retargeted refuses a revision because the branch that the pull request goes into was changed; nil if it was not, or
// if the new one may be targeted.
func (r revisions) retargeted(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest, made []record.Proposal) (*fault.Violation, error) {
	if len(made) == 0 || made[len(made)-1].Base == pr.Base {
		return nil, nil
	}
	// The name of the default branch, which may have changed, takes a whole look.
	snap, err := p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: repo, Base: pr.Base})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(checkBase(r.policy(), p.Name(), snap, r.base), isAboutBase) {
		return nil, nil
	}
	return notRevisable(pr, ruleTarget, fmt.Sprintf("goes into %s now, where somebody has moved it from %s, and which may "+
		"not be targeted under the operator's policy", quote(pr.Base), quote(made[len(made)-1].Base))), nil
}

func isAboutBase(v fault.Violation) bool { return v.Path == "base_branch" }

func notRevisable(pr gitprovider.PullRequest, rule, why string) *fault.Violation {
	return &fault.Violation{
		Code: fault.Conflict, Path: "revises", Rule: rule, Final: true, Message: fmt.Sprintf("#%d %s", pr.Number, why),
		Suggestion: "report what you would change, and leave it to the people there",
	}
}

// foreignHead returns the head if it is a commit of others that brings something of theirs; nil if we have made it, by
// the record or by the signed mark in its message, or if it only brings our commits up to date. The mark names the
// repository as it was called then, which the mark in the body does, too.
func (r revisions) foreignHead(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest, m mark,
	made []record.Proposal,
) (*gitprovider.CommitInfo, error) {
	for _, m := range made {
		if m.Commit != "" && m.Commit == pr.HeadCommit {
			return nil, nil
		}
	}
	info, err := p.ReadCommit(ctx, repo, pr.HeadCommit)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{repo.String(), m.Repo} {
		if ours, err := r.settler.signedCommit(p.Name(), name, pr.Branch, info); err != nil || ours {
			return nil, err
		}
	}
	if ours, err := r.changesOursAlone(ctx, p, repo, pr, made); err != nil || ours {
		return nil, err
	}
	return &info, nil
}

// signedCommit reports whether the mark in a commit's message is true for its place and its parent.
func (s *settler) signedCommit(provider, repo, branch string, info gitprovider.CommitInfo) (bool, error) {
	parts := commitMarkForm().FindStringSubmatch(info.Message)
	if parts == nil || len(info.Parents) != 1 {
		return false, nil
	}
	key, err := s.key()
	if err != nil {
		return false, err
	}
	want, err := commitMark{
		Provider: provider, Repo: strings.ToLower(repo), Branch: branch, Parent: info.Parents[0], Content: parts[1],
		Request: parts[2],
	}.signature(key)
	return err == nil && hmac.Equal([]byte(parts[3]), []byte(want)), err
}

// opinionsOf counts the standing verdicts of those who may write.
func opinionsOf(remarks []gitprovider.Remark) (approvals, objections int) {
	var reviews []gitprovider.Review
	for _, r := range remarks {
		if r.State != "" && r.MayWrite {
			reviews = append(reviews, gitprovider.Review{Author: r.Author, State: r.State, SubmittedAt: r.At})
		}
	}
	return gitprovider.Opinions(reviews)
}

// answerTo returns the one line that answers the review that asked, or says that checks did; commit is "" if nothing
// was added.
func answerTo(commit, request string, s standing) string {
	line := fmt.Sprintf("%s%s (request %s)", gitprovider.AnswerOpening, short(commit), request)
	if commit == "" {
		line = fmt.Sprintf("%s(request %s)", gitprovider.ReplyOpening, request)
	}
	switch {
	case s.asks != nil && plainName(s.asks.Author) != "":
		line += ", after the review of " + plainName(s.asks.Author)
	case s.asks == nil && len(s.red) > 0:
		line += ", since checks failed"
	}
	return line + "."
}

// plainName reduces a name to characters that cannot mention a user.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return -1
	}, clean(name, maxName))
}

// revision is the pull request that a request adds to.
type revision struct {
	pr gitprovider.PullRequest
	standing
	mark mark
	head *gitprovider.Snapshot    // of its branch, files alone; nil where nothing may be added, or same is set
	same *sameChange              // its head is this very revision
	also []FileRequest            // the files that it changes beside those of the request, as they are on its branch
	net  []gitprovider.FileChange // all files that it changes then, against the base branch
	// pushed says that the branch has another commit than the pull request was shown with: somebody has pushed, or the
	// forge lags.
	pushed bool
}

// comparedSnapshot returns the snapshot that a request's files are compared with; nil if nothing was read that they can
// be.
func (e *evidence) comparedSnapshot() *gitprovider.Snapshot {
	if e.revision != nil {
		return e.revision.head
	}
	return e.snapshot
}

// Bounds of the text about failing checks.
const (
	maxChecks       = 10
	maxCheckSummary = 500  // runes
	maxCheckLog     = 2000 // runes, the last ones
	maxCheckURL     = 500
)

// redChecks returns the failing checks that ask for a revision: those of the head as it is now. A revision makes
// another head, of which CI has said nothing yet, so that no failure asks twice.
func (r revisions) redChecks(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest) ([]gitprovider.FailedCheck, error) {
	reader, can := p.(gitprovider.CheckReader)
	if !can || !r.policy().Revisions.OnChecks {
		return nil, nil
	}
	checks := r.checks
	if checks == nil {
		read, err := reader.Checks(ctx, repo, pr.Number, pr.HeadCommit)
		if err != nil {
			return nil, err
		}
		checks = &read
	}
	if checks.State != gitprovider.ChecksFailure {
		return nil, nil
	}
	if len(checks.Details) == 0 && len(checks.Failing) > 0 {
		return []gitprovider.FailedCheck{{Name: checks.Failing[0]}}, nil
	}
	return checks.Details, nil
}

// namesOf names checks, in quotes: the names are a forge's.
func namesOf(checks []gitprovider.FailedCheck) string {
	var names []string
	for _, check := range checks[:min(len(checks), maxChecks)] {
		names = append(names, quote(clean(check.Name, maxName)))
	}
	return strings.Join(names, ", ")
}

// checks returns the output of failing checks for an agent, without lines that look like a secret.
func (s textShower) checks(ctx context.Context, failed []gitprovider.FailedCheck) (out []CheckEntry) {
	plain := func(text string) string {
		shown, err := s.redactFile(ctx, "check", []byte(text), true)
		if err != nil {
			return ""
		}
		return shown.text
	}
	for _, check := range failed[:min(len(failed), maxChecks)] {
		out = append(out, CheckEntry{
			Name: clean(check.Name, maxName), Summary: clean(plain(check.Summary), maxCheckSummary),
			LogEnd: clean(lastRunes(plain(check.Log), maxCheckLog), maxCheckLog), URL: clean(check.URL, maxCheckURL),
		})
	}
	return out
}

// lastRunes returns the end of a text.
func lastRunes(text string, most int) string {
	runes := []rune(text)
	return string(runes[max(0, len(runes)-most):])
}

// ownFile is the last text that we wrote at a path, over all proposals that made a pull request.
type ownFile struct {
	content string
	deleted bool
	from    string // blob that the file was before the first of them; "" if there was none
}

// ownFiles returns the files that a pull request changes by our records; nil if the records are incomplete.
func ownFiles(made []record.Proposal) map[gitprovider.Path]ownFile {
	out := map[gitprovider.Path]ownFile{}
	for _, p := range made {
		if !p.PrunedAt.IsZero() {
			return nil
		}
		for _, f := range p.Files {
			path, err := gitprovider.ParsePath(f.Path)
			if err != nil {
				return nil
			}
			from := f.BaseSHA
			if before, again := out[path]; again {
				from = before.from
			}
			out[path] = ownFile{f.Content, f.Action == gitprovider.ActionDelete, from}
		}
	}
	return out
}

// changesOursAlone reports whether a pull request changes exactly what we proposed although its head is not our commit:
// a person has merged the base branch into it, or the forge has rebased our commits. Each file has the text that we
// last wrote, or the merge of that with the base branch's text.
func (r revisions) changesOursAlone(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest,
	made []record.Proposal,
) (bool, error) {
	own := ownFiles(made)
	if len(own) == 0 {
		return false, nil
	}
	for _, name := range pr.Paths {
		path, err := gitprovider.ParsePath(name)
		if _, ours := own[path]; err != nil || !ours {
			return false, nil
		}
	}
	paths := make([]gitprovider.Path, 0, len(own))
	for path := range own {
		paths = append(paths, path)
	}
	read := func(branch string) (*gitprovider.Snapshot, error) {
		return p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: repo, Base: branch, Paths: paths, FilesOnly: true,
			Contents: branch == pr.Base})
	}
	head, err := read(pr.Branch)
	if err != nil || head.BaseCommit != pr.HeadCommit {
		return false, err
	}
	var merged []gitprovider.Path // with changes of the base branch, if they are ours
	executable := false
	for path, file := range own {
		entry, there := head.Tree[path.String()]
		switch {
		case there == file.deleted, there && entry.Kind != gitprovider.KindFile:
			return false, nil
		case there && entry.ID != gitprovider.BlobID([]byte(file.content), entry.ID):
			merged = append(merged, path)
		}
		executable = executable || entry.Executable
	}
	if !executable && len(merged) == 0 {
		return true, nil
	}
	base, err := read(pr.Base) // our commits leave the mode as it is
	if err != nil {
		return false, err
	}
	for path := range own {
		if name := path.String(); head.Tree[name].Executable && !base.Tree[name].Executable {
			return false, nil
		}
	}
	for _, path := range merged {
		ours, err := isMerge(ctx, p, repo, own[path], base.Contents[path], head.Tree[path.String()].ID)
		if err != nil || !ours {
			return false, err
		}
	}
	return true, nil
}

// isMerge reports whether a blob is the merge of our text of a file with the base branch's, whose common ancestor is
// the text that ours was made from.
func isMerge(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, own ownFile, base []byte,
	blob string) (bool, error) {
	reader, can := p.(gitprovider.BlobReader)
	if !can || own.from == "" || base == nil {
		return false, nil
	}
	from, err := reader.ReadBlob(ctx, repo, own.from)
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound, code == fault.ContentDenied:
		return false, nil
	case err != nil:
		return false, err
	}
	merged, clean := textedit.Merge(string(from), own.content, string(base))
	return clean && gitprovider.BlobID([]byte(merged), blob) == blob, nil
}

// pushedBy says whose the commit at the head is.
func pushedBy(info gitprovider.CommitInfo) string {
	who := "a person"
	if name := clean(info.Author, maxName); name != "" {
		who = quote(name)
	}
	return fmt.Sprintf("has the commit %s of %s on its branch, which changes more than we proposed", short(info.ID), who)
}

// revisionGate denies a commit to a pull request that is not ours, that people have pushed to or approved, that has no
// request for a revision, or that was revised too often.
func revisionGate() gate {
	return gate{
		Name: record.GateRevision, Phase: phaseRepository,
		Asks: "for a request with revises: whether that pull request is open, ours by mark and head, not revised too " +
			"often, and reviewed or commented since; a first revision needs no review",
		Judge: judgeRevision,
	}
}

func judgeRevision(_ context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	rev := e.revision
	switch {
	case r.asked.Revises == 0:
		return ruling{detail: "opens a pull request of its own"}, nil
	case rev == nil:
		return ruling{skipped: true}, nil
	case rev.why != nil:
		return ruling{violations: []fault.Violation{*rev.why}}, nil
	case rev.head == nil && rev.same == nil: // it could not be read
		return ruling{skipped: true}, nil
	case rev.same != nil:
		return ruling{detail: fmt.Sprintf("the head of #%d is this very revision", rev.pr.Number)}, nil
	}
	out := ruling{detail: fmt.Sprintf("revision %d of %d of #%d", rev.made+1, on.Policy.Revisions.Max, rev.pr.Number)}
	if rev.asks != nil {
		out.detail += ", after the review of " + plainName(rev.asks.Author)
	} else if len(rev.red) > 0 {
		out.detail += ", since checks failed: " + namesOf(rev.red)
	}
	if r.asked.answers() {
		out.violations = judgeReplies(r, rev)
	}
	if r.asked.repliesOnly() {
		out.detail += ", without a commit"
		return out, nil
	}
	if len(rev.net) == 0 {
		out.violations = append(out.violations, fault.Violation{
			Code: fault.NoChange, Path: "revises", Rule: "nothing-left",
			Message:    fmt.Sprintf("#%d would change nothing any more", rev.pr.Number),
			Suggestion: "report that it can be closed",
		})
	}
	for _, f := range rev.also {
		if f.Content == nil && f.Action == "update" {
			out.violations = append(out.violations, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "file-size", Final: true,
				Message:    fmt.Sprintf("%s, which #%d brings, is too large to be judged again", quote(f.Path), rev.pr.Number),
				Suggestion: "report what should change, for a person",
			})
		}
	}
	return out, nil
}

// maxToldComments bounds how many comments a refusal names.
const maxToldComments = 20

// judgeReplies denies replies to comments that do not wait for one, and second replies to the same comment. The gate of
// revisions calls it.
func judgeReplies(r *createRequest, rev *revision) (out []fault.Violation) {
	lines := rev.waiting()
	seen := map[string]bool{}
	for i, reply := range r.asked.Replies {
		at := fmt.Sprintf("replies[%d].comment", i)
		known := slices.ContainsFunc(lines, func(c gitprovider.LineComment) bool { return c.ID == reply.Comment })
		switch {
		case seen[reply.Comment]:
			out = append(out, invalid(at, fmt.Sprintf("`%s` names the comment %s a second time", at, quote(reply.Comment)),
				"answer each comment once"))
		case !known:
			out = append(out, invalid(at, fmt.Sprintf("`%s`: no comment on a line of #%d that waits for an answer has the id %s",
				at, rev.pr.Number, quote(reply.Comment)), rev.toldComments()))
		}
		seen[reply.Comment] = true
	}
	if r.asked.repliesOnly() && rev.asks == nil {
		out = append(out, fault.Violation{
			Code: fault.DuplicatePR, Path: "revises", Rule: "reviewed", Final: true,
			Message:    fmt.Sprintf("#%d has no review that waits for an answer", rev.pr.Number),
			Suggestion: "wait until somebody has reviewed or commented it",
		})
	}
	return out
}

// toldComments names the comments that may be answered.
func (s standing) toldComments() string {
	lines := s.waiting()
	if len(lines) == 0 {
		return "leave replies out: none waits; reply answers the review as a whole"
	}
	var told []string
	for _, c := range lines[:min(len(lines), maxToldComments)] {
		told = append(told, fmt.Sprintf("%s (%s:%d)", clean(c.ID, maxName), clean(c.Path, maxTitle), c.Line))
	}
	if more := len(lines) - maxToldComments; more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return "these wait: " + strings.Join(told, ", ")
}
