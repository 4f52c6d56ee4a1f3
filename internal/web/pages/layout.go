package pages

import "time"

// Page is the input of the layout around every page. Every view embeds one.
type Page struct {
	Base       string // path below which the server is, "" or "/ops"
	Title      string
	Nav        []NavItem
	Current    string // path of the entry of the navigation that the page belongs to
	Who        string // "" when not signed in
	CanSignOut bool
	CanSignIn  bool // the caller is not known
	MayOperate bool
	Standing   Standing
	Style      string // names of assets
	Icon       string
	Version    string
	Scripts    []string // names of assets, for pages that follow what happens
	Position   string   // what the page knows of what has happened; "" for a page that stays as it is
}

// Standing describes the state of the server on every page.
type Standing struct {
	Health, Tone string // in words, and the colour of the dot beside them
	Mode         string // what it does with proposals
	Held         bool   // it opens none
	Down         []Down
}

// Down is a forge that does not serve us.
type Down struct {
	Title, Why string
	Since      time.Time
}

// NavItem is a place of the navigation or, below it, a tab.
type NavItem struct {
	Path, Text, Icon string
	Tabs             []NavItem
	Operate          bool // for who may operate alone
}

// Place returns the place of the navigation that the page belongs to; the zero one for a page of none.
func (p Page) Place() NavItem {
	for _, place := range p.Nav {
		for _, tab := range append(place.Tabs[:len(place.Tabs):len(place.Tabs)], place) {
			if tab.Path == p.Current {
				return place
			}
		}
	}
	return NavItem{}
}

// Places returns the navigation as a part of the page.
func (p Page) Places() Part { return places{p.Nav, p.Place().Text} }

// places are the places of the navigation, and the text of the one that the page belongs to.
type places struct {
	Nav []NavItem
	Now string
}

// Key implements Part.
func (p places) Key() any {
	key := p.Now
	for _, place := range p.Nav {
		key += "\n" + place.Path + " " + place.Icon + " " + place.Text
	}
	return key
}

// Moment returns no time.
func (places) Moment() time.Time { return time.Time{} }

// Navigation returns the six top-level entries; acts are the lists of agents and of browsers that are signed in.
// Without a toolset that has pages there is no entry for procedures.
func Navigation(acts, toolsets []NavItem) []NavItem {
	var agents []NavItem
	settings := []NavItem{{Path: "/policy", Text: "Policy"}, {Path: "/doctor", Text: "Health"}}
	for _, act := range acts {
		if act.Path == "/logins" {
			settings = append(settings, act)
			continue
		}
		agents = append(agents, act)
	}
	settings = append(settings, NavItem{Path: "/tokens/people", Text: "Tokens", Operate: true})
	agents = append([]NavItem{{Path: "/sessions", Text: "Sessions"}, {Path: "/sessions/schedule", Text: "Schedule"}},
		agents...)
	agents = append(agents, NavItem{Path: "/tokens", Text: "Agent tokens", Operate: true})
	places := []NavItem{
		{Path: "/", Text: "Overview", Icon: "layout-dashboard"},
		{Path: "/changes", Text: "Changes", Icon: "git-pull-request"},
		{Path: "/sessions", Text: "Agents", Icon: "robot", Tabs: agents},
	}
	if len(toolsets) > 0 {
		places = append(places, NavItem{Path: toolsets[0].Path, Text: "Procedures", Icon: "book-2", Tabs: toolsets})
	}
	return append(places,
		NavItem{Path: "/audit", Text: "Records", Icon: "history"},
		NavItem{Path: "/policy", Text: "Settings", Icon: "settings", Tabs: settings},
	)
}
