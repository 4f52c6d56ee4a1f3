package fakegitea

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
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
