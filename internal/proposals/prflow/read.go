package prflow

import (
	"context"
	"fmt"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// StatusRequest asks for one pull request.
type StatusRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider"`
	// Include asks for more about one of our own pull requests.
	Include []string `json:"include,omitempty" enum:"files,diff" maxItems:"2" doc:"Of ours alone" fix:"leave it out, or give files, diff or both"`
}

// pullStatus returns one pull request. Every tier may ask for it.
func (s *Service) pullStatus(ctx context.Context, req StatusRequest) (StatusResult, error) {
	reader := s.Reader()
	resolution, err := reader.findRepository(req.RepoOwner, req.RepoName, req.CloneURL, s.Registry.Resolve)
	if err != nil {
		return StatusResult{}, err
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, req.PRNumber)
	if err != nil {
		return StatusResult{}, err
	}
	result, err := s.statusWith(ctx, s.newFileReader(), resolution, status, included{what: req.Include, room: maxIncluded})
	if err != nil {
		return StatusResult{}, err
	}
	if status.State == gitprovider.StateOpen && s.CurrentAuthority().mayWrite() {
		result.Revise = reader.revise(ctx, resolution, status)
	}
	if status.State == gitprovider.StateClosed {
		result.Revise = s.revivesBy(ctx, resolution, status.PullRequest)
	}
	return result, nil
}

// statusWith returns the status of a pull request, with the contents that the caller asked to include.
func (s *Service) statusWith(ctx context.Context, f fileReader, at gitprovider.Resolution, status gitprovider.Status,
	want included) (StatusResult, error) {
	if len(want.what) == 0 {
		return statusResult(status, nil), nil
	}
	more, lineText, err := f.include(ctx, at, status.PullRequest, want)
	if err != nil {
		return StatusResult{}, err
	}
	result := statusResult(status, lineText)
	result.Checks.Details = f.shower.checks(ctx, status.Checks.Details)
	result.Included = more
	return result, nil
}

// revise says whether an open pull request may be added to; "" for one that is not ours, and if that cannot be seen.
func (r Reader) revise(ctx context.Context, at gitprovider.Resolution, status gitprovider.Status) string {
	pr, adds := status.PullRequest, r.adds()
	adds.checks, adds.base = &status.Checks, at.BaseBranch
	if !gitprovider.HasMark(pr) {
		return ""
	}
	standing, err := adds.loadStanding(ctx, at.Provider, at.Repo, pr)
	switch {
	case err != nil:
		r.log.warn("not seen whether a pull request may be revised", err, "pr", pr.Number)
		return ""
	case standing.why != nil:
		return "no: " + standing.why.Message
	}
	return mayRevise(pr.Number)
}

func mayRevise(number int) string { return fmt.Sprintf("yes: revises %d", number) }

// statusResult converts the status of a pull request for the answer. lineText returns the text of the line that a
// comment is on; it is nil where no text is known.
func statusResult(st gitprovider.Status, lineText func(gitprovider.LineComment) string) StatusResult {
	out := StatusResult{
		Number: st.Number, Title: clean(st.Title, maxTitle), URL: st.URL, State: string(st.State), Mergeable: st.Mergeable,
		Reviews: make([]ReviewEntry, 0, len(st.Reviews)), Untrusted: untrustedStatus,
		Checks: ChecksEntry{State: string(st.Checks.State), Failing: cleanAll(st.Checks.Failing, maxName)},
	}
	lines, left := lineEntries(st.Reviews, st.HeadCommit, lineText)
	for i, r := range st.Reviews {
		out.Reviews = append(out.Reviews, ReviewEntry{
			Author: clean(r.Author, maxName), State: string(r.State), Body: clean(r.Body, maxReview),
			SubmittedAt: timestamp(r.SubmittedAt), Comments: lines[i], LeftOut: left[i],
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

// ReadDiffRequest asks for the difference of one of our own pull requests.
type ReadDiffRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	PRNumber  int    `json:"pr_number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider if several are enabled"`
}

// PullDiff is the difference of one of our own pull requests, against its base branch as it is now.
type PullDiff struct {
	Number     int      `json:"number"`
	Base       string   `json:"base"`
	BaseCommit string   `json:"base_commit"`
	Branch     string   `json:"branch"`
	Commit     string   `json:"commit"`
	Diff       string   `json:"diff" doc:"Unified"`
	Notes      []string `json:"notes,omitempty" doc:"What is left out, and what the base branch has changed since"`

	Facts     *facts.Reading `json:"facts,omitempty" doc:"What its newest change names and does, against the base branch as it was then; absent if that was not read"`
	Untrusted string         `json:"untrusted"`
}

// maxDiffAnswer bounds, in bytes of JSON, the difference that ReadDiff gives.
const maxDiffAnswer = 256 << 10

// pullDiff reads what one of our own pull requests changes. Every tier may ask for it; files that may not be read are
// named and left out. not_found for one that is not ours, conflict for one that is not open.
func (f fileReader) pullDiff(ctx context.Context, req ReadDiffRequest) (PullDiff, error) {
	at, err := f.readableRepo(req.RepoOwner, req.RepoName, req.CloneURL)
	if err != nil {
		return PullDiff{}, err
	}
	status, err := at.Provider.Status(ctx, at.Repo, req.PRNumber)
	if err != nil {
		return PullDiff{}, err
	}
	contents, err := f.contents(ctx, at, status.PullRequest)
	if err != nil {
		return PullDiff{}, err
	}
	out := PullDiff{
		Number: req.PRNumber, Base: clean(status.Base, maxTitle), BaseCommit: contents.base.BaseCommit,
		Branch: clean(status.Branch, maxTitle),
		Commit: contents.head.BaseCommit, Notes: contents.notes, Untrusted: untrustedFiles,
	}
	out.Facts = f.readableFacts(contents.made, status.Paths)
	diff, leftOut := contents.joinedDiff(maxDiffAnswer)
	out.Diff, out.Notes = diff, append(out.Notes, leftOut...)
	return out, nil
}

// readableFacts returns the facts of the newest change of a pull request, without those of files that may not be read;
// nil if it was not read.
func (f fileReader) readableFacts(made []record.Proposal, paths []string) *facts.Reading {
	newest, found := record.NewestChange(made)
	if !found || !newest.Facts.WasRead() {
		return nil
	}
	out := newest.Facts
	out.Facts = slices.DeleteFunc(slices.Clone(out.Facts),
		func(fact facts.Fact) bool { return f.authority.mayRead(fact.Path, paths) != nil })
	out.More += len(newest.Facts.Facts) - len(out.Facts)
	return &out
}

// Values of StatusRequest.Include.
const (
	includeFiles = "files"
	includeDiff  = "diff"
)

// Bounds of what a status includes, in bytes of JSON.
const (
	maxIncludedFile = 64 << 10
	maxIncluded     = 240 << 10 // all texts together, so that the answer stays below 256 KiB
)

// included says what to include in a status, and the room for it in bytes of JSON.
type included struct {
	what []string
	room int
}

// include reads what a status is asked to include, and gives what finds the text of the line that a comment is on. Of a
// pull request that is not ours, or not open, a note says that there is nothing.
func (f fileReader) include(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest, want included) (
	*Included, func(gitprovider.LineComment) string, error,
) {
	out := &Included{Untrusted: untrustedFiles}
	if why := f.authority.Unknown; why != "" {
		out.Notes = []string{"nothing is included: " + why}
		return out, nil, nil
	}
	contents, err := f.contents(ctx, at, pr)
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound || code == fault.Conflict:
		out.Notes = []string{"nothing is included: " + fault.From(err).Message}
		return out, nil, nil
	case err != nil:
		return nil, nil, err
	}
	out.Commit, out.Notes = contents.head.BaseCommit, contents.notes
	room := want.room
	if slices.Contains(want.what, includeDiff) {
		share := room
		if slices.Contains(want.what, includeFiles) {
			share /= 2
		}
		diff, leftOut := contents.joinedDiff(share)
		out.Diff, out.Notes = diff, append(out.Notes, leftOut...)
		room -= jsonLength(diff)
	}
	if slices.Contains(want.what, includeFiles) {
		contents.include(out, room, pr.Number)
	}
	return out, contents.lineText, nil
}

// ToAnswer returns the status of a pull request of ours whose review waits for an answer from an agent of the tier.
// Files and difference are included as far as room bytes of JSON allow. It is nil if no review waits, or the tier may
// not answer. status is the provider's answer.
func (s *Service) ToAnswer(ctx context.Context, tier gitprovider.Tier, at record.PullKey, status gitprovider.Status,
	room int) (*StatusResult, error) {
	rules := s.CurrentAuthority()
	mayPropose := rules.ReadOnly == "" && rules.Policy.Tiers.MaxFiles(tier) > 0
	if !mayPropose || status.State != gitprovider.StateOpen || !gitprovider.HasMark(status.PullRequest) {
		return nil, nil
	}
	f := s.newFileReader()
	f.authority.Tier = tier
	resolution, err := f.resolveNamed(at.Provider, at.Owner, at.Repo)
	if err != nil {
		return nil, f.readFailure(err)
	}
	adds := f.adds()
	adds.checks, adds.base = &status.Checks, resolution.BaseBranch
	stands, err := adds.loadStanding(ctx, resolution.Provider, resolution.Repo, status.PullRequest)
	if err != nil {
		return nil, f.readFailure(err)
	}
	if stands.why != nil || stands.asks == nil && len(stands.red) == 0 {
		return nil, nil
	}
	out, err := s.statusWith(ctx, f, resolution, status, included{[]string{includeFiles, includeDiff}, room})
	if err != nil {
		return nil, f.readFailure(err)
	}
	out.Revise = mayRevise(status.Number)
	return &out, nil
}

// include adds the files as far as there is room.
func (c *pullContents) include(out *Included, room, number int) {
	for _, f := range c.files {
		one := PullFile{Path: f.path, BaseSHA: f.id, Deleted: f.id == "", Text: f.after.text, Lacks: f.after.lacks}
		size := jsonLength(one.Text)
		if size > min(room, maxIncludedFile) {
			size, one.Text = 0, ""
			one.Lacks = append(one.Lacks, fmt.Sprintf("the text: it has %d bytes; read it alone, at pull/%d/file/%s",
				len(f.after.text), number, f.path))
		}
		room -= size
		out.Files = append(out.Files, one)
	}
}

// pullContents holds what an open pull request of ours changes, in the form in which it may be shown.
type pullContents struct {
	base, head *gitprovider.Snapshot // files alone
	files      []changedFile         // in the order of their paths
	notes      []string              // what is not among them, and what else a reader has to know
	made       []record.Proposal     // that made it, oldest first; empty if the record was lost
}

// changedFile is a file that a pull request changes.
type changedFile struct {
	path          string
	id            string // blob on the branch; "" if the pull request removes the file
	before, after shownText
	created       bool // the base branch has no such file
}

// contents reads the files of a pull request of ours on its branch and on its base branch, two calls beside those for
// what is large. not_found for one that is not ours, conflict for one that is not open.
func (f fileReader) contents(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest) (*pullContents,
	error) {
	if err := f.isOurs(at, pr); err != nil {
		return nil, err
	}
	out := &pullContents{}
	var paths []gitprovider.Path
	for _, p := range pr.Paths[:min(len(pr.Paths), gitprovider.MaxFilesPerPR)] {
		path, err := gitprovider.ParsePath(p)
		if err != nil || f.authority.mayRead(p, pr.Paths) != nil {
			out.notes = append(out.notes, quote(clean(p, gitprovider.MaxPathBytes))+
				" is not shown: it is not one of the files that may be proposed")
			continue
		}
		paths = append(paths, path)
	}
	if more := len(pr.Paths) - gitprovider.MaxFilesPerPR; more > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d more files are not shown", more))
	}
	if err := f.readSides(ctx, at, pr, paths, out); err != nil {
		return nil, err
	}
	var err error
	if out.made, err = f.history.MadeOf(ctx, at.Provider.Name(), out.head.Repo.Owner, out.head.Repo.Name,
		pr.Number); err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := f.addFile(ctx, out, path, pr.Number); err != nil {
			return nil, err
		}
	}
	out.withholdParts(f.shower.secrets)
	return out, nil
}

// withholdParts shows no file if a credential of this server stands in parts of several.
func (c *pullContents) withholdParts(secrets Secrets) {
	var texts []string
	for _, f := range c.files {
		texts = append(texts, f.before.text, f.after.text)
	}
	if secrets.Spread(texts) != nil {
		c.files, c.notes = nil, []string{"nothing is shown: the files hold a credential of this server in parts"}
	}
}

// readSides reads both branches side by side.
func (f fileReader) readSides(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest,
	paths []gitprovider.Path,
	out *pullContents,
) error {
	var baseErr, headErr error
	var both sync.WaitGroup
	both.Go(func() {
		defer caught(f.log, func() { baseErr = fault.New(fault.Internal, "internal error") })
		out.base, baseErr = f.snapshotFiles(ctx, at, readBranch{query: pr.Base, name: "the base branch"}, paths)
	})
	out.head, headErr = f.snapshotFiles(ctx, at, branchOf(pr), paths)
	both.Wait()
	if headErr != nil {
		return headErr
	}
	return baseErr
}

// addFile adds a file that can be shown on both sides, and a note about any other one.
func (f fileReader) addFile(ctx context.Context, out *pullContents, path gitprovider.Path, number int) error {
	file := changedFile{path: path.String(), id: out.head.Tree[path.String()].ID}
	_, onBase := out.base.Tree[path.String()]
	file.created = !onBase
	if !onBase && file.id == "" {
		return nil // a rename's old name that was never on the base, or gone from both by now
	}
	for _, side := range []struct {
		shown    *shownText
		snapshot *gitprovider.Snapshot
		is       bool
		name     string
	}{{&file.before, out.base, onBase, "the base branch"},
		{&file.after, out.head, file.id != "", fmt.Sprintf("the branch of #%d", number)}} {
		if !side.is {
			continue
		}
		if _, v := fileAt(side.snapshot.Tree, path, side.name); v != nil {
			out.notes = append(out.notes, v.Message)
			return nil
		}
		content, known := side.snapshot.Contents[path]
		shown, err := f.shower.redactFile(ctx, path.String(), content, known)
		switch {
		case fault.CodeOf(err) == fault.ContentDenied:
			out.notes = append(out.notes, fault.From(err).Message)
			return nil
		case err != nil:
			return err
		}
		*side.shown = shown
		for _, lack := range shown.lacks {
			if !slices.Contains(out.notes, lack) {
				out.notes = append(out.notes, lack)
			}
		}
	}
	if was, known := out.forkedFrom(path.String()); known && was != out.base.Tree[path.String()].ID {
		out.notes = append(out.notes,
			fmt.Sprintf(
				"%s has changed on the base branch since #%d did: the difference is against the base branch as it is now",
				path, number))
	}
	out.files = append(out.files, file)
	return nil
}

// forkedFrom returns the blob that a file was on the base branch when the pull request came to change it, by our
// record; "" if it was not there.
func (c *pullContents) forkedFrom(path string) (id string, known bool) {
	for _, p := range c.made {
		for _, f := range p.Files {
			if f.Path == path {
				return f.BaseSHA, true
			}
		}
	}
	return "", false
}

// unifiedDiff returns the unified difference of one file. It is "" if what differs is not shown.
func (c changedFile) unifiedDiff() string {
	before, after := "a/"+c.path, "b/"+c.path
	if c.created {
		before = "/dev/null"
	}
	if c.id == "" {
		after = "/dev/null"
	}
	return textedit.Unified(before, after, c.before.text, c.after.text)
}

// joinedDiff joins the differences of the files as far as there is room, in bytes of JSON, and names those that are
// left out.
func (c *pullContents) joinedDiff(room int) (text string, leftOut []string) {
	var b strings.Builder
	for _, f := range c.files {
		one := f.unifiedDiff()
		size := jsonLength(one)
		if size > room {
			leftOut = append(leftOut, fmt.Sprintf("the difference of %s is left out: it has %d bytes", f.path, len(one)))
			continue
		}
		room -= size
		b.WriteString(one)
	}
	return b.String(), leftOut
}

// lineText returns the text of the line that a comment is on; "" if it is not known. A commit that is not the head any
// more is known by our records of what we put there.
func (c *pullContents) lineText(comment gitprovider.LineComment) string {
	text, known := "", false
	at := slices.IndexFunc(c.files, func(f changedFile) bool { return f.path == comment.Path })
	switch {
	case at < 0: // not shown, whatever the records have of it
	case comment.Before:
		was, recorded := c.forkedFrom(comment.Path)
		text, known = c.files[at].before.text, recorded && was == c.base.Tree[comment.Path].ID
	case comment.Commit == c.head.BaseCommit:
		text, known = c.files[at].after.text, c.files[at].id != ""
	default:
		text, known = c.recordedAt(comment.Commit, comment.Path)
	}
	lines := strings.Split(text, "\n")
	if !known || comment.Line < 1 || comment.Line > len(lines) {
		return ""
	}
	return clean(strings.TrimSuffix(lines[comment.Line-1], "\r"), maxLine)
}

// recordedAt returns the text at a path in one of our commits, if we proposed the path in that commit or before it. The
// text passed the content gate then.
func (c *pullContents) recordedAt(commit, path string) (text string, known bool) {
	for _, p := range c.made {
		for _, f := range p.Files {
			if f.Path == path {
				text, known = f.Content, f.Action != gitprovider.ActionDelete
			}
		}
		if p.Commit == commit {
			return text, known
		}
	}
	return "", false
}
