package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/records/access"
)

// newTokens is the use case of what people do to tokens.
func newTokens(p *parts) *tokens.Service {
	return tokens.New(tokens.Options{Store: p.store.Access, People: p.people(), Random: rand.Reader, Now: time.Now, NewID: newID})
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
	ExpiresAt *time.Time `json:"expires_at"`
	Agent     bool       `json:"agent"`
	Token     string     `json:"token,omitempty"`
}

func tokenEntryOf(t access.Token) tokenEntry {
	e := tokenEntry{ID: t.ID, Name: t.Name, MaxTier: int(t.MaxTier), Scopes: t.Scopes.String(), CreatedAt: t.CreatedAt.UTC(), Agent: t.Agent}
	if !t.ExpiresAt.IsZero() {
		expires := t.ExpiresAt.UTC()
		e.ExpiresAt = &expires
	}
	if !t.RevokedAt.IsZero() {
		revoked := t.RevokedAt.UTC()
		e.RevokedAt = &revoked
	}
	return e
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
				switch {
				case e.RevokedAt != nil:
					state = "revoked " + e.RevokedAt.Format(time.RFC3339)
				case e.ExpiresAt != nil && !t.Good(time.Now()):
					state = "expired " + e.ExpiresAt.Format(time.RFC3339)
				case e.ExpiresAt != nil:
					state = "good until " + e.ExpiresAt.Format(time.RFC3339)
				}
				if t.Agent {
					e.Scopes = "agent"
				}
				entries = append(entries, e)
				rows = append(rows, []string{e.ID, e.Name, strconv.Itoa(e.MaxTier), e.Scopes, e.CreatedAt.Format(time.RFC3339), state})
			}
			return a.print(listOf(entries), func(w *strings.Builder) { columns(w, rows) })
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
