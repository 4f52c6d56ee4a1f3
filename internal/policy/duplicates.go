package policy

import "fmt"

// Duplicates says whose open pull requests keep a proposal off the files that they change.
type Duplicates string

// The rules about duplicates. Under DuplicatesOurs a pull request of somebody else is a warning in the answer.
const (
	DuplicatesOurs Duplicates = "ours" // the default
	DuplicatesAny  Duplicates = "any"
)

func (f file) duplicates(p *Policy) error {
	if f.Duplicates == nil {
		return nil
	}
	p.Duplicates = Duplicates(*f.Duplicates)
	if p.Duplicates != DuplicatesOurs && p.Duplicates != DuplicatesAny {
		return fmt.Errorf("duplicates: %q is neither %q nor %q", *f.Duplicates, DuplicatesOurs, DuplicatesAny)
	}
	return nil
}
