package policy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Switch makes the product more careful. Any place can switch it on, and no other place can switch it off again.
type Switch struct {
	On      bool
	By      []string // places that switch it on; else those that say false
	Against []string // places that say false, where others switch it on
}

// Say adds what one place says.
func (s *Switch) Say(place string, on bool) {
	switch {
	case on == s.On:
		s.By = append(s.By[:len(s.By):len(s.By)], place)
	case on:
		s.On, s.By, s.Against = true, []string{place}, s.By
	default:
		s.Against = append(s.Against[:len(s.Against):len(s.Against)], place)
	}
}

// Warning names the places that contradict each other; "" for none.
func (s Switch) Warning() string {
	if len(s.Against) == 0 {
		return ""
	}
	says := "says"
	if len(s.By) > 1 {
		says = "say"
	}
	return fmt.Sprintf("false has no effect in %s: %s %s true", strings.Join(s.Against, " and "),
		strings.Join(s.By, " and "), says)
}

// Reading is the state of the operator's rules at one reading.
type Reading struct {
	Policy           Policy // the default where the configured one cannot be read
	Problem          string // why the rules cannot be known; "" if they are
	ReposProblem     string // what is wrong with CLAUDEOPS_REPOS, which is a Problem too; "" for nothing
	DryRun, ReadOnly Switch // of the environment, the environment file, flags and the policy together
}

// Snapshot is the operator's rules at one time. It is immutable, and holds for one decision.
type Snapshot struct {
	Reading
	Hash  string    // of the policy; that of the last one that could be read while there is a Problem
	Roles People    // of that policy: who is in may still read while there is a Problem
	Since time.Time // when this process first saw them
}

// Live holds the operator's rules as they are now: what a file, a person or another program changes holds for every
// decision within Every. All parts of a process share one. It is safe for concurrent use.
//
// Many editors empty a file before they write it, or write it in parts, and a part of the rules may allow more than all
// of them. So a change counts when two readings in a row have found the same.
type Live struct {
	read    func() Reading
	changed func(was, is Snapshot)
	now     func() time.Time
	pause   func()

	mu     sync.Mutex
	readAt time.Time // when read was last called
	is     Snapshot
}

const (
	// Every is the maximum age of the rules when a decision is made.
	Every = time.Second
	// settling is the time between two readings of rules that have changed.
	settling = 50 * time.Millisecond
	// maxReadings bounds how often rules are read that differ each time.
	maxReadings = 10
)

// LiveOptions configure a Live.
type LiveOptions struct {
	Read    func() Reading
	Changed func(was, is Snapshot) // is called once for each change; nil: not called
	Now     func() time.Time
	Pause   func() // waits between two readings of rules that have changed; nil: 50 ms
}

// NewLive makes a Live, and reads the rules once.
func NewLive(o LiveOptions) *Live {
	l := &Live{read: o.Read, changed: o.Changed, now: o.Now, pause: o.Pause}
	if l.pause == nil {
		l.pause = func() { time.Sleep(settling) }
	}
	l.Now()
	return l
}

// Now returns the rules as they are now, at most Every old. The caller keeps them for one decision, and no longer.
func (l *Live) Now() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if since := now.Sub(l.readAt); !l.readAt.IsZero() && since >= 0 && since < Every {
		return l.is
	}
	was, first := l.is, l.readAt.IsZero()
	l.readAt = now
	reading := l.read()
	if !first && !was.says(reading) {
		reading = l.settled(reading)
	}
	hash, roles := reading.Policy.Hash(), reading.Policy.People
	if reading.Problem != "" {
		hash, roles = was.Hash, was.Roles
	}
	if !first && was.says(reading) {
		l.is.Reading, l.is.Roles = reading, roles
		return l.is
	}
	l.is = Snapshot{Reading: reading, Hash: hash, Roles: roles, Since: now}
	if l.changed != nil && !first {
		l.changed(was, l.is)
	}
	return l.is
}

// settled reads rules that have changed until two readings in a row say the same. If none do, the rules are unknown.
func (l *Live) settled(reading Reading) Reading {
	for range maxReadings {
		l.pause()
		again := l.read()
		if again.Policy.Hash() == reading.Policy.Hash() && again.sameReading(reading) {
			return again
		}
		reading = again
	}
	if reading.Problem == "" {
		reading.Problem = "the files of the rules change all the time, and can be read when nobody writes them any more"
	}
	return reading
}

// says reports whether a reading says what holds already.
func (s Snapshot) says(r Reading) bool {
	return (r.Problem != "" || r.Policy.Hash() == s.Hash) && r.sameReading(s.Reading)
}

// sameReading reports whether two readings of policies with the same hash say the same.
func (r Reading) sameReading(as Reading) bool {
	return r.Problem == as.Problem && r.DryRun.On == as.DryRun.On && r.ReadOnly.On == as.ReadOnly.On &&
		r.DryRun.Warning() == as.DryRun.Warning() && r.ReadOnly.Warning() == as.ReadOnly.Warning() &&
		r.Policy.Source == as.Policy.Source
}

// State describes the rules for people and for health.
type State struct {
	Hash    string    `json:"hash" doc:"Of the policy that holds; of the last one that could be read if there is a problem"`
	Since   time.Time `json:"since" doc:"When this process first saw it"`
	Problem string    `json:"problem" doc:"Why nothing can be proposed and nobody signs in anew; empty if the rules are known"`
}

// State says which rules hold, and since when.
func (l *Live) State() State {
	now := l.Now()
	return State{Hash: now.Hash, Since: now.Since, Problem: now.Problem}
}

// File reads a policy file again and again, and parses it only when its text has changed. It is not safe for concurrent
// use.
type File struct {
	Kinds []gitprovider.FileKind // that scope.kinds may name

	name   string
	text   []byte
	policy Policy
	err    error
}

// Load calls the function Load for the present file.
func (f *File) Load(name string) (Policy, error) {
	if name == "" {
		return Default(), nil
	}
	text, err := readBounded(name)
	if err != nil {
		f.name = ""
		return Policy{}, err
	}
	if f.name != name || !bytes.Equal(f.text, text) {
		f.name, f.text = name, text
		f.policy, f.err = Parse(name, text, f.Kinds...)
	}
	return f.policy, f.err
}
