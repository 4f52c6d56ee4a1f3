package fileset

import (
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/system/files"
)

// StatCache holds stat data of the inputs of a plan. It is valid while none of them changed, so that a plan with
// nothing to do costs what asking about its files costs. A nil one records nothing, and is never valid.
type StatCache struct {
	before time.Time // files that were changed since, or less than settled before, are not recorded

	mu      sync.Mutex
	broken  bool // something cannot be recorded
	count   int
	folders []StatFolder
	used    []string // folders of the cache, whose use is noted
}

// StatFolder is a folder with those of its files that matter.
type StatFolder struct {
	base, rel string // rel with slashes, below base; no link is followed out of base
	absent    bool
	entries   []byte // as the system lists them; nil if only the files matter
	files     []statFile
}

type statFile struct {
	name string
	link bool   // a symbolic link; id is of the file that it leads to
	id   fileID // nothing of it is set for a file that is not there
}

func newStatCache(now time.Time) *StatCache { return &StatCache{before: now.Add(-settled)} }

// NewStatCache records what is read from now on.
func (h *Hashes) NewStatCache() *StatCache { return newStatCache(h.now()) }

// Fail says that what is made depends on something that is not recorded.
func (s *StatCache) Fail() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.folders = true, nil
}

// Whole reports whether everything is recorded.
func (s *StatCache) Whole() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.broken
}

// recordFolders records folders; some is false if not everything could be asked.
func (s *StatCache) recordFolders(folders []StatFolder, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range folders {
		s.count += len(f.files)
		for _, file := range f.files {
			all = all && max(file.id.Changed, file.id.Status) <= s.before.UnixNano()
		}
	}
	if s.broken = s.broken || !all || s.count > maxHashes; s.broken {
		s.folders = nil
		return
	}
	s.folders = append(s.folders, folders...)
}

// Tree records everything at a path below a base, whatever it is, or that it is not there. It returns what it recorded;
// nil if not all of that is possible.
func (s *StatCache) Tree(base, rel string) []StatFolder {
	if s == nil || !s.Whole() {
		return nil
	}
	at, ok := openBase(base)
	if !ok {
		s.Fail()
		return nil
	}
	defer at.close()
	w := statter{at: at, base: base}
	all := w.tree(path.Clean(filepath.ToSlash(rel)), 0)
	s.recordFolders(w.folders, all)
	if !all {
		return nil
	}
	return w.folders
}

// Use is like tree for a folder of the cache, and records its use each time.
func (s *StatCache) Use(folder, rel string) []StatFolder {
	if s == nil {
		return nil
	}
	recorded := s.Tree(folder, rel)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, folder)
	return recorded
}

// Used returns the folders that Use recorded.
func (s *StatCache) Used() []string { return s.used }

// identities records files, those of a folder together, which may be missing. It returns the stat data of each.
func (s *StatCache) identities(d disk, names []string) map[string]fileID {
	ids := make(map[string]fileID, len(names))
	var at handle
	open, last := false, ""
	defer func() {
		if open {
			at.close()
		}
	}()
	for len(names) > 0 && s.Whole() {
		dir := parentFolder(names[0])
		end := slices.IndexFunc(names, func(n string) bool { return parentFolder(n) != dir })
		if end < 0 {
			end = len(names)
		}
		base, rel, ok := d.baseOf(dir)
		if !open || base != last {
			if open {
				at.close()
			}
			at, open = openBase(base)
			last = base
		}
		if !ok || !open {
			s.Fail()
			break
		}
		folder, ok := at.statFiles(base, rel, names[:end])
		s.recordFolders([]StatFolder{folder}, ok)
		for i, file := range folder.files {
			ids[names[i]] = file.id
		}
		names = names[end:]
	}
	return ids
}

// parentFolder is filepath.Dir for a clean path.
func parentFolder(name string) string {
	return name[:max(strings.LastIndexByte(name, filepath.Separator), 1)]
}

// Same reports whether all stat data are unchanged. It checks in several goroutines.
func (s *StatCache) Same() bool {
	if !s.Whole() || len(s.folders) == 0 {
		return false
	}
	var group errgroup.Group
	size := (len(s.folders) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	for part := range slices.Chunk(s.folders, size) {
		group.Go(func() error {
			if !sameFolders(part) {
				return errChanged{}
			}
			return nil
		})
	}
	return group.Wait() == nil
}

type errChanged struct{}

// Error implements error.
func (errChanged) Error() string { return "changed" }

// sameFolders is same for some folders.
func sameFolders(folders []StatFolder) bool {
	var at handle
	open, base := false, ""
	defer func() {
		if open {
			at.close()
		}
	}()
	buffer := make([]byte, 64<<10)
	for _, f := range folders {
		if !open || f.base != base {
			if open {
				at.close()
			}
			if at, open = openBase(f.base); !open {
				return false
			}
			base = f.base
		}
		if !f.isUnchanged(at, buffer) {
			return false
		}
	}
	return true
}

// plainSize reports whether a file of a size is read.
func (id fileID) plainSize() bool { return id.Size <= MaxFileBytes }

// RecordedTree returns the tree that was recorded; nil if not all of its hashes are known, or it is too much. root is
// its base, rel where it is.
func RecordedTree(root *files.Dir, rel string, recorded []StatFolder, known *Hashes) Tree {
	if known == nil || recorded == nil {
		return nil
	}
	r := treeReader{root: root, tree: Tree{}, known: known}
	rel = path.Clean(filepath.ToSlash(rel))
	for _, f := range recorded {
		var inner string // below the tree
		switch {
		case f.absent:
			return nil
		case f.entries != nil:
			inner = strings.TrimPrefix(strings.TrimPrefix(f.rel, rel), "/") // "" of the tree's own folder
			if rel == "." && f.rel != "." {
				inner = f.rel
			}
		}
		if inner == ".agentpack" || strings.HasPrefix(inner, ".agentpack/") || strings.Contains(inner, "/.agentpack") ||
			!plainNames(inner) {
			return nil
		}
		dir := filepath.Join(root.Name(), filepath.FromSlash(f.rel))
		for _, file := range f.files {
			full := dir + string(filepath.Separator) + file.name
			hash, ok := known.knownHash(full, file.id)
			if r.bytes += file.id.Size; !ok || !plainNames(file.name) || !file.id.plainSize() || r.bytes > maxTreeBytes ||
				len(r.tree) == maxTreeFiles {
				return nil
			}
			r.tree[path.Join(inner, file.name)] = TreeFile{Content: r.later(full, hash), size: file.id.Size,
				Executable: file.id.Mode&0o100 != 0}
		}
	}
	return r.tree
}

// plainNames reports whether ReadTree takes a path below a tree; what it refuses is left to it.
func plainNames(rel string) bool {
	for name := range strings.SplitSeq(rel, "/") {
		if files.CheckName(name) != nil {
			return false
		}
	}
	return true
}
