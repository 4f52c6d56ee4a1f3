package fakegithub

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// mutation acts on a repository and gives the fields of its payload.
type mutation func(p *place, in args) (fields, error)

func (g *graphServer) mutationRoot() *gql.Object {
	root := &gql.Object{Type: "Mutation", Fields: fields{}}
	for name, m := range map[string]struct {
		about func(in args) (*place, error) // finds the repository
		do    mutation
	}{
		"createRef":            {g.byNode("repositoryId"), createRef},
		"updateRef":            {g.byNode("refId"), updateRef},
		"updateRefs":           {g.byNode("repositoryId"), updateRefs},
		"deleteRef":            {g.byNode("refId"), gqlDeleteRef},
		"createCommitOnBranch": {g.byBranch, createCommitOnBranch},
	} {
		root.Fields[name] = lazy(func(outer args) (any, error) {
			in := outer.Object("input")
			p, err := m.about(in)
			if err != nil {
				return nil, err
			}
			if p.set.Delays.Before != nil {
				p.set.Delays.Before(name, p.repo)
				p.changed()
			}
			payload, err := m.do(p, in)
			if err != nil {
				return nil, err
			}
			p.changed()
			payload["clientMutationId"] = in["clientMutationId"]
			return &gql.Object{Type: strings.ToUpper(name[:1]) + name[1:] + "Payload", Fields: payload}, nil
		})
	}
	return root
}

// byNode finds the repository of the node that an argument names.
func (g *graphServer) byNode(argument string) func(args) (*place, error) {
	return func(in args) (*place, error) {
		id := in.String(argument)
		_, number, _, ok := parseNodeID(id)
		if p := g.s.repos.byNumber(number); ok && p != nil && g.node(id) != nil {
			return p, nil
		}
		return nil, noNode(id)
	}
}

// refused returns a GraphQL error of type UNPROCESSABLE.
func refused(format string, a ...any) error {
	return &gql.Error{Type: "UNPROCESSABLE", Message: fmt.Sprintf(format, a...)}
}

// gqlMayWrite is writes for a mutation.
func (r *rights) gqlMayWrite(what, permission string) error {
	if no := r.writes(viewer, what, permission); no != nil {
		return no.graphQL()
	}
	return nil
}

// refOf reads the branch of a node id.
func refOf(id string) string {
	_, _, name, _ := parseNodeID(id)
	return strings.TrimPrefix(name, "refs/heads/")
}

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

// assign assigns those who may be assigned; the others are silently ignored.
func (r *pullRules) assign(pr *memhost.PR, logins []string) {
	st := r.at.pull(pr)
	for _, login := range logins {
		known := slices.IndexFunc(r.at.set.people(), func(have string) bool { return lower(have) == lower(login) })
		if known >= 0 && !slices.Contains(st.assignees, r.at.set.people()[known]) {
			st.assignees = append(st.assignees, r.at.set.people()[known])
		}
	}
}

// cannotReview says why somebody cannot be asked for a review; "" if all can.
func (r *pullRules) cannotReview(pr *memhost.PR, users, teams []string) string {
	for _, login := range users {
		if lower(login) == lower(r.author(pr)) {
			return "Review cannot be requested from pull request author."
		}
	}
	stranger := slices.ContainsFunc(users, func(login string) bool {
		return !slices.ContainsFunc(r.at.set.people(), func(have string) bool { return lower(have) == lower(login) })
	})
	if stranger || slices.ContainsFunc(teams,
		func(slug string) bool { return !slices.Contains(r.at.set.People.Teams, slug) }) {
		return fmt.Sprintf("Reviews may only be requested from collaborators. One or more of the users or teams you "+
			"specified is not a collaborator of the %s repository.", r.at.repo.Ref)
	}
	return ""
}

// askFor records whose reviews are asked for.
func (r *pullRules) askFor(pr *memhost.PR, users, teams []string) {
	st := r.at.pull(pr)
	for _, login := range users {
		if !slices.Contains(st.reviewers, login) {
			st.reviewers = append(st.reviewers, login)
		}
	}
	for _, slug := range teams {
		if !slices.Contains(st.teams, slug) {
			st.teams = append(st.teams, slug)
		}
	}
}

// zeroOid stands for no commit.
const zeroOid = "0000000000000000000000000000000000000000"

func createRef(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("contents", "write"); err != nil {
		return nil, err
	}
	name := in.String("name")
	branch, ok := strings.CutPrefix(name, "refs/heads/")
	if !ok || badRefName(branch) {
		return nil, refused("%q is not a valid ref name.", name)
	}
	if err := p.moveRef(branch, zeroOid, in.String("oid"), false); err != nil {
		return nil, err
	}
	p.made(branchName(branch))
	return fields{"ref": lazy(func(args) (any, error) { return p.git().ref(branch), nil })}, nil
}

func updateRef(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("contents", "write"); err != nil {
		return nil, err
	}
	branch := refOf(in.String("refId"))
	if err := p.moveRef(branch, p.tip(branch), in.String("oid"), in.Bool("force")); err != nil {
		return nil, err
	}
	return fields{"ref": lazy(func(args) (any, error) { return p.git().ref(branch), nil })}, nil
}

func gqlDeleteRef(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("contents", "write"); err != nil {
		return nil, err
	}
	branch := refOf(in.String("refId"))
	if branch == p.repo.Default {
		return nil, refused("Cannot delete the default branch")
	}
	return fields{}, p.moveRef(branch, p.tip(branch), zeroOid, true)
}

// updateRefs moves all references or none.
func updateRefs(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("contents", "write"); err != nil {
		return nil, err
	}
	before := map[string]string{}
	for name, tip := range p.repo.Branches {
		before[name] = tip
	}
	for _, update := range in.Objects("refUpdates") {
		branch, ok := strings.CutPrefix(update.String("name"), "refs/heads/")
		err := refused("%q is not a valid ref name.", update.String("name"))
		if ok && !badRefName(branch) {
			expected := update.String("beforeOid")
			if expected == "" {
				expected = p.tipOrZero(branch)
			}
			err = p.moveRef(branch, expected, update.String("afterOid"), update.Bool("force"))
		}
		if err != nil {
			p.repo.Branches = before
			return nil, err
		}
	}
	return fields{}, nil
}

func (p *place) tipOrZero(branch string) string {
	if tip := p.tip(branch); tip != "" {
		return tip
	}
	return zeroOid
}

// moveRef moves a branch from one commit to another; zeros stand for none, so that it also makes and removes branches.
// A commit that is not a descendant needs force, unless the branch is removed.
func (p *place) moveRef(branch, from, to string, force bool) error {
	has := p.tipOrZero(branch)
	action := map[bool]string{true: "update", false: "create"}[has != zeroOid]
	if to == zeroOid {
		action = "delete"
	}
	switch hindered := p.rights().hindered(branch, action); {
	case from == zeroOid && has != zeroOid:
		return refused("A ref named %q already exists in the repository.", "refs/heads/"+branch)
	case action == "delete" && has == zeroOid:
		return refused("Reference does not exist")
	case from != has:
		return &gql.Error{Type: "STALE_DATA", Message: "Reference cannot be updated: expected refs/heads/" + branch +
			" to be at " + from + " but it is at " + has + "."}
	case to != zeroOid && (p.repo.Commits[to] == nil || p.hides(doorGraph, to)):
		return refused("Object %s does not exist in the repository.", to)
	case hindered != nil:
		return hindered.graphQL()
	case action == "create" && p.inTheWay(branch):
		return refused("Ref cannot be created")
	case action == "update" && !force && !p.repo.Contains(to, has):
		return refused("Update is not a fast forward")
	case action == "delete":
		delete(p.repo.Branches, branch)
	default:
		p.repo.Branches[branch] = to
	}
	return nil
}
