package pages

import "slices"

// Page is what the layout shows around every page. Every view embeds one.
type Page struct {
	Base       string // path below which the server is, "" or "/ops"
	Title      string
	Nav        []NavItem
	Current    string // path of the entry of the navigation that the page belongs to
	Who        string // "" when nobody is signed in
	CanSignOut bool
	CanSignIn  bool   // nobody knows who it is
	Style      string // names of assets
	Icon       string
	Version    string
	Scripts    []string // names of assets, for pages that follow what happens
	Position   string   // what the page knows of what has happened; "" for a page that stays as it is
}

// Navigation is the entries that every server has, with those of enabled toolsets before the last ones.
func Navigation(toolsets ...NavItem) []NavItem {
	return slices.Concat([]NavItem{
		{"/", "Overview"}, {"/proposals", "Proposals"}, {"/pulls", "Pull requests"}, {"/sessions", "Sessions"},
	}, toolsets, []NavItem{{"/policy", "Policy"}, {"/audit", "Audit"}, {"/doctor", "Doctor"}})
}

// NavItem is an entry of the navigation.
type NavItem struct{ Path, Text string }
