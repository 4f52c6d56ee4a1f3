package fakegithub

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/apispec"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// answers is read once, since it is large.
var answers = sync.OnceValues(func() (*apispec.Spec, error) { return describe("testdata/openapi-answers.json") })

// bed is a server with one repository, which holds its answers against the descriptions too.
type bed struct {
	*Server
	t   *testing.T
	ref gitprovider.RepoRef
}

func newBed(t *testing.T, files ...memhost.File) *bed {
	t.Helper()
	s := New(t)
	var err error
	if s.rest.answers, err = answers(); err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		files = []memhost.File{
			{Path: "README.md", Content: "# Home\n"}, {Path: "checks/disk.md", Content: "# Disk\n\ndf -h\n"},
			{Path: "run.sh", Content: "#!/bin/sh\n", Executable: true},
			{Path: "checks/link.md", Kind: gitprovider.KindSymlink, Content: "disk.md"},
			{Path: "vendor", Kind: gitprovider.KindSubmodule},
			{Path: ".github/workflows/ci.yml", Content: "on: pull_request\n"},
		}
	}
	return &bed{Server: s, t: t, ref: s.AddRepo(files...)}
}

// reply is an answer of REST, or the data and errors of GraphQL.
type reply struct {
	status int
	header http.Header
	raw    []byte
	json   any
}

// at reads a value deep inside an answer: names of fields and places in lists.
func (r reply) at(place ...any) any {
	v := r.json
	for _, part := range place {
		switch part := part.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[part]
		case int:
			list, _ := v.([]any)
			if part >= len(list) {
				return nil
			}
			v = list[part]
		}
	}
	return v
}

// send makes a request with the headers, in pairs of name and value, besides the token.
func (b *bed) send(method, path string, body any, headers ...string) reply {
	b.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.URL()+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.Token())
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode, header: resp.Header}
	if out.raw, err = io.ReadAll(resp.Body); err != nil {
		b.t.Fatal(err)
	}
	if len(out.raw) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(out.raw, &out.json); err != nil {
			b.t.Fatalf("%s %s: %v in %s", method, path, err, out.raw)
		}
	}
	return out
}

// in makes a request about the repository.
func (b *bed) in(method, path string, body any, headers ...string) reply {
	b.t.Helper()
	return b.send(method, "/repos/"+b.ref.String()+path, body, headers...)
}

// want demands a status.
func (b *bed) want(r reply, status int) reply {
	b.t.Helper()
	if r.status != status {
		b.t.Fatalf("got status %d, want %d: %s", r.status, status, r.raw)
	}
	return r
}

// ask executes a document.
func (b *bed) ask(query string, vars map[string]any) reply {
	b.t.Helper()
	return b.want(b.send(http.MethodPost, "/graphql", map[string]any{"query": query, "variables": vars}), 200)
}

// repo asks about the repository; it must succeed.
func (b *bed) repo(selection string) reply {
	b.t.Helper()
	r := b.ask(`query($o: String!, $n: String!) { repository(owner: $o, name: $n) { `+selection+` } }`,
		map[string]any{"o": b.ref.Owner, "n": b.ref.Name})
	if r.at("errors") != nil {
		b.t.Fatalf("errors: %s", r.raw)
	}
	r.json = r.at("data", "repository")
	return r
}

// mutate executes one mutation.
func (b *bed) mutate(name string, input map[string]any, selection string) reply {
	b.t.Helper()
	typ := strings.ToUpper(name[:1]) + name[1:] + "Input!"
	return b.ask(`mutation($in: `+typ+`) { `+name+`(input: $in) { `+selection+` } }`, map[string]any{"in": input})
}

// problem demands one error of a type, with a message that has the words.
func (b *bed) problem(r reply, typ, words string) {
	b.t.Helper()
	message, _ := r.at("errors", 0, "message").(string)
	if r.at("errors", 0, "type") != any(typ) || !strings.Contains(message, words) {
		b.t.Fatalf("want the error %s %q in %s", typ, words, r.raw)
	}
}

func (b *bed) same(what string, got, want any) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// push writes a file to a branch behind the doors.
func (b *bed) push(branch, path, content string) string {
	b.t.Helper()
	return b.host.World(b.t, b.ref, nil).Push(branch, memhost.File{Path: path, Content: content})
}

// tip is the commit of a branch.
func (b *bed) tip(branch string) (out string) {
	b.host.Locked(func() { out = b.host.Repo(b.ref).Branches[branch] })
	return out
}

// id is the node id of the repository.
func (b *bed) id() string { return b.repo(`id`).at("id").(string) }
