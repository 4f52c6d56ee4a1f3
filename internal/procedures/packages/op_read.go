package packages

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/operation"
)

// SearchRequest says what to look for.
type SearchRequest struct {
	Query       string  `json:"query" positional:"true" required:"true" maxLength:"256" doc:"Words to match against names, keywords and descriptions; empty for all packages"`
	Limit       int     `json:"limit,omitempty" default:"10" minimum:"1" maximum:"50" doc:"The most results"`
	PackageType *string `json:"package_type,omitempty" enum:"skill,agent,prompt,instruction" doc:"Only packages with such artifacts"`
}

// SearchResult is a package that was found.
type SearchResult struct {
	Name          string   `json:"name"`
	Version       string   `json:"version" doc:"The latest"`
	Description   string   `json:"description"`
	Author        string   `json:"author"`
	ArtifactTypes []string `json:"artifact_types"`
	Registry      string   `json:"registry"`
}

// SearchAnswer is the packages that were found, best first.
type SearchAnswer struct {
	Result []SearchResult `json:"result"`
	Notes  []string       `json:"notes,omitempty" doc:"What was left out"`
}

// AsList implements operation.Bare.
func (a SearchAnswer) AsList() (any, []string) { return a.Result, a.Notes }

func (s toolDeps) searchOperation() operation.Operation {
	return defineRead(s, readOperation("search", "search", "Search for packages", "Find packages in registries",
		"Find packages in the configured registries by name, keyword and description, best match first. Several words have "+
			"to fit all. Install one with aam_install."),
		func(_ context.Context, _ operation.Call, in SearchRequest) (SearchAnswer, error) {
			v, err := s.service().configured()
			if err != nil {
				return SearchAnswer{}, err
			}
			kind := ""
			if in.PackageType != nil {
				kind = *in.PackageType
			}
			found, err := searchIndexes(v.used(), in.Query, kind)
			if err != nil {
				return SearchAnswer{}, err
			}
			out := SearchAnswer{Result: []SearchResult{}, Notes: v.unused()}
			found = found[:min(len(found), orDefault(in.Limit, 10))]
			authored(v.used(), found)
			for _, m := range found {
				out.Result = append(out.Result, SearchResult{m.Name, m.Latest, m.Description, m.Author,
					append([]string{}, m.ArtifactTypes...), m.Registry})
			}
			return out, nil
		})
}

func orDefault(n, initial int) int {
	if n == 0 {
		return initial
	}
	return n
}

// InstalledInfo is an installed package.
type InstalledInfo struct {
	Name          string         `json:"name"`
	Version       string         `json:"version"`
	Source        string         `json:"source" doc:"The registry that it came from"`
	ArtifactCount int            `json:"artifact_count"`
	Artifacts     map[string]int `json:"artifacts" doc:"How many of each type"`
	Checksum      string         `json:"checksum"`
}

func infoOf(p InstalledPackage) InstalledInfo {
	total, artifacts := counts(p.Counts)
	return InstalledInfo{p.Name, p.Version, p.Source, total, artifacts, p.Checksum}
}

// ListAnswer is the installed packages, by name.
type ListAnswer struct {
	Result []InstalledInfo `json:"result"`
	Notes  []string        `json:"notes,omitempty" doc:"What was left out"`
}

// AsList implements operation.Bare.
func (a ListAnswer) AsList() (any, []string) { return a.Result, a.Notes }

func (s toolDeps) list() operation.Operation {
	return defineRead(s, readOperation("list", "list", "List installed packages",
		"List the packages that are installed in the project",
		"List the packages that are installed in the project, with version, registry and how many artifacts of each type "+
			"they bring."),
		func(context.Context, operation.Call, NoArguments) (ListAnswer, error) {
			installed, err := s.service().Installed()
			out := ListAnswer{Result: []InstalledInfo{}}
			for _, p := range installed {
				out.Result = append(out.Result, infoOf(p))
			}
			return out, err
		})
}

// InfoRequest names a package.
type InfoRequest struct {
	PackageName string  `json:"package_name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Name, such as my-skill or @scope/my-skill"`
	Version     *string `json:"version,omitempty" positional:"true" maxLength:"256" doc:"Version, constraint or tag; unset means the installed one, else the latest"`
}

// InfoAnswer describes a package.
type InfoAnswer struct {
	Name             string                `json:"name"`
	Version          string                `json:"version"`
	Description      string                `json:"description"`
	Author           string                `json:"author"`
	License          string                `json:"license"`
	Artifacts        map[string][]Artifact `json:"artifacts"`
	Dependencies     map[string]string     `json:"dependencies" doc:"Constraints by name"`
	Platforms        map[string]Platform   `json:"platforms"`
	Installed        bool                  `json:"installed"`
	InstalledVersion *string               `json:"installed_version"`
	Registry         string                `json:"registry" doc:"That has it, or that it came from when it was installed"`
}

func (s toolDeps) info() operation.Operation {
	return defineRead(s, readOperation("info", "info", "Look at a package", "Show one package",
		"Show a package, installed or in a registry: its artifacts with their paths, what it depends on, and whether it is installed."),
		func(_ context.Context, _ operation.Call, in InfoRequest) (InfoAnswer, error) {
			version := ""
			if in.Version != nil {
				version = *in.Version
			}
			d, err := s.service().Info(in.PackageName, version)
			if err != nil {
				return InfoAnswer{}, err
			}
			out := InfoAnswer{
				Name: d.Name, Version: d.Version, Description: d.Description, Author: d.Author, License: d.License,
				Artifacts: map[string][]Artifact{}, Dependencies: map[string]string{}, Platforms: map[string]Platform{},
				Installed: d.InstalledVersion != "", InstalledVersion: orNull(d.InstalledVersion), Registry: d.Registry,
			}
			for t, list := range d.Artifacts {
				out.Artifacts[string(t)] = list
			}
			for name, constraint := range d.Dependencies {
				out.Dependencies[name] = constraint
			}
			for name, platform := range d.Platforms {
				out.Platforms[name] = platform
			}
			return out, nil
		})
}

// ValidateRequest names a package's folder.
type ValidateRequest struct {
	Path string `json:"path,omitempty" positional:"true" default:"." maxLength:"4096" doc:"Folder of the package, or its aam.yaml"`
}

// ValidateAnswer lists the problems of a package.
type ValidateAnswer struct {
	Valid          bool     `json:"valid"`
	PackageName    *string  `json:"package_name"`
	PackageVersion *string  `json:"package_version"`
	Errors         []string `json:"errors"`
	Warnings       []string `json:"warnings"`
	ArtifactCount  int      `json:"artifact_count"`
	ArtifactsValid bool     `json:"artifacts_valid" doc:"Everything that the manifest lists is there"`
	Notes          []string `json:"notes,omitempty" doc:"What was left out"`
}

// Incomplete implements operation.Partial: the command ends with an error for a package that is not valid.
func (a ValidateAnswer) Incomplete() bool { return !a.Valid }

func (s toolDeps) validate() operation.Operation {
	return defineRead(s, readOperation("validate", "validate", "Validate a package", "Check a package before it is published",
		"Check the aam.yaml of a folder, and that everything which it lists is there. Errors make the package invalid, "+
			"warnings do not. An invalid "+
			"package is an answer with valid: false, not an error of the call."),
		func(_ context.Context, call operation.Call, in ValidateRequest) (ValidateAnswer, error) {
			dir, within, err := s.service().resolveFolder(call, orText(in.Path, "."))
			if err != nil {
				return ValidateAnswer{}, err
			}
			v := validate(dir, within)
			out := ValidateAnswer{
				Valid: v.valid(), Errors: append([]string{}, v.Errors...), Warnings: append([]string{}, v.Warnings...),
				ArtifactsValid: v.ArtifactsValid,
			}
			if v.Manifest != nil {
				out.PackageName, out.PackageVersion, out.ArtifactCount = orNull(v.Manifest.Name), orNull(
					v.Manifest.Version), v.Manifest.Total()
			}
			return out, nil
		})
}

func orText(text, initial string) string {
	if text == "" {
		return initial
	}
	return text
}

// DoctorCheck is one thing that was looked at.
type DoctorCheck struct {
	Name       string  `json:"name"`
	Status     Status  `json:"status" enum:"pass,warn,fail"`
	Message    string  `json:"message"`
	Suggestion *string `json:"suggestion"`
}

// DoctorAnswer lists the findings.
type DoctorAnswer struct {
	Healthy bool          `json:"healthy" doc:"Nothing failed"`
	Checks  []DoctorCheck `json:"checks"`
	Summary string        `json:"summary"`
	Notes   []string      `json:"notes,omitempty" doc:"What was left out"`
}

// Incomplete implements operation.Partial: the command ends with an error where something failed.
func (a DoctorAnswer) Incomplete() bool { return !a.Healthy }

func (s toolDeps) doctor() operation.Operation {
	return defineRead(s, readOperation("doctor", "doctor", "Look for problems with packages",
		"Check configuration, registries and installed packages",
		"Check configuration, registries, installed packages and what they have put into platforms; each finding says what "+
			"to do. Nothing is changed."),
		func(ctx context.Context, _ operation.Call, _ NoArguments) (DoctorAnswer, error) {
			out := DoctorAnswer{Checks: []DoctorCheck{}}
			number := map[Status]int{}
			for _, c := range s.service().diagnose(ctx) {
				number[c.Status]++
				out.Checks = append(out.Checks, DoctorCheck{c.Name, c.Status, c.Message, orNull(c.Suggestion)})
			}
			out.Healthy = number[Fail] == 0
			plural := "s"
			if number[Warn] == 1 {
				plural = ""
			}
			out.Summary = fmt.Sprintf("%d passed, %d warning%s, %d failed", number[Pass], number[Warn], plural, number[Fail])
			return out, nil
		})
}
