package packages

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Status is the result of a check.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name       string
	Status     Status
	Message    string
	Suggestion string // "" for none
}

// diagnose checks configuration, registries and workspace. It repairs nothing.
func (s *Service) diagnose(ctx context.Context) []Check {
	checks := []Check{{"runtime_version", Pass,
		fmt.Sprintf("%s on %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH), ""}}
	v, err := s.configured()
	if err != nil {
		checks = append(checks, failedCheck("config_valid", err))
	} else {
		checks = append(checks, Check{"config_valid", Pass, "Configuration loaded", ""})
	}
	for _, note := range v.config.unused {
		checks = append(checks, Check{"config_unused", Warn, note, "remove it from " + configFile(s.settings.Project)})
	}
	if len(v.registries) == 0 {
		checks = append(checks, Check{"registries", Warn, "No registry is configured",
			"add one: claudeops packages registry add --name NAME --url PATH"})
	}
	for _, r := range v.registries {
		checks = append(checks, checkRegistry(r))
	}
	return append(checks, diagnosis{s}.checkWorkspace(ctx)...)
}

// diagnosis looks at a workspace.
type diagnosis struct{ *Service }

func failedCheck(name string, err error) Check {
	c := Check{Name: name, Status: Fail, Message: err.Error()}
	var e *Error
	if asError(err, &e) {
		c.Message, c.Suggestion = e.Message, strings.Join(e.Suggestions, "; ")
	}
	return c
}

func checkRegistry(r Registry) Check {
	name := "registry_" + r.Name
	if r.unused != "" {
		return Check{name, Warn, r.unused, "or add it: claudeops packages registry add " + r.Name + " PATH"}
	}
	index, err := r.Index()
	if err != nil {
		return failedCheck(name, err)
	}
	var broken []string
	for _, e := range index.Packages {
		n, err := parseName(e.Name)
		if err == nil {
			_, err = r.readMetadata(n)
		}
		if err != nil {
			broken = append(broken, e.Name)
		}
	}
	if len(broken) > 0 {
		return Check{name, Warn, fmt.Sprintf("The index lists packages that cannot be read: %s", few(broken)),
			"publish them again with a new version, or restore the registry"}
	}
	return Check{name, Pass, "Registry accessible, " + fault.Count(len(index.Packages), "package", "packages"), ""}
}

// few names the first of many.
func few(names []string) string {
	if len(names) <= 10 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:10], ", "), len(names)-10)
}

func (s diagnosis) checkWorkspace(ctx context.Context) []Check {
	w := workspace{s.settings.Project}
	if !w.exists() {
		return []Check{{"workspace", Warn, "There is no workspace in " + s.settings.Project, "make the folder " + w.dir()}}
	}
	lock, err := w.Lock()
	if err != nil {
		return []Check{failedCheck("workspace", err)}
	}
	out := []Check{{"workspace", Pass, fault.Count(len(lock.Packages), "package", "packages") + " installed", ""}}
	switch t, err := w.pending(); {
	case err != nil:
		out = append(out, failedCheck("incomplete_install", err))
	case t != nil:
		out = append(out, Check{"incomplete_install", Warn, "An installation or removal was cut off: " + few(t.Touched),
			"the next installation or removal finishes it"})
	}
	return append(out, s.checkPackages(w, lock), s.checkPlatforms(ctx, lock), checkDependencies(lock))
}

// checkPackages holds the installed files against what was recorded.
func (s diagnosis) checkPackages(w workspace, lock *Lock) Check {
	var bad, unknown []string
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		locked := lock.Packages[name]
		n, err := parseName(name)
		if err == nil {
			_, _, err = installedTree(w, n, locked)
		}
		switch {
		case err != nil:
			bad = append(bad, name)
		case locked.FileChecksums == nil || locked.Checksum == "":
			unknown = append(unknown, name)
		}
	}
	switch {
	case len(bad) > 0:
		return Check{"packages_integrity", Fail, "Packages whose files were changed or are missing: " + few(bad),
			"install them again with force"}
	case len(unknown) > 0:
		return Check{"packages_integrity", Warn, "Packages without recorded checksums: " + few(unknown),
			"install them again with force"}
	}
	return Check{"packages_integrity", Pass, "All files are as they were installed", ""}
}

// checkPlatforms holds the files in platforms against what was put there.
func (s diagnosis) checkPlatforms(ctx context.Context, lock *Lock) Check {
	const name = "platform_files"
	if !s.hasState() {
		return s.checkSections(lock, nil)
	}
	owned, _, err := s.engine().Owned(ctx, owner)
	if err != nil {
		return failedCheck(name, fromDeploy(err))
	}
	var changed []string
	for _, f := range owned {
		if f.Project != s.settings.Project {
			continue
		}
		if content, _, err := files.ReadPath(f.Path, maxUnpackedBytes); err != nil ||
			fileset.Bytes(content).SHA256() != f.SHA256 {
			changed = append(changed, f.Path)
		}
	}
	return s.checkSections(lock, changed)
}

func (s diagnosis) checkSections(lock *Lock, changed []string) Check {
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		for _, one := range lock.Packages[name].Sections {
			file := filepath.Join(s.settings.Project, filepath.FromSlash(one.Path))
			text, err := readBelow(s.settings.Project, file, maxTextBytes)
			from, to, ok := findSection(text, one.Words)
			if err != nil || !ok || checksum(text[from:to]) != one.SHA256 {
				changed = append(changed, fmt.Sprintf("%s (%s)", file, one.Words))
			}
		}
	}
	if len(changed) > 0 {
		return Check{"platform_files", Warn, "Changed or missing since they were put in place: " + few(changed),
			"what is missing comes back with an installation with force; what was changed is left as it is"}
	}
	return Check{"platform_files", Pass, "All files in platforms are as they were put there", ""}
}

func checkDependencies(lock *Lock) Check {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		for _, dependency := range slices.Sorted(maps.Keys(lock.Packages[name].Dependencies)) {
			want := lock.Packages[name].Dependencies[dependency]
			c, err := parseConstraint(want)
			have, ok := lock.Packages[dependency]
			v, versionErr := parseVersion(have.Version)
			if err != nil || !ok || versionErr != nil || !c.Admits(v) {
				missing = append(missing, fmt.Sprintf("%s %s, which %s needs", dependency, want, name))
			}
		}
	}
	if len(missing) > 0 {
		return Check{"dependencies", Warn, "Missing: " + few(missing), "install them"}
	}
	return Check{"dependencies", Pass, "Every package has what it depends on", ""}
}
