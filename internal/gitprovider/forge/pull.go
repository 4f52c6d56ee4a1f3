package forge

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// RefusedNames asks for all the names at once and, if that is refused, for each alone: forges refuse a whole request
// for one name without saying which. It returns the names that are refused alone.
func RefusedNames(names []string, isRefusal func(error) bool, ask func(names ...string) error) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	err := ask(names...)
	switch {
	case !isRefusal(err):
		return nil, err
	case len(names) == 1:
		return names, nil
	}
	var refused []string
	for _, name := range names {
		switch err := ask(name); {
		case isRefusal(err):
			refused = append(refused, name)
		case err != nil:
			return nil, err
		}
	}
	return refused, nil
}

// Without gives those of the names that are not had, letter case as have compares it.
func Without(names []string, have func(name string) bool) []string {
	var out []string
	for _, name := range names {
		if !have(name) {
			out = append(out, name)
		}
	}
	return out
}

// WithdrawalFields returns the fields of a pull request to change for a withdrawal. The error says why it may not be
// withdrawn.
func WithdrawalFields(w gitprovider.Withdrawal, pr gitprovider.PullRequest) (map[string]string, error) {
	if err := w.Check(pr); err != nil {
		return nil, err
	}
	fields := map[string]string{"body": w.Body}
	if pr.State == gitprovider.StateOpen {
		fields["state"] = "closed"
	}
	return fields, nil
}

// Changed is a forge's answer to a change of a pull request.
type Changed struct {
	State  string `json:"state"` // open or closed
	Merged bool   `json:"merged"`
}

// PullState returns the state in the port's terms; "" if the forge did not say.
func (c Changed) PullState() gitprovider.State {
	if c.Merged {
		return gitprovider.StateMerged
	}
	return gitprovider.State(c.State)
}

// TextFields returns the fields of a pull request to change for a new title and body.
func TextFields(title, body string) map[string]string {
	fields := map[string]string{"body": body}
	if title != "" {
		fields["title"] = title
	}
	return fields
}

// SortRemarks sorts by time; of two at the same time, the one that stands first stays so.
func SortRemarks(remarks []gitprovider.Remark) {
	slices.SortStableFunc(remarks, func(a, b gitprovider.Remark) int { return a.At.Compare(b.At) })
}

// Checks returns the outcome of CI: one failing context fails, whatever the forge sums up.
func Checks(state gitprovider.ChecksState, failing []gitprovider.FailedCheck) gitprovider.Checks {
	if len(failing) > 0 {
		state = gitprovider.ChecksFailure
	}
	slices.SortStableFunc(failing, func(a, b gitprovider.FailedCheck) int { return strings.Compare(a.Name, b.Name) })
	failing = slices.CompactFunc(failing, func(a, b gitprovider.FailedCheck) bool { return a.Name == b.Name })
	out := gitprovider.Checks{State: state, Details: failing}
	for _, check := range failing {
		out.Failing = append(out.Failing, check.Name)
	}
	return out
}
