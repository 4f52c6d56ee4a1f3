package agentdocs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// allCodes reads the constants of type Code from the source of package fault, in the order in which they are declared:
// a code that is added there is seen here without a second list.
func allCodes(t *testing.T) []fault.Code {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repoRoot(t), "internal", "base", "fault", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var codes []fault.Code
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				codes = append(codes, codeConstants(spec)...)
			}
			return true
		})
	}
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
