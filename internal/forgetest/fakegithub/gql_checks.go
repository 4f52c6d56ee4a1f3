package fakegithub

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/forgetest/fakegithub/gql"
)

// gqlRollup is what CI says of a commit, or nil if it says nothing.
func (p *place) gqlRollup(commit string) *gql.Object {
	state := p.rollup(commit)
	if state == "" {
		return nil
	}
	return &gql.Object{Type: "StatusCheckRollup", Fields: fields{
		"id": nodeID(kindRollup, p.id, commit), "state": state,
		"commit":   lazy(func(args) (any, error) { return p.gqlCommit(commit), nil }),
		"contexts": lazy(func(in args) (any, error) { return p.gqlContexts(commit, in) }),
	}}
}

func (p *place) gqlContexts(commit string, in args) (any, error) {
	runs, statuses := p.runs(commit), p.statuses(commit)
	runStates, states := map[string]int{}, map[string]int{}
	for _, run := range runs {
		runStates[runState(run)]++
	}
	for _, st := range statuses {
		states[strings.ToUpper(st.State)]++
	}
	node := func(i int) *gql.Object {
		if i < len(runs) {
			return p.gqlRun(commit, i)
		}
		return p.gqlContext(commit, statuses[i-len(runs)])
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
func (p *place) gqlRun(commit string, i int) *gql.Object {
	run := p.runs(commit)[i]
	var conclusion, completed any
	if run.Status == "completed" {
		conclusion, completed = strings.ToUpper(run.Conclusion), epoch()
	}
	page := p.web("runs", commit, run.Name)
	return &gql.Object{Type: "CheckRun", Fields: fields{
		"id": nodeID(kindCheckRun, p.id, commit+"/"+run.Name), "databaseId": i + 1, "name": run.Name,
		"status": strings.ToUpper(run.Status), "conclusion": conclusion, "startedAt": epoch(), "completedAt": completed,
		"title": any(nil), "summary": any(nil), "isRequired": false, "detailsUrl": escaped(page), "url": escaped(page),
		"permalink":  escaped(page),
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
		"checkSuite": lazy(func(args) (any, error) { return p.gqlSuite(commit), nil }),
	}}
}

// escaped makes an address of one that has names in it as people write them.
func escaped(address string) string { return strings.ReplaceAll(address, " ", "%20") }

// gqlSuite is the one suite that holds all check runs of a commit, or nil if there are none.
func (p *place) gqlSuite(commit string) *gql.Object {
	runs := p.runs(commit)
	if len(runs) == 0 {
		return nil
	}
	status, conclusion := "COMPLETED", any("SUCCESS")
	for _, run := range runs {
		switch {
		case run.Status != "completed":
			status, conclusion = "IN_PROGRESS", nil
		case !slices.Contains(harmless(), run.Conclusion) && conclusion != nil:
			conclusion = "FAILURE"
		}
	}
	return &gql.Object{Type: "CheckSuite", Fields: fields{
		"id": nodeID(kindSuite, p.id, commit), "databaseId": 1, "status": status, "conclusion": conclusion,
		"createdAt": epoch(),
		"app": &gql.Object{Type: "App", Fields: fields{
			"id": nodeID(kindApp, 0, "github-actions"), "databaseId": 15368, "name": "GitHub Actions", "slug": "github-actions",
			"url": p.s.host.Web() + "/apps/github-actions",
		}},
	}}
}

func (p *place) gqlSuites(commit string, in args) (any, error) {
	n := 0
	if len(p.runs(commit)) > 0 {
		n = 1
	}
	return gql.Connection("CheckSuite", "checkSuites", gql.Items{
		Len: n, Key: func(int) string { return commit }, Node: func(int) *gql.Object { return p.gqlSuite(commit) },
	}, in, nil)
}

// gqlStatus is the older form of CI's word: statuses only; nil if there are none.
func (p *place) gqlStatus(commit string) *gql.Object {
	statuses := p.statuses(commit)
	if len(statuses) == 0 {
		return nil
	}
	contexts := []any{}
	for _, st := range statuses {
		contexts = append(contexts, p.gqlContext(commit, st))
	}
	return &gql.Object{Type: "Status", Fields: fields{
		"id": nodeID(kindStatus, p.id, commit), "state": strings.ToUpper(combined(statuses)), "contexts": contexts,
		"commit": lazy(func(args) (any, error) { return p.gqlCommit(commit), nil }),
	}}
}

func (p *place) gqlContext(commit string, st Status) *gql.Object {
	return &gql.Object{Type: "StatusContext", Fields: fields{
		"id": nodeID(kindContext, p.id, commit+"/"+st.Context), "context": st.Context, "state": strings.ToUpper(st.State),
		"description": st.Description, "targetUrl": any(nil), "createdAt": epoch(), "isRequired": false,
		"commit": lazy(func(args) (any, error) { return p.gqlCommit(commit), nil }),
	}}
}
