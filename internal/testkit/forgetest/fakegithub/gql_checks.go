package fakegithub

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// gqlRollup returns CI's result for a commit, or nil if there is none.
func (g *gitGraph) gqlRollup(commit string) *gql.Object {
	state := g.at.rollup(commit)
	if state == "" {
		return nil
	}
	return &gql.Object{Type: "StatusCheckRollup", Fields: fields{
		"state":    state,
		"contexts": lazy(func(in args) (any, error) { return g.gqlContexts(commit, in) }),
	}}
}

func (g *gitGraph) gqlContexts(commit string, in args) (any, error) {
	runs, statuses := g.at.runs(commit), g.at.statuses(commit)
	node := func(i int) *gql.Object {
		if i < len(runs) {
			return g.gqlRun(commit, i)
		}
		return g.gqlContext(statuses[i-len(runs)])
	}
	return gql.Connection("StatusCheckRollupContext", "contexts", gql.Items{
		Len: len(runs) + len(statuses), Key: strconv.Itoa, Node: node,
	}, in)
}

// gqlRun returns a check run of a commit, by its place among them.
func (g *gitGraph) gqlRun(commit string, i int) *gql.Object {
	run := g.at.runs(commit)[i]
	var conclusion any
	if run.Status == "completed" {
		conclusion = strings.ToUpper(run.Conclusion)
	}
	page := g.at.web("runs", commit, run.Name)
	return &gql.Object{Type: "CheckRun", Fields: fields{
		"name": run.Name, "status": strings.ToUpper(run.Status), "conclusion": conclusion, "startedAt": run.Started,
		"title": orNull(run.Title), "summary": orNull(run.Summary), "text": orNull(run.Text), "detailsUrl": escaped(page),
		"checkSuite": lazy(func(args) (any, error) { return g.gqlSuite(commit, run), nil }),
	}}
}

// escaped makes an address of one that has names in it as people write them.
func escaped(address string) string { return strings.ReplaceAll(address, " ", "%20") }

// gqlSuite returns the suite that a check run belongs to: each workflow has one for each time that it was triggered,
// and each other app has one.
func (g *gitGraph) gqlSuite(commit string, run CheckRun) *gql.Object {
	app := cmp.Or(run.App, "github-actions")
	id := nodeID(kindSuite, g.at.id, fmt.Sprintf("%s/%s/%s/%s/%d", commit, app, run.Workflow, run.Event, run.Attempt))
	return &gql.Object{Type: "CheckSuite", Fields: fields{
		"id": id, "app": &gql.Object{Type: "App", Fields: fields{"slug": app}},
		"workflowRun": g.at.rights().guarded(func(args) (any, error) {
			if run.App != "" {
				return nil, nil
			}
			return &gql.Object{Type: "WorkflowRun", Fields: fields{
				"event": cmp.Or(run.Event, "pull_request"), "workflow": &gql.Object{
					Type: "Workflow", Fields: fields{"name": cmp.Or(run.Workflow, "CI")},
				},
			}}, nil
		}, "actions"),
	}}
}

func (g *gitGraph) gqlContext(st Status) *gql.Object {
	return &gql.Object{Type: "StatusContext", Fields: fields{
		"context": st.Context, "state": strings.ToUpper(st.State),
		"description": st.Description, "targetUrl": any(nil),
	}}
}

// orNull returns a text, or nothing.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
