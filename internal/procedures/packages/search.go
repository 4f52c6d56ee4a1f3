package packages

import (
	"cmp"
	"slices"
	"strings"
)

// Scores of a match.
const (
	scoreExact       = 100
	scorePrefix      = 80
	scoreContains    = 60
	scoreKeyword     = 50
	scoreDescription = 30
)

// match is a package that a search has found.
type match struct {
	IndexEntry
	Registry string
	Score    int
}

// search finds packages by name, keyword and description in the indexes of registries. An empty query finds all. kind
// is a type of artifacts in the singular, "" for any. Of a package that several registries have, the first one's is
// given. The order is by score, then by name. AAM_REGISTRY_UNREACHABLE names a registry that cannot be read. The author
// is that of the metadata where the index, as other programs write it, has none; see Authored.
func search(registries []Registry, query, kind string) ([]match, error) {
	query = strings.ToLower(strings.TrimSpace(query))
	var out []match
	seen := map[string]bool{}
	for _, r := range registries {
		index, err := r.Index()
		if err != nil {
			return nil, err
		}
		for _, e := range index.Packages {
			score := e.score(query)
			if score == 0 || seen[e.Name] || kind != "" && !slices.Contains(e.ArtifactTypes, kind) {
				continue
			}
			seen[e.Name] = true
			out = append(out, match{e, r.Name, score})
		}
	}
	slices.SortFunc(out, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// authored adds the authors that an index lacks, from the metadata of the packages.
func authored(registries []Registry, found []match) {
	for i, m := range found {
		at := slices.IndexFunc(registries, func(r Registry) bool { return r.Name == m.Registry })
		name, err := parseName(m.Name)
		if m.Author != "" || at < 0 || err != nil {
			continue
		}
		if known, err := registries[at].metadata(name); err == nil { // a broken package is reported to those who request it
			found[i].Author = known.Author
		}
	}
}

// score says how well a package matches a query in small letters. Of several words, each has to match, and the worst
// counts.
func (e IndexEntry) score(query string) int {
	whole := e.scoreOf(query)
	words := strings.Fields(query)
	if whole > 0 || len(words) < 2 {
		return whole
	}
	least := scoreExact
	for _, word := range words {
		least = min(least, e.scoreOf(word))
	}
	return least
}

func (e IndexEntry) scoreOf(text string) int {
	name := strings.ToLower(e.Name)
	switch {
	case text == "" || name == text:
		return scoreExact
	case strings.HasPrefix(name, text):
		return scorePrefix
	case strings.Contains(name, text):
		return scoreContains
	case slices.ContainsFunc(e.Keywords, func(k string) bool { return strings.EqualFold(k, text) }):
		return scoreKeyword
	case strings.Contains(strings.ToLower(e.Description), text):
		return scoreDescription
	}
	return 0
}
