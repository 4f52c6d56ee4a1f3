package fakegithub

import (
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

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
