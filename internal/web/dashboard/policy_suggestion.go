package dashboard

import (
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// suggestionView is the part of the page of the policy that suggests one for a repository.
type suggestionView struct {
	Repo    string // that was asked about; "" if none was
	Problem string // why nothing could be suggested
	Found   []string
	Partial bool   // the repository has more files than were looked at
	Policy  string // text of a file; "" if nothing of a known kind is there
}

// suggestion answers the form; nil on a server without the operation.
func (h *policyPage) suggestion(req *httpx.Request, repo string) *suggestionView {
	if h.suggest.Handle == nil {
		return nil
	}
	view := &suggestionView{Repo: strings.TrimSpace(repo)}
	if view.Repo == "" {
		return view
	}
	out, err := callOperation(req, h.suggest, places.SuggestRequest{Repo: view.Repo})
	if err != nil {
		view.Problem = fault.From(err).Message
		return view
	}
	suggested, _ := out.(places.Suggestion)
	for _, place := range suggested.Places {
		view.Found = append(view.Found, place.Words())
	}
	view.Partial, view.Policy = !suggested.Complete, suggested.Policy
	return view
}
