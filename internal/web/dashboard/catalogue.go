package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Definitions reads definitions for the catalogue; *definitions.Service implements it. Errors are faults.
type Definitions interface {
	Select(ctx context.Context, sel definitions.Selection) (definitions.Listing, error)
	Forked(ctx context.Context) ([]definitions.Fork, definitions.Problems, error)
	Inspect(ctx context.Context, kind definitions.Kind, ref definitions.Reference,
		source definitions.Source) (definitions.Detail, error)
}

// catalogue shows what procedures are made of: definitions of agents, tools and skills.
type catalogue struct {
	*renderer
	definitions Definitions
}

const cataloguePath = "/catalogue"

func (h *catalogue) nav() pages.NavItem { return pages.NavItem{Path: cataloguePath, Text: "Catalogue"} }

func (h *catalogue) routes(page func(string, httpx.Func) httpx.Route) []httpx.Route {
	return []httpx.Route{
		page(cataloguePath, withQuery(h.showDefinitions)), page(cataloguePath+"/forks", withQuery(h.forks)),
		page(cataloguePath+"/definitions/{kind}/{name}", withQuery(h.showDefinition)),
	}
}

type catalogueParams struct {
	Kind   string `json:"kind,omitempty" enum:"agent,tool,skill"`
	Source string `json:"source,omitempty" enum:"local,global,stockyard"`
	Text   string `json:"text,omitempty" maxLength:"200"`
	Broken string `json:"broken,omitempty" enum:"1"`
	Offset int    `json:"offset,omitempty" minimum:"0"`
	Sort   string `json:"sort,omitempty" enum:"name,-name,source,-source,problems,-problems"`
}

// catalogueView is a page of definitions.
type catalogueView struct {
	pages.Page
	definitions.Listing
	Failed         *fault.Error // why nothing can be listed
	Kinds, Sources []option
	Text           string
	Broken         bool
	Filtered       bool
	stretch
	sortable
}

func definitionColumns() []column[definitions.Summary] {
	type entry = definitions.Summary
	problems := func(e entry) int { return 1000*e.Errors + e.Warnings }
	return []column[entry]{
		{name: "Definition", key: "name", compare: func(a, b entry) int { return compareNames(a.Name, b.Name) }},
		{name: "Version"},
		{name: "Source", key: "source", class: "wide", compare: func(a, b entry) int {
			return compareNames(string(a.Source)+" "+a.Registry, string(b.Source)+" "+b.Registry)
		}},
		{name: "Problems", key: "problems", largest: true, compare: func(a, b entry) int {
			return problems(a) - problems(b)
		}},
	}
}

const cataloguePage = 100

func (h *catalogue) showDefinitions(req *httpx.Request, q catalogueParams) (httpx.Response, error) {
	view := catalogueView{
		Page: h.frame(req, "Catalogue", cataloguePath), Text: q.Text, Broken: q.Broken != "",
		Filtered: q.Kind+q.Source+q.Text+q.Broken != "",
		Kinds:    options(q.Kind, definitions.ShownKinds()), Sources: options(q.Source, definitions.Sources()),
	}
	order, compare, err := ordering(req.URL.Query(), "", definitionColumns())
	if err != nil {
		return httpx.Response{}, err
	}
	view.sortable = order
	listing, err := h.definitions.Select(req.Context(), definitions.Selection{
		Kind: definitions.Kind(q.Kind), Source: definitions.Source(q.Source), Text: q.Text, Broken: view.Broken,
		Offset: q.Offset, Limit: cataloguePage, Compare: compare,
	})
	if err != nil {
		view.Failed = fault.From(err)
		return h.html("catalogue", view)
	}
	view.Listing = listing
	view.stretch = stretchOf(req.URL.Query(), q.Offset, cataloguePage, len(listing.Entries), listing.Total)
	return h.html("catalogue", view)
}

// DefinitionLink returns the address of the page of a definition, without the base.
func (catalogueView) DefinitionLink(s definitions.Summary) string {
	return definitionLink(s.Kind, s.Name, cmp.Or(s.Folder(), s.Version), s.Source)
}

func definitionLink(kind definitions.Kind, name, version string, source definitions.Source) string {
	at := url.Values{}
	if source != "" {
		at.Set("source", string(source))
	}
	if version != "" {
		at.Set("version", version)
	}
	return cataloguePath + "/definitions/" + url.PathEscape(string(kind)) + "/" + url.PathEscape(name) + "?" + at.Encode()
}

// forksView is the definitions that were forked from others.
type forksView struct {
	pages.Page
	sortable
	Forks    []definitions.Fork
	Problems definitions.Problems
}

// DefinitionLink returns the address of the page of a fork, without the base.
func (forksView) DefinitionLink(f definitions.Fork) string {
	return definitionLink(f.Definition.Kind, f.Definition.Name, f.Definition.Version, f.Source)
}

type forkParams struct {
	Sort string `json:"sort,omitempty" enum:"name,-name,from,-from,newer,-newer"`
}

func forkColumns() []column[definitions.Fork] {
	type entry = definitions.Fork
	newer := func(f entry) int {
		switch {
		case f.Breaking():
			return 2
		case f.Updated():
			return 1
		}
		return 0
	}
	return []column[entry]{
		{name: "Fork", key: "name", compare: func(a, b entry) int {
			return compareNames(a.Definition.Name, b.Definition.Name)
		}},
		{name: "Made from", key: "from", compare: func(a, b entry) int { return compareNames(a.Origin.Name, b.Origin.Name) }},
		{name: "Upstream now", key: "newer", largest: true, compare: func(a, b entry) int { return newer(a) - newer(b) }},
	}
}

func (h *catalogue) forks(req *httpx.Request, _ forkParams) (httpx.Response, error) {
	view := forksView{Page: h.frame(req, "Forks", cataloguePath)}
	var err error
	if view.Forks, view.Problems, err = h.definitions.Forked(req.Context()); err != nil {
		return httpx.Response{}, err
	}
	view.sortable, err = sortRows(req.URL.Query(), "", forkColumns(), view.Forks)
	return h.htmlOr(err, "catalogue_forks", view)
}

type definitionParams struct {
	Source  string `json:"source,omitempty" enum:"local,global,stockyard"`
	Version string `json:"version,omitempty" maxLength:"100"`
}

// definitionView is one definition.
type definitionView struct {
	pages.Page
	definitions.Detail
	Links   []chainLink
	Changes *pages.Diff // how a fork differs from its upstream
	Prompt  pages.Prose
}

// chainLink is a definition in a chain of inheritance.
type chainLink struct {
	Name string
	Link string // "" for the definition itself, and for one that was not found
}

func (h *catalogue) showDefinition(req *httpx.Request, q definitionParams) (httpx.Response, error) {
	kind, name := definitions.Kind(req.PathValue("kind")), req.PathValue("name")
	if !slices.Contains(definitions.ShownKinds(), kind) {
		return httpx.Response{}, httpx.NothingHere(h.base)
	}
	found, err := h.definitions.Inspect(req.Context(), kind, definitions.Reference{Name: name, Range: q.Version},
		definitions.Source(q.Source))
	if err != nil {
		return httpx.Response{}, err
	}
	view := definitionView{Page: h.frame(req, name, cataloguePath), Detail: found}
	for i, label := range found.Chain {
		link := chainLink{Name: label}
		if missing := found.ChainProblem != "" && i == len(found.Chain)-1; i > 0 && !missing {
			ref := definitions.ParseReference(label)
			link.Link = definitionLink(kind, ref.Name, ref.Range, "")
		}
		view.Links = append(view.Links, link)
	}
	if found.Diff != "" {
		diff := pages.ParseDiff(h.env.Redact(found.Diff), false, 1)
		view.Changes = &diff
	}
	if found.Definition.Prompt != "" {
		view.Prompt = pages.Markdown(h.env.Redact(found.Definition.Prompt))
	}
	return h.html("catalogue_definition", view)
}

// Packages reads packages for the catalogue; *packages.Browser implements it. Errors are faults.
type Packages interface {
	Browse(ctx context.Context, b packages.Browsing) (packages.PackageListPage, error)
	Offered(ctx context.Context, name string) (packages.Offer, error)
	// Holding lists the packages that have a file with one of some contents; complete is false if some were not looked at.
	Holding(ctx context.Context, hashes []string) (list []packages.Holder, complete bool, err error)
}

// packagePages are the part of the catalogue that shows packages.
type packagePages struct {
	*renderer
	packages Packages
}

const (
	packagesPath  = cataloguePath + "/packages"
	packagesShown = 50
)

func (h *packagePages) nav() pages.NavItem {
	return pages.NavItem{Path: packagesPath, Text: "Packages"}
}

// The name of a package may hold a slash, so it is not part of the path.
func (h *packagePages) routes(page func(string, httpx.Func) httpx.Route) []httpx.Route {
	return []httpx.Route{page(packagesPath, withQuery(h.showPackages)), page("/catalogue/package",
		withQuery(h.showPackage))}
}

type packagesParams struct {
	Text   string `json:"text,omitempty" maxLength:"200"`
	Offset int    `json:"offset,omitempty" minimum:"0"`
	Sort   string `json:"sort,omitempty" enum:"name,-name,installed,-installed"`
}

// packagesView is a page of packages.
type packagesView struct {
	pages.Page
	packages.PackageListPage
	Failed *fault.Error // why nothing can be listed
	Text   string
	stretch
	sortable
}

func packageColumns() []column[packages.Listed] {
	type entry = packages.Listed
	installed := func(e entry) int { return min(len(e.Installed), 1) }
	return []column[entry]{
		{name: "Package", key: "name", compare: func(a, b entry) int { return compareNames(a.Name, b.Name) }},
		{name: "Versions"},
		{name: "Installed", key: "installed", largest: true, compare: func(a, b entry) int {
			return installed(a) - installed(b)
		}},
		{name: "Needed by", class: "wide"},
	}
}

func (h *packagePages) showPackages(req *httpx.Request, q packagesParams) (httpx.Response, error) {
	view := packagesView{Page: h.frame(req, "Packages", packagesPath), Text: q.Text}
	order, compare, err := ordering(req.URL.Query(), "name", packageColumns())
	if err != nil {
		return httpx.Response{}, err
	}
	view.sortable = order
	shelf, err := h.packages.Browse(req.Context(), packages.Browsing{Text: q.Text, Offset: q.Offset, Limit: packagesShown,
		Compare: compare})
	if err != nil {
		view.Failed = fault.From(err)
		return h.html("packages", view)
	}
	view.PackageListPage = shelf
	view.stretch = stretchOf(req.URL.Query(), q.Offset, packagesShown, len(shelf.Offers), shelf.Total)
	return h.html("packages", view)
}

// PackageLink returns the address of the page of a package, without the base.
func (packagesView) PackageLink(name string) string { return packageLink(name) }

func packageLink(name string) string {
	return cataloguePath + "/package?" + url.Values{"name": {name}}.Encode()
}

type packageParams struct {
	Name string `json:"name" required:"true" maxLength:"200"`
}

// packageView is one package.
type packageView struct {
	pages.Page
	packages.Offer
}

// PackageLink returns the address of the page of another one, without the base.
func (packageView) PackageLink(name string) string { return packageLink(name) }

func (h *packagePages) showPackage(req *httpx.Request, q packageParams) (httpx.Response, error) {
	found, err := h.packages.Offered(req.Context(), q.Name)
	if err != nil {
		return httpx.Response{}, err
	}
	return h.html("package", packageView{h.frame(req, q.Name, packagesPath), found})
}
