package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

func TestAPingNeedsGitAndTheRoot(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		root string
		opts local.Options
		code fault.Code
	}{
		"both are there":       {root, local.Options{}, ""},
		"there is no root":     {filepath.Join(root, "none"), local.Options{}, fault.ProviderDisabled},
		"the root is a file":   {file, local.Options{}, fault.ProviderDisabled},
		"there is no such git": {root, local.Options{Git: filepath.Join(root, "none")}, fault.ProviderDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := local.New(tt.root, nil, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Ping(t.Context()); fault.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %q", err, tt.code)
			}
		})
	}
}
