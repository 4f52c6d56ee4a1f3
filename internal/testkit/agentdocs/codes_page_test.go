package agentdocs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

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
