package fakegithub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func labelRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/labels":        listLabels,
		"POST /repos/{owner}/{repo}/labels":       postLabel,
		"GET /repos/{owner}/{repo}/labels/{name}": getLabel,
		"GET /repos/{owner}/{repo}/issues/{issue_number}/labels": withPull("issue_number",
			func(p *place, a *exchange, pr *memhost.PR) {
				a.reply(http.StatusOK, page(a, p.rest().restLabels(pr.Labels)))
			}),
		"POST /repos/{owner}/{repo}/issues/{issue_number}/labels": withPull("issue_number", postIssueLabels),
	}
}

// restLabels returns labels of the repository. Those that were set without a request are defined by that.
func (v *restView) restLabels(names []string) []object {
	v.at.defineLabels(names...)
	out := []object{}
	for _, name := range names {
		at := v.at.labelAt(name)
		name = v.at.set.Labels[at]
		look := v.at.look(name)
		out = append(out, object{
			"id": v.at.id*1000 + at, "node_id": nodeID(kindLabel, v.at.id, name),
			"url":  v.at.api("labels", url.PathEscape(name)),
			"name": name, "color": look.color, "default": look.isDefault, "description": look.description,
		})
	}
	return out
}

func listLabels(p *place, a *exchange) {
	a.reply(http.StatusOK, page(a, p.rest().restLabels(p.set.Labels)))
}

func getLabel(p *place, a *exchange) {
	if p.labelAt(a.path["name"]) < 0 {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, p.rest().restLabels([]string{a.path["name"]})[0])
}

// newLabel is the body of a request for a label.
type newLabel struct {
	Name, Color string
	Description *string
}

func (l newLabel) look() labelLook {
	out := labelLook{color: plainColor}
	if l.Color != "" {
		out.color = lower(l.Color)
	}
	if l.Description != nil {
		out.description = *l.Description
	}
	return out
}

func postLabel(p *place, a *exchange) {
	var in newLabel
	switch {
	case !a.decode(&in) || !p.rights().mayWrite(a, "issues", "write"):
	case p.labelAt(in.Name) >= 0:
		a.invalid("Label", "name", "already_exists")
	case strings.TrimSpace(in.Name) == "" || len(in.Name) > 50:
		a.invalid("Label", "name", "invalid")
	case in.Color != "" && !isColor(in.Color):
		a.invalid("Label", "color", "invalid")
	default:
		p.defineLabels(in.Name)
		p.looks[lower(in.Name)] = in.look()
		a.header.Set("Location", p.api("labels", url.PathEscape(in.Name)))
		a.reply(http.StatusCreated, p.rest().restLabels([]string{in.Name})[0])
	}
}

// postIssueLabels adds labels, and defines those that the repository lacks. Names come in a list, or in a list within
// an object.
func postIssueLabels(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Labels []string }
	if json.Unmarshal(a.body, &in.Labels) != nil && !a.decode(&in) {
		return
	}
	if !p.rights().mayWrite(a, "issues", "triage") {
		return
	}
	for _, name := range in.Labels {
		if strings.TrimSpace(name) == "" || len(name) > 50 {
			a.invalid("Label", "name", "invalid")
			return
		}
		p.defineLabels(name)
		pr.AddLabels(p.set.Labels[p.labelAt(name)])
	}
	p.changed()
	a.reply(http.StatusOK, p.rest().restLabels(pr.Labels))
}
