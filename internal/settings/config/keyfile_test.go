package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTheKeyIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	const callers = 16
	keys := make([][]byte, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			key, err := config.LoadMarkKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != config.KeySize || !bytes.Equal(key, keys[0]) {
			t.Fatalf("keys differ: %x and %x", key, keys[0])
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder holds %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAFileThatHoldsNoKeyIsAnErrorAndIsLeft(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "short": "abcd\n", "no hex": strings.Repeat("z", 64),
		"long": strings.Repeat("a", 66)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "mark.key")
			must.Do(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := config.LoadMarkKey(dir)
			if fault.CodeOf(err) != fault.Misconfigured || !strings.Contains(err.Error(), "mark.key") {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAFolderThatCannotBeMadeIsAnErrorThatNamesIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if _, err := config.LoadMarkKey(file); fault.CodeOf(err) != fault.Misconfigured || !strings.Contains(err.Error(),
		file) {
		t.Errorf("got %v", err)
	}
}
