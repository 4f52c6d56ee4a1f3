//go:build !postgres

package store

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// A process of a version that said nothing of itself is known by the file that it has open.
func TestAProcessThatSaysNothingOfItselfIsFoundByItsFile(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	file := must.Get(os.Open(filepath.Join(place, databaseName)))(t)
	cmd := exec.CommandContext(t.Context(), "sleep", "3600")
	cmd.Stdin = file
	wantEqual(t, cmd.Start(), nil)
	wantEqual(t, file.Close(), nil)
	_, err := openPlace(context.Background(), place, laterVersion(t, addTable))
	wantCode(t, err, fault.Misconfigured, "(sleep)", "End it")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	open(t, place, laterVersion(t, addTable))
}
