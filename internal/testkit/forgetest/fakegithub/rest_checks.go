package fakegithub

import (
	"net/http"
	"path"
	"strings"
)

func checkRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/commits/{ref}/status":     getStatus,
		"GET /repos/{owner}/{repo}/commits/{ref}/check-runs": listRuns,
	}
}

// commitIn finds the commit that a path names; it answers the request if there is none.
func (p *place) commitIn(a *exchange) string {
	commit := p.read().commitOf(a.path["ref"])
	if commit == "" {
		a.fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+a.path["ref"])
	}
	return commit
}

func getStatus(p *place, a *exchange) {
	commit := p.commitIn(a)
	if commit == "" {
		return
	}
	list := []object{}
	statuses := p.statuses(commit)
	for i, st := range statuses {
		list = append(list, object{
			"id": i + 1, "node_id": nodeID(kindContext, p.id, commit+"/"+st.Context), "url": p.api("statuses", commit),
			"avatar_url": p.s.host.Web() + "/" + viewer + ".png", "context": st.Context, "state": st.State,
			"description": body(st.Description),
			"target_url":  body(st.TargetURL), "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		})
	}
	a.reply(http.StatusOK, object{
		"state": combined(statuses), "sha": commit, "total_count": len(statuses), "statuses": page(a, list),
		"repository": p.rest().restMinimalRepo(), "commit_url": p.api("commits", commit),
		"url": p.api("commits", commit, "status"),
	})
}

func listRuns(p *place, a *exchange) {
	commit := p.commitIn(a)
	if commit == "" {
		return
	}
	runs := []object{}
	for i, run := range p.runs(commit) {
		wanted := a.query.Get("check_name") == "" || a.query.Get("check_name") == run.Name
		if !wanted || (a.query.Has("status") && a.query.Get("status") != run.Status) {
			continue
		}
		var completed any
		if run.Status == "completed" {
			completed = stamp(epoch())
		}
		runs = append(runs, object{
			"id": i + 1, "node_id": nodeID(kindCheckRun, p.id, commit+"/"+run.Name), "head_sha": commit, "name": run.Name,
			"url": p.api("check-runs/1"), "html_url": p.web("runs", commit), "details_url": p.web("runs", commit),
			"external_id": "", "status": run.Status, "conclusion": body(run.Conclusion), "started_at": stamp(epoch()),
			"completed_at": completed, "check_suite": object{"id": 1}, "app": nil, "pull_requests": []object{},
			"output": object{"title": nil, "summary": nil, "text": nil, "annotations_count": 0,
				"annotations_url": p.api("check-runs/1/annotations")},
		})
	}
	a.reply(http.StatusOK, object{"total_count": len(runs), "check_runs": page(a, runs)})
}

func actionsRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/actions/permissions": func(p *place, a *exchange) {
			if p.set.Token.MissingScopes || !p.set.allows("admin") {
				(&refusal{status: http.StatusForbidden, message: "Resource not accessible by personal access token",
					accepts: "administration=read"}).rest(a)
				return
			}
			out := object{"enabled": !p.set.CI.NoActions}
			if !p.set.CI.NoActions {
				out["allowed_actions"] = "all"
			}
			a.reply(http.StatusOK, out)
		},
		"GET /repos/{owner}/{repo}/actions/workflows": listWorkflows,
	}
}

func listWorkflows(p *place, a *exchange) {
	flows := []object{}
	if tip := p.tip(p.repo.Default); tip != "" && !p.set.CI.NoActions {
		p.read().walk(p.read().root(tip), "", func(full string, e treeEntry) {
			if path.Dir(full) != ".github/workflows" || !strings.HasPrefix(strings.TrimPrefix(path.Ext(full), "."), "y") {
				return
			}
			self := p.api("actions/workflows", e.name)
			flows = append(flows, object{
				"id": len(flows) + 1, "node_id": nodeID("W", p.id, full), "name": strings.TrimSuffix(e.name, path.Ext(full)),
				"path": full, "state": "active", "url": self, "html_url": p.web("blob", p.repo.Default, full),
				"badge_url": p.web("workflows", e.name, "badge.svg"), "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
			})
		})
	}
	a.reply(http.StatusOK, object{"total_count": len(flows), "workflows": page(a, flows)})
}
