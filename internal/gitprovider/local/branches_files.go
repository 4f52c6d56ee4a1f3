package local

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

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
	entries, err := layout{ctx: ctx, repo: repo}.list(at)
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
