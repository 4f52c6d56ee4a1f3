package fakegithub

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// gqlRollup is what CI says of a commit, or nil if it says nothing.
func (g *gitGraph) gqlRollup(commit string) *gql.Object {
	state := g.at.rollup(commit)
	if state == "" {
		return nil
	}
	return &gql.Object{Type: "StatusCheckRollup", Fields: fields{
		"id": nodeID(kindRollup, g.at.id, commit), "state": state,
		"commit":   lazy(func(args) (any, error) { return g.commit(commit), nil }),
		"contexts": lazy(func(in args) (any, error) { return g.gqlContexts(commit, in) }),
	}}
}

func (g *gitGraph) gqlContexts(commit string, in args) (any, error) {
	runs, statuses := g.at.runs(commit), g.at.statuses(commit)
	runStates, states := map[string]int{}, map[string]int{}
	for _, run := range runs {
		runStates[runState(run)]++
	}
	for _, st := range statuses {
		states[strings.ToUpper(st.State)]++
	}
	node := func(i int) *gql.Object {
		if i < len(runs) {
			return g.gqlRun(commit, i)
		}
		return g.gqlContext(commit, statuses[i-len(runs)])
	}
	return gql.Connection("StatusCheckRollupContext", "contexts", gql.Items{
		Len: len(runs) + len(statuses), Key: func(i int) string { return node(i).Fields["id"].(string) }, Node: node,
	}, in, fields{
		"checkRunCount": len(runs), "statusContextCount": len(statuses),
		"checkRunCountsByState":      counts("CheckRunStateCount", runStates),
		"statusContextCountsByState": counts("StatusContextStateCount", states),
	})
}

func counts(typ string, by map[string]int) []any {
	out := []any{}
	var states []string
	for state := range by {
		states = append(states, state)
	}
	slices.Sort(states)
	for _, state := range states {
		out = append(out, &gql.Object{Type: typ, Fields: fields{"state": state, "count": by[state]}})
	}
	return out
}

// runState is the conclusion of a check run, or its status while there is none.
func runState(run CheckRun) string {
	if run.Status == "completed" {
		return strings.ToUpper(run.Conclusion)
	}
	return strings.ToUpper(run.Status)
}

// gqlRun is a check run of a commit, by its place among them.
func (g *gitGraph) gqlRun(commit string, i int) *gql.Object {
	run := g.at.runs(commit)[i]
	var conclusion, completed any
	if run.Status == "completed" {
		conclusion, completed = strings.ToUpper(run.Conclusion), epoch()
	}
	page := g.at.web("runs", commit, run.Name)
	return &gql.Object{Type: "CheckRun", Fields: fields{
		"id": nodeID(kindCheckRun, g.at.id, fmt.Sprintf("%s/%s/%d", commit, run.Name, i)), "databaseId": i + 1, "name": run.Name,
		"status": strings.ToUpper(run.Status), "conclusion": conclusion, "startedAt": run.Started, "completedAt": completed,
		"title": orNull(run.Title), "summary": orNull(run.Summary), "text": orNull(run.Text), "isRequired": false,
		"detailsUrl": escaped(page), "url": escaped(page),
		"permalink":  escaped(page),
		"repository": lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
		"checkSuite": lazy(func(args) (any, error) { return g.gqlSuite(commit, run), nil }),
	}}
}

// escaped makes an address of one that has names in it as people write them.
func escaped(address string) string { return strings.ReplaceAll(address, " ", "%20") }

// gqlSuite is the suite that a check run belongs to: each workflow has one for each time that it was triggered, and each
// other app has one.
func (g *gitGraph) gqlSuite(commit string, run CheckRun) *gql.Object {
	app := cmp.Or(run.App, "github-actions")
	id := nodeID(kindSuite, g.at.id, fmt.Sprintf("%s/%s/%s/%s/%d", commit, app, run.Workflow, run.Event, run.Attempt))
	return &gql.Object{Type: "CheckSuite", Fields: fields{
		"id": id, "app": &gql.Object{Type: "App", Fields: fields{"id": nodeID(kindApp, 0, app), "slug": app}},
		"workflowRun": g.at.rights().guarded(func(args) (any, error) {
			if run.App != "" {
				return nil, nil
			}
			return &gql.Object{Type: "WorkflowRun", Fields: fields{
				"id": nodeID(kindRun, 0, id), "event": cmp.Or(run.Event, "pull_request"), "workflow": &gql.Object{
					Type: "Workflow", Fields: fields{"id": nodeID(kindWorkflow, 0, id), "name": cmp.Or(run.Workflow, "CI")},
				},
			}}, nil
		}, "actions"),
	}}
}

// gqlStatus is the older form of CI's word: statuses only; nil if there are none.
func (g *gitGraph) gqlStatus(commit string) *gql.Object {
	statuses := g.at.statuses(commit)
	if len(statuses) == 0 {
		return nil
	}
	contexts := []any{}
	for _, st := range statuses {
		contexts = append(contexts, g.gqlContext(commit, st))
	}
	return &gql.Object{Type: "Status", Fields: fields{
		"id": nodeID(kindStatus, g.at.id, commit), "state": strings.ToUpper(combined(statuses)), "contexts": contexts,
		"commit": lazy(func(args) (any, error) { return g.commit(commit), nil }),
	}}
}

func (g *gitGraph) gqlContext(commit string, st Status) *gql.Object {
	return &gql.Object{Type: "StatusContext", Fields: fields{
		"id": nodeID(kindContext, g.at.id, commit+"/"+st.Context), "context": st.Context, "state": strings.ToUpper(st.State),
		"description": st.Description, "targetUrl": any(nil), "createdAt": epoch(), "isRequired": false,
		"commit": lazy(func(args) (any, error) { return g.commit(commit), nil }),
	}}
}

// orNull is a text, or nothing.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
