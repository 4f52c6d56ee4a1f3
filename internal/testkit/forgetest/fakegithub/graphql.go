package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// Shorthands for what the objects of GraphQL are made of.
type (
	fields = map[string]any
	lazy   = gql.Func
	args   = gql.Args
)

// graphql answers a document.
func (g *graphServer) serve(a *exchange) {
	if a.r.Method != http.MethodPost {
		a.notFound()
		return
	}
	raw, err := io.ReadAll(io.LimitReader(a.r.Body, maxBody))
	var req gql.Request
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	switch {
	case err != nil || dec.Decode(&req) != nil:
		a.fail(http.StatusBadRequest, "Problems parsing JSON")
		return
	case strings.TrimSpace(req.Query) == "":
		a.fail(http.StatusBadRequest, "A query attribute must be specified and must be a string.")
		return
	}
	if g.old && strings.Contains(req.Query, "updateRefs(") {
		a.reply(http.StatusOK, object{"errors": []any{object{
			"message":    "Field 'updateRefs' doesn't exist on type 'Mutation'",
			"extensions": object{"code": "undefinedField", "typeName": "Mutation", "fieldName": "updateRefs"},
		}}})
		return
	}
	out := g.schema.Execute(req, gql.Roots{Query: g.queryRoot(), Mutation: g.mutationRoot(),
		Around: func(do func()) { g.s.as(a, func() { g.spent = 0; do() }) }})
	for _, defect := range out.Defects {
		g.s.t.Errorf("the fake GitHub made a wrong value: %s", defect)
	}
	a.reply(http.StatusOK, out)
}

func noNode(id string) error {
	return &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf("Could not resolve to a node with the global id of '%s'",
		id)}
}

func (g *graphServer) queryRoot() *gql.Object {
	return &gql.Object{Type: "Query", Fields: fields{
		"repository": lazy(func(in args) (any, error) {
			if p := g.s.repos.find(in.String("owner"), in.String("name"), in.Bool("followRenames")); p != nil {
				if no := p.rights().refused(); no != nil {
					return nil, no.graphQL()
				}
				return p.graph().repo(), nil
			}
			return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
				"Could not resolve to a Repository with the name '%s/%s'.", in.String("owner"), in.String("name"))}
		}),
		"nodes": lazy(func(in args) (any, error) {
			out := []any{}
			if ids := in.Strings("ids"); len(ids) > gql.MaxPage {
				return nil, &gql.Error{Type: "ARGUMENT_LIMIT", Message: fmt.Sprintf(
					"You may not provide more than %d node ids; you provided %d.", gql.MaxPage, len(ids))}
			}
			if err := g.spend(len(in.Strings("ids"))); err != nil {
				return nil, err
			}
			for _, id := range in.Strings("ids") {
				if obj := g.node(id); obj != nil {
					out = append(out, obj)
				} else {
					out = append(out, noNode(id))
				}
			}
			return out, nil
		}),
	}}
}

// node finds what an id stands for, or nil.
func (g *graphServer) node(id string) *gql.Object {
	kind, number, name, ok := parseNodeID(id)
	if !ok {
		return nil
	}
	p := g.s.repos.byNumber(number)
	if p == nil {
		return nil
	}
	switch kind {
	case kindRepo:
		return p.graph().repo()
	case kindRef:
		return p.git().ref(strings.TrimPrefix(name, "refs/heads/"))
	case kindCommit, kindTree, kindBlob:
		return p.git().object(name)
	case kindPull:
		if pr := p.rules().pullNamed(name); pr != nil {
			return p.graph().pull(pr)
		}
	}
	return nil
}

func (g *graphServer) user(login string) *gql.Object {
	return &gql.Object{Type: "User", Fields: fields{"login": login}}
}

// account returns an account of the repository: a person or a bot.
func (g *pullGraph) account(login string) *gql.Object {
	if !slices.Contains(g.at.set.People.Bots, login) {
		return g.at.s.graph.user(login)
	}
	return &gql.Object{Type: "Bot", Fields: fields{"login": login}}
}

func (g *pullGraph) team(slug string) *gql.Object {
	for _, have := range g.at.set.People.Teams {
		if have == slug {
			return &gql.Object{Type: "Team", Fields: fields{
				"combinedSlug": g.at.repo.Ref.Owner + "/" + slug,
			}}
		}
	}
	return nil
}

// people returns a connection of users.
func (g *graphServer) people(field string, logins []string, in args) (any, error) {
	return gql.Connection("User", field, gql.Items{
		Len: len(logins), Key: func(i int) string { return logins[i] },
		Node: func(i int) *gql.Object { return g.user(logins[i]) },
	}, in)
}
