package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// lastDesired is what was desired last, as long as nothing that it was made of has changed.
type lastDesired struct {
	mu      sync.Mutex
	request Request
	desired *Desired
	seal    *seal
}

// again is what a request asks for, if that is known; nil if it has to be made.
func (l *lastDesired) again(r Request) *Desired {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired == nil || l.request != r {
		return nil
	}
	if !l.seal.same() {
		l.desired, l.seal = nil, nil
		return nil
	}
	for _, folder := range l.seal.used {
		touch(folder)
	}
	return l.desired
}

func (l *lastDesired) seals(desired *Desired) []*seal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired != desired {
		return nil
	}
	return []*seal{l.seal}
}

func (l *lastDesired) note(r Request, d *Desired, s *seal) {
	if !s.whole() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.desired, l.seal = r, d, s
}

// lastUnchanged is the last plan that had nothing to change, as long as the same is desired and in place.
type lastUnchanged struct {
	mu   sync.Mutex
	plan *Plan
	last *Snapshot
	seal *seal
	// state is of the snapshots; it may be broken.
	state *seal
}

// unchangedSeals is how many seals a plan with nothing to change has: of what it was made of, what is in place, and the snapshots.
const unchangedSeals = 3

// seals are those of a plan of what is desired, and its warnings, if it had nothing to change.
func (l *lastUnchanged) seals(desired *Desired) (seals []*seal, warnings []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || !l.state.whole() {
		return nil, nil
	}
	return []*seal{l.state, l.seal}, l.plan.Warnings
}

// again is the plan of what is desired, if nothing has to be changed; nil if it has to be made.
func (l *lastUnchanged) again(desired *Desired, last *Snapshot) *Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || l.last != last || !l.seal.same() {
		l.plan, l.last, l.seal, l.state = nil, nil, nil, nil
		return nil
	}
	return l.plan.again()
}

func (p *Plan) again() *Plan {
	same := *p
	same.Warnings = slices.Clone(p.Warnings)
	return &same
}

func (l *lastUnchanged) note(p *Plan, last *Snapshot, s, state *seal) {
	if len(p.Changes) > 0 || len(p.kept) > 0 || !s.whole() {
		return
	}
	for key := range p.held.managed { // of which more was looked at than what is desired
		if _, wanted := p.desired.Files[key]; !wanted {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plan, l.last, l.seal, l.state = p.again(), last, s, state
}

// filesOf are the files that a plan looks at if nothing else is in place, sorted.
func filesOf(d *Desired) []string {
	out := make([]string, 0, len(d.Files)+2*len(d.Roots))
	for key := range d.Files {
		out = append(out, key.Path)
	}
	for _, r := range d.Roots {
		out = append(out, manifestPath(r.Dir, r.Target), filepath.Join(r.Dir, legacyManifest))
	}
	slices.SortFunc(out, func(a, b string) int { // the files of a folder together
		if c := strings.Compare(folderOf(a), folderOf(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}
