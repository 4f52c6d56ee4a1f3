package change

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// lastUnchanged is the last plan that had nothing to change, as long as the same is desired and in place.
type lastUnchanged struct {
	mu   sync.Mutex
	plan *Plan
	last *Snapshot
	stat *StatCache
	// state is of the snapshots; it may be broken.
	state *StatCache
}

// stats returns the stat caches of a plan of what is desired, and its warnings, if it had nothing to change.
func (l *lastUnchanged) stats(desired *Desired) (stats []*StatCache, warnings []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || !l.state.Whole() {
		return nil, nil
	}
	return []*StatCache{l.state, l.stat}, l.plan.Warnings
}

// again returns the plan of what is desired, if nothing has to be changed; nil if it has to be made.
func (l *lastUnchanged) again(desired *Desired, last *Snapshot) *Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || l.last != last || !l.stat.Same() {
		l.plan, l.last, l.stat, l.state = nil, nil, nil, nil
		return nil
	}
	return l.plan.again()
}

func (p *Plan) again() *Plan {
	same := *p
	same.Warnings = slices.Clone(p.Warnings)
	return &same
}

func (l *lastUnchanged) note(p *Plan, last *Snapshot, s, state *StatCache) {
	if len(p.Changes) > 0 || len(p.kept) > 0 || !s.Whole() {
		return
	}
	for key := range p.held.managed { // of which more was looked at than what is desired
		if _, wanted := p.desired.Files[key]; !wanted {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plan, l.last, l.stat, l.state = p.again(), last, s, state
}

// filesOf returns the files that a plan looks at if nothing else is in place, sorted.
func filesOf(d *Desired) []string {
	out := make([]string, 0, len(d.Files)+2*len(d.Roots))
	for key := range d.Files {
		out = append(out, key.Path)
	}
	for _, r := range d.Roots {
		out = append(out, ManifestPath(r.Dir, r.Target), filepath.Join(r.Dir, legacyManifest))
	}
	slices.SortFunc(out, func(a, b string) int { // the files of a folder together
		if c := strings.Compare(folderOf(a), folderOf(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}
