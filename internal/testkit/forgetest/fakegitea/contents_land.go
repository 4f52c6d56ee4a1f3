package fakegitea

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// undated returns the time of commits whose dates the client does not give (go-gitea/gitea#35860).
func undated() time.Time { return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) }

// cleanPath does to a path what the server does: refuses git's own folder, fails on what leaves the repository, and
// quietly rewrites the rest.
func (c *call) cleanPath(asked string) (string, error) {
	for _, part := range strings.Split(asked, "/") {
		if strings.EqualFold(part, ".git") {
			return "", malformed(asked)
		}
	}
	clean := path.Clean(asked)
	const failed = "LsFiles: Unable to run git ls-files for temporary repo of: "
	switch {
	case clean == ".":
		return "", malformed(asked)
	case strings.ContainsRune(asked, 0):
		return "", internalError(failed + c.at.repo.Ref.String() +
			" Error: fork/exec git: invalid argument\nstdout: \nstderr: ")
	case path.IsAbs(asked), clean == "..", strings.HasPrefix(clean, "../"):
		return "", internalError(failed + c.at.repo.Ref.String() + " Error: exit status 128\nstdout: \nstderr: fatal: " +
			asked + ": '" + asked + "' is outside repository at '/var/lib/gitea/data/tmp/local-repo/upload.git1/.'\n")
	}
	return clean, nil
}

func malformed(asked string) error {
	return unprocessable("path contains a malformed path component [path: " + asked + "]")
}

// land moves the branch, if it still is where it was when the request was checked.
func (c *call) land(p *push) (*answer, error) {
	if p.isNew && c.at.st.protection(p.target) != "" {
		return nil, forbidden("Not allowed to push to protected branch " + p.target)
	}
	if file := c.protectedFile(p); file != "" {
		return nil, forbidden("branch " + p.target + " is protected from changing file " + file)
	}
	if err := c.lock(p); err != nil {
		return nil, err
	}
	if len(c.at.repo.Branches) == 0 {
		c.at.repo.Default = p.target
	}
	commit := &memhost.Commit{Files: p.files, Message: message(p.message())}
	if p.parent != "" {
		commit.Parents = []string{p.parent}
	}
	id := c.at.repo.Add(commit)
	c.s.stamps[id] = c.sign(p.in)
	c.at.repo.Branches[p.target] = id
	c.at.settle()
	return c.landed(p, id)
}

// protectedFile returns a file of the push that a rule protects, or "".
func (c *call) protectedFile(p *push) string {
	for _, op := range *p.in.Files {
		if slices.ContainsFunc(c.at.st.Protection.ProtectedFiles,
			func(pattern string) bool { return matches(pattern, op.Path) }) {
			return op.Path
		}
	}
	return ""
}

// lock locks the branch as git does. A refusal is 403 here, although no permission is missing.
func (c *call) lock(p *push) error {
	const prefix = "refs/heads/"
	ref := prefix + p.target
	now, exists := c.at.repo.Branches[p.target]
	if exists && p.isNew {
		return forbidden("cannot lock ref '" + ref + "': reference already exists")
	}
	if !p.isNew && now != p.parent {
		return forbidden("cannot lock ref '" + ref + "': is at " + now + " but expected " + p.parent)
	}
	for name := range c.at.repo.Branches {
		if strings.HasPrefix(name, p.target+"/") || strings.HasPrefix(p.target, name+"/") {
			return forbidden("cannot lock ref '" + ref + "': '" + prefix + name + "' exists; cannot create '" + ref + "'")
		}
	}
	return nil
}

// message returns the client's, or one that names the files.
func (p *push) message() string {
	if p.in.Message != "" {
		return p.in.Message
	}
	var lines []string
	for _, kind := range [][2]string{{"create", "Add "}, {"update", "Update "}, {"delete", "Delete "}} {
		var paths []string
		for _, op := range *p.in.Files {
			if op.Operation == kind[0] {
				paths = append(paths, op.Path)
			}
		}
		if len(paths) > 0 {
			lines = append(lines, kind[1]+strings.Join(paths, ", "))
		}
	}
	return strings.Join(lines, "\n")
}

// sign gives the commit the author and committer that the client named. Without a committer that is the author, and
// without both who holds the token.
func (c *call) sign(in fileOptions) stamp {
	by := func(who identityBody, when time.Time) signature {
		out := signature{who: personOf(c.viewer), when: when}
		if who.Name != "" && who.Email != "" && who.Email != emailOf(c.viewer) {
			out.who = personJSON{Name: who.Name, Email: who.Email}
		}
		if when.IsZero() {
			out.when = undated()
		}
		return out
	}
	if in.Committer == (identityBody{}) {
		in.Committer = in.Author
	}
	return stamp{author: by(in.Author, in.Dates.Author), committer: by(in.Committer, in.Dates.Committer)}
}

type madeCommitJSON struct {
	URL       string        `json:"url"`
	SHA       string        `json:"sha"`
	Created   string        `json:"created"`
	HTMLURL   string        `json:"html_url"`
	Author    datedJSON     `json:"author"`
	Committer datedJSON     `json:"committer"`
	Parents   []pointerJSON `json:"parents"`
	Message   string        `json:"message"`
	Tree      pointerJSON   `json:"tree"`
}

// landed describes the commit. A deleted file is null, and no file at all makes the list null.
func (c *call) landed(p *push, id string) (*answer, error) {
	v, err := c.at.view(p.target)
	if err != nil {
		return nil, err
	}
	root := c.at.st.objects.root(c.at.repo, id)
	var files []*contentJSON
	for _, name := range p.written {
		if n := root.find(name); name != "" && n != nil {
			files = append(files, c.json.entry(v, n, true))
			continue
		}
		files = append(files, nil)
	}
	made := c.s.stampOf(id)
	return &answer{status: http.StatusCreated, body: map[string]any{
		"files": files,
		"commit": madeCommitJSON{
			URL: c.at.api() + "/git/commits/" + id, SHA: id, Created: never, HTMLURL: c.at.web() + "/commit/" + id,
			Author: made.author.json(), Committer: made.committer.json(), Parents: c.json.parents(id),
			Message: c.at.repo.Commits[id].Message,
			Tree:    pointerJSON{URL: c.at.api() + "/git/trees/" + root.id, SHA: root.id, Created: never},
		},
		"verification": unsigned(),
	}}, nil
}
