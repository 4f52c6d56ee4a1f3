package change

import (
	"slices"
)

// held describes the deployed files: their owners, and which of them a deployment of this owner is responsible for.
type held struct {
	managed  map[FileKey]string // of the owner, within reach of this deployment: their hashes
	missing  []RootDir          // without a manifest
	others   map[string]FileKey // of other owners, or of targets that this deployment is not about, by path
	owners   map[string]Owner   // of those
	dropped  []RootDir          // that the owner had files in, and has no more
	warnings []string
	made     func(dir string) bool // deployments have made a folder
	original map[FileKey]*Original // what stood there before, of managed; nil of one that it is not known of
}

// readHeld asks the manifests, and the ledger where there is none.
func readHeld(d disk, desired *Desired, last *Snapshot) (h *held, err error) {
	h = &held{managed: map[FileKey]string{}, others: map[string]FileKey{}, owners: map[string]Owner{}, made: last.made,
		original: map[FileKey]*Original{}}
	if desired.Owner == Agentpack {
		if h.missing, h.warnings, err = readManifests(d, desired.Roots, h.managed); err != nil {
			return nil, err
		}
	}
	for _, f := range last.Managed {
		if desired.answersFor(f) {
			h.original[f.key()] = f.Original
		}
		switch {
		case !desired.answersFor(f):
			h.others[f.Path], h.owners[f.Path] = f.key(), f.Owner
		case desired.Owner != Agentpack || h.withoutManifest(desired, f):
			h.managed[f.key()] = f.SHA256
		}
	}
	for _, r := range last.Roots {
		if !slices.ContainsFunc(desired.Roots, sameRoot(r)) && slices.ContainsFunc(last.Managed, func(f FileState) bool {
			return f.Root == r.Dir && f.Target == r.Target && desired.answersFor(f)
		}) {
			h.dropped = append(h.dropped, r)
		}
	}
	return h, nil
}

// withoutManifest reports whether no manifest lists the contents of a file's folder.
func (h *held) withoutManifest(desired *Desired, f FileState) bool {
	same := func(r RootDir) bool { return r.Target == f.Target && r.Dir == f.Root }
	return slices.ContainsFunc(h.missing, same) || !slices.ContainsFunc(desired.Roots, same)
}

func sameRoot(r RootDir) func(RootDir) bool {
	return func(other RootDir) bool { return r.Target == other.Target && r.Dir == other.Dir }
}

// answersFor reports whether a file that is in place is this owner's, and goes if it is not wanted any more: it is for
// one of the targets, and lies in one of the folders or came from the same source and project.
func (d *Desired) answersFor(f FileState) bool {
	if f.Owner != d.Owner || !slices.Contains(d.Targets, f.Target) {
		return false
	}
	if len(d.Modules) > 0 && !slices.ContainsFunc(f.Modules,
		func(id string) bool { return slices.Contains(d.Modules, id) }) {
		return false
	}
	return f.Source == d.Source && f.Project == d.Project ||
		d.Owner == Agentpack && slices.ContainsFunc(d.Roots, sameRoot(RootDir{Target: f.Target, Dir: f.Root}))
}
