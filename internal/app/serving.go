package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// servingFolder, in the state folder, has a file for each server that runs, which is locked as long as it does. It says
// by which rules the server judges. Doctor reads it; nothing is decided by it.
const servingFolder = "serving"

// servingOffset is the offset of the text in such a file: some systems prevent reading a locked range.
const servingOffset = 1

// maxServing bounds such a file, in bytes.
const maxServing = 16 << 10

// serving tells other processes on this machine which rules this server applies. The zero value tells none.
type serving struct {
	file     *os.File
	lastText []byte
	url      string // of the dashboard
	desk     *desk  // nil for none
}

// newServing makes the file. If it cannot be made it is left out: nothing else needs it.
func newServing(ctx context.Context, p *Parts, in signIn, at net.Addr) *serving {
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
	name := fmt.Sprintf("%d-%s", os.Getpid(), NewID())
	file, err := files.OpenLock(filepath.Join(folder, name))
	if err != nil {
		p.Log.Info("doctor does not see this server", "error", err)
		return &serving{}
	}
	if locked, err := files.TryLock(file, true); err != nil || !locked {
		_ = file.Close()
		return &serving{}
	}
	s := &serving{file: file, url: dashboardURL(p, at)}
	if s.desk, err = openDesk(ctx, p, in, at, name); err != nil {
		p.Log.Info("claudeops dashboard gets no address from this server", "error", err)
	}
	s.writeState(p.PolicyState())
	return s
}

// pollRules reads the rules and the secrets repeatedly until ctx is done, so that their problems are logged even
// without requests, and publishes the rules.
func (s *serving) pollRules(ctx context.Context, p *Parts) {
	ticker := time.NewTicker(policy.Every / 2) // so that nothing is older than one and a half times Every
	defer ticker.Stop()
	for {
		s.writeState(p.PolicyState())
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

func (s *serving) writeState(state policy.State) {
	text, err := json.Marshal(servingText{doctor.Server{PID: os.Getpid(), Rules: state}, s.url, s.desk.way()})
	if err != nil || s.file == nil || slices.Equal(text, s.lastText) || len(text) > maxServing {
		return
	}
	_, err = s.file.WriteAt(text, servingOffset)
	if err == nil && s.file.Truncate(int64(servingOffset+len(text))) == nil {
		s.lastText = text
	}
}

// servers returns the servers that run on this machine with this state folder. A server whose rules differ from those
// read here may not have seen the last change yet, and gets the time for that.
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

// servingTexts returns the texts of the running servers, by path.
func servingTexts(dir string) map[string][]byte {
	out := map[string][]byte{}
	for _, path := range servingFiles(dir) {
		if text, runs := readServing(path); runs && text != nil {
			out[path] = text
		}
	}
	return out
}

// endedServers returns the files of servers that run no more.
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
	if free, err := files.TryLock(file, false); err == nil && free {
		return nil, false
	}
	text = make([]byte, maxServing)
	n, _ := file.ReadAt(text, servingOffset) // the end of the file
	return text[:n], true
}
