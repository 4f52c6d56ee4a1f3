package identity

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Bounds of what is recorded of a person, in bytes, and of the number of their groups.
const (
	maxSubject = 255
	maxUser    = 100
	maxGroup   = 256
	maxGroups  = 1000
)

// refuse returns the fault for an unacceptable answer of the provider.
func (p *Provider) refuse(why string) *fault.Error {
	return fault.New(fault.Unauthenticated, "the provider %s %s", p.settings.Name, why)
}

// failed converts an error of the provider: its refusal, which is reported as what, or a failure. Its own text may hold
// anything and is not passed on.
func (p *Provider) failed(err error, what string) error {
	var answered *oauth2.RetrieveError
	var refused *transport.RefusedError
	var late net.Error
	switch name := p.settings.Name; {
	case errors.As(err, &answered) && answered.ErrorCode == "invalid_client":
		return fault.Wrap(err, fault.Misconfigured,
			"the provider %s does not take the client id and the secret of this server; the operator "+
				"corrects them", name)
	case errors.As(err, &answered) && (answered.ErrorCode == "" || answered.Response != nil &&
		answered.Response.StatusCode >= http.StatusInternalServerError):
		return fault.Wrap(err, fault.UpstreamError, "the provider %s answered with an error of its own; try again later",
			name)
	case errors.As(err, &answered):
		return fault.Wrap(err, fault.Unauthenticated, "the provider %s %s", name, what)
	case errors.As(err, &refused):
		return fault.Wrap(err, fault.UpstreamError,
			"the provider %s names an address that is not asked: %s; the operator may name its host in "+
				"CLAUDEOPS_SIGN_IN_%s_HOSTS", name, refused, VariablePart(name))
	case errors.Is(err, transport.ErrBodyTooLarge):
		return fault.Wrap(err, fault.UpstreamError, "the provider %s answered with more than %d bytes", name, maxAnswer)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return fault.Wrap(err, fault.Timeout, "the provider %s did not answer within %s; try again later", name, timeout)
	default:
		return fault.Wrap(err, fault.UpstreamError,
			"the provider %s cannot be asked, or its answer cannot be read; try again later", name)
	}
}

// VariablePart returns a provider's name as it stands in names of variables.
func VariablePart(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// recordable checks what is recorded of a person, and puts their groups in order.
func (p *Provider) recordable(who *Person) error {
	plain := func(s string, most int) bool {
		return len(s) <= most && s == strings.TrimSpace(s) && content.Clean(s, most) == s && !strings.ContainsAny(s, "\n\r\t")
	}
	switch {
	case who.Subject == "" || !plain(who.Subject, maxSubject):
		return p.refuse("gives the person a subject that cannot be recorded")
	case !plain(who.User, maxUser):
		return p.refuse(
			"gives the person a name with hidden characters, or one that is too long; a name has at most 100 bytes of visible characters")
	case len(who.Groups) > maxGroups:
		return p.refuse("names more than 1000 groups of the person; have it name those alone that the policy needs")
	case slices.ContainsFunc(who.Groups, func(g string) bool { return len(g) > maxGroup }):
		return p.refuse("names a group of more than 256 bytes")
	}
	slices.Sort(who.Groups)
	who.Groups = slices.Compact(who.Groups)
	return nil
}
