package local

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// branches are the branches of a repository at one moment.
type branches struct {
	tips map[string]string // commit by branch name
	head string            // the branch that HEAD names, if it exists; "" otherwise
}

// refConfig configures git for commands in the repository itself: the wait for a lock of another process is bounded.
func refConfig() []string {
	return []string{"core.filesRefLockTimeout=2000", "core.packedRefsTimeout=2000"}
}

// refCommand runs git in the repository itself, to read references.
func (repo *repository) refCommand(ctx context.Context, accept []int, args ...string) ([]byte, int, error) {
	return repo.git.runGit(ctx, gitCommand{
		gitDir: repo.gitDir, config: refConfig(), args: args, accept: accept,
	})
}

// branches lists them.
func (repo *repository) branches(ctx context.Context) (branches, error) {
	if found, sure, err := repo.readBranches(ctx); sure || err != nil {
		return found, err
	}
	return repo.askBranches(ctx)
}

// askBranches has git list them.
func (repo *repository) askBranches(ctx context.Context) (branches, error) {
	out, _, err := repo.refCommand(ctx, nil, "for-each-ref", "--format=%(HEAD) %(objectname) %(refname)",
		headsPrefix)
	if err != nil {
		return branches{}, err
	}
	found := branches{tips: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		if len(line) < 2 {
			continue
		}
		id, name, ok := strings.Cut(strings.TrimSuffix(line[2:], "\n"), " ")
		branch, isBranch := strings.CutPrefix(name, headsPrefix)
		if !ok || !isBranch || !isID(id) {
			continue
		}
		found.tips[branch] = id
		if line[0] == '*' {
			found.head = branch
		}
	}
	return found, nil
}

const headsPrefix = "refs/heads/"

// defaultBranch is the branch that pull requests go into unless somebody names another; "" if there is none. In a bare
// repository it is the one that HEAD names. In an ordinary one HEAD is whatever is checked out at this moment: there it
// is the one that HEAD of origin names, else main or master, and HEAD only for want of those.
func (repo *repository) defaultBranch(have branches) string {
	if repo.isBare() {
		return have.head
	}
	const origin = "refs/remotes/origin/"
	if text, err := readPlain(filepath.Join(repo.gitDir, filepath.FromSlash(origin), "HEAD"), 1<<10); err == nil {
		branch, names := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), "ref: "+origin)
		if names && have.tips[branch] != "" {
			return branch
		}
	}
	usual := []string{"main", "master"}
	if slices.Contains(usual, have.head) {
		return have.head
	}
	for _, branch := range usual {
		if have.tips[branch] != "" {
			return branch
		}
	}
	return have.head
}

// baseBranch decides which branch is the base, and says what to do when there is none.
func (repo *repository) baseBranch(ctx context.Context, have branches, asked string) (string, error) {
	switch {
	case len(have.tips) == 0:
		return "", fault.New(fault.NotFound, "the repository %s is empty; push a first commit to it", repo.ref)
	case asked != "" && have.tips[asked] == "":
		return "", gitprovider.NoBase(repo.ref, asked, repo.defaultBranch(have))
	case asked != "":
		return asked, nil
	}
	if branch := repo.defaultBranch(have); branch != "" {
		return branch, nil
	}
	out, code, err := repo.refCommand(ctx, []int{1}, "symbolic-ref", "-q", "HEAD")
	switch {
	case err != nil:
		return "", err
	case code != 0:
		return "", fault.New(fault.NotFound,
			"the repository %s has no default branch, its HEAD is detached; name a base branch", repo.ref)
	}
	missing := strings.TrimPrefix(strings.TrimSpace(string(out)), headsPrefix)
	return "", fault.New(fault.NotFound,
		"the default branch %.200q of %s does not exist; name a base branch, or have the operator set HEAD with git "+
			"symbolic-ref",
		missing, repo.ref)
}

// BranchTip implements gitprovider.Provider. It waits for writes that are under way, those of a process that was killed
// meanwhile included: what it answers does not change by itself any more.
func (p *Provider) BranchTip(ctx context.Context, ref gitprovider.RepoRef, branch string) (string, error) {
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return "", err
	}
	lock, err := lockForWriting(ctx, repo)
	if err != nil {
		return "", err
	}
	defer lock.unlock()
	have, err := repo.branches(ctx)
	return have.tips[branch], err
}

// DeleteBranch implements gitprovider.Provider. Beside the codes of the port: invalid_argument for a branch that is not
// one of ours, conflict for the branch that HEAD names, since its work tree would lose its history.
func (p *Provider) DeleteBranch(ctx context.Context, ref gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if !isID(tip) {
		return fault.New(fault.InvalidArgument, "the expected commit of the branch %s is not an object id", branch)
	}
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return err
	}
	have, err := repo.branches(ctx)
	switch {
	case err != nil:
		return err
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it",
			branch)
	case have.head == branch:
		return fault.New(fault.Conflict, "the branch %s is checked out, so it was not deleted; check out another branch "+
			"first", branch)
	}
	return repo.removeBranch(ctx, branch, tip)
}

// removeBranch deletes a branch if its tip is still the given commit. A branch that is gone already is not an error.
func (repo *repository) removeBranch(ctx context.Context, branch, tip string) error {
	t := &transaction{}
	t.deleteBranch(branch, tip)
	refused := repo.update(ctx, t, "claude-ops: removed")
	if refused == nil {
		return nil
	}
	have, err := repo.branches(ctx)
	switch {
	case err != nil:
		return refused
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.Wrap(refused, fault.Conflict,
			"the branch %s has moved since, so it was not deleted; somebody has added to it", branch)
	}
	return refused
}

// Lateness implements gitprovider.Settler: git commands that change a branch are waited for (see BranchTip), those of a
// process that was killed included.
func (p *Provider) Lateness() time.Duration { return 0 }

// OurBranches implements gitprovider.Settler. It does not wait for writers: a branch that was just made belongs to the
// process that made it.
func (p *Provider) OurBranches(ctx context.Context, ref gitprovider.RepoRef) (map[string]string, error) {
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return nil, err
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for branch, tip := range have.tips {
		if strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			out[branch] = tip
		}
	}
	return out, nil
}

// isBranchName follows the rules of git check-ref-format(1) for a branch below refs/heads/.
func isBranchName(s string) bool {
	if s == "" || len(s) > 255 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, ".") || s == "@" ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r)
	})
}

// readBranches lists the branches by reading the files that git keeps them in, without a process. sure is false where
// there is anything but plain references in files: a symbolic or malformed one, a name that git would not take, another
// way of storing them. Git is to be asked then.
//
// As git does, it reads loose references before packed ones: packing writes the packed one before it removes the loose
// one, so that none is missed.
func (repo *repository) readBranches(ctx context.Context) (found branches, sure bool, err error) {
	if ctx.Err() != nil {
		return branches{}, false, fault.From(ctx.Err())
	}
	if _, err := files.Lstat(filepath.Join(repo.gitDir, "reftable")); err == nil {
		return branches{}, false, nil
	}
	found = branches{tips: map[string]string{}}
	head, ok := repo.readHead()
	if !ok {
		return branches{}, false, nil
	}
	if ok, err := repo.readLoose(ctx, "", found.tips); !ok || err != nil {
		return branches{}, false, err
	}
	if !repo.readPacked(found.tips) {
		return branches{}, false, nil
	}
	if found.tips[head] != "" {
		found.head = head
	}
	return found, true, nil
}

// readHead returns the branch that HEAD names, "" if it names a commit.
func (repo *repository) readHead() (branch string, ok bool) {
	text, err := readPlain(filepath.Join(repo.gitDir, "HEAD"), 1<<10)
	if err != nil {
		return "", false
	}
	line, whole := strings.CutSuffix(string(text), "\n")
	if isID(line) {
		return "", whole
	}
	branch, isBranch := strings.CutPrefix(line, "ref: "+headsPrefix)
	return branch, whole && isBranch && isBranchName(branch)
}

// readLoose adds the references in files below a folder of refs/heads.
func (repo *repository) readLoose(ctx context.Context, dir string, tips map[string]string) (ok bool, err error) {
	at := filepath.Join(repo.gitDir, "refs", "heads", filepath.FromSlash(dir))
	if dir == "" {
		if info, err := files.Lstat(at); err != nil || !info.IsDir() {
			return false, nil
		}
	}
	entries, err := layout{ctx: ctx, repo: repo}.listFolder(at)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		name := join(dir, entry.Name())
		if entry.IsDir() {
			if ok, err := repo.readLoose(ctx, name, tips); !ok || err != nil {
				return ok, err
			}
			continue
		}
		if strings.HasSuffix(name, ".lock") {
			continue // of a git that writes
		}
		text, err := readPlain(filepath.Join(at, entry.Name()), 1<<10)
		if os.IsNotExist(err) {
			continue // removed, or packed, since
		}
		id, whole := strings.CutSuffix(string(text), "\n")
		if err != nil || !whole || !isSet(id) || !isBranchName(name) {
			return false, nil
		}
		tips[name] = id
	}
	return true, nil
}

// readPacked adds the packed references that are not there loose.
func (repo *repository) readPacked(tips map[string]string) (ok bool) {
	text, err := readPlain(filepath.Join(repo.gitDir, "packed-refs"), maxOutput)
	if os.IsNotExist(err) {
		return true
	}
	for line := range bytes.Lines(text) {
		if line[0] == '#' || line[0] == '^' { // a heading, and what the tag above stands for
			continue
		}
		id, name, isPair := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !isPair || !isSet(id) || line[len(line)-1] != '\n' {
			return false
		}
		branch, isBranch := strings.CutPrefix(name, headsPrefix)
		switch {
		case isBranch && !isBranchName(branch):
			return false
		case isBranch && tips[branch] == "":
			tips[branch] = id
		}
	}
	return err == nil
}

// isSet reports whether s is an object id other than that of nothing.
func isSet(s string) bool { return isID(s) && strings.Trim(s, "0") != "" }

// readPlain reads a regular file of at most limit bytes.
func readPlain(file string, limit int64) ([]byte, error) {
	text, _, err := files.ReadUnlinked(file, limit)
	return text, err
}

// transaction is a script for git update-ref --stdin -z: all of its lines take effect, or none.
type transaction struct {
	script   strings.Builder
	branches []string
	// asked under the lock of writers, before anything is written; nil for nothing
	admitted func(ctx context.Context) error
}

// verifyBranch demands that a branch points to old.
func (t *transaction) verifyBranch(branch, old string) { t.addUpdate("verify", branch, old) }

// createBranch makes a branch, which must not exist.
func (t *transaction) createBranch(branch, tip string) { t.addUpdate("create", branch, tip) }

// update moves a branch from old.
func (t *transaction) update(branch, tip, old string) { t.addUpdate("update", branch, tip, old) }

// deleteBranch deletes a branch that points to old.
func (t *transaction) deleteBranch(branch, old string) { t.addUpdate("delete", branch, old) }

// git waits for the locks of branches (see refConfig), and not always for that of HEAD, which it takes when HEAD names
// one of the branches. So we do.
const (
	headLock  = "HEAD.lock"
	headWait  = 2 * time.Second
	headPause = 100 * time.Millisecond
)

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// leftLock returns a lock file that blocks the transaction, or "". git holds one for a moment; one that stays was left
// by a git that was killed.
func (t *transaction) leftLock(repo *repository) string {
	names := []string{"packed-refs"}
	for _, branch := range t.branches {
		names = append(names, headsPrefix+branch)
	}
	for _, name := range append(names, "HEAD") {
		lock := filepath.Join(repo.gitDir, filepath.FromSlash(name)+".lock")
		if _, err := files.Lstat(lock); err == nil {
			return lock
		}
	}
	return ""
}

// addUpdate writes one line. A symbolic reference is changed itself, never its target: a branch of ours that somebody
// replaced by a link to another branch must not lead a write there.
func (t *transaction) addUpdate(verb, branch string, fields ...string) {
	t.branches = append(t.branches, branch)
	t.script.WriteString("option no-deref\x00" + verb + " " + headsPrefix + branch + "\x00")
	for _, f := range fields {
		t.script.WriteString(f + "\x00")
	}
}

// update runs the transaction under the lock of writers; from then on the end of ctx no longer stops it. Why it failed
// is for the caller to find out by looking at the references.
func (repo *repository) update(ctx context.Context, t *transaction, reason string) error {
	lock, err := lockForWriting(ctx, repo)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if err := repo.checkLayout(ctx); err != nil { // as late as possible: somebody may have put a link there since
		return err
	}
	if t.admitted != nil {
		if err := t.admitted(ctx); err != nil {
			return err
		}
	}
	script := "start\x00" + t.script.String() + "prepare\x00commit\x00"
	var left string
	patience, cancel := context.WithTimeout(ctx, headWait)
	defer cancel()
	for {
		_, _, err = repo.git.runGit(context.WithoutCancel(ctx), gitCommand{
			gitDir: repo.gitDir, config: refConfig(), stdin: strings.NewReader(script), lock: lock,
			args: []string{"update-ref", "--stdin", "-z", "-m", reason},
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		if left = t.leftLock(repo); filepath.Base(left) != headLock || patience.Err() != nil {
			break
		}
		pause(patience, headPause)
	}
	if left != "" {
		return fault.Wrap(err, fault.UpstreamError,
			"git's lock file %s is in the way; a git command that was killed left it. "+
				"Ask the operator to make sure that no git command runs there, and to remove it", left)
	}
	return err
}

const (
	lockWait  = 20 * time.Second // a write takes milliseconds
	lockPause = 5 * time.Millisecond
)

// lockForWriting waits until no claudeops process on this machine writes references of the repository, and keeps others
// from it until the lock is given up. A git command that was started under the lock inherits it, so it lasts until that
// command has ended, even if this process ends earlier. Other programs do not take this lock: git's own locks exclude
// them.
func lockForWriting(ctx context.Context, repo *repository) (*writeLock, error) {
	bounded, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		lock, err := tryLock(repo.gitDir)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.UpstreamError,
				"the repository %s cannot be locked for writing; ask the operator to check its permissions", repo.ref)
		case lock != nil:
			return lock, nil
		case ctx.Err() != nil:
			return nil, fault.From(ctx.Err())
		case bounded.Err() != nil:
			return nil, fault.New(fault.Timeout,
				"other claudeops processes have been writing to the repository %s for %s; try again",
				repo.ref, lockWait)
		}
		pause(bounded, lockPause)
	}
}
