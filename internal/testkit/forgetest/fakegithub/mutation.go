package fakegithub

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
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
