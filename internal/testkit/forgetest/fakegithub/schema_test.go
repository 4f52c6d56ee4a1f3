package fakegithub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// walker visits every type of object that can be reached from a root.
type walker struct {
	b     *bed
	args  args
	found map[string]*gql.Object
}

func (w *walker) visit(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			w.visit(item)
		}
	case *gql.Object:
		if v == nil || (w.found[v.Type] != nil && !w.lacksEdge(v.Type)) {
			return
		}
		w.found[v.Type] = v
		for _, name := range slices.Sorted(maps.Keys(v.Fields)) {
			field := v.Fields[name]
			if compute, isLazy := field.(lazy); isLazy && v.Type != "Mutation" {
				var err error
				if field, err = compute(maps.Clone(w.args)); err != nil {
					w.b.t.Errorf("%s.%s: %v", v.Type, name, err)
				}
			}
			w.visit(field)
		}
	}
}

// lacksEdge reports whether all connections of a type were empty so far.
func (w *walker) lacksEdge(typ string) bool {
	name, isConnection := strings.CutSuffix(typ, "Connection")
	return isConnection && w.found[name+"Edge"] == nil
}

// explore is a bed where something of every type exists, and a walk through it.
func explore(t *testing.T) *walker {
	b := newBed(t)
	tip := b.push("claude-ops/check/x", "checks/x.md", "x\n")
	world := b.host.World(t, b.ref, nil)
	number := world.OpenPR("claude-ops/check/x", "Watch x", "claude-ops")
	world.ReviewLines(number, "ann", "approved", "Fine", gitprovider.LineComment{Path: "checks/x.md", Line: 1,
		Body: "This"})
	world.Comment(number, "ann", "Why?")
	b.Configure(b.ref, func(set *Settings) {
		set.Token.Permission, set.Protection.Protected, set.Archived = "admin", []string{"ma*", "claude-ops/check/*"}, true
		set.CI.CheckRuns = map[string][]CheckRun{tip: {{Name: "a test", Conclusion: "failure"}}}
		set.CI.Statuses = map[string][]Status{tip: {{Context: "lint", State: "success"}}}
		set.People.Collaborators, set.People.Teams = []string{"ann"}, []string{"crew"}
	})
	w := &walker{b: b, found: map[string]*gql.Object{}, args: args{
		"owner": b.ref.Owner, "name": b.ref.Name, "first": 10, "number": number, "path": "vendor",
		"qualifiedName": "refs/heads/claude-ops/check/x", "refPrefix": "refs/heads/", "expression": "main:checks",
		"id": b.id(), "ids": []any{b.id()},
	}}
	b.host.Locked(func() {
		p := b.repos.find(b.ref.Owner, b.ref.Name, false)
		st := p.pull(p.repo.PR(number))
		st.reviewers, st.teams, st.assignees = []string{"ann"}, []string{"crew"}, []string{"ann"}
		w.visit(p.graph().repo())
		w.visit(b.graph.queryRoot())
		w.visit(b.graph.mutationRoot())
		delete(w.found, "Commit") // the one so far was the first, without parents and checks
		w.visit(p.git().commit(tip))
		w.visit(p.graph().label("claude-ops"))
		w.visit(p.graph().team("crew"))
		w.visit(p.git().expression(args{"expression": "main:README.md"}))
	})
	return w
}

func TestEveryFieldOfTheSchemaHasAValue(t *testing.T) {
	w := explore(t)
	for typ, want := range w.b.graph.schema.ObjectTypes() {
		obj := w.found[typ]
		if obj == nil {
			if !slices.Contains([]string{"Bot", "Mannequin"}, typ) && !strings.HasSuffix(typ, "Payload") {
				t.Errorf("no %s was reached", typ) // there are no bots here
			}
			continue
		}
		have := slices.Sorted(maps.Keys(obj.Fields))
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s has values for %v, the schema fields %v", typ, have, want)
		}
	}
}

func TestValuesAreOfTheTypesThatTheSchemaHas(t *testing.T) {
	w := explore(t)
	for _, typ := range slices.Sorted(maps.Keys(w.found)) {
		id, isNode := w.found[typ].Fields["id"].(string)
		if !isNode || typ == "Query" {
			continue
		}
		var leaves []string
		for name, value := range w.found[typ].Fields {
			if _, isLazy := value.(lazy); !isLazy {
				if _, isObject := value.(*gql.Object); !isObject {
					leaves = append(leaves, name)
				}
			}
		}
		roots := gql.Roots{Around: func(do func()) { do() },
			Query: &gql.Object{Type: "Query", Fields: fields{"nodes": []any{w.found[typ]}}}}
		out := w.b.graph.schema.Execute(gql.Request{
			Query: fmt.Sprintf(`{ nodes(ids: [%q]) { ... on %s { %s } } }`, id, typ, strings.Join(leaves, " ")),
		}, roots)
		if len(out.Problems)+len(out.Defects) > 0 || !out.Executed {
			t.Errorf("%s: %v %v", typ, out.Problems, out.Defects)
		}
	}
}
