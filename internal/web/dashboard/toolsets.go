package dashboard

import (
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Toolsets holds the services behind the pages of toolsets. A nil one has no pages: its toolset is not enabled.
type Toolsets struct {
	Definitions Definitions
	Packages    Packages
	Scripts     Scripts
	Deployments Deployments
	Propose     operation.Operation // makes a pull request of drift
}

// pageSet is pages with an entry in the navigation, such as those of a toolset.
type pageSet interface {
	// nav is their entry in the navigation. Its path is that of one of the routes.
	nav() pages.NavItem
	// routes returns the pages and their forms; page makes the route of a page for everyone who may read.
	routes(page func(pattern string, handle handler.Func) handler.Route) []handler.Route
}

// pages returns the pages of the enabled toolsets, in the order of the navigation.
func (t Toolsets) pages(r *renderer, reader Reader, attempts records.Attempts,
	acts []operation.Operation) (sets []pageSet) {
	if t.Definitions != nil {
		sets = append(sets, &catalogue{r, t.Definitions})
	}
	if t.Packages != nil {
		sets = append(sets, &packagePages{r, t.Packages})
	}
	if t.Scripts != nil {
		sets = append(sets, &scriptPages{r, t.Scripts})
	}
	if t.Deployments != nil {
		sets = append(sets, &deploymentPages{r, t.Deployments, reader, attempts, t.Packages,
			operation.Named(acts, deploy.NameRollBack), t.Propose})
	}
	return sets
}

// navigation returns the places; sets of acts belong to the agents, the others to the procedures.
func navigation(acts, toolsets []pageSet) []pages.NavItem {
	items := func(sets []pageSet) (out []pages.NavItem) {
		for _, set := range sets {
			out = append(out, set.nav())
		}
		return out
	}
	return pages.Navigation(items(acts), items(toolsets))
}
