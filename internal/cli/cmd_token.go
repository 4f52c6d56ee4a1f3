package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/tokens"
)

// newTokens is the use case of what people do to tokens.
func newTokens(p *parts) *tokens.Service {
	return tokens.New(tokens.Options{Store: p.store.Access, People: p.people, Random: rand.Reader, Now: time.Now, NewID: newID})
}

func tokenCommand(a *app) *cobra.Command {
	return group("token", "Make, list and revoke the tokens of REST and sign-in", tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
}

// tokenEntry is a token in answers. Token is the secret, which is shown once.
type tokenEntry struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	MaxTier   int        `json:"max_tier"`
	Scopes    string     `json:"scopes"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Token     string     `json:"token,omitempty"`
}

func tokenEntryOf(t access.Token) tokenEntry {
	e := tokenEntry{ID: t.ID, Name: t.Name, MaxTier: int(t.MaxTier), Scopes: t.Scopes.String(), CreatedAt: t.CreatedAt.UTC()}
	if !t.RevokedAt.IsZero() {
		revoked := t.RevokedAt.UTC()
		e.RevokedAt = &revoked
	}
	return e
}

func tokenCreateCommand(a *app) *cobra.Command {
	var name, scopes string
	var tier int
	cmd := &cobra.Command{
		Use:   "create --name NAME [--max-tier TIER] [--scopes LIST]",
		Short: "Make a token and print it, once",
		Long: "create prints a new token. Only its SHA-256 is kept. The tier that holds for a caller is the lower one of --max-tier\n" +
			"and the server's.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			granted, err := access.ParseScopes(scopes)
			ceiling, known := gitprovider.ParseTier(strconv.Itoa(tier))
			switch {
			case err != nil:
				return usageError{err}
			case !known:
				return usageError{errors.New("--max-tier is 1, 2 or 3")}
			case access.Reserved(name):
				return usageError{fmt.Errorf("--name %s is a name that the record has for other callers; choose another one", name)}
			case name == "" || len(name) > tokens.MaxName || shown(name, tokens.MaxName) != name:
				return usageError{fmt.Errorf("--name must be 1 to %d bytes without control characters", tokens.MaxName)}
			}
			p := a.wire(needs{})
			wanted := tokens.Wanted{Name: name, MaxTier: ceiling, Scopes: granted.String()}
			t, secret, err := newTokens(p).Create(cmd.Context(), a.caller(p), tokens.Everything(), wanted)
			if err != nil {
				return err
			}
			entry := tokenEntryOf(t)
			entry.Token = secret
			if !a.json {
				fmt.Fprintf(a.streams.Err, "Token %s: at most tier %s, scopes %s. It is shown this once.\n", t.Name, t.MaxTier, t.Scopes)
			}
			return a.print(entry, func(w *strings.Builder) { fmt.Fprintln(w, secret) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "who it is for; in the record of all that it does")
	cmd.Flags().IntVar(&tier, "max-tier", int(gitprovider.TierObserve), "the highest tier it may act at")
	cmd.Flags().StringVar(&scopes, "scopes", string(access.Read), "what it may do: "+access.AllScopes().String())
	return cmd
}

func tokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens, revoked ones included", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := a.wire(needs{}).store.Access.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			entries := make([]tokenEntry, 0, len(tokens))
			rows := [][]string{{"ID", "NAME", "MAX TIER", "SCOPES", "MADE", "STATE"}}
			for _, t := range tokens {
				e := tokenEntryOf(t)
				state := "good"
				if e.RevokedAt != nil {
					state = "revoked " + e.RevokedAt.Format(time.RFC3339)
				}
				entries = append(entries, e)
				rows = append(rows, []string{e.ID, e.Name, strconv.Itoa(e.MaxTier), e.Scopes, e.CreatedAt.Format(time.RFC3339), state})
			}
			return a.print(entries, func(w *strings.Builder) { columns(w, rows) })
		},
	}
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME|ID", Short: "Make a token, and the sessions signed in with it, useless at once",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], access.TokenPrefix) {
				return usageError{errors.New("give the token's name or id, as `claudeops token list` has it, and never its secret")}
			}
			p := a.wire(needs{})
			err := newTokens(p).Revoke(cmd.Context(), a.caller(p), args[0])
			if err != nil {
				return err
			}
			return a.print(map[string]string{"revoked": args[0]}, func(w *strings.Builder) { fmt.Fprintf(w, "Revoked %s.\n", args[0]) })
		},
	}
}
