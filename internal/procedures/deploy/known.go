package deploy

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/claudeops/claudeops/internal/system/change"
)

// lastDesired caches the last desired state; it is valid while none of its inputs has changed.
type lastDesired struct {
	mu      sync.Mutex
	request Request
	desired *change.Desired
	stat    *change.StatCache
}

// again returns the cached state for a request; nil if it has to be made.
func (l *lastDesired) again(r Request) *change.Desired {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired == nil || l.request != r {
		return nil
	}
	if !l.stat.Same() {
		l.desired, l.stat = nil, nil
		return nil
	}
	for _, folder := range l.stat.Used() {
		touch(folder)
	}
	return l.desired
}

func (l *lastDesired) stats(desired *change.Desired) []*change.StatCache {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired != desired {
		return nil
	}
	return []*change.StatCache{l.stat}
}

func (l *lastDesired) note(r Request, d *change.Desired, s *change.StatCache) {
	if !s.Whole() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.desired, l.stat = r, d, s
}

// plannedStats is the number of stat caches of a plan with nothing to change: of its inputs, of what is in place, and
// of the snapshots.
const plannedStats = 3

// question returns all that a plan depends on beside files.
func (s *Service) question(r Request) string {
	p := s.setup.Places
	return fmt.Sprintf("%q", []string{
		s.version, s.setup.Home, p.Home, p.CodexHome, p.Project, s.setup.repo(r.Repo), cmp.Or(r.Profile, "default"),
		cmp.Or(r.Target, "all"),
		s.setup.machineID(r.Machine),
	})
}
