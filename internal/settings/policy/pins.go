package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// RepoPin ties a repository to a provider, to a base branch, or to both, whatever its manifest says.
type RepoPin struct {
	Owner      string `json:"owner"`
	Name       string `json:"name"`
	Provider   string `json:"provider,omitempty"`    // "": not pinned
	BaseBranch string `json:"base_branch,omitempty"` // "": not pinned
}

// Matches reports whether the pin is about the repository. Letter case does not count, as on the forges.
func (p RepoPin) Matches(owner, name string) bool {
	return strings.EqualFold(p.Owner, owner) && strings.EqualFold(p.Name, name)
}

// String returns the pin for people.
func (p RepoPin) String() string {
	text := p.Owner + "/" + p.Name
	if p.Provider != "" {
		text += " at " + p.Provider
	}
	if p.BaseBranch != "" {
		text += " into " + p.BaseBranch
	}
	return text
}

type pinSection struct {
	Repository string `yaml:"repository"`
	Provider   string `yaml:"provider"`
	BaseBranch string `yaml:"base_branch"`
}

func (f file) pins(p *Policy) error {
	for i, section := range f.Pins {
		pin, err := section.pin()
		if err != nil {
			return fmt.Errorf("pins[%d]: %w", i, err)
		}
		if other, found := p.PinFor(pin.Owner, pin.Name); found {
			return fmt.Errorf("pins[%d]: %s/%s is pinned twice; say all of it in one entry", i, other.Owner, other.Name)
		}
		p.Targets.Pins = append(p.Targets.Pins, pin)
	}
	return nil
}

func (s pinSection) pin() (RepoPin, error) {
	owner, name, _ := strings.Cut(s.Repository, "/")
	if gitprovider.CheckRepoPart(owner) != nil || gitprovider.CheckRepoPart(name) != nil {
		return RepoPin{}, fmt.Errorf("repository: %q is not of the form owner/name, without patterns", s.Repository)
	}
	pin := RepoPin{Owner: owner, Name: name, Provider: strings.ToLower(s.Provider), BaseBranch: s.BaseBranch}
	switch {
	case pin.Provider == "" && pin.BaseBranch == "":
		return pin, errors.New("it names neither provider nor base_branch")
	case strings.HasPrefix(pin.BaseBranch, gitprovider.BranchPrefix):
		return pin, fmt.Errorf("base_branch: %q would let proposals be stacked on the branches of other proposals",
			pin.BaseBranch)
	}
	return pin, nil
}

// PinFor returns the pin of a repository.
func (p Policy) PinFor(owner, name string) (pin RepoPin, found bool) {
	for _, pin := range p.Targets.Pins {
		if pin.Matches(owner, name) {
			return pin, true
		}
	}
	return RepoPin{}, false
}
