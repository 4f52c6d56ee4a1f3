package definitions

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/operation"
)

// defaultResults is the default number of results of a search.
const defaultResults = 20

// SearchRequest is a search for definitions.
type SearchRequest struct {
	Query  string   `json:"query" positional:"true" required:"true" maxLength:"256" doc:"Part of a name, a description or a tag, letter case aside"`
	Tags   []string `json:"tags,omitempty" maxItems:"50" doc:"Only those with one of these tags"`
	Limit  int      `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"20" doc:"Results at most"`
	Offset int      `json:"offset,omitempty" minimum:"0" default:"0" doc:"Results to skip"`
}

// SearchResult is a plugin of a registry.
type SearchResult struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Downloads   *int     `json:"downloads,omitempty"`
	Registry    string   `json:"registry"`
}

// SearchAnswer is a page of results.
type SearchAnswer struct {
	Results []SearchResult `json:"results"`
	Total   int            `json:"total"`
	Query   string         `json:"query"`
	Notes   []string       `json:"notes,omitempty" doc:"Registries that did not answer, and what was left out"`
}

func (s set) pluginSearch() operation.Operation {
	return reading(s, named("plugin_search", "plugin search", "Search plugins", "Search the registries for plugins",
		"Search the configured registries for plugins whose name, description or tags hold the query: exact names first, "+
			"then those that begin with it. A name is that of the first registry that has it; of "+
			"several versions the highest. notes names registries that did not answer; if none did, the call fails with the "+
			"reason of the first."), nil,
		func(ctx context.Context, v *view, in SearchRequest) (SearchAnswer, error) {
			ctx, cancel := context.WithTimeout(ctx, searchTimeout)
			defer cancel()
			found, failed := v.registries.Search(ctx, in.Query, in.Tags)
			if len(failed) > 0 && len(failed) == len(v.registries.list) {
				return SearchAnswer{}, failed[0]
			}
			out := SearchAnswer{Results: []SearchResult{}, Total: len(found), Query: in.Query, Notes: v.notes(nil, failed)}
			switch {
			case len(v.config.Registries) == 0:
				out.Notes = append(out.Notes, "no registry is configured")
			case len(v.registries.list) == 0:
				out.Notes = append(out.Notes, "no registry is asked: none that is configured is used and switched on")
			}
			for _, p := range page(found, in.Offset, cmp.Or(in.Limit, defaultResults)) {
				out.Results = append(out.Results, SearchResult{p.Name, p.Version, p.Description, p.Author, p.Tags, p.Downloads,
					p.Registry})
			}
			return out, nil
		})
}
