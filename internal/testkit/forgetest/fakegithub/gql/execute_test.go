package gql

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `
	interface Being { name: String! }
	type Cat implements Being { name: String! lives: Int }
	type Dog implements Being { name: String! barks: Boolean! }
	type CatConnection { nodes: [Cat] edges: [CatEdge] pageInfo: PageInfo! totalCount: Int! }
	type CatEdge { cursor: String! node: Cat }
	type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
	input Wish { name: String! times: Int = 2 }
	scalar GitObjectID
	type Query {
		beings: [Being!] cats(first: Int, last: Int, after: String, before: String): CatConnection
		echo(text: String = "none", wishes: [Wish!]): String broken: Cat strict: Cat! wrong: Int oid: GitObjectID
	}
	type Mutation { count: Int fail: Int }`

// zoo is a schema with a root for it; its cats are numbered.
func zoo(t *testing.T, cats *[]string) (*Schema, Roots, *int) {
	t.Helper()
	schema, err := Load(sample)
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	cat := func(name string) *Object { return &Object{"Cat", map[string]any{"name": name, "lives": 9}} }
	failing := Func(func(Args) (any, error) { return nil, &Error{Type: "NOT_FOUND", Message: "no such thing"} })
	query := &Object{"Query", map[string]any{
		"beings": []any{cat("Tom"), &Object{"Dog", map[string]any{"name": "Rex", "barks": true}}},
		"broken": failing, "strict": failing, "wrong": "seven", "oid": "abc",
		"echo": Func(func(in Args) (any, error) {
			out := in.String("text")
			for _, w := range in.Objects("wishes") {
				out += fmt.Sprintf(" %s*%d", w.String("name"), w.Int("times"))
			}
			return out, nil
		}),
		"cats": Func(func(in Args) (any, error) {
			return Connection("Cat", "cats", Items{
				Len: len(*cats), Key: func(i int) string { return (*cats)[i] },
				Node: func(i int) *Object { return cat((*cats)[i]) },
			}, in)
		}),
	}}
	mutation := &Object{"Mutation", map[string]any{
		"count": Func(func(Args) (any, error) { return turns, nil }), "fail": failing,
	}}
	return schema, Roots{query, mutation, func(do func()) { turns++; do() }}, &turns
}

func wire(t *testing.T, r *Response) string {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestDocumentsAreExecutedAsTheLanguageHasIt(t *testing.T) {
	for name, row := range map[string]struct {
		query string
		vars  map[string]any
		want  string
	}{
		"names in the order of the document": {`{ b: echo(text: "1") a: echo }`, nil, `{"data":{"b":"1","a":"none"}}`},
		"fragments by type": {`{ beings { __typename ...on Dog { barks } ...cat } } fragment cat on Cat { lives }`, nil,
			`{"data":{"beings":[{"__typename":"Cat","lives":9},{"__typename":"Dog","barks":true}]}}`},
		"fragments on interfaces": {`{ beings { ... on Being { name } } }`, nil,
			`{"data":{"beings":[{"name":"Tom"},{"name":"Rex"}]}}`},
		"selections of one key merged": {`{ beings { ... on Cat { name } ... on Cat { name lives } ... on Dog { name } } }`,
			nil,
			`{"data":{"beings":[{"name":"Tom","lives":9},{"name":"Rex"}]}}`},
		"skip and include": {`query($y: Boolean!) { a: echo @skip(if: $y) b: echo @include(if: $y)
			... @include(if: false) { c: echo } }`,
			map[string]any{"y": true}, `{"data":{"b":"none"}}`},
		"variables and defaults": {`query($t: String = "x", $w: [Wish!]) { echo(text: $t, wishes: $w) }`,
			map[string]any{"w": []any{map[string]any{"name": "fish", "times": json.Number("3")}}},
			`{"data":{"echo":"x fish*3"}}`},
		"one for a list": {`{ echo(wishes: {name: "rain", times: 1}) }`, nil, `{"data":{"echo":"none rain*1"}}`},
		"null for what failed": {`{ broken { name } echo }`, nil,
			`{"data":{"broken":null,"echo":"none"},"errors":[{"type":"NOT_FOUND","path":["broken"],"locations":[{"line":1,"column":3}],` +
				`"message":"no such thing"}]}`},
		"null for the whole where none may be": {`{ echo s: strict { name } }`, nil,
			`{"data":null,"errors":[{"type":"NOT_FOUND","path":["s"],"locations":[{"line":1,"column":8}],"message":"no such thing"}]}`},
		"mutations in turn": {`mutation { a: count f: fail b: count }`, nil,
			`{"data":{"a":1,"f":null,"b":3},"errors":[{"type":"NOT_FOUND","path":["f"],"locations":[{"line":1,"column":21}],` +
				`"message":"no such thing"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			schema, roots, _ := zoo(t, &[]string{})
			got := schema.Execute(Request{Query: row.query, Variables: row.vars}, roots)
			if diff := cmp.Diff(row.want, wire(t, got)); diff != "" || len(got.Defects) > 0 {
				t.Errorf("(-want +got):\n%s%v", diff, got.Defects)
			}
		})
	}
}

func TestValuesOfAWrongTypeAreDefects(t *testing.T) {
	schema, roots, _ := zoo(t, &[]string{})
	for _, field := range []string{"wrong", "oid"} {
		got := schema.Execute(Request{Query: "{ " + field + " }"}, roots)
		if len(got.Defects) != 1 || !strings.Contains(got.Defects[0], field) {
			t.Errorf("%s: defects %q", field, got.Defects)
		}
	}
	delete(roots.Query.Fields, "wrong")
	if got := schema.Execute(Request{Query: "{ wrong }"}, roots); len(got.Defects) != 1 {
		t.Errorf("a field without a value: defects %q", got.Defects)
	}
}

func TestPagesFollowOneAnotherWhateverHappensInBetween(t *testing.T) {
	cats := []string{"a", "b", "c", "d", "e"}
	schema, roots, _ := zoo(t, &cats)
	page := func(arguments string) (names, end string, more bool) {
		t.Helper()
		raw := wire(t, schema.Execute(Request{
			Query: "{ cats(" + arguments + ") { nodes { name } pageInfo { endCursor hasNextPage } } }"}, roots))
		var out struct {
			Data struct {
				Cats struct {
					Nodes    []struct{ Name string }
					PageInfo struct {
						EndCursor   string
						HasNextPage bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			t.Fatal(err)
		}
		for _, n := range out.Data.Cats.Nodes {
			names += n.Name
		}
		return names, out.Data.Cats.PageInfo.EndCursor, out.Data.Cats.PageInfo.HasNextPage
	}
	names, end, more := page("first: 2")
	if names != "ab" || !more {
		t.Fatalf("first page %s, more %v", names, more)
	}
	cats = []string{"b", "c", "d", "e"} // the first has gone
	if names, _, more = page(fmt.Sprintf("first: 2, after: %q", end)); names != "cd" || !more {
		t.Errorf("second page %s, more %v", names, more)
	}
	cats = []string{"c", "d", "e"} // the one of the cursor has gone too: nothing is given twice
	if names, _, more = page(fmt.Sprintf("first: 9, after: %q", end)); strings.Contains(names, "b") || more {
		t.Errorf("last page %s, more %v", names, more)
	}
	if names, _, _ = page("last: 2"); names != "de" {
		t.Errorf("the last two are %s", names)
	}
	_, end, _ = page("first: 2")
	if names, _, _ = page(fmt.Sprintf("first: 9, before: %q", end)); names != "c" {
		t.Errorf("before the second is %s", names)
	}
}
