package fakegithub

import (
	"fmt"
	"strconv"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// comments returns a connection of the comments, oldest first.
func (g *pullGraph) comments(pr *memhost.PR, in args) (any, error) {
	return gql.Connection("IssueComment", "comments", gql.Items{
		Len: len(pr.Comments), Key: strconv.Itoa,
		Node: func(i int) *gql.Object {
			c := pr.Comments[i]
			return &gql.Object{Type: "IssueComment", Fields: fields{
				"id":     nodeID(kindComment, g.at.id, fmt.Sprintf("%d/%d", pr.Number, i)),
				"author": g.account(c.Author), "authorAssociation": g.at.rules().association(c.Author), "body": c.Body,
				"createdAt": c.At, "isMinimized": false,
			}}
		},
	}, in)
}

// association returns somebody's relation to the repository.
func (r *pullRules) association(login string) string {
	given := r.at.set.People.Associations[login]
	switch {
	case given != "":
		return given
	case login == r.at.repo.Ref.Owner:
		return "OWNER"
	case login == viewer, r.at.rights().allows(login, "write"), r.at.set.People.Roles[login] != "":
		return "COLLABORATOR"
	}
	return "NONE"
}
