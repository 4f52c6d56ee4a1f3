package dashboard

import (
	"strings"
	"time"
)

// The rows of the overview are parts of the page (pages.Part): what was made of one is shown again as long as it says the same.

// Key is all that is shown of the pull request.
func (p waitingPull) Key() any {
	shown := p
	shown.UpdatedAt, shown.TriedAt, shown.SeenAt, shown.Version = time.Time{}, time.Time{}, time.Time{}, 0
	return shown
}

// Moment is when it was proposed.
func (p waitingPull) Moment() time.Time { return p.At }

// Key is the whole.
func (n need) Key() any { return n }

// Moment is when it began to need a person.
func (n need) Moment() time.Time { return n.At }

// Key is the whole.
func (g gateBar) Key() any { return g }

// Moment is none.
func (gateBar) Moment() time.Time { return time.Time{} }

// Key is all that is shown of the provider.
func (r registration) Key() any {
	state := "enabled"
	if r.Provider == nil {
		state = "disabled"
	}
	return [4]string{r.Name, state, strings.Join(r.Hosts, " "), r.Disabled}
}

// Moment is none.
func (registration) Moment() time.Time { return time.Time{} }
