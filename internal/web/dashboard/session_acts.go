package dashboard

import (
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// startForm starts a session.
type startForm struct {
	FormBase string
	Tiers    []option
	Note     string // as it was sent, if the form comes back
	Failed   string // why it comes back; "" for a form that was not sent
}

// startForm returns the form for a new session, or why there is none.
func (h *sessionPages) startForm(req *handler.Request) (*startForm, string) {
	plan := h.agents.Plan()
	switch {
	case !req.Principal.Scopes.Has(access.Operate):
		return nil, "Starting and stopping sessions needs the scope operate."
	case plan.Missing != "":
		return nil, "No session can start here: " + plan.Missing + "."
	}
	form := &startForm{FormBase: h.base}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier, req.Principal.Ceiling,
		gitprovider.TierRemediate); tier++ {
		form.Tiers = append(form.Tiers, tierOption(tier, gitprovider.TierObserve))
	}
	return form, ""
}

// start starts a session for a person, who is led to it. A form that is refused comes back with what was written.
func (h *sessionPages) start(req *handler.Request) (handler.Response, error) {
	form, err := handler.ReadForm(req)
	tier := gitprovider.Tier(0)
	if err == nil {
		tier, err = tierOf(form)
	}
	if err != nil {
		return h.sendBack(req, form, tier, h.starts.Reject(req.Context(), req.Call(nil), err))
	}
	call := req.Call(nil)
	call.Input = session.StartRequest{Tier: int(tier), Note: strings.ReplaceAll(form.Get("note"), "\r\n", "\n")}
	started, err := h.starts.Handle(req.Context(), call)
	if err != nil {
		return h.sendBack(req, form, tier, err)
	}
	return h.goTo(sessionPath(started.(session.SessionAccepted).ID)), nil
}

func (h *sessionPages) sendBack(req *handler.Request, form url.Values, tier gitprovider.Tier,
	why error) (handler.Response, error) {
	view, err := h.view(req, sessionPageParams{})
	if err != nil || view.Start == nil || !handler.PrefersHTML(req.Request) {
		return handler.Response{}, why
	}
	e := fault.From(why)
	view.Position = "" // nothing but the form is of interest
	view.Numbers = nil
	view.Start.Note, view.Start.Failed = form.Get("note"), h.env.Message(e.Message)
	for i := range view.Start.Tiers {
		view.Start.Tiers[i].Chosen = view.Start.Tiers[i].Value == tier.String()
	}
	return h.htmlAgain(e, "sessions", view)
}

// tierOf returns the tier that a form asks for. It never is a guess.
func tierOf(form url.Values) (gitprovider.Tier, error) {
	tier, ok := gitprovider.ParseTier(form.Get("tier"))
	if !ok || form.Get("tier") == "" || len(form["tier"]) != 1 || len(form["note"]) > 1 {
		return 0, fault.New(fault.InvalidArgument,
			"the form must have the field tier, once: 1, 2 or 3; and note at most once")
	}
	return tier, nil
}

// stop stops a session for a person, who is led back to it.
func (h *sessionPages) stop(req *handler.Request) (handler.Response, error) {
	if err := actOn(req, h.stops); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(sessionPath(req.PathValue("id"))), nil
}
