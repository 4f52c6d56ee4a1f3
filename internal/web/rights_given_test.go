package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
)

// giver is somebody who gives rights away, with what they have.
type giver struct {
	scopes access.Scopes
	tier   gitprovider.Tier
	as     edit
}

// has reports whether the giver may do all of it themselves, at a tier.
func (g giver) has(tier gitprovider.Tier, scopes ...access.Scope) bool {
	lacks := func(s access.Scope) bool { return !slices.Contains(g.scopes, s) }
	return tier <= g.tier && !slices.ContainsFunc(scopes, lacks)
}

// agentDoes is what an agent of a tier may do. It is written down here beside the product, which it is to be held
// against.
func agentDoes(tier gitprovider.Tier, readOnly bool) []access.Scope {
	if tier == 1 || readOnly {
		return []access.Scope{access.Read}
	}
	return []access.Scope{access.Read, access.Propose}
}

func scopesOf(mask int) (out access.Scopes) {
	for i, scope := range access.AllScopes() {
		if mask>>i&1 == 1 {
			out = append(out, scope)
		}
	}
	return out
}

// TestNobodyGivesARightThatTheyLack has everybody give everything: tokens with every set of scopes, agents' tokens,
// consent to a program, and sessions with those that they hand over to.
func TestNobodyGivesARightThatTheyLack(t *testing.T) {
	t.Parallel()
	p, _ := programWorld(t, func(w *world) {
		w.agents.settings.MaxTier, w.flow.Authority.Tier = gitprovider.TierRemediate, gitprovider.TierRemediate
	})
	given, refused := 0, 0
	check := func(what string, g giver, made, may bool) {
		if given++; !made {
			given, refused = given-1, refused+1
		}
		if made != may {
			t.Errorf("who has %s at tier %d gives %s: %t, want %t", g.scopes, g.tier, what, made, may)
		}
	}
	for mask := 1; mask < 1<<len(access.AllScopes()); mask++ {
		for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
			g := giver{scopes: scopesOf(mask), tier: tier}
			secret := p.token(fmt.Sprintf("g%d-%d", mask, tier), tier, g.scopes...)
			g.as = bearer(secret)
			p.givesTokens(g, check)
			p.givesAgents(g, check)
			p.startsSessions(g, check)
			g.as = with(p.signIn(secret))
			p.consents(g, check)
		}
	}
	if given == 0 || refused == 0 {
		t.Errorf("%d given, %d refused", given, refused)
	}
}

type checkGift func(what string, g giver, made, may bool)

func (p *program) givesTokens(g giver, check checkGift) {
	for mask := 1; mask < 1<<len(access.AllScopes()); mask++ {
		for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
			scopes := scopesOf(mask)
			if !g.has(0, access.Operate) && mask > 1 { // one is as good as all
				return
			}
			words, _ := json.Marshal(scopes)
			check(fmt.Sprintf("a token with %s at tier %d", scopes, tier), g,
				p.makes(g, fmt.Sprintf(`"max_tier":%d,"scopes":%s`, tier, words)),
				g.has(tier, append(scopes, access.Operate)...))
		}
	}
}

func (p *program) givesAgents(g giver, check checkGift) {
	for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
		for _, readOnly := range []bool{false, true} {
			check(fmt.Sprintf("an agent's token of tier %d, read-only %t", tier, readOnly), g,
				p.makes(g, fmt.Sprintf(`"agent":true,"max_tier":%d,"read_only":%t`, tier, readOnly)),
				g.has(tier, append(agentDoes(tier, readOnly), access.Operate)...))
		}
	}
}

func (p *program) makes(g giver, members string) bool {
	p.Helper()
	p.minted++
	a := p.do("POST", "/api/v1/tokens", fmt.Sprintf(`{"name":"t%d",%s}`, p.minted, members), g.as)
	if a.StatusCode != http.StatusCreated && a.StatusCode != http.StatusForbidden {
		p.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.StatusCode == http.StatusCreated
}

func (p *program) startsSessions(g giver, check checkGift) {
	p.Helper()
	for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
		p.agents.running = ""
		a := p.do("POST", "/api/v1/sessions", fmt.Sprintf(`{"tier":%d}`, tier), g.as)
		if a.StatusCode != http.StatusAccepted && a.StatusCode != http.StatusForbidden {
			p.Fatalf("%d %s", a.StatusCode, a.body)
		}
		made := a.StatusCode == http.StatusAccepted
		check(fmt.Sprintf("a session of tier %d", tier), g, made, g.has(tier, append(agentDoes(tier, false),
			access.Operate)...))
		if made {
			highest := p.agents.started[len(p.agents.started)-1].Ceiling
			check(fmt.Sprintf("a hand-over to tier %d", highest), g, highest > 0, g.has(highest, agentDoes(highest, false)...))
		}
	}
}

func (p *program) consents(g giver, check checkGift) {
	p.Helper()
	for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
		made := false
		if page, form := p.asked(nil, g.as); page.StatusCode == http.StatusOK {
			form.Set("tier", tier.String())
			made = p.answered("allow", form, page, g.as).StatusCode == http.StatusSeeOther
		} else if g.has(0, access.Read) {
			p.Fatalf("%d %s", page.StatusCode, page.body)
		}
		check(fmt.Sprintf("consent at tier %d", tier), g, made, g.has(tier, append(agentDoes(tier, false),
			access.Operate)...))
	}
}
