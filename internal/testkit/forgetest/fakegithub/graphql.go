package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

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
		"id": "MDU6UXVlcnk=",
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
		"node": lazy(func(in args) (any, error) {
			if obj := g.node(in.String("id")); obj != nil {
				return obj, nil
			}
			return nil, noNode(in.String("id"))
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
		"viewer": lazy(func(args) (any, error) { return g.user(viewer), nil }),
		"user": lazy(func(in args) (any, error) {
			for _, repo := range g.s.repos.byID {
				for _, login := range append(g.s.repos.place(repo).set.people(), repo.Ref.Owner) {
					if lower(login) == lower(in.String("login")) {
						return g.user(login), nil
					}
				}
			}
			return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
				"Could not resolve to a User with the login of '%s'.", in.String("login"))}
		}),
		"rateLimit": lazy(func(args) (any, error) {
			used := g.s.served % 5000
			return &gql.Object{Type: "RateLimit", Fields: fields{
				"cost": 1, "limit": 5000, "nodeCount": 1, "remaining": 5000 - used, "used": used, "resetAt": epoch().Add(time.Hour),
			}}, nil
		}),
	}}
}

// node finds what an id stands for, or nil.
func (g *graphServer) node(id string) *gql.Object {
	kind, number, name, ok := parseNodeID(id)
	if !ok {
		return nil
	}
	if kind == kindUser {
		return g.user(name)
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
	case kindLabel:
		return p.graph().label(name)
	case kindTeam:
		return p.graph().team(name)
	}
	return nil
}

// actor is somebody as an Actor: the fields that people of every kind have.
func (g *graphServer) actor(login, id string, number int) fields {
	return fields{
		"id": id, "databaseId": number, "login": login, "url": g.s.host.Web() + "/" + login, "resourcePath": "/" + login,
		"avatarUrl": g.s.host.Web() + "/" + login + ".png", "name": any(nil),
	}
}

func (g *graphServer) user(login string) *gql.Object {
	out := g.actor(login, nodeID(kindUser, 0, login), userID(login))
	out["email"], out["isViewer"] = "", login == viewer
	return &gql.Object{Type: "User", Fields: out}
}

// account is somebody of the repository: a person or a bot.
func (g *pullGraph) account(login string) *gql.Object {
	if !slices.Contains(g.at.set.People.Bots, login) {
		return g.at.s.graph.user(login)
	}
	out := g.at.s.graph.actor(login, nodeID(kindBot, 0, login), userID(login))
	delete(out, "name")
	return &gql.Object{Type: "Bot", Fields: out}
}

func (g *pullGraph) team(slug string) *gql.Object {
	for _, have := range g.at.set.People.Teams {
		if have == slug {
			return &gql.Object{Type: "Team", Fields: fields{
				"id": nodeID(kindTeam, g.at.id, slug), "name": slug, "slug": slug, "combinedSlug": g.at.repo.Ref.Owner + "/" + slug,
				"url": g.at.s.host.Web() + "/orgs/" + g.at.repo.Ref.Owner + "/teams/" + slug,
			}}
		}
	}
	return nil
}

// people is a connection of users.
func (g *graphServer) people(field string, logins []string, in args) (any, error) {
	return gql.Connection("User", field, gql.Items{
		Len: len(logins), Key: func(i int) string { return logins[i] },
		Node: func(i int) *gql.Object { return g.user(logins[i]) },
	}, in, nil)
}
