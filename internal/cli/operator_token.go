package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/secretfile"
)

// operatorName is the name of the token that the server makes, in the record of all that it does.
const operatorName = "operator"

// serverName is who has made that token, in the record.
const serverName = "claudeops serve"

// operatorToken returns the token that the server made for its operator, and makes it if nobody has any way in yet: no token
// is configured, none was ever made, and no proxy names users. It is "" if people have other ways, and if it was revoked.
//
// The file is written before the token is known to the records, so that a server that is killed in between finds it again.
func (p *parts) operatorToken(ctx context.Context) (string, error) {
	if w := p.cfg.Web; len(w.Tokens) > 0 || w.ProxyUserHeader != "" {
		return "", nil
	}
	known, err := p.store.AnyToken(ctx)
	if err != nil {
		return "", err
	}
	if !known {
		if err := p.makeOperatorToken(ctx); err != nil {
			return "", err
		}
	}
	secret := config.OperatorToken(p.cfg.Records.Dir)
	if secret == "" {
		return "", nil
	}
	p.scanner.Learn(secret) // the configuration was read before there was one, or another process has made it since
	if _, err := p.access.Bearer(ctx, secret); err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			return "", nil
		}
		return "", err
	}
	return secret, nil
}

func (p *parts) makeOperatorToken(ctx context.Context) error {
	if p.cfg.Records.Dir == "" {
		return usageError{fmt.Errorf("%s; or set CLAUDEOPS_API_TOKENS", p.cfg.Records.Problem)}
	}
	text, err := secretfile.Load(p.cfg.Records.Dir, config.OperatorTokenFile, func() (string, error) {
		secret, err := access.NewSecret(rand.Reader)
		return secret + "\n", err
	})
	if err != nil {
		return fault.Wrap(err, fault.Misconfigured, "the operator's token cannot be kept in %s: %s; let this user write the folder, or set "+
			"CLAUDEOPS_API_TOKENS", p.operatorTokenFile(), err)
	}
	secret := strings.TrimSpace(text)
	if len(secret) < access.MinConfigured {
		return fault.New(fault.Misconfigured, "%s holds no token; remove it, and a new one is made", p.operatorTokenFile())
	}
	now := time.Now()
	t := access.Token{
		ID: newID(), Name: operatorName, Hash: access.Hash(secret), MaxTier: gitprovider.TierRemediate, Scopes: access.AllScopes(),
		CreatedAt: now,
	}
	err = p.store.InsertToken(ctx, t, record.Attempt{
		Time: now, RequestID: newID(), Door: record.DoorCLI, Caller: serverName, Action: string(people.CreateToken),
		Outcome: record.OutcomeDone, Message: "made at the first start of the server: " + describeToken(t),
	})
	if fault.CodeOf(err) == fault.Conflict { // another process was faster
		return nil
	}
	return err
}

func (p *parts) operatorTokenFile() string {
	return filepath.Join(p.cfg.Records.Dir, config.OperatorTokenFile)
}

// welcome says how the operator signs in. On an address of this machine alone it is one click; elsewhere the address of the
// server is not known here, and who reads the log may be many.
func (p *parts) welcome(ctx context.Context, secret string, at net.Addr) (string, error) {
	if secret == "" {
		return "Sign in with a token; `claudeops token create` makes one.\n", nil
	}
	file := p.operatorTokenFile()
	if !loopbackAddr(at) {
		return fmt.Sprintf("Sign in with the token in %s\n", file), nil
	}
	code, err := p.access.OneTimeCode(ctx, secret)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Sign in within %d minutes, once, at http://%s%s/sign-in?code=%s\nLater, and for programs, use the token in %s\n",
		int(access.CodeLife.Minutes()), reachable(at), p.cfg.Web.BasePath, code, file), nil
}
