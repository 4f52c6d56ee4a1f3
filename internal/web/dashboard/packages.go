package dashboard

import (
	"context"
	"net/url"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Packages reads packages for the catalogue; *packages.Browser implements it. Errors are faults.
type Packages interface {
	Browse(ctx context.Context, b packages.Browsing) (packages.Shelf, error)
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
func (h *packagePages) routes(page func(string, handler.Func) handler.Route) []handler.Route {
	return []handler.Route{page(packagesPath, asked(h.list)), page("/catalogue/package", asked(h.show))}
}

type packagesParams struct {
	Text   string `json:"text,omitempty" maxLength:"200"`
	Offset int    `json:"offset,omitempty" minimum:"0"`
}

// packagesView is a page of packages.
type packagesView struct {
	pages.Page
	packages.Shelf
	Failed *fault.Error // why nothing can be listed
	Text   string
	stretch
}

func (h *packagePages) list(req *handler.Request, q packagesParams) (handler.Response, error) {
	view := packagesView{Page: h.frame(req, "Packages", packagesPath), Text: q.Text}
	shelf, err := h.packages.Browse(req.Context(), packages.Browsing{Text: q.Text, Offset: q.Offset, Limit: packagesShown})
	if err != nil {
		view.Failed = fault.From(err)
		return h.html("packages", view)
	}
	view.Shelf = shelf
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

func (h *packagePages) show(req *handler.Request, q packageParams) (handler.Response, error) {
	found, err := h.packages.Offered(req.Context(), q.Name)
	if err != nil {
		return handler.Response{}, err
	}
	return h.html("package", packageView{h.frame(req, q.Name, packagesPath), found})
}
