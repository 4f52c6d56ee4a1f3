package local_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// kind is one way in which a repository may lie below the root.
type kind struct {
	ordinary bool
	format   string // object format
}

func (k kind) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	return newWorld(t, k, files...)
}

// ManyPRs is small: there are no pages, and each needs a process of git's.
func (k kind) ManyPRs() int { return 12 }

func TestLocalFulfilsTheContract(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{
		"bare repository, SHA-1":       {format: "sha1"},
		"ordinary repository, SHA-256": {ordinary: true, format: "sha256"},
	} {
		t.Run(name, func(t *testing.T) { providertest.Run(t, k) })
	}
}

// world is a repository on disk, and git as people use it: with a work tree, hooks and their own configuration.
type world struct {
	t       testing.TB
	kind    kind
	root    string
	dir     string // what git -C takes
	records *memory
	p       *local.Provider
	review  *local.Reviewer
}

func newWorld(t testing.TB, k kind, files ...providertest.File) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, kind: k, root: root, dir: filepath.Join(root, "demo", "home-cluster.git"), records: newMemory()}
	if k.ordinary {
		w.dir = strings.TrimSuffix(w.dir, ".git")
	}
	w.putSeed(files)
	w.p = w.provider(local.Options{TempDir: t.TempDir()})
	w.review = local.NewReviewer(w.p)
	return w
}

// seeds are the files of repositories as git makes them, each made once: three processes of git take longer than most
// of what is tested. The zero value is ready for use.
type seeds struct {
	mu   sync.Mutex
	made map[string][]seedFile // by what is in the repository
}

// seedFile is a file or folder of a repository, by its path in it.
type seedFile struct {
	path    string
	mode    os.FileMode
	content []byte
}

var repositories seeds

// putSeed makes the repository, with the files on its main branch.
func (w *world) putSeed(files []providertest.File) {
	w.t.Helper()
	for _, f := range repositories.of(w, files) {
		path := filepath.Join(w.dir, f.path)
		if f.mode.IsDir() {
			w.must(os.MkdirAll(path, 0o755))
		} else {
			w.must(os.WriteFile(path, f.content, f.mode.Perm()))
		}
	}
}

func (s *seeds) of(w *world, files []providertest.File) []seedFile {
	w.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%v %+v", w.kind, files)
	if s.made[key] == nil {
		if s.made == nil {
			s.made = map[string][]seedFile{}
		}
		s.made[key] = made(w, files)
	}
	return s.made[key]
}

// made has git make the repository in a folder of its own, and reads what it has made.
func made(w *world, files []providertest.File) (all []seedFile) {
	w.t.Helper()
	first := *w
	first.dir = w.t.TempDir()
	args := []string{"init", "--quiet", "--template=" + template(w.t), "--initial-branch=main",
		"--object-format=" + w.kind.format, "--bare"}
	if w.kind.ordinary {
		args = args[:len(args)-1]
	}
	first.git(append(args, first.dir)...)
	if len(files) > 0 {
		first.Push(providertest.MainBranch, files...)
	}
	w.must(filepath.WalkDir(first.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := seedFile{mode: info.Mode()}
		if f.path, err = filepath.Rel(first.dir, path); err == nil && !d.IsDir() {
			f.content, err = os.ReadFile(path)
		}
		all = append(all, f)
		return err
	}))
	return all
}

// template makes the repositories of tests not wait for the disk.
func template(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\tfsync = none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// provider is another provider over the same repositories and records, as in another process.
func (w *world) provider(opts local.Options) *local.Provider {
	w.t.Helper()
	p, err := local.New(w.root, w.records, opts)
	w.must(err)
	return p
}

// git runs git as a person does, in the repository.
func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.gitInput("", args...)
}

func (w *world) gitInput(stdin string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", append([]string{"-C", w.dir}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+w.root,
		"GIT_AUTHOR_NAME=Person", "GIT_AUTHOR_EMAIL=person@example.org",
		"GIT_COMMITTER_NAME=Person", "GIT_COMMITTER_EMAIL=person@example.org")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

func (w *world) Provider() gitprovider.Provider { return w.p }

func (w *world) Ref() gitprovider.RepoRef {
	return gitprovider.RepoRef{Owner: "demo", Name: "home-cluster"}
}

func (w *world) Push(branch string, files ...providertest.File) string {
	w.t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "commit refs/heads/%s\nmark :1\ncommitter Person <person@example.org> %d +0000\ndata 6\npushed\n",
		branch, time.Now().Unix())
	for _, from := range []string{branch, providertest.MainBranch} {
		if w.has(from) {
			fmt.Fprintf(&s, "from refs/heads/%s^0\n", from)
			break
		}
	}
	for _, f := range files {
		switch {
		case f.Kind == gitprovider.KindSubmodule:
			id := strings.Repeat("ab", 20)
			if w.kind.format == "sha256" {
				id = strings.Repeat("ab", 32)
			}
			fmt.Fprintf(&s, "M 160000 %s %s\n", id, f.Path)
			continue
		case f.Kind == gitprovider.KindSymlink:
			fmt.Fprintf(&s, "M 120000 inline %s\n", f.Path)
		case f.Executable:
			fmt.Fprintf(&s, "M 100755 inline %s\n", f.Path)
		default:
			fmt.Fprintf(&s, "M 100644 inline %s\n", f.Path)
		}
		fmt.Fprintf(&s, "data %d\n%s\n", len(f.Content), f.Content)
	}
	s.WriteString("get-mark :1\n")
	return strings.TrimSpace(w.gitInput(s.String(), "fast-import", "--quiet"))
}

// has reports whether there is a branch, without a process.
func (w *world) has(branch string) bool {
	gitDir := w.dir
	if w.kind.ordinary {
		gitDir = filepath.Join(w.dir, ".git")
	}
	if info, err := os.Stat(filepath.Join(gitDir, "refs", "heads", branch)); err == nil && info.Mode().IsRegular() {
		return true
	}
	packed, _ := os.ReadFile(filepath.Join(gitDir, "packed-refs")) // most often there is none
	return strings.Contains(string(packed), " refs/heads/"+branch+"\n")
}

func (w *world) DeleteBranch(branch string) {
	w.t.Helper()
	w.git("branch", "--quiet", "-D", branch)
}

// Merge is a person's merge: through the reviewer where no work tree has the base, else with git in the work tree.
func (w *world) Merge(number int) {
	w.t.Helper()
	pr, _, err := w.records.PR(w.t.Context(), w.Ref().String(), number)
	w.must(err)
	if w.kind.ordinary {
		w.git("reset", "--quiet", "--hard")
		w.git("merge", "--quiet", "--no-ff", "-m", "merged by hand", pr.Branch)
		return
	}
	merged, err := w.review.Merge(w.t.Context(), w.Ref(), number,
		local.MergeNote{Note: local.Note{Who: "Ann"}, Force: true})
	if err != nil || len(merged.Warnings) > 0 {
		w.t.Fatalf("merge: %v %v", err, merged.Warnings)
	}
	w.git("branch", pr.Branch, merged.Commit+"^2") // the contract's person keeps the branch
}

// UpdateBranch implements providertest.BranchUpdater.
func (w *world) UpdateBranch(number int, rebase bool, files ...providertest.File) {
	w.t.Helper()
	pr, _, err := w.records.PR(w.t.Context(), w.Ref().String(), number)
	w.must(err)
	branches := w.Branches()
	head, base := branches[pr.Branch], branches[pr.Base]
	tree := strings.TrimSpace(w.git("merge-tree", "--write-tree", head, base))
	args := []string{"-c", "user.name=Person", "-c", "user.email=person@example.org", "commit-tree", "-m", "updated", "-p",
		head, "-p", base, tree}
	if rebase {
		args = []string{"-c", "user.name=Person", "-c", "user.email=person@example.org", "commit-tree", "-m", "rebased", "-p",
			base, tree}
	}
	w.git("update-ref", "refs/heads/"+pr.Branch, strings.TrimSpace(w.git(args...)))
	if len(files) > 0 {
		w.Push(pr.Branch, files...)
	}
}

func (w *world) Close(number int) {
	w.t.Helper()
	w.must(w.review.Close(w.t.Context(), w.Ref(), number, local.Note{Who: "Ann"}))
}

func (w *world) Review(number int, author string, state gitprovider.ReviewState, body string) {
	w.t.Helper()
	note := local.Note{Who: author, Body: body}
	var err error
	switch state {
	case gitprovider.ReviewApproved:
		err = w.review.Approve(w.t.Context(), w.Ref(), number, note)
	case gitprovider.ReviewChangesRequested:
		err = w.review.RequestChanges(w.t.Context(), w.Ref(), number, note)
	case gitprovider.ReviewCommented:
		err = w.review.Comment(w.t.Context(), w.Ref(), number, note)
	default:
		err = w.records.AddReview(w.t.Context(), w.Ref().String(), number, gitprovider.Review{
			Author: author, State: state, Body: body, SubmittedAt: time.Now(),
		})
	}
	w.must(err)
}

// ReviewLines implements providertest.LineReviewer.
func (w *world) ReviewLines(number int, author string, state gitprovider.ReviewState, body string,
	lines ...gitprovider.LineComment) {
	w.t.Helper()
	note, say := local.Note{Who: author, Body: body, Comments: lines}, w.review.Comment
	if state == gitprovider.ReviewChangesRequested {
		say = w.review.RequestChanges
	}
	w.must(say(w.t.Context(), w.Ref(), number, note))
}

func (w *world) OpenPR(head, title string, labels ...string) int {
	w.t.Helper()
	pr, err := w.records.InsertPR(w.t.Context(), w.Ref().String(), gitprovider.PullRequest{
		Title: title, Branch: head, HeadCommit: w.Branches()[head], Base: providertest.MainBranch,
		State: gitprovider.StateOpen, Labels: labels, CreatedAt: time.Now().UTC(),
	})
	w.must(err)
	return pr.Number
}

func (w *world) SetBody(number int, body string) {
	w.t.Helper()
	err := w.records.UpdatePR(w.t.Context(), w.Ref().String(), number, func(pr *gitprovider.PullRequest) error {
		pr.Body = body
		return nil
	})
	w.must(err)
}

func (w *world) Branches() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")) {
		id, branch, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[branch] = id
	}
	return out
}

func (w *world) Files(commit string) []providertest.File {
	w.t.Helper()
	var out []providertest.File
	for entry := range strings.SplitSeq(w.git("ls-tree", "-r", "-z", commit), "\x00") {
		info, path, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 {
			continue
		}
		f := providertest.File{Path: path, Kind: gitprovider.KindFile, Executable: fields[0] == "100755"}
		switch fields[0] {
		case "120000":
			f.Kind = gitprovider.KindSymlink
		case "160000":
			f.Kind = gitprovider.KindSubmodule
		}
		out = append(out, f)
	}
	w.readBlobs(commit, out)
	return out
}

// readBlobs fills in the contents, by one process.
func (w *world) readBlobs(commit string, files []providertest.File) {
	w.t.Helper()
	var ask strings.Builder
	for _, f := range files {
		if f.Kind != gitprovider.KindSubmodule {
			fmt.Fprintf(&ask, "%s:%s\n", commit, f.Path)
		}
	}
	answer := w.gitInput(ask.String(), "cat-file", "--batch=%(objectsize)")
	for i := range files {
		if files[i].Kind == gitprovider.KindSubmodule {
			continue
		}
		header, rest, _ := strings.Cut(answer, "\n")
		var size int
		if _, err := fmt.Sscan(header, &size); err != nil || size >= len(rest) {
			w.t.Fatalf("unexpected answer %q of cat-file", header)
		}
		files[i].Content, answer = rest[:size], rest[size+1:]
	}
}

func (w *world) Parents(commit string) []string {
	w.t.Helper()
	return strings.Fields(w.git("rev-list", "--parents", "-1", commit))[1:]
}

func (w *world) Message(commit string) string {
	w.t.Helper()
	return w.git("log", "-1", "--format=%B", commit)
}

var _ providertest.Commenter = (*world)(nil)

// Comment implements providertest.Commenter.
func (w *world) Comment(number int, author, body string) {
	w.t.Helper()
	w.must(w.review.Comment(w.t.Context(), w.Ref(), number, local.Note{Who: author, Body: body}))
}

// memory is a Records without a store.
type memory struct {
	mu      sync.Mutex
	prs     map[string][]gitprovider.PullRequest // by repository; number is index + 1
	reviews map[string]map[int][]gitprovider.Review
	updates int   // calls of UpdatePR
	broken  error // what UpdatePR fails with, if not nil
}

var _ local.Records = (*memory)(nil)

func newMemory() *memory {
	return &memory{prs: map[string][]gitprovider.PullRequest{}, reviews: map[string]map[int][]gitprovider.Review{}}
}

func clonePR(pr gitprovider.PullRequest) gitprovider.PullRequest {
	pr.Labels, pr.Paths = slices.Clone(pr.Labels), slices.Clone(pr.Paths)
	return pr
}

func (m *memory) InsertPR(ctx context.Context, repo string, pr gitprovider.PullRequest) (gitprovider.PullRequest,
	error) {
	if ctx.Err() != nil {
		return gitprovider.PullRequest{}, fault.From(ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.prs[repo] {
		if have.State == gitprovider.StateOpen && have.Branch == pr.Branch && have.Base == pr.Base {
			return clonePR(have), nil
		}
	}
	pr.Number = len(m.prs[repo]) + 1
	m.prs[repo] = append(m.prs[repo], clonePR(pr))
	return pr, nil
}

func (m *memory) PR(_ context.Context, repo string, number int) (gitprovider.PullRequest, []gitprovider.Review, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number < 1 || number > len(m.prs[repo]) {
		return gitprovider.PullRequest{}, nil, fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	return clonePR(m.prs[repo][number-1]), slices.Clone(m.reviews[repo][number]), nil
}

func (m *memory) PRs(_ context.Context, repo string, state gitprovider.State) ([]gitprovider.PullRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []gitprovider.PullRequest
	for _, pr := range m.prs[repo] {
		if state == "" || pr.State == state {
			out = append(out, clonePR(pr))
		}
	}
	return out, nil
}

func (m *memory) UpdatePR(_ context.Context, repo string, number int,
	change func(*gitprovider.PullRequest) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updates++
	if m.broken != nil {
		return m.broken
	}
	if number < 1 || number > len(m.prs[repo]) {
		return fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	pr := clonePR(m.prs[repo][number-1])
	if err := change(&pr); err != nil {
		return err
	}
	m.prs[repo][number-1] = pr
	return nil
}

func (m *memory) AddReview(_ context.Context, repo string, number int, review gitprovider.Review) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number < 1 || number > len(m.prs[repo]) {
		return fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	if m.reviews[repo] == nil {
		m.reviews[repo] = map[int][]gitprovider.Review{}
	}
	m.reviews[repo][number] = append(m.reviews[repo][number], review)
	return nil
}

func bare() kind { return kind{format: "sha1"} }

func ordinary() kind { return kind{ordinary: true, format: "sha1"} }

// home makes a repository with one check.
func home(t testing.TB, k kind) *world {
	t.Helper()
	return newWorld(t, k, providertest.File{Path: "checks/disk.md", Content: "# Disk\n\none\ntwo\nthree\n"},
		providertest.File{Path: "README.md", Content: "# Home\n"})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("unexpected error: %v (cause: %v)", err, fault.From(err).Cause)
	}
}

// refused demands the code and that the message holds the words.
func (w *world) refused(err error, want fault.Code, words ...string) {
	w.t.Helper()
	if fault.CodeOf(err) != want {
		w.t.Fatalf("got %v (cause: %v), want the code %s", err, causeOf(err), want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("the message %q does not say %q", err, word)
		}
	}
}

func causeOf(err error) error {
	if err == nil {
		return nil
	}
	return fault.From(err).Cause
}

func (w *world) snapshot(p *local.Provider, paths ...string) *gitprovider.Snapshot {
	w.t.Helper()
	q := gitprovider.SnapshotQuery{Repo: w.Ref(), Base: providertest.MainBranch}
	for _, path := range paths {
		q.Paths = append(q.Paths, providertest.Path(w.t, path))
	}
	snap, err := p.Snapshot(w.t.Context(), q)
	w.must(err)
	return snap
}

func (w *world) request(branch string, files ...gitprovider.FileChange) gitprovider.CommitRequest {
	w.t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return gitprovider.CommitRequest{
		Snapshot: w.snapshot(w.p, paths...), Branch: branch, Changes: providertest.ChangeSet(w.t,
			files...), Message: "Change\n",
	}
}

// propose commits and opens a pull request.
func (w *world) propose(branch string, files ...gitprovider.FileChange) gitprovider.PullRequest {
	w.t.Helper()
	made, err := w.p.Commit(w.t.Context(), w.request(branch, files...))
	w.must(err)
	pr, err := w.p.OpenPullRequest(w.t.Context(), gitprovider.PullRequestSpec{
		Repo: w.Ref(), Base: providertest.MainBranch, Head: made.Branch, Title: "Title of " + branch,
		Labels: []string{gitprovider.LabelOurs},
	})
	w.must(err)
	return pr
}

// proposed makes a repository with one check, and a pull request that changes it.
func proposed(t testing.TB, k kind) (*world, gitprovider.PullRequest) {
	t.Helper()
	w := home(t, k)
	return w, w.propose("claude-ops/check/disk", disk("new\n"))
}

// disk is a change of the check.
func disk(content string) gitprovider.FileChange {
	return providertest.Update("checks/disk.md", content)
}

func (w *world) state(number int) gitprovider.Status {
	w.t.Helper()
	status, err := w.p.Status(w.t.Context(), w.Ref(), number)
	w.must(err)
	return status
}

func (w *world) wantState(number int, want gitprovider.State) {
	w.t.Helper()
	if got := w.state(number).State; got != want {
		w.t.Errorf("it is %s, want %s", got, want)
	}
}

// program writes a shell script. No other test may start a process meanwhile: the child would inherit the file opened
// for writing, and the system would refuse to run the script (ETXTBSY, golang.org/issue/22315).
func (w *world) program(path, script string) {
	w.t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w.must(os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)) //nolint:gosec // has to be executable
}
