package app

import (
	"context"
	"errors"
	"strings"

	"github.com/claudeops/claudeops/internal/records/record"
)

// IDs returns the ids of a kind that begin with a prefix, as store.IDs does. What is an id, or the name of a token, is
// the only one.
func IDs(ctx context.Context, p *Parts, kind record.IDKind, prefix string) (ids []string, err error) {
	switch kind {
	case record.IDOfSnapshot:
		return snapshotIDs(p, prefix)
	case record.IDOfToken:
		tokens, err := p.Store.Access.Tokens(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range tokens {
			if t.Name == prefix {
				return []string{prefix}, nil
			}
		}
	}
	return p.Store.IDs(ctx, kind, prefix)
}

// maxSnapshotsLooked bounds the snapshots whose ids are compared.
const maxSnapshotsLooked = 1000

func snapshotIDs(p *Parts, prefix string) (ids []string, err error) {
	all, err := p.Tools.Deploy().Snapshots(maxSnapshotsLooked)
	for _, s := range all {
		switch {
		case s.ID == prefix:
			return []string{prefix}, nil
		case strings.HasPrefix(s.ID, prefix):
			ids = append(ids, s.ID)
		}
	}
	return ids, err
}

// OnlyRepository returns the repository, as owner/name, that the settings and the policy name if they name one alone.
// The error says that they do not, and of which kind their entries are.
func OnlyRepository(p *Parts) (string, error) {
	rules := p.Rules.Now()
	if rules.Problem != "" {
		return "", errors.New(rules.Problem)
	}
	named := rules.Policy.AllRepositories()
	if len(named) == 0 {
		return "", errors.New("neither the settings nor the policy names a repository")
	}
	only := ""
	for _, pattern := range named {
		entry := pattern.String()
		if _, repo, hasProvider := strings.Cut(entry, ":"); hasProvider {
			entry = repo
		}
		switch {
		case strings.ContainsAny(entry, "*?[{"):
			return "", errors.New("the entry " + entry + " of the settings or the policy is for more than one repository")
		case only != "" && !strings.EqualFold(only, entry):
			return "", errors.New("the settings and the policy name more than one repository")
		}
		only = entry
	}
	return only, nil
}
