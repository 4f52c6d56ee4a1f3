package policy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// Checker is a program of the operator's own that looks at each proposal. It reads the proposal as JSON on standard
// input, and answers with facts or a refusal; docs/guides/checkers.md has the form.
type Checker struct {
	Name    string        // is the class of its facts
	Command []string      // the program by its absolute path, and its arguments
	Timeout time.Duration // 1 s to a minute
	On      []string      // patterns of paths; it is asked about proposals with one of them. None: about all
	Env     []string      // variables that it sees beside PATH, HOME, LANG and the like
	// Required says that a proposal is refused when the checker could not run, or gave an answer that cannot be used.
	// Otherwise that is a fact.
	Required bool
}

// Class returns the class of the checker's facts.
func (c Checker) Class() facts.Class { return facts.Class(c.Name) }

// Bounds of checkers.
const (
	maxCheckers           = 4
	maxCheckerTimeout     = time.Minute
	defaultCheckerTimeout = 20 * time.Second
)

var checkerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,29}$`)

type checkerSection struct {
	Name    string   `yaml:"name"`
	Command []string `yaml:"command"`
	Timeout string   `yaml:"timeout"` // such as 30s
	On      []string `yaml:"on"`
	Env     []string `yaml:"env"`
	Fail    string   `yaml:"fail"` // show or refuse
}

func (f policyFile) checkers(p *Policy) error {
	if len(f.Checkers) > maxCheckers {
		return fmt.Errorf("checkers: there are %d; at most %d are asked", len(f.Checkers), maxCheckers)
	}
	for i, section := range f.Checkers {
		c, err := section.parse()
		if err == nil && slices.ContainsFunc(p.Checkers, func(other Checker) bool { return other.Name == c.Name }) {
			err = fmt.Errorf("name: %q is the name of another checker", c.Name)
		}
		if err != nil {
			return fmt.Errorf("checkers[%d].%w", i, err)
		}
		p.Checkers = append(p.Checkers, c)
	}
	return nil
}

func (s checkerSection) parse() (Checker, error) {
	c := Checker{Name: s.Name, Command: s.Command, Timeout: defaultCheckerTimeout, On: s.On, Env: s.Env,
		Required: s.Fail == RefuseFact.String()}
	switch {
	case !checkerName.MatchString(s.Name):
		return c, fmt.Errorf("name: %q is not a name of small letters, digits and -, at most 30", s.Name)
	case slices.Contains(facts.Classes(), c.Class()):
		return c, fmt.Errorf("name: %q is a class of facts", s.Name)
	case len(s.Command) == 0 || !filepath.IsAbs(s.Command[0]):
		return c, fmt.Errorf("command: it begins with the absolute path of a program")
	case s.Fail != "" && s.Fail != ShowFact.String() && !c.Required:
		return c, fmt.Errorf("fail: %q is neither show nor refuse", s.Fail)
	}
	for _, pattern := range s.On {
		if !doublestar.ValidatePattern(pattern) {
			return c, fmt.Errorf("on: %q is not a valid pattern", pattern)
		}
	}
	for _, name := range s.Env {
		if name == "" || strings.ContainsAny(name, "= ") {
			return c, fmt.Errorf("env: %q is not the name of a variable", name)
		}
	}
	if s.Timeout == "" {
		return c, nil
	}
	var err error
	c.Timeout, err = time.ParseDuration(s.Timeout)
	if err != nil || c.Timeout < time.Second || c.Timeout > maxCheckerTimeout {
		return c, fmt.Errorf("timeout: %q is not a time from 1s to %s", s.Timeout, maxCheckerTimeout)
	}
	return c, nil
}
