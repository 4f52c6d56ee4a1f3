package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
)

// newTokenOptions are the flags of token create.
type newTokenOptions struct {
	name, scopes, expires string
	tier                  int
	agent                 bool
	dryRun, readOnly      bool // what the agent's token takes away
	repos                 []string
}

func tokenCreateCommand(a *commandLine) *cobra.Command {
	var o newTokenOptions
	cmd := &cobra.Command{
		Use:   "create --name NAME [--max-tier TIER] [--scopes LIST | --agent [--repos LIST] [--dry-run] [--read-only]] [--expires AGE]",
		Short: "Make a token and print it, once",
		Long: "create prints a new token. Only its SHA-256 is kept. The tier that holds for a caller is the lower one of " +
			"--max-tier\n" +
			"and the server's. With --agent the token lets an agent in over MCP, at the socket of claudeops serve " +
			"(CLAUDEOPS_DOOR_SOCKET) or at its address, and opens nothing else.\n" +
			"There --dry-run and --read-only are of the token: the agent then writes nothing, or proposes nothing, whatever the server may:\n" +
			"    claudeops token create --agent --tier 2 --name laptop > token && chmod 600 token\n" +
			"    claudeops-connect --connect unix:/run/claudeops/mcp.sock --ticket-file token",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runTokenCreate(cmd, a, o) },
	}
	cmd.Flags().StringVar(&o.name, "name", "", "who it is for; in the record of all that it does")
	cmd.Flags().IntVar(&o.tier, "max-tier", int(gitprovider.TierObserve),
		"the highest tier it may act at; with --agent, --tier is the same")
	cmd.Flags().StringVar(&o.scopes, "scopes", string(access.Read), "what it may do: "+access.AllScopes().String())
	cmd.Flags().BoolVar(&o.agent, "agent", false, "let an agent in over MCP, and nothing else")
	cmd.Flags().StringVar(&o.expires, "expires", "",
		"age at which it expires, such as 90d or 12h; by default never")
	cmd.Flags().StringSliceVar(&o.repos, "repos", nil,
		"with --agent: the repositories it is for, such as owner/name,owner/*; by default those that the server allows")
	return cmd
}

func runTokenCreate(cmd *cobra.Command, a *commandLine, o newTokenOptions) error {
	if given := a.flags["CLAUDEOPS_TIER"]; o.agent && given != nil && *given != "" {
		tier, known := gitprovider.ParseTier(*given)
		if !known {
			return app.Usage(errors.New("--tier is 1, 2 or 3"))
		}
		o.tier = int(tier)
	}
	if o.agent { // what else the flags say is of this command, as at all others
		o.dryRun, o.readOnly = givenUp(*a.flags["CLAUDEOPS_DRY_RUN"]), givenUp(*a.flags["CLAUDEOPS_READ_ONLY"])
	}
	if o.agent && cmd.Flags().Changed("scopes") {
		return app.Usage(errors.New("an agent's token has no scopes; leave --scopes out, or --agent"))
	}
	wanted, err := o.wantedToken()
	if err != nil {
		return app.Usage(err)
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	out, err := a.callOperation(cmd.Context(),
		app.NewTokens(func() *app.Parts { return a.program().Wire(app.Needs{}) }).Any(), raw)
	if err != nil {
		return err
	}
	made := out.(credentials.TokenMade)
	if !a.json {
		fmt.Fprintf(a.streams.Err, "%s. It is shown this once.\n", "T"+strings.TrimPrefix(made.Describe(), "t"))
	}
	return a.print(made.AtTerminal(made.Token), func(w *strings.Builder) { fmt.Fprintln(w, made.Token) })
}

// wantedToken returns the token that the flags ask for.
func (o newTokenOptions) wantedToken() (credentials.WantedToken, error) {
	granted, err := access.ParseScopes(o.scopes)
	_, known := gitprovider.ParseTier(strconv.Itoa(o.tier))
	w := credentials.WantedToken{Name: o.name, MaxTier: o.tier, Scopes: granted, Agent: o.agent, Repos: o.repos,
		DryRun: o.dryRun, ReadOnly: o.readOnly}
	switch {
	case err != nil:
		return w, err
	case !known:
		return w, errors.New("--max-tier is 1, 2 or 3")
	case access.Reserved(o.name):
		return w, fmt.Errorf("--name %s is a name that the record has for other callers; choose another one", o.name)
	case o.name == "" || len(o.name) > credentials.MaxTokenName || cleanLine(o.name, credentials.MaxTokenName) != o.name:
		return w, fmt.Errorf("--name must be 1 to %d bytes without control characters", credentials.MaxTokenName)
	}
	if o.agent {
		w.Scopes = nil
	}
	if o.expires == "" {
		return w, nil
	}
	age, err := parseAge(o.expires)
	w.ExpiresAt = time.Now().Add(age)
	return w, err
}

// parseAge reads an age such as 90d or 12h.
func parseAge(text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour //nolint:gosec // 16 bits fit
	}
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("--expires %.20q is not an age such as 90d or 12h", text)
	}
	return age, nil
}
