//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The SDKs speak both eras with a real server: nine sessions, lists, calls, one that is taken back, eighty at a time,
// and a read of an unknown address. Those of Go are a module of their own, so that the product needs none of them.
func TestTheSDKsInBothEras(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2")
	server := serve(t, w, "CLAUDEOPS_MAX_TIER=2")
	secret := w.token(t, "--agent", "--tier", "2", "--name", "sdks")
	client := filepath.Join(t.TempDir(), "sdks")
	if got := run(t, program{path: "go", args: []string{"build", "-o", client, "."},
		dir: must.Get(filepath.Abs("sdks"))(t), env: os.Environ()}); got.code != 0 {
		t.Fatalf("go build: %s", got.stderr)
	}
	script := must.Get(filepath.Abs("sdks/typescript.mjs"))(t)
	for sdk, command := range map[string][]string{
		"official": {client, "official"}, "mcp-go": {client, "mcp-go"},
		"typescript": {installed(t, "node-linux-*/bin/node"), script},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(sdk+", "+era, func(t *testing.T) {
				got := run(t, program{path: command[0], dir: w.home,
					args: append(slices.Clone(command[1:]), era, server.url+"/mcp"),
					env:  []string{path(), "CLAUDEOPS_AGENT_TOKEN=" + secret}})
				if got.code != 0 {
					t.Errorf("exit %d: %s", got.code, got.stderr)
				}
			})
		}
	}
}
