package agentdocs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// allCodes reads the constants of type Code from the source of package fault, in the order in which they are declared:
// a code that is added there is seen here without a second list.
func allCodes(t *testing.T) []fault.Code {
	t.Helper()
	var codes []fault.Code
	eachSource(t, "internal/base/fault", parser.SkipObjectResolution, func(_ string, parsed *ast.File) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				codes = append(codes, codeConstants(spec)...)
			}
			return true
		})
	})
	if !slices.Contains(codes, fault.Internal) {
		t.Fatal("the codes of package fault were not found in its source")
	}
	return codes
}

func codeConstants(spec *ast.ValueSpec) []fault.Code {
	if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Code" {
		return nil
	}
	var out []fault.Code
	for _, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if s, err := strconv.Unquote(literal.Value); err == nil {
				out = append(out, fault.Code(s))
			}
		}
	}
	return out
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func TestPromptsAnswerEveryCodeTheirTierCanMeet(t *testing.T) {
	t.Parallel()
	forProposers := slices.DeleteFunc(allCodes(t), func(c fault.Code) bool {
		return c == fault.Unauthenticated || c == fault.Forbidden // of the doors for people
	})
	expected := map[string][]fault.Code{observerPrompt: codesForReaders()}
	for _, name := range proposerPrompts() {
		expected[name] = forProposers
	}
	for name, want := range expected {
		advice := map[fault.Code]string{}
		for _, row := range tableWith(t, read(t, name), "code")[1:] {
			for _, code := range quoted(row[0]) {
				if _, twice := advice[fault.Code(code)]; twice {
					t.Errorf("%s: two rows for %s", name, code)
				}
				advice[fault.Code(code)] = row[1]
			}
		}
		for _, code := range want {
			if advice[code] == "" {
				t.Errorf("%s: does not say what %s asks for", name, code)
			}
			delete(advice, code)
		}
		for code := range advice {
			t.Errorf("%s: explains %s, which this tier cannot meet or which does not exist", name, code)
		}
	}
}

// A prompt that lets the agent repeat a call without end would burn the provider's limit; one that lets it repeat a
// refusal would never teach it anything.
func TestPromptsLetOnlyRetryableCodesBeRepeated(t *testing.T) {
	t.Parallel()
	for _, name := range prompts() {
		for _, row := range tableWith(t, read(t, name), "code")[1:] {
			for _, code := range quoted(row[0]) {
				advice := strings.ReplaceAll(strings.ToLower(row[1]), "do not repeat", "")
				mayRepeat := strings.Contains(advice, "repeat")
				if mayRepeat && !fault.Code(code).Retryable() {
					t.Errorf("%s: lets %s be repeated, which is not retryable", name, code)
				}
				if mayRepeat && !strings.Contains(advice, "once") {
					t.Errorf("%s: does not bound how often %s is repeated", name, code)
				}
			}
		}
	}
}

// docs/reference/codes.md is made from package fault and aboutCodes: `make golden` writes it.
func TestThePageOfCodesIsMadeFromThem(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# Codes

<!-- Written by ` + "`make golden`" + ` from internal/base/fault and internal/testkit/agentdocs; edit those. -->

Every refusal and every failure has one code, the same through MCP, REST and the command line. Codes are a contract: new
ones may be added, none is renamed. [Answers](answers.md) shows for each what the agent reads, and the call that mends it.

| code | HTTP | retryable | exit | meaning | what the caller should do |
|---|---|---|---|---|---|
`)
	about := aboutCodes()
	for _, code := range allCodes(t) {
		text, ok := about[code]
		if !ok || text.meaning == "" || text.advice == "" {
			t.Errorf("codes_text_test.go lacks %s", code)
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %d | %s | %s |\n", code, code.HTTPStatus(), yesNo(code.Retryable()),
			code.ExitCode(), text.meaning, text.advice)
		delete(about, code)
	}
	for code := range about {
		t.Errorf("codes_text_test.go speaks of %s, which package fault has not", code)
	}
	b.WriteString(`
- **Retryable**: the very same call may succeed later. Agents repeat a call only where their prompt says so, and not before
  ` + "`retry_after_seconds`" + ` (REST: also the header ` + "`Retry-After`" + `).
- **Repeating an identical ` + "`create_pr`" + ` is always safe.** It answers the pull request that exists, with ` + "`reused: true`" + `, or goes on where the
  first attempt broke off. It also completes labels, reviewers and the mark in the body.
- ` + "`duplicate_pr` and `cooldown_active`" + ` quote in ` + "`existing_pr.last_review`" + ` the last words of somebody who may write to the repository.
- A request that breaks several rules has one code at the top and all broken rules in ` + "`violations`" + `. What no correction of the call
  mends comes first. ` + "`next`" + ` says what the caller does next.
- **Exit** is the exit code of the command. 0 means done, 2 that the command or settings were wrong before any gate was asked.

| interface | form |
|---|---|
| MCP | ` + "`isError: true`, text that begins with `[code]`, and `structuredContent.error`" + ` |
| REST | ` + "`application/problem+json` with the member `code`" + `, and the status above |
| command line | the code with the message, or with ` + "`--json`" + ` the problem document of REST; the exit code above |
`)
	operationtest.Golden(t, filepath.Join(repoRoot(t), "docs", "reference", "codes.md"), []byte(b.String()))
}

// aboutCode is the text of docs/reference/codes.md about a code, in Markdown.
type aboutCode struct{ meaning, advice string }

// aboutCodes has a row for each code.
func aboutCodes() map[fault.Code]aboutCode {
	return map[fault.Code]aboutCode{
		fault.InvalidArgument: {
			meaning: "The request is malformed.",
			advice:  "Correct every entry of `violations`; they are all there at once.",
		},
		fault.Unauthenticated: {
			meaning: "REST: no valid bearer token. Connectors of agents: no valid ticket, or another user or process than the session's.",
			advice:  "Send a token that the operator has issued.",
		},
		fault.Forbidden: {
			meaning: "REST only: the token lacks the scope, or the request comes from another site or for another host.",
			advice:  "Use a token with the scope that the message names, or an address that the operator has listed.",
		},
		fault.TierDenied: {
			meaning: "The configured tier may not do this.",
			advice:  "Escalate to the tier that the message names; no request can raise a tier.",
		},
		fault.ScopeDenied: {
			meaning: "A path is outside the scope, or not in canonical form.",
			advice:  "Leave the file out, or ask a person; `rule` names the rule.",
		},
		fault.ContentDenied: {
			meaning: "A secret, a hidden character, no UTF-8, or too large.",
			advice:  "Change what `violations` names by file, line and rule.",
		},
		fault.RepoNotAllowed: {
			meaning: "The repository or base branch is outside the operator's list.",
			advice:  "Leave `base_branch` out, or ask the operator.",
		},
		fault.ReadOnly: {
			meaning: "The server takes no proposals.",
			advice:  "Read only, or ask the operator.",
		},
		fault.Paused: {
			meaning: "A person has stopped such acts, everywhere or in this repository.",
			advice:  "Do not retry before the time that `next` names; report what you wanted.",
		},
		fault.NotFound: {
			meaning: "No such repository, branch or pull request, or the token cannot see it. `revises`: no pull request of " +
				"ours has the number.",
			advice: "Check owner, name and number.",
		},
		fault.ProviderUnresolved: {
			meaning: "Nothing says which provider serves the repository.",
			advice:  "Do one of the things that the message lists.",
		},
		fault.DuplicatePR: {
			meaning: "An open pull request of ours touches one of the paths, or brings the same text under another name; with " +
				"`duplicates: any` in the policy, one of anybody. `revises`: nobody who may write has reviewed or commented it " +
				"since it was opened or last revised.",
			advice: "Report `existing_pr`; do not move the change into another file. `revises`: wait for the review.",
		},
		fault.Conflict: {
			meaning: "The base has moved, a file exists or is missing against the request, is not the one that `base_sha` " +
				"names, or has not exactly once what an edit replaces. `revises`: edits are not made from the branch's text; the " +
				"pull request is closed, approved or without a true mark, or its head is not a commit of ours.",
			advice: "Make the change anew from `present`: the file's blob id, and its text up to 16 KiB, or of a longer file " +
				"the `diff` since the `base_sha` that you gave. `revises`: report " +
				"it; people decide there.",
		},
		fault.NoChange: {
			meaning: "The base has this content already, or lacks the file that is to be deleted. `revises`: the pull request " +
				"would change nothing any more.",
			advice: "Leave the file out. `revises`: report that it can be closed.",
		},
		fault.CooldownActive: {
			meaning: "A pull request on these paths, or with the same text, was closed without merging lately.",
			advice:  "Read why; not before `retry_after_seconds`.",
		},
		fault.LimitReached: {
			meaning: "Too many open pull requests, or too many made in the last hour; what is being made counts. `revises`: " +
				"the pull request was revised `max_revisions` times.",
			advice: "Let a person review what waits; not before `retry_after_seconds`. `revises`: report what is still asked for.",
		},
		fault.RateLimited: {
			meaning: "The provider's own limit is used up.",
			advice:  "Repeat after `retry_after_seconds`.",
		},
		fault.ProviderDisabled: {
			meaning: "The provider lacks configuration.",
			advice:  "Set the variable that the message names.",
		},
		fault.Misconfigured: {
			meaning: "Another setting, or a folder or file that it names, cannot be used: missing, not writable, malformed.",
			advice:  "Tell the operator what the message says; it names the variable or the folder.",
		},
		fault.UpstreamError: {
			meaning: "The provider failed, or the PostgreSQL server of the records restarts.",
			advice:  "Look whether it was done; then repeat the same request.",
		},
		fault.Timeout: {
			meaning: "The provider did not answer in time, the records stayed locked, or the call was cancelled.",
			advice:  "Look whether it was done; then repeat the same request.",
		},
		fault.Internal: {
			meaning: "A fault of Claude Ops.",
			advice:  "Find `request_id` in the log, and report it.",
		},
	}
}
