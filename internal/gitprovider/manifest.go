package gitprovider

import (
	"fmt"
	"strings"
)

// ManifestFile is the name of the manifest at the root of a monitored repository.
const ManifestFile = "CLAUDE-OPS.md"

// Manifest holds the declarations of the section "## Git Provider" of a CLAUDE-OPS.md. Empty fields were not declared.
type Manifest struct {
	Provider   string
	Remote     string // clone URL
	Owner      string
	Repo       string
	BaseBranch string
}

// Matches reports whether the manifest is about the repository: the owner and name that it declares are the same,
// letter case aside. A manifest that does not say both matches nothing.
func (m Manifest) Matches(owner, name string) bool {
	return m.Owner != "" && strings.EqualFold(m.Owner, owner) && strings.EqualFold(m.Repo, name)
}

// maxManifestBytes bounds the manifest files that are read; larger ones are refused.
const maxManifestBytes = 1 << 20

// ParseManifest reads the section "## Git Provider": lines of the form "key: value", as list items or not, keys and
// values optionally in bold or backticks. Prose lines in the section are passed over. The section is optional; the zero
// Manifest stands for its absence. Errors name the line: an unknown key in a list item, a key given twice, an empty
// value, a second section.
func ParseManifest(text string) (Manifest, error) {
	var m Manifest
	if len(text) > maxManifestBytes {
		return m, fmt.Errorf("%s is larger than %d bytes", ManifestFile, maxManifestBytes)
	}
	inSection, seenSection, inFence := false, false, false
	given := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimSuffix(line, "\r"))
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			inFence = !inFence
			continue
		}
		if level, title := heading(line); level > 0 && !inFence {
			isOurs := level == 2 && strings.EqualFold(title, "Git Provider")
			if isOurs && seenSection {
				return Manifest{}, fmt.Errorf("%s:%d: a second section \"## Git Provider\"; keep one", ManifestFile, i+1)
			}
			inSection, seenSection = isOurs, seenSection || isOurs
			continue
		}
		if !inSection {
			continue
		}
		if err := m.take(line, i+1, given); err != nil {
			return Manifest{}, err
		}
	}
	return m, nil
}

func heading(line string) (level int, title string) {
	level = len(line) - len(strings.TrimLeft(line, "#"))
	if level == 0 || level > 6 || level == len(line) || line[level] != ' ' && line[level] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(strings.TrimSpace(line[level:]), "#"))
}

// take reads one line of the section.
func (m *Manifest) take(line string, number int, given map[string]int) error {
	item, isItem := listItem(line)
	key, value, ok := strings.Cut(item, ":")
	if !ok {
		return nil
	}
	key = strings.ToLower(strings.Trim(key, "*_` \t"))
	value = strings.Trim(strings.TrimLeft(value, "*"), "` \t")
	field := m.field(key)
	switch {
	case field == nil && isItem:
		return fmt.Errorf("%s:%d: unknown key %s; provider, remote, owner, repo and base_branch are understood",
			ManifestFile, number, printable(key))
	case field == nil:
		return nil
	case given[key] > 0:
		return fmt.Errorf("%s:%d: %s was given on line %d already", ManifestFile, number, key, given[key])
	case value == "":
		return fmt.Errorf("%s:%d: %s has no value", ManifestFile, number, key)
	}
	given[key] = number
	*field = value
	return nil
}

func listItem(line string) (rest string, isItem bool) {
	for _, bullet := range []string{"- ", "* ", "+ "} {
		if strings.HasPrefix(line, bullet) {
			return strings.TrimSpace(line[2:]), true
		}
	}
	return line, false
}

func (m *Manifest) field(key string) *string {
	switch key {
	case "provider":
		return &m.Provider
	case "remote":
		return &m.Remote
	case "owner":
		return &m.Owner
	case "repo":
		return &m.Repo
	case "base_branch":
		return &m.BaseBranch
	}
	return nil
}

// String writes the manifest's section in the form that ParseManifest reads.
func (m Manifest) String() string {
	var b strings.Builder
	b.WriteString("## Git Provider\n\n")
	for _, key := range []string{"provider", "remote", "owner", "repo", "base_branch"} {
		if v := *m.field(key); v != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, v)
		}
	}
	return b.String()
}
