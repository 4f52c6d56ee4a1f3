package packages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// inWords gives the operations that write, and those that judge, what their commands say at a terminal.
func inWords(all []operation.Operation) []operation.Operation {
	for i := range all {
		all[i].Shown.Said = answerText
	}
	return all
}

// answerText returns an answer in sentences, one a line; "" for one that is shown as a table.
func answerText(answer any, _ bool) string {
	var lines, notes []string
	dry := false
	switch a := answer.(type) {
	case InstallAnswer:
		lines, notes, dry = installedWords(a), a.Notes, a.DryRun
	case UpgradeAnswer:
		lines, notes, dry = upgradedWords(a), a.Notes, a.DryRun
	case AutoremoveAnswer:
		for _, p := range a.Removed {
			lines = append(lines, removedWords(p.Name, p.Version, p.FilesRemoved))
		}
		lines, notes, dry = orElse(lines, "Nothing to remove: every installed package is needed."), a.Notes, a.DryRun
	case UninstallAnswer:
		lines, notes, dry = []string{removedWords(a.PackageName, a.Version, a.FilesRemoved)}, a.Notes, a.DryRun
		if len(a.DependentsWarning) > 0 {
			lines = append(lines, "These packages need it: "+strings.Join(a.DependentsWarning, ", ")+".")
		}
	case PublishAnswer:
		lines, notes, dry = []string{fmt.Sprintf("Published %s %s in the registry %s (%d bytes, %s).", a.PackageName, a.Version,
			a.Registry, a.ArchiveSize, a.Checksum)}, a.Notes, a.DryRun
	case CreateAnswer:
		lines, dry = []string{
			fmt.Sprintf("Wrote %s: %s %s with %s.", a.ManifestPath, a.PackageName, a.Version, includedWords(a)),
			"Look at it, then publish it: claudeops packages publish",
		}, a.DryRun
	case ValidateAnswer:
		lines, notes = validWords(a), a.Notes
	case RegistryInfo:
		lines, notes, dry = []string{addedWords(a)}, a.Notes, a.DryRun
	case ConfigData:
		text := configWords(a)
		if text == "" {
			return ""
		}
		lines, notes, dry = []string{text}, a.Notes, a.DryRun
	default:
		return ""
	}
	for _, note := range notes {
		lines = append(lines, "Note: "+note)
	}
	if dry {
		lines = append([]string{"This is a dry run: nothing was written. Otherwise:"}, lines...)
	}
	return strings.Join(lines, "\n")
}

func upgradedWords(a UpgradeAnswer) (lines []string) {
	for _, p := range a.Upgraded {
		if p.From == "" {
			lines = append(lines, fmt.Sprintf("Installed %s %s from %s, since another package needs it.", p.Name, p.To, p.Source))
		} else {
			lines = append(lines, fmt.Sprintf("Upgraded %s from %s to %s (%s).", p.Name, p.From, p.To, p.Source))
		}
	}
	return orElse(append(lines, failedWords(a.Failed)...),
		"Nothing to upgrade: every installed package is as new as it can be.")
}

func addedWords(a RegistryInfo) string {
	text := fmt.Sprintf("Added the registry %s at %s", a.Name, a.URL)
	if a.IsDefault {
		text += ", the default one"
	}
	return text + "."
}

// configWords is one setting in a sentence; "" for all of them, which are shown as they are.
func configWords(a ConfigData) string {
	where := map[Source]string{SourceDefault: "by default", SourceGlobal: "in your configuration",
		SourceProject: "in the project's configuration"}[a.Source]
	value, err := json.Marshal(a.Value)
	if a.Key == nil || err != nil || where == "" {
		return ""
	}
	return fmt.Sprintf("%s is %s %s.", *a.Key, value, where)
}

func orElse(lines []string, otherwise string) []string {
	if len(lines) == 0 {
		return []string{otherwise}
	}
	return lines
}

func installedWords(a InstallAnswer) (lines []string) {
	for _, p := range a.Installed {
		lines = append(lines, fmt.Sprintf("Installed %s %s from %s.", p.Name, p.Version, p.Source))
	}
	for _, name := range a.AlreadyInstalled {
		lines = append(lines, name+" is installed already.")
	}
	return append(lines, failedWords(a.Failed)...)
}

func failedWords(failed []FailedPackage) (lines []string) {
	for _, f := range failed {
		line := fmt.Sprintf("Failed: %s [%s] %s.", f.Package, f.Code, strings.TrimSuffix(f.Message, "."))
		if f.Hint != "" {
			line += " Hint: " + f.Hint
		}
		lines = append(lines, line)
	}
	return lines
}

func removedWords(name, version string, files int) string {
	return fmt.Sprintf("Removed %s %s, and %s.", name, version, fault.CountFiles(files))
}

// includedWords counts artifacts: "1 skill, 2 agents".
func includedWords(a CreateAnswer) string {
	var parts []string
	for _, t := range artifactTypes() {
		if n := a.ArtifactsIncluded[string(t)]; n > 0 {
			parts = append(parts, fault.Count(n, t.singular(), string(t)))
		}
	}
	return strings.Join(orElse(parts, "no artifacts"), ", ")
}

func validWords(a ValidateAnswer) []string {
	name := "The package"
	if a.PackageName != nil && a.PackageVersion != nil {
		name = *a.PackageName + " " + *a.PackageVersion
	}
	lines := []string{name + " is valid: " + fault.Count(a.ArtifactCount, "artifact", "artifacts") + "."}
	if !a.Valid {
		lines = []string{name + " is not valid."}
	}
	for _, text := range slices.Concat(a.Errors, prefixed("warning: ", a.Warnings)) {
		lines = append(lines, "  "+text)
	}
	return lines
}

func prefixed(prefix string, texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, prefix+text)
	}
	return out
}
