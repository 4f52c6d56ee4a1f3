package identity

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// github is GitHub, which says by its API who a person is.
type github struct{ *Provider }

// Pages of a list at GitHub.
const (
	perPage  = 100
	maxPages = maxGroups / perPage
)

func (g *github) config(context.Context) (oauth2.Config, error) {
	scopes := g.settings.Scopes
	if len(scopes) == 0 {
		scopes = []string{"read:org"}
	}
	at := strings.TrimRight(g.settings.Issuer, "/")
	return oauth2.Config{
		ClientID: g.settings.ClientID, ClientSecret: g.secret(), RedirectURL: g.redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: at + "/login/oauth/authorize", TokenURL: at + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}, nil
}

func (g *github) beginOptions(Flow) []oauth2.AuthCodeOption { return nil }

// who asks for the user, the organisations that they are an active member of, and the teams in them.
func (g *github) who(ctx context.Context, t *oauth2.Token, _ string) (Person, error) {
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	if err := g.get(ctx, t, "/user", &user); err != nil {
		return Person{}, err
	}
	if user.ID == 0 || user.Login == "" {
		return Person{}, g.badAnswer("does not say who the person is")
	}
	who := Person{Subject: strconv.FormatInt(user.ID, 10), User: user.Login}
	active := map[string]bool{} // a server may ignore what the address asks for
	err := walkPages(ctx, g, t, "/user/memberships/orgs?state=active", func(m struct {
		State        string `json:"state"`
		Organization struct {
			Login string `json:"login"`
		} `json:"organization"`
	}) {
		if m.State == "active" {
			active[m.Organization.Login] = true
			who.Groups = append(who.Groups, m.Organization.Login)
		}
	})
	if err != nil {
		return Person{}, err
	}
	err = walkPages(ctx, g, t, "/user/teams?", func(m struct {
		Slug         string `json:"slug"`
		Organization struct {
			Login string `json:"login"`
		} `json:"organization"`
	}) {
		if active[m.Organization.Login] {
			who.Groups = append(who.Groups, m.Organization.Login+"/"+m.Slug)
		}
	})
	return who, err
}

// walkPages reads all pages of a list. More than are read are refused: a role must not depend on the order of pages.
func walkPages[T any](ctx context.Context, g *github, t *oauth2.Token, path string, each func(T)) error {
	for page := 1; page <= maxPages; page++ {
		var items []T
		if err := g.get(ctx, t, fmt.Sprintf("%s&per_page=%d&page=%d", path, perPage, page), &items); err != nil {
			return err
		}
		for _, item := range items {
			each(item)
		}
		if len(items) < perPage {
			return nil
		}
	}
	return g.badAnswer("names too many organisations or teams of the person")
}

// get asks GitHub's API in the name of the person.
func (g *github) get(ctx context.Context, t *oauth2.Token, path string, into any) error {
	at, err := url.Parse(g.settings.api() + strings.Replace(path, "?&", "?", 1))
	if err != nil {
		return fault.From(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return fault.From(err)
	}
	req.Header.Set("Authorization", "Bearer "+t.AccessToken)
	req.Header.Set("Accept", "application/vnd.github+json")
	resp, err := g.client.Do(req)
	if err != nil {
		return g.convertError(err, "")
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return g.badAnswer("does not stand by the sign-in any more")
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests:
		return fault.New(fault.RateLimited,
			"GitHub does not let the person's organisations be read now: its limit is reached, or the scope read:org is missing")
	case resp.StatusCode != http.StatusOK:
		return fault.New(fault.UpstreamError, "GitHub answered with status %d; try again later", resp.StatusCode)
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, into) // by the exact names, none of which is there twice
	}
	if err != nil {
		return g.convertError(err, "")
	}
	return nil
}

// checkProvider has nothing to ask: GitHub has no description of itself.
func (g *github) checkProvider(context.Context) ([]string, error) { return nil, nil }

func (g *github) logout(context.Context, string) (Logout, error) {
	return Logout{}, g.badAnswer("has no logout that reaches this server")
}
