package guard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// checkOrigin refuses a request that would change something and comes from a page of another site. Browsers that say
// Sec-Fetch-Site are believed; of others, Origin must be ours: scheme, name and port. The library compares no schemes,
// so that a page of https://host could act at http://host.
func (g *Guard) checkOrigin(r *http.Request) error {
	if err := g.origins.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "the request comes from another site")
	}
	origins := r.Header.Values("Origin")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if reads || len(origins) == 0 || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	origin, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || origin.Host != r.Host || origin.Scheme != g.scheme(r) {
		return fault.New(fault.Forbidden,
			"the request comes from another site: its Origin is not %s://%s, which it asks for; if a proxy "+
				"speaks TLS to the browser, list it in CLAUDEOPS_TRUSTED_PROXIES and have it send X-Forwarded-Proto", g.scheme(r),
			handler.Quote(r.Host))
	}
	return nil
}

// SameOrigin refuses a request, whatever its method, that says it comes from a page of another site.
func (g *Guard) SameOrigin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || origins[0] != g.scheme(r)+"://"+r.Host {
		return fault.New(fault.Forbidden, "the request comes from another site: its Origin is not %s://%s, which it asks for",
			g.scheme(r), handler.Quote(r.Host))
	}
	return nil
}

// Address returns the address of this server for programs, with the base path: the host of the request, and for a
// browser's own name the host that it stands for.
func (g *Guard) Address(r *http.Request) string {
	host, _ := sharedHost(r.Host)
	return g.scheme(r) + "://" + host + g.BasePath
}

// scheme returns the scheme by which the browser reaches us, as far as a trusted proxy tells it.
func (n Network) scheme(r *http.Request) string {
	if n.overTLS(r) {
		return "https"
	}
	return "http"
}

// overTLS reports whether the browser speaks TLS, to us or to a trusted proxy.
func (n Network) overTLS(r *http.Request) bool {
	return r.TLS != nil || n.trusts(remote(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
