// Package guard decides which requests are admitted: it runs before every handler of internal/web. It checks the host
// and the origin of a request, recognises who makes it, asks for the scope of the route, and signs browsers in and out.
package guard

import (
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
)

// Options configures a Guard. All fields are required.
type Options struct {
	Network Network
	Access  *access.Gatekeeper
	Tier    gitprovider.Tier // of this server
	Now     func() time.Time
}

// Guard admits requests, or refuses them. It is safe for concurrent use.
type Guard struct {
	Network
	access  *access.Gatekeeper
	tier    gitprovider.Tier
	origins *http.CrossOriginProtection
	signIns *Failures
}

// Bounds of wrong tokens and codes a minute: from one address and from all of them.
const (
	wrongSignInsEach = 10
	wrongSignInsAll  = 200
)

// New makes a Guard.
func New(o Options) *Guard {
	return &Guard{
		Network: o.Network, access: o.Access, tier: o.Tier, origins: http.NewCrossOriginProtection(),
		signIns: NewFailures(o.Now, wrongSignInsEach, wrongSignInsAll, "too many attempts to sign in"),
	}
}

// Check refuses what no route may see: requests for another host, and unsafe ones from another site.
func (g *Guard) Check(r *http.Request) error {
	if !g.serves(r.Host) {
		return fault.New(fault.Forbidden, "this server does not answer for the host that was asked for; "+
			"the operator may list it in CLAUDEOPS_HOSTS")
	}
	return g.checkOrigin(r)
}

// Secure sets the headers that every answer has. Scripts and styles come from this server as files or not at all.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Under no-referrer, browsers send the forms of our own pages with the origin null, and over plain HTTP nothing else
	// tells them from those of other sites.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}
