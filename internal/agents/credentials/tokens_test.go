package credentials

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// kept is a store and an audit in memory.
type kept struct {
	tokens []access.Token
	rows   []record.Attempt
}

func (k *kept) InsertToken(_ context.Context, t access.Token, rows ...record.Attempt) error {
	k.tokens, k.rows = append(k.tokens, t), append(k.rows, rows...)
	return nil
}

func (k *kept) Tokens(context.Context) ([]access.Token, error) { return k.tokens, nil }

func (k *kept) RevokeToken(_ context.Context, _ string, rows ...func([]string) record.Attempt) error {
	for _, row := range rows {
		k.rows = append(k.rows, row(nil))
	}
	return nil
}

func (k *kept) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	k.rows = append(k.rows, a)
	return nil
}

// actsOver redacts whatever looks like the secret of a token.
func actsOver(k *kept) TokenActs {
	kernel := operation.NewKernel(operation.KernelOptions{
		Audit: k, Redact: func(s string) string { return regexp.MustCompile(`cops_\S+`).ReplaceAllString(s, "[redacted]") },
		Log: slog.New(slog.DiscardHandler), Now: time.Now, NewID: func() string { return "id-1" },
	})
	return TokenActs{
		Kernel: func() *operation.Kernel { return kernel }, Store: func() TokenStore { return k }, Random: rand.Reader,
		Now: time.Now, NewID: func() string { return "token-1" }, Providers: func() []string { return []string{"company"} },
	}
}

func TestWhoMayNeitherReadNorProposeMakesNoAgent(t *testing.T) {
	for arguments, needs := range map[string]access.Scopes{
		`{"name":"x","max_tier":1,"agent":true}`:                  {access.Read},
		`{"name":"x","max_tier":2,"agent":true}`:                  {access.Read, access.Propose},
		`{"name":"x","max_tier":3,"agent":true,"dry_run":true}`:   {access.Read, access.Propose},
		`{"name":"x","max_tier":3,"agent":true,"read_only":true}`: {access.Read},
	} {
		k := &kept{}
		create := operation.Named(actsOver(k).Operations(), "create_token")
		if _, err := create.Handle(t.Context(), call(3, arguments, access.Operate)); fault.CodeOf(err) != fault.Forbidden ||
			len(k.tokens) > 0 {
			t.Errorf("%s with operate alone: %v", arguments, err)
		}
		if _, err := create.Handle(t.Context(), call(3, arguments, append(needs, access.Operate)...)); err != nil ||
			k.tokens[0].Maker.String() != "boss" {
			t.Errorf("%s: %v, %+v", arguments, err, k.tokens)
		}
	}
}

func call(tier gitprovider.Tier, arguments string, scopes ...access.Scope) operation.Call {
	return operation.Call{
		Caller:    operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "boss"}},
		Ceiling:   tier,
		Scopes:    scopes,
		Arguments: []byte(arguments),
	}
}

func TestTheAnswerHasTheSecretAndNothingElseHas(t *testing.T) {
	k := &kept{}
	create := operation.Named(actsOver(k).Operations(), "create_token")
	out := must.Get(create.Handle(t.Context(), call(2, `{"name":"ann","scopes":["read"]}`, access.Read)))(t)
	made := out.(TokenMade)
	if !strings.HasPrefix(made.Token, access.TokenPrefix) || len(k.tokens) != 1 ||
		k.tokens[0].Hash != access.Hash(made.Token) {
		t.Errorf("%+v, %+v", made, k.tokens)
	}
	list, err := operation.Named(actsOver(k).Operations(), "list_tokens").Handle(t.Context(),
		call(2, `{}`, access.Operate))
	text, _ := json.Marshal([]any{list, k.rows}) //nolint:errchkjson // of texts and numbers
	if err != nil || strings.Contains(string(text), made.Token) || len(k.rows) != 1 || k.rows[0].Action != "token.create" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNobodyGivesWhatTheyLack(t *testing.T) {
	for _, c := range []struct {
		any       bool
		arguments string
		code      fault.Code
	}{
		{false, `{"name":"x","scopes":["review"]}`, fault.Forbidden},
		{false, `{"name":"x","scopes":["read"],"max_tier":3}`, fault.Forbidden},
		{false, `{"name":"x","scopes":["read"],"agent":true}`, fault.InvalidArgument},
		{false, `{"name":"x","max_tier":3,"agent":true}`, fault.Forbidden},
		{false, `{"name":"x","max_tier":2,"agent":true}`, fault.Forbidden}, // it proposes
		{false, `{"name":"x"}`, fault.InvalidArgument},
		{false, `{"name":"gitea:boss","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"Company","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"https://git.example.com","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"uid 0 (root)","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"agent","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"anonymous","scopes":["read"]}`, fault.InvalidArgument},
		{false, `{"name":"claudeops_api_tokens[0]","scopes":["read"]}`, fault.InvalidArgument},
		{true, `{"name":"x","max_tier":3,"agent":true}`, fault.Forbidden},
		{true, `{"name":"x","max_tier":1,"agent":true,"scopes":["read"]}`, fault.InvalidArgument},
		{true, `{"name":"x","max_tier":0,"scopes":["read"]}`, fault.InvalidArgument},
		{true, `{"name":"x","max_tier":1,"scopes":["read"],"read_only":true}`, fault.InvalidArgument},
		{true, `{"name":"webhook","max_tier":9,"scopes":["read"]}`, fault.InvalidArgument},
	} {
		k := &kept{}
		create := operation.Named(actsOver(k).Operations(), "create_token")
		if c.any {
			create = actsOver(k).Any()
		}
		_, err := create.Handle(t.Context(), call(2, c.arguments, access.Read, access.Operate))
		if fault.CodeOf(err) != c.code || len(k.tokens) > 0 || len(k.rows) != 1 || k.rows[0].Code != c.code ||
			k.rows[0].Action != "token.create" {
			t.Errorf("%s: %v, %+v, %+v", c.arguments, err, k.tokens, k.rows)
		}
	}
}

func TestASecretIsNoNameOfAToken(t *testing.T) {
	k := &kept{}
	_, err := operation.Named(actsOver(k).Operations(), "revoke_token").Handle(t.Context(),
		call(2, `{"id":"cops_0123456789"}`, access.Operate))
	if fault.CodeOf(err) != fault.InvalidArgument || len(k.rows) != 1 ||
		strings.Contains(k.rows[0].Message, "0123456789") {
		t.Errorf("%v, %+v", err, k.rows)
	}
}
