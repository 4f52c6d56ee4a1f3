package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Bounds of what starts a session at a forge.
const (
	maxActAge    = 24 * time.Hour // acts of people are remembered for longer; see sessions.HookClaim
	actSkew      = time.Hour      // by which a forge's clock may be ahead
	maxIssueName = 300            // bytes of the title that the agent is told
	maxIssueText = 5 << 10        // bytes of the text
)

// RunForge starts a session for what happened at an issue, if the policy has a hook for it, the policy's list of
// repositories names the repository, and the person may write there. The forge is asked about the act, so the
// delivery need not be believed. One act starts at most one session. A refusal is recorded.
func (h *Hooks) RunForge(ctx context.Context, provider string, asked forge.StartRequest) (HookRun, error) {
	p, err := h.readPolicy() // the forge shows our answer to those who look after its webhooks
	if err != nil {
		return HookRun{}, err
	}
	act := policy.ForgeLabel
	if asked.Comment != 0 {
		act = policy.ForgeComment
	}
	hook, on := p.Agents.HookOf(act)
	if !on {
		return HookRun{Status: HookIgnored}, nil
	}
	call := hookStart{hook: hook, starter: hookActor(hook)}
	ran, err := h.runForge(ctx, p, provider, asked, &call)
	if err != nil {
		return HookRun{}, h.Refused(context.WithoutCancel(ctx), call.starter, err)
	}
	return ran, nil
}

func (h *Hooks) runForge(ctx context.Context, p policy.Policy, provider string, asked forge.StartRequest,
	call *hookStart) (HookRun, error) {
	repo := gitprovider.RepoRef{Owner: asked.Owner, Name: asked.Repo}
	if _, named := p.AllowsRepo(provider, repo.Owner, repo.Name); !named || len(p.Targets.Repositories) == 0 {
		return HookRun{}, fault.New(fault.RepoNotAllowed, "sessions are not started at issues of %s: it is not in the list "+
			"of repositories", repo)
	}
	host, err := h.Issues(provider)
	if err != nil {
		return HookRun{}, err
	}
	issue, err := host.ReadIssue(ctx, repo, gitprovider.IssueQuery{Number: asked.Number, Comment: asked.Comment,
		Label: gitprovider.LabelOurs, Since: h.Now().Add(-maxActAge)})
	if err != nil {
		return HookRun{}, err
	}
	words, asks := h.asks(issue, asked.Comment != 0)
	if !asks {
		return HookRun{Status: HookIgnored}, nil
	}
	call.starter.Person = h.ForgePerson(provider, issue.Act.By)
	if err := mayStart(issue.Act.By, repo); err != nil {
		return HookRun{}, err
	}
	call.act = sessions.ForgeAct{Provider: provider, ID: fmt.Sprintf("label %d", issue.Act.ID)}
	if asked.Comment != 0 {
		call.act.ID = fmt.Sprintf("comment %d", issue.Act.ID)
	}
	call.repo = repo
	call.issue = h.IssueAddress(provider, repo, asked.Number)
	name := strings.ToLower(fmt.Sprintf("%s %s#%d", provider, repo, asked.Number))
	call.alerts = map[string]any{sumOf([]byte(name)): toldIssue(name, call.issue, issue, words)}
	ran, err := h.startFor(context.WithoutCancel(ctx), *call) // a start is not cut off half-way
	if ran.Status == HookBusy && err == nil {                 // a forge does not try again
		err = fault.New(fault.Conflict, "another session is running; ask again when it has ended")
	}
	return ran, err
}

// asks reports whether the act asks for a session now, and what stands behind the command of a comment. Labels of pull
// requests do not: ours have the same one.
func (h *Hooks) asks(issue gitprovider.Issue, comment bool) (words string, asks bool) {
	act := issue.Act
	age := h.Now().Sub(act.At)
	if act.ID == 0 || act.Edited || age > maxActAge || age < -actSkew {
		return "", false
	}
	if comment {
		return forge.StartWords(act.Text)
	}
	ours := func(label string) bool { return strings.EqualFold(label, gitprovider.LabelOurs) }
	return "", !issue.Pull && slices.ContainsFunc(issue.Labels, ours)
}

// mayStart refuses who may not start a session at a repository's issues.
func mayStart(who gitprovider.IssueAccount, repo gitprovider.RepoRef) error {
	switch {
	case who.Login == "" || who.ID == 0:
		return fault.New(fault.Forbidden, "the forge does not say who asked for a session at %s", repo)
	case who.Ours:
		return fault.New(fault.Forbidden, "%s is our own account, which starts no sessions", who.Login)
	case who.Program:
		return fault.New(fault.Forbidden, "%s is a program, which starts no sessions at a forge", who.Login)
	case !who.MayWrite:
		return fault.New(fault.Forbidden, "%s may not write to %s, and only who may starts sessions there", who.Login, repo)
	}
	return nil
}

// toldIssue is what the agent is told, as data.
func toldIssue(name, address string, issue gitprovider.Issue, words string) map[string]any {
	cut := func(text string, most int) string {
		if len(text) > most {
			return strings.ToValidUTF8(text[:most], "") + " (cut)"
		}
		return text
	}
	told := map[string]any{"issue": name, "address": address, "started_by": issue.Act.By.Login,
		"title": cut(issue.Title, maxIssueName), "text": cut(issue.Body, maxIssueText)}
	if words != "" {
		told["comment"] = words
	}
	return told
}
