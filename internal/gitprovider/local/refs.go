package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// refs are the branches of a repository at one moment.
type refs struct {
	tips map[string]string // commit by branch name
	head string            // the branch that HEAD names, if it exists; "" otherwise
}

// refConfig is how git runs in the repository itself: no hook runs, and the wait for somebody else's lock is bounded.
func refConfig() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "protocol.allow=never",
		"core.filesRefLockTimeout=2000", "core.packedRefsTimeout=2000",
	}
}

// refCommand runs git in the repository itself, to read references.
func (p *Provider) refCommand(ctx context.Context, repo *repository, stdin string, accept []int,
	args ...string) ([]byte, int, error) {
	return p.git.run(ctx, command{
		gitDir: repo.gitDir, config: refConfig(), args: args, stdin: strings.NewReader(stdin), accept: accept,
	})
}

// refs lists the branches.
func (p *Provider) refs(ctx context.Context, repo *repository) (refs, error) {
	out, _, err := p.refCommand(ctx, repo, "", nil, "for-each-ref", "--format=%(HEAD) %(objectname) %(refname)",
		headsPrefix)
	if err != nil {
		return refs{}, err
	}
	found := refs{tips: map[string]string{}}
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

// base decides which branch is the base, and says what to do when there is none.
func (p *Provider) base(ctx context.Context, repo *repository, have refs, asked string) (string, error) {
	switch {
	case len(have.tips) == 0:
		return "", fault.New(fault.NotFound, "the repository %s is empty; push a first commit to it", repo.ref)
	case asked != "" && have.tips[asked] == "":
		return "", fault.New(fault.NotFound, "the repository %s has no branch %.200q; name an existing base branch", repo.ref,
			asked)
	case asked != "":
		return asked, nil
	case have.head != "":
		return have.head, nil
	}
	out, code, err := p.refCommand(ctx, repo, "", []int{1}, "symbolic-ref", "-q", "HEAD")
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

// transaction is a script for git update-ref --stdin -z: all of its lines take effect, or none.
type transaction struct {
	script   strings.Builder
	branches []string
}

// verify demands that a branch points to old.
func (t *transaction) verify(branch, old string) { t.add("verify", branch, old) }

// create makes a branch, which must not exist.
func (t *transaction) create(branch, tip string) { t.add("create", branch, tip) }

// update moves a branch from old.
func (t *transaction) update(branch, tip, old string) { t.add("update", branch, tip, old) }

// remove deletes a branch that points to old.
func (t *transaction) remove(branch, old string) { t.add("delete", branch, old) }

// git waits for the locks of branches (see refConfig), and not always for that of HEAD, which it takes when HEAD names one
// of the branches. So we do.
const (
	headLock     = "HEAD.lock"
	headPatience = 2 * time.Second
	headPause    = 100 * time.Millisecond
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

// leftLock is a lock file that stands in the way of the transaction, or "". git takes one for a moment; one that stays was
// left by a git that was killed.
func (t *transaction) leftLock(repo *repository) string {
	names := []string{"packed-refs"}
	for _, branch := range t.branches {
		names = append(names, headsPrefix+branch)
	}
	for _, name := range append(names, "HEAD") {
		lock := filepath.Join(repo.gitDir, filepath.FromSlash(name)+".lock")
		if _, err := os.Lstat(lock); err == nil {
			return lock
		}
	}
	return ""
}

// add writes one line. A symbolic reference is taken for itself, never for what it points to: a branch of ours that
// somebody replaced by a link to another branch must not lead a write there.
func (t *transaction) add(verb, branch string, fields ...string) {
	t.branches = append(t.branches, branch)
	t.script.WriteString("option no-deref\x00" + verb + " " + headsPrefix + branch + "\x00")
	for _, f := range fields {
		t.script.WriteString(f + "\x00")
	}
}

// transact runs the transaction when its turn has come; from then on the end of ctx no longer stops it. Why it failed is
// for the caller to find out by looking at the references.
func (p *Provider) transact(ctx context.Context, repo *repository, t *transaction, reason string) error {
	mine, err := takeTurn(ctx, repo)
	if err != nil {
		return err
	}
	defer mine.end()
	if err := p.checkLayout(ctx, repo); err != nil { // as late as possible: somebody may have put a link there since
		return err
	}
	script := "start\x00" + t.script.String() + "prepare\x00commit\x00"
	var lock string
	patience, cancel := context.WithTimeout(ctx, headPatience)
	defer cancel()
	for {
		_, _, err = p.git.run(context.WithoutCancel(ctx), command{
			gitDir: repo.gitDir, config: refConfig(), stdin: strings.NewReader(script), turn: mine,
			args: []string{"update-ref", "--stdin", "-z", "-m", reason},
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		if lock = t.leftLock(repo); filepath.Base(lock) != headLock || patience.Err() != nil {
			break
		}
		pause(patience, headPause)
	}
	if lock != "" {
		return fault.Wrap(err, fault.UpstreamError, "git's lock file %s is in the way; a git command that was killed left it. "+
			"Ask the operator to make sure that no git command runs there, and to remove it", lock)
	}
	return err
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
