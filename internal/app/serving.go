package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// servingFolder, in the state folder, has a file for each server that runs, which is locked as long as it does. It says
// by which rules the server judges. Doctor reads it; nothing is decided by it.
const servingFolder = "serving"

// servingOffset is where the text of such a file begins: some systems let nobody read what is locked.
const servingOffset = 1

// maxServing bounds such a file, in bytes.
const maxServing = 16 << 10

// serving tells others on this machine by which rules this server judges. The zero value tells nobody.
type serving struct {
	file *os.File
	said []byte
}

// newServing makes the file. It is of no use where it cannot be made, and nothing else needs it.
func newServing(p *Parts) *serving {
	dir := p.Cfg.Records.Dir
	if dir == "" {
		return &serving{}
	}
	folder := filepath.Join(dir, servingFolder)
	if err := files.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		p.Log.Info("doctor does not see this server", "error", err)
		return &serving{}
	}
	for _, path := range endedServers(dir) {
		_ = files.Remove(path)
	}
	file, err := files.OpenLock(filepath.Join(folder, fmt.Sprintf("%d-%s", os.Getpid(), NewID())))
	if err != nil {
		p.Log.Info("doctor does not see this server", "error", err)
		return &serving{}
	}
	if locked, err := filelock.Try(file, true); err != nil || !locked {
		_ = file.Close()
		return &serving{}
	}
	return &serving{file: file}
}

// keep asks for the rules and the secrets again and again until ctx is done, so that what is wrong with them is in
// the log even while nobody asks, and tells of the rules.
func (s *serving) keep(ctx context.Context, p *Parts) {
	ticker := time.NewTicker(policy.Every / 2) // so that nothing is older than one and a half times Every
	defer ticker.Stop()
	for {
		s.tell(p.PolicyState())
		p.secrets.Problems()
		select {
		case <-ctx.Done():
			if s.file != nil {
				_ = errors.Join(files.Remove(s.file.Name()), s.file.Close())
			}
			return
		case <-ticker.C:
		}
	}
}

func (s *serving) tell(state policy.State) {
	text, err := json.Marshal(doctor.Server{PID: os.Getpid(), Rules: state})
	if err != nil || s.file == nil || slices.Equal(text, s.said) || len(text) > maxServing {
		return
	}
	_, err = s.file.WriteAt(text, servingOffset)
	if err == nil && s.file.Truncate(int64(servingOffset+len(text))) == nil {
		s.said = text
	}
}

// servers are those that run on this machine with this state folder. One whose rules are other ones than those read
// here may not have seen yet what was just changed, and gets the time for that.
func (p *Parts) servers(ctx context.Context) (out []doctor.Server) {
	const patience, pause = 3 * policy.Every, 100 * time.Millisecond
	hash := p.PolicyState().Hash
	for waited := time.Duration(0); ; waited += pause {
		var settled bool
		if out, settled = readServers(p.Cfg.Records.Dir, hash); settled || waited >= patience {
			return out
		}
		transport.Sleep(ctx, pause)
		if ctx.Err() != nil {
			return out
		}
	}
}

// readServers also reports whether all of them have been read, and judge by the rules with the hash.
func readServers(dir, hash string) (out []doctor.Server, settled bool) {
	settled = true
	for _, text := range servingTexts(dir) {
		var s doctor.Server
		if json.Unmarshal(text, &s) != nil { // it is being written
			settled = false
			continue
		}
		out = append(out, s)
		settled = settled && s.Rules.Problem == "" && s.Rules.Hash == hash
	}
	return out, settled
}

// servingTexts are what the servers say that run, by path.
func servingTexts(dir string) map[string][]byte {
	out := map[string][]byte{}
	for _, path := range servingFiles(dir) {
		if text, runs := readServing(path); runs && text != nil {
			out[path] = text
		}
	}
	return out
}

// endedServers are the files of servers that run no more.
func endedServers(dir string) []string {
	return slices.DeleteFunc(servingFiles(dir), func(path string) bool {
		_, runs := readServing(path)
		return runs
	})
}

func servingFiles(dir string) []string {
	if dir == "" {
		return nil
	}
	return files.Glob(filepath.Join(dir, servingFolder), "*")
}

// readServing reads the file of a server. runs is true if it cannot be looked at, too.
func readServing(path string) (text []byte, runs bool) {
	file, err := files.OpenLock(path)
	if err != nil {
		return nil, true
	}
	defer func() { _ = file.Close() }()
	if free, err := filelock.Try(file, false); err == nil && free {
		return nil, false
	}
	text = make([]byte, maxServing)
	n, _ := file.ReadAt(text, servingOffset) // the end of the file
	return text[:n], true
}
