package deploy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// fsKey names a module's folder and file: each character other than a letter, a digit, - and _ as _, the first 64 of
// them, and ten digits of the id's hash, so that no two modules share one.
func fsKey(id string) string {
	key := safe(id)
	if key == "" {
		key = "module"
	}
	if len(key) > 64 {
		key = key[:64]
	}
	return key + "--" + change.Hash([]byte(id))[:10]
}

// safe replaces each character other than a letter, a digit, - and _ by _.
func safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, text)
}

// skillName returns the folder of a skill: what follows the first colon of its id, in any script, or the id with all
// but letters and digits of ASCII, _ and - replaced.
func skillName(id string) string {
	_, name, _ := strings.Cut(id, ":")
	if isFolderName(name) {
		return name
	}
	if name = safe(id); name != "" {
		return name
	}
	return "module"
}

// isFolderName reports whether a text can be the name of a folder, on every system, that no program takes for an
// option.
func isFolderName(name string) bool {
	if name == "" || !utf8.ValidString(name) || strings.ContainsAny(name[:1], ".- ") ||
		strings.ContainsAny(name[len(name)-1:], ". ") {
		return false
	}
	return !strings.ContainsAny(name, `/\:*?"<>|`) && !strings.ContainsFunc(name, unicode.IsControl) &&
		files.CheckName(name) == nil
}

// machineID returns the name by which overlays call a machine: the first of the candidates that is not empty, in small
// letters, runs of other than letters, digits, _ and - as one hyphen; unknown if there is none.
func machineID(candidates ...string) string {
	for _, c := range candidates {
		id := regexp.MustCompile(`[^a-z0-9_-]+`).ReplaceAllString(strings.ToLower(strings.TrimSpace(c)), "-")
		if id = strings.Trim(id, "-"); id != "" {
			return id
		}
	}
	return "unknown"
}

// projectID returns the name by which overlays call a project: from the address of its remote origin, however it is
// written, or else from its path.
func projectID(origin, dir string) string {
	text := dir
	if origin = strings.TrimSpace(origin); origin != "" {
		text = strings.TrimSuffix(strings.TrimRight(origin, "/"), ".git")
		for _, scheme := range []string{"https://", "http://"} {
			text = strings.TrimPrefix(text, scheme)
		}
		if rest, ok := strings.CutPrefix(text, "git@"); ok {
			text = strings.Replace(rest, ":", "/", 1)
		}
		text = strings.ToLower(text)
	}
	return change.Hash([]byte(text))[:16]
}
