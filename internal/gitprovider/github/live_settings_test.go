package github_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// liveSettings say on which GitHub, and as whom, the contract suite runs live.
type liveSettings struct {
	api       *url.URL
	owner     string    // of the repositories that are made: the token's owner, or an organisation
	token     string    // makes and removes repositories of owner's
	reviewers [2]string // tokens of other people
}

// liveSettingsFrom reads GITHUB_TOKEN, GITHUB_LIVE_OWNER, GITHUB_REVIEWER_TOKENS and, if it is not github.com,
// GITHUB_API_URL. The error says what to set, all of it at once, and holds no token.
func liveSettingsFrom(getenv func(string) string) (liveSettings, error) {
	set := liveSettings{token: getenv("GITHUB_TOKEN"), owner: getenv("GITHUB_LIVE_OWNER")}
	var problems []error
	missing := func(bad bool, advice string) {
		if bad {
			problems = append(problems, errors.New(advice))
		}
	}
	missing(set.token == "",
		"set GITHUB_TOKEN to a token that may create and delete repositories: a classic one with the "+
			"scopes repo and delete_repo, or a fine-grained one for all repositories of GITHUB_LIVE_OWNER that may write "+
			"Administration, Contents, Issues and Pull requests")
	missing(set.owner == "",
		"set GITHUB_LIVE_OWNER to the user whose token GITHUB_TOKEN is, or to an organisation in which "+
			"that user may create and delete repositories; it should be one for experiments")
	first, second, _ := strings.Cut(getenv("GITHUB_REVIEWER_TOKENS"), ",")
	set.reviewers = [2]string{strings.TrimSpace(first), strings.TrimSpace(second)}
	missing(set.reviewers[0] == "" || set.reviewers[1] == "" || strings.Contains(second, ","),
		"set GITHUB_REVIEWER_TOKENS to "+
			"classic tokens with the scope repo of two other users, separated by a comma: GitHub lets nobody review a pull "+
			"request of their own")
	address := getenv("GITHUB_API_URL")
	if address == "" {
		address = "https://api.github.com/"
	}
	var err error
	set.api, err = url.Parse(address)
	missing(err != nil,
		"set GITHUB_API_URL to the root of the API of an Enterprise Server, https://HOST/api/v3/, or leave it "+
			"out for github.com")
	if len(problems) > 0 {
		return liveSettings{}, fmt.Errorf("the contract suite cannot run on a real GitHub:\n%w", errors.Join(problems...))
	}
	return set, nil
}
