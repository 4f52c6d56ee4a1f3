package fakegithub

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// byBranch finds the repository of a CommittableBranch.
func (g *graphServer) byBranch(in args) (*place, error) {
	branch := in.Object("branch")
	if branch.Has("id") {
		return g.byNode("id")(branch)
	}
	full := branch.String("repositoryNameWithOwner")
	owner, name, _ := strings.Cut(full, "/")
	if p := g.s.repos.find(owner, name, true); p != nil {
		return p, nil
	}
	return nil, &gql.Error{Type: "NOT_FOUND",
		Message: fmt.Sprintf("Could not resolve to a Repository with the name '%s'.", full)}
}

// createCommitOnBranch adds a commit to a branch that is where it is expected to be. What is added is a plain file,
// also when it replaces an executable one.
func createCommitOnBranch(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("contents", "write"); err != nil {
		return nil, err
	}
	where := in.Object("branch")
	branch := strings.TrimPrefix(where.String("branchName"), "refs/heads/")
	if where.Has("id") {
		branch = refOf(where.String("id"))
	}
	head, expected := p.tip(branch), in.String("expectedHeadOid")
	hindered := p.rights().hindered(branch, "update")
	switch {
	case head == "" || p.hides(doorGraph, branchName(branch)):
		return nil, &gql.Error{Type: "NOT_FOUND",
			Message: fmt.Sprintf("Could not resolve to a Ref with the name '%s'.", branch)}
	case head != expected:
		return nil, &gql.Error{Type: "STALE_DATA",
			Message: fmt.Sprintf("Expected branch to point to %q but it did not.  Pull and try again.", expected)}
	case hindered != nil:
		return nil, hindered.graphQL()
	}
	files, err := p.read().withChanges(head, in.Object("fileChanges"))
	if err != nil {
		return nil, err
	}
	message := in.Object("message").String("headline")
	if body := in.Object("message").String("body"); body != "" {
		message += "\n\n" + body
	}
	id := p.repo.Add(&memhost.Commit{Parents: []string{head}, Files: files, Message: message})
	p.details[id] = p.byGitHub()
	p.repo.Branches[branch] = id
	p.made(commitsOf(branch))
	p.made(id)
	return fields{
		"commit": lazy(func(args) (any, error) { return p.git().commit(id), nil }),
		"ref":    lazy(func(args) (any, error) { return p.git().ref(branch), nil }),
	}, nil
}

// withChanges gives the files of a commit with the changes made.
func (o *objectReader) withChanges(head string, changes args) (map[string]memhost.File, error) {
	files := maps.Clone(o.at.repo.Tree(head))
	changed := map[string]bool{}
	once := func(path string) error {
		if badPath(path) {
			return refused("A path was requested that is not valid: `%s`", path)
		}
		if changed[path] {
			return refused("A path was requested more than once: `%s`", path)
		}
		changed[path] = true
		return nil
	}
	for _, d := range changes.Objects("deletions") {
		path := d.String("path")
		if err := once(path); err != nil {
			return nil, err
		}
		if _, exists := files[path]; !exists {
			return nil, &gql.Error{Type: "UNPROCESSABLE", Message: fmt.Sprintf(
				"A path was requested for deletion which does not exist as of commit oid `%s`: `%s`", head, path)}
		}
		delete(files, path)
	}
	for _, add := range changes.Objects("additions") {
		path := add.String("path")
		if err := once(path); err != nil {
			return nil, err
		}
		content, err := base64.StdEncoding.DecodeString(add.String("contents"))
		if err != nil {
			return nil, refused("The contents of `%s` are not Base64.", path)
		}
		if secret := o.at.set.Protection.Secret; secret != "" && strings.Contains(string(content), secret) {
			return nil, refused("Repository rule violations found\n\nSecret detected in content\n\n")
		}
		putFile(files, fileOf(path, modeFile, string(content)))
	}
	return files, nil
}

// putFile stores a file as git's index does: a folder of its name, and files that it would have to be inside of, go.
func putFile(files map[string]memhost.File, f memhost.File) {
	for path := range files {
		if strings.HasPrefix(path, f.Path+"/") || strings.HasPrefix(f.Path, path+"/") {
			delete(files, path)
		}
	}
	files[f.Path] = f
}

// badPath reports whether git would not take a path.
func badPath(path string) bool {
	for _, part := range strings.Split(path, "/") {
		if part == "" || part == "." || part == ".." || lower(part) == ".git" {
			return true
		}
	}
	return strings.Contains(path, "\x00")
}
