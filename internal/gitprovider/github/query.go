package github

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// query builds a GraphQL query about one repository. Every value travels in a variable; documents hold only names that
// this package chose.
type query struct {
	types     map[string]string // of the variables
	values    map[string]any
	fields    []string
	fragments string
	tolerate  func(graphError) bool
}

func newQuery(repo gitprovider.RepoRef) *query {
	q := &query{types: map[string]string{}, values: map[string]any{}}
	q.variable("owner", "String!", repo.Owner)
	q.variable("name", "String!", repo.Name)
	return q
}

func (q *query) variable(name, kind string, value any) {
	q.types[name], q.values[name] = kind, value
}

// add selects a field of the repository.
func (q *query) add(field string) { q.fields = append(q.fields, field) }

func (q *query) fragment(text string) { q.fragments += text }

func (q *query) operation(n need) operation {
	var b strings.Builder
	b.WriteString("query(")
	for i, name := range slices.Sorted(maps.Keys(q.types)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + name + ": " + q.types[name])
	}
	b.WriteString(") {\n  repository(owner: $owner, name: $name) {\n    ")
	b.WriteString(strings.Join(q.fields, "\n    "))
	b.WriteString("\n  }\n}\n")
	b.WriteString(q.fragments)
	return operation{document: b.String(), variables: q.values, need: n, tolerate: q.tolerate}
}

func decimal(n int) string { return strconv.Itoa(n) }
