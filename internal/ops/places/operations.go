package places

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
)

// ActSuggest names the operation that suggests a policy.
const ActSuggest = "suggest_policy"

// suggestTimeout bounds the reading of a repository's list of files.
const suggestTimeout = time.Minute

// Suggestion is a policy for a repository, with the places that it was made from.
type Suggestion struct {
	Places   []Place `json:"places" doc:"Folders with procedures, at most 20"`
	Complete bool    `json:"complete" doc:"false: the repository has more files than its provider tells of"`
	Policy   string  `json:"policy" doc:"Text of a policy file; empty if no folder was chosen"`
}

// Changes implements operation.NoETag: people push files.
func (Suggestion) Changes() bool { return true }

// Suggest makes a policy for agents of a tier that opens the places that scope names; see Choose.
func Suggest(found []Place, complete bool, scope string, tier gitprovider.Tier) (Suggestion, error) {
	chosen, err := Choose(found, scope)
	out := Suggestion{Places: append([]Place{}, found...), Complete: complete}
	if err == nil && len(chosen) > 0 {
		out.Policy = Policy(chosen, tier)
	}
	return out, err
}

// SuggestRequest names a repository, and what agents should be able to change in it.
type SuggestRequest struct {
	Repo  string `json:"repo" required:"true" maxLength:"200" doc:"As owner/name" example:"acme/mail"`
	Scope string `json:"scope,omitempty" default:"auto" maxLength:"2000" doc:"Folders that agents may change, with commas between; auto: the known ones" example:"docs/runbooks,.claude/skills"`
}

// Acts has the operation for people. All fields are required.
type Acts struct {
	Kernel func() *operation.Kernel
	// Find reads the places of a repository. repo_not_allowed for one that people may not read.
	Find func(ctx context.Context, repo gitprovider.RepoRef) (found []Place, complete bool, err error)
	Tier func() gitprovider.Tier // of the agents that the policy is for
}

// Operations returns the one that suggests a policy. It changes nothing.
func (a Acts) Operations() []operation.Operation {
	suggest := operation.Operation{
		Name: ActSuggest, Summary: "Look where a repository has procedures, and suggest a policy that opens them",
		Effect: operation.Read, Needs: operation.Needs{For: operation.People, Scope: access.Read},
		Route: operation.Route{Method: http.MethodGet, Path: "/policy/suggestion", ID: "suggestPolicy",
			Takes: suggestTimeout},
	}
	spec := operation.CallSpec[SuggestRequest]{
		Timeout: suggestTimeout,
		Check: func(in SuggestRequest) *operation.Fault {
			if _, err := in.repository(); err != nil {
				return operation.Invalid("repo", "%s", err)
			}
			return nil
		},
	}
	return []operation.Operation{operation.Define(a.Kernel, "", suggest, spec, a.suggest)}
}

func (a Acts) suggest(ctx context.Context, _ operation.Call, in SuggestRequest) (Suggestion, error) {
	repo, err := in.repository()
	if err != nil {
		return Suggestion{}, err
	}
	found, complete, err := a.Find(ctx, repo)
	if err != nil {
		return Suggestion{}, err
	}
	scope := in.Scope
	if scope == "" {
		scope = "auto"
	}
	out, err := Suggest(found, complete, scope, a.Tier())
	if err != nil {
		return out, operation.Invalid("scope", "%s", err)
	}
	return out, nil
}

// repository returns the one that the request names. The error completes a sentence that begins with the field's name.
func (in SuggestRequest) repository() (gitprovider.RepoRef, error) {
	owner, name, _ := strings.Cut(in.Repo, "/")
	ref, problems := gitprovider.NewRepoRef(owner, name, "")
	for _, problem := range problems {
		return ref, fmt.Errorf("is not a repository such as acme/mail: %w", problem)
	}
	return ref, nil
}
