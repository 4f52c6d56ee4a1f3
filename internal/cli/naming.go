package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// minIDPrefix is the least that is read as the beginning of an id, as git has it: less is a slip of the finger.
const minIDPrefix = 4

// maxCandidates bounds the ids that are named where several begin as a person typed.
const maxCandidates = 8

// fullID returns the id of a kind that begins as a person typed it. What nothing begins with is returned as it is, so
// that what is asked for says that it is not known. A usage error lists the ids if several begin so.
func (a *commandLine) fullID(ctx context.Context, kind record.IDKind, typed string) (string, error) {
	if len(typed) < minIDPrefix {
		return typed, nil
	}
	ids, err := app.IDs(ctx, a.program().Wire(app.Needs{}), kind, typed)
	switch {
	case err != nil || len(ids) == 0:
		return typed, err
	case len(ids) == 1:
		return ids[0], nil
	}
	named := strings.Join(ids[:min(len(ids), maxCandidates)], ", ")
	if len(ids) > maxCandidates {
		named += " and more"
	}
	return "", app.Usage(fmt.Errorf("%q is the beginning of more than one %s: %s; type more of it", typed, kind, named))
}

// completeIDs replaces what was typed of ids by the whole ids, in the fields of an operation's input that name a kind.
func (a *commandLine) completeIDs(ctx context.Context, o operation.Operation, in map[string]any) error {
	for _, f := range operation.Fields(o.Input) {
		kind := record.IDKind(f.Tag.Get("id"))
		typed, isText := in[f.JSON].(string)
		if kind == "" || !isText {
			continue
		}
		id, err := a.fullID(ctx, kind, typed)
		if err != nil {
			return err
		}
		in[f.JSON] = id
	}
	return nil
}

// repoUsage is the help of --repo where it may be left out.
const repoUsage = "repository as owner/name (default: the only one that the settings and the policy name)"

// repository splits owner/name as it was typed. Where nothing was, it is the only repository that the settings and the
// policy name; a usage error if they name none, several or a pattern.
func (a *commandLine) repository(typed string) (owner, name string, err error) {
	if typed == "" {
		if typed, err = app.OnlyRepository(a.program().Wire(app.Needs{})); err != nil {
			return "", "", app.Usage(errors.New("--repo must be given as owner/name: " + err.Error()))
		}
	}
	return splitRepo(typed)
}

// parseRepo reads --repo, which may be left out as with repository.
func (a *commandLine) parseRepo(typed string) (gitprovider.RepoRef, error) {
	owner, name, err := a.repository(typed)
	if err != nil {
		return gitprovider.RepoRef{}, err
	}
	return parseRepo(owner + "/" + name)
}
