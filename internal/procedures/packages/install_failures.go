package packages

import "slices"

func (i *installing) fail(spec string, err error) {
	var e *Error
	if !asError(err, &e) {
		e = newError(InternalError, "the package could not be installed").Because(err)
	}
	i.done.Failed = append(i.done.Failed, FailedSpec{spec, e})
}

// drop gives up some of the specs.
func (i *installing) drop(err error, which func(Spec) bool) bool {
	before := len(i.specs)
	i.specs = slices.DeleteFunc(i.specs, func(s Spec) bool {
		if !which(s) {
			return false
		}
		i.fail(s.String(), err)
		return true
	})
	return len(i.specs) < before
}

// dropDependents gives up the specs whose packages need the one that failed.
func (i *installing) dropDependents(choices []choice, culprit string, err error) bool {
	graph := Lock{Packages: map[string]Locked{}}
	for _, c := range choices {
		graph.Packages[c.Name.String()] = Locked{Dependencies: c.Version.Dependencies}
	}
	names := append(graph.dependents(culprit), culprit)
	return i.drop(err, func(s Spec) bool { return slices.Contains(names, s.Name.String()) })
}
