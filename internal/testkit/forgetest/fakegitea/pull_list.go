package fakegitea

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// listPulls filters labels by id only. A pull request with several of the labels asked for is there, and counted,
// several times.
func listPulls(c *call) (*answer, error) {
	var wanted []int64
	for _, value := range c.query["labels"] {
		if value == "" {
			continue
		}
		id, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, internalError(`strconv.ParseInt: parsing "` + value + `": invalid syntax`)
		}
		wanted = append(wanted, id)
	}
	if poster := c.query.Get("poster"); poster != "" && !c.s.knows(poster) {
		return nil, refuse(http.StatusBadRequest, noSuchUser(poster))
	}
	var all []*memhost.PR
	for _, pr := range c.at.sorted(c.query.Get("sort")) {
		for range c.times(pr, wanted) {
			all = append(all, pr)
		}
	}
	p := pageOf(c.query)
	list := []*pullJSON{}
	for _, pr := range cut(all, p) {
		shown := c.json.summary(pr, false)
		shown.Head.SHA = c.at.pull(pr).inLists.show(shown.Head.SHA)
		list = append(list, shown)
	}
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))), nil
}

// times returns how often a pull request appears in the list.
func (c *call) times(pr *memhost.PR, wanted []int64) int {
	base, poster := c.query.Get("base_branch"), c.query.Get("poster")
	switch {
	case !wantedState(c.query.Get("state"), pr.State),
		base != "" && base != pr.Base,
		poster != "" && poster != c.at.pull(pr).poster,
		number(c.query, "milestone") > 0: // there are no milestones
		return 0
	case len(wanted) == 0:
		return 1
	}
	count := 0
	for _, label := range c.at.labels(pr) {
		if slices.Contains(wanted, label.ID) {
			count++
		}
	}
	return count
}

// sorted orders the pull requests. Anything unknown means the newest first.
func (r *repository) sorted(by string) []*memhost.PR {
	list := slices.Clone(r.repo.PRs)
	slices.SortFunc(list, func(a, b *memhost.PR) int {
		newest := cmp.Compare(b.Number, a.Number)
		switch by {
		case "oldest":
			return -newest
		case "recentupdate":
			return cmp.Or(r.updatedAt(b).Compare(r.updatedAt(a)), newest)
		case "leastupdate":
			return cmp.Or(r.updatedAt(a).Compare(r.updatedAt(b)), newest)
		default:
			return newest
		}
	})
	return list
}

// listIssues knows pull requests only. Labels are names here, of which all must be there; unknown ones are dropped from
// the filter, so that a filter of unknown ones only lists everything.
func listIssues(c *call) (*answer, error) {
	var wanted []string
	for _, name := range strings.Split(c.query.Get("labels"), ",") {
		if _, defined := c.at.st.labelNamed(name); defined {
			wanted = append(wanted, name)
		}
	}
	var all []*memhost.PR
	for _, pr := range c.at.sorted("") {
		missing := slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(pr.Labels, name) })
		if !missing && c.query.Get("type") != "issues" && wantedState(c.query.Get("state"), pr.State) {
			all = append(all, pr)
		}
	}
	p := pageOf(c.query)
	list := []*issueJSON{}
	for _, pr := range cut(all, p) {
		list = append(list, c.json.issue(pr))
	}
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))), nil
}
