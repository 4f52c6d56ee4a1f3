package fakegitea

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

type identityBody struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

type operationBody struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Content   string `json:"content"`
	SHA       string `json:"sha"`
	FromPath  string `json:"from_path"`
}

// fileOptions is the body of POST contents, named as the server names it in its refusals.
type fileOptions struct {
	Author    identityBody `json:"author"`
	Committer identityBody `json:"committer"`
	Dates     struct {
		Author    time.Time `json:"author"`
		Committer time.Time `json:"committer"`
	} `json:"dates"`
	Message   string           `json:"message"`
	Branch    string           `json:"branch"`
	NewBranch string           `json:"new_branch"`
	Files     *[]operationBody `json:"files"`
}

// push is a commit on its way to a branch.
type push struct {
	in             fileOptions
	parent, target string // commit, branch
	isNew          bool   // whether the branch is to be made
	files          map[string]memhost.File
	written        []string // resulting path of each operation, "" for a deletion
}

// changeFiles is POST contents. It checks against what it reads first, and moves the branch afterwards: the two are not
// one step, on the real server neither.
func changeFiles(c *call) (*answer, error) {
	p := &push{}
	if err := c.decode(&p.in); err != nil {
		return nil, err
	}
	if p.in.Files == nil {
		return nil, unprocessable("[Files]: Required")
	}
	if err := validRef(p.in.NewBranch, "NewBranchName"); err != nil {
		return nil, err
	}
	if c.at.repo.Archived {
		return nil, refuse(http.StatusLocked, c.at.repo.Ref.String()+" is not allowed to edit")
	}
	if c.at.access < writeAccess {
		return nil, forbidden("user should have a permission to write to the target branch")
	}
	if err := c.aim(p); err != nil {
		return nil, err
	}
	for _, op := range *p.in.Files {
		if err := c.apply(p, op); err != nil {
			return nil, err
		}
	}
	between := c.at.st.Delays.BeforeRefUpdate
	c.at.st.Delays.BeforeRefUpdate = nil
	return &answer{between: between, then: func() (*answer, error) { return c.land(p) }}, nil
}

// validRef refuses names that git refuses for a branch.
func validRef(name, member string) error {
	bad := strings.ContainsAny(name, " ~^:?*[\\\x7f") || strings.Contains(name, "..") || strings.Contains(name, "//") ||
		strings.Contains(name, "@{") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".")
	if bad {
		return unprocessable("[" + member + "]: GitRefName")
	}
	return nil
}

// aim finds the commit to build on and the branch to move. In an empty repository it does not matter what the base is.
func (c *call) aim(p *push) error {
	base := p.in.Branch
	if base == "" {
		base = c.at.repo.Default
	}
	p.target = base
	if p.in.NewBranch != "" {
		p.target = p.in.NewBranch
	}
	p.isNew = p.target != base || len(c.at.repo.Branches) == 0
	p.parent = c.at.repo.Branches[base]
	p.files = maps.Clone(c.at.repo.Tree(p.parent))
	if p.files == nil {
		p.files = map[string]memhost.File{}
	}
	switch {
	case len(c.at.repo.Branches) == 0:
		return nil
	case p.parent == "":
		return refuse(http.StatusNotFound, fmt.Sprintf("branch does not exist [repo_id: %d name: %s]", c.at.st.id, base))
	case p.isNew && c.at.repo.Branches[p.target] != "":
		return unprocessable("branch already exists [name: " + p.target + "]")
	case !p.isNew && c.at.st.protection(p.target) != "":
		return forbidden("user cannot commit to repo [user: " + c.viewer + "]")
	}
	return nil
}

// apply checks one operation and does it to the files. The operations of a request see what those before them did, but
// ids are those of the parent.
func (c *call) apply(p *push, op operationBody) error {
	if err := required("Operation", op.Operation, "Path", op.Path); err != nil {
		return err
	}
	if op.FromPath != "" {
		c.s.report("fake Gitea: from_path is not supported")
	}
	path, err := c.cleanPath(op.Path)
	if err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(op.Content)
	if err != nil {
		return unprocessable(err.Error())
	}
	was, exists := p.files[path]
	switch op.Operation {
	case "create":
		err = c.placeable(p, path)
		if exists && was.Kind == gitprovider.KindFile {
			err = unprocessable("repository file already exists [path: " + path + "]")
		}
	case "update":
		err = c.updatable(p, path, op.SHA)
	case "delete":
		if !exists {
			return refuse(http.StatusNotFound, "repository file does not exist [path: "+path+"]")
		}
		err = c.sameID(p, path, op.SHA)
	default:
		err = internalError("invalid file operation: " + op.Operation + " " + op.Path +
			", supported operations are create, update, delete")
	}
	if err != nil {
		return err
	}
	if op.Operation == "delete" {
		delete(p.files, path)
		p.written = append(p.written, "")
		return nil
	}
	for have := range p.files { // an earlier operation's, that is in the way
		if strings.HasPrefix(have, path+"/") || strings.HasPrefix(path, have+"/") {
			delete(p.files, have)
		}
	}
	p.files[path] = memhost.File{
		Path: path, Kind: gitprovider.KindFile, Executable: was.Executable, Content: c.stored(p, path, string(content)),
	}
	p.written = append(p.written, path)
	return nil
}

// stored returns the content that the server stores for a file: with LFS, where the parent's attributes say so, a
// pointer to it.
func (c *call) stored(p *push, path, content string) string {
	attributes := gitprovider.Attributes{}
	for name, f := range c.at.repo.Tree(p.parent) {
		if folder, is := strings.CutSuffix(name, gitprovider.AttributesName); is {
			attributes[strings.TrimSuffix(folder, "/")] = f.Content
		}
	}
	if attributes.Filter(path) != "lfs" || c.at.st.Features.NoLFS {
		return content
	}
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n",
		sha256.Sum256([]byte(content)), len(content))
}

func (c *call) updatable(p *push, path, sha string) error {
	if _, exists := p.files[path]; !exists {
		return refuse(http.StatusNotFound, noObject("", path))
	}
	if err := c.sameID(p, path, sha); err != nil {
		return err
	}
	return c.placeable(p, path)
}

// sameID compares the id that the client knows. Without one everything is silently overwritten.
func (c *call) sameID(p *push, path, sha string) error {
	n := c.at.st.objects.root(c.at.repo, p.parent).find(path)
	if sha == "" || n == nil || n.id == sha {
		return nil
	}
	return unprocessable("sha does not match [given: " + sha + ", expected: " + n.id + "]")
}

// placeable refuses a path on which the parent has something else, or that leads through something that is not a
// folder.
func (c *call) placeable(p *push, path string) error {
	before := c.at.repo.Tree(p.parent)
	for i := 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if _, taken := before[path[:i]]; taken {
			return unprocessable("a file exists where you’re trying to create a subdirectory [path: " + path[:i] + "]")
		}
	}
	if before[path].Kind == gitprovider.KindSymlink {
		return unprocessable("a symbolic link exists where you’re trying to create a subdirectory [path: " + path + "]")
	}
	for have := range before {
		if strings.HasPrefix(have, path+"/") {
			return unprocessable("a directory exists where you’re trying to create a file [path: " + path + "]")
		}
	}
	return nil
}

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
	if slices.ContainsFunc(c.at.st.Protection.Signed, func(pattern string) bool { return matches(pattern, p.target) }) {
		return nil, forbidden("branch " + p.target + " is protected from unverified commit " + strings.Repeat("1", 40))
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
