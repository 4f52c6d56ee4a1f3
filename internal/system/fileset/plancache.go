package fileset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/system/files"
)

// PlanCache remembers between processes the last plan that had nothing to change, with the stat data of all its inputs:
// a process that asks again only asks about the files. It is a cache, as Hashes is: damaged or missing, it only costs
// time, and nothing that is about to be written relies on it.
type PlanCache struct {
	file string              // where it is kept; "" for nowhere
	used func(folder string) // is called with the folders whose use is noted

	mu    sync.Mutex
	kept  *StatCache // that the file has
	tried bool       // the file was read
	known *keptPlan  // what it had, as long as nothing has changed
}

// keptPlan is the cached part of a plan with nothing to change.
type keptPlan struct {
	question string // all that the plan depends on beside files
	targets  []TargetName
	warnings []string
	stats    []*StatCache
}

// maxCacheBytes bounds the file.
const maxCacheBytes = 64 << 20

// The file begins with a mark and the SHA-256 of what follows.
func planMark() []byte { return []byte("claudeops unchanged 1\n") }

// NewPlanCache keeps a plan in a file; "" for nowhere. used is called with the folders whose use is noted.
func NewPlanCache(file string, used func(folder string)) *PlanCache {
	return &PlanCache{file: file, used: used}
}

// Keep keeps what is answered to a question as long as the system says the same of all that the stats recorded.
func (q *PlanCache) Keep(question string, targets []TargetName, warnings []string, stats []*StatCache) {
	q.savePlan(keptPlan{question, targets, warnings, stats})
}

// CanAnswer reports whether there may be a plan that is kept.
func (q *PlanCache) CanAnswer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known != nil || !q.tried && q.file != ""
}

// Again returns the plan that is kept, if it is about the same question and nothing has changed; nil otherwise. The
// lock is held.
func (q *PlanCache) Again(question string) *Plan {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.tried {
		q.tried, q.known = true, q.loadPlan()
	}
	known := q.known
	if known == nil || known.question != question {
		return nil
	}
	for _, s := range known.stats {
		if !s.Same() {
			q.known = nil
			return nil
		}
	}
	for _, s := range known.stats {
		for _, folder := range s.used {
			q.used(folder)
		}
	}
	return &Plan{Targets: known.targets, Warnings: slices.Clone(known.warnings)}
}

// savePlan writes a plan with nothing to change, unless the file has it.
func (q *PlanCache) savePlan(p keptPlan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := p.stats[len(p.stats)-1]
	if q.file == "" || q.kept == last {
		return
	}
	q.kept = last
	var out packer
	out.putText(p.question)
	out.putNumber(uint64(len(p.targets)))
	for _, t := range p.targets {
		out.putText(string(t))
	}
	out.texts(p.warnings)
	out.putNumber(uint64(len(p.stats)))
	for _, s := range p.stats {
		out.stat(s)
	}
	if len(out.b) <= maxCacheBytes {
		sum := sha256.Sum256(out.b)
		replaceCache(q.file, planMark(), sum[:], out.b)
	}
}

// replaceCache replaces a file of the cache at once, if that is possible.
func replaceCache(name string, parts ...[]byte) {
	if os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return
	}
	_, err = f.Write(bytes.Join(parts, nil))
	if f.Close() != nil || err != nil || os.Rename(f.Name(), name) != nil {
		_ = os.Remove(f.Name())
	}
}

// loadPlan returns the file's contents; nil if it has none that can be used.
func (q *PlanCache) loadPlan() *keptPlan {
	text, _, err := files.ReadPath(q.file, maxCacheBytes)
	body, ok := bytes.CutPrefix(text, planMark())
	if err != nil || !ok || len(body) < sha256.Size {
		return nil
	}
	if want := [sha256.Size]byte(body); sha256.Sum256(body[sha256.Size:]) != want {
		return nil
	}
	in := unpacker{rest: string(body[sha256.Size:])}
	p := &keptPlan{question: in.takeText()}
	for range in.takeNumber() {
		p.targets = append(p.targets, TargetName(in.takeText()))
	}
	p.warnings = in.texts()
	for range in.takeNumber() {
		p.stats = append(p.stats, in.stat())
	}
	if in.bad || len(p.stats) == 0 {
		return nil
	}
	return p
}

// packer writes texts and numbers one after the other.
type packer struct{ b []byte }

func (p *packer) putNumber(n uint64) { p.b = binary.AppendUvarint(p.b, n) }

func (p *packer) putText(s string) {
	p.putNumber(uint64(len(s)))
	p.b = append(p.b, s...)
}

func (p *packer) texts(list []string) {
	p.putNumber(uint64(len(list)))
	for _, s := range list {
		p.putText(s)
	}
}

func (p *packer) yes(b bool) {
	p.b = append(p.b, 0)
	if b {
		p.b[len(p.b)-1] = 1
	}
}

func (p *packer) stat(s *StatCache) {
	p.texts(s.used)
	p.putNumber(uint64(len(s.folders)))
	base := ""
	for _, f := range s.folders {
		if p.yes(f.base == base); f.base != base {
			p.putText(f.base)
			base = f.base
		}
		p.putText(f.rel)
		p.yes(f.absent)
		if p.yes(f.entries != nil); f.entries != nil {
			p.putText(string(f.entries))
		}
		p.putNumber(uint64(len(f.files)))
		for _, file := range f.files {
			p.putText(file.name)
			p.yes(file.link)
			p.b = file.id.encode(p.b)
		}
	}
}

// unpacker reads what packer wrote. bad says that it cannot be; everything that is read then is empty.
type unpacker struct {
	rest string
	bad  bool
}

// takeNumber reads a number, bounded by the remaining bytes, so that no space is allocated for missing data.
func (u *unpacker) takeNumber() int {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		b := u.bytes(1)
		if u.bad {
			return 0
		}
		n |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			break
		}
	}
	if n > uint64(len(u.rest)) {
		u.bad, u.rest = true, ""
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

func (u *unpacker) bytes(n int) string {
	if n > len(u.rest) {
		u.bad, u.rest = true, ""
		return ""
	}
	out := u.rest[:n]
	u.rest = u.rest[n:]
	return out
}

func (u *unpacker) takeText() string { return u.bytes(u.takeNumber()) }

func (u *unpacker) texts() (out []string) {
	for range u.takeNumber() {
		out = append(out, u.takeText())
	}
	return out
}

func (u *unpacker) yes() bool { return u.bytes(1) == "\x01" }

func (u *unpacker) stat() *StatCache {
	s := &StatCache{used: u.texts()}
	base := ""
	for range u.takeNumber() {
		if !u.yes() {
			base = u.takeText()
		}
		f := StatFolder{base: base, rel: u.takeText(), absent: u.yes()}
		if u.yes() {
			f.entries = []byte(u.takeText())
		}
		count := u.takeNumber()
		for range count {
			file := statFile{name: u.takeText(), link: u.yes()}
			if id := u.bytes(idBytes); !u.bad {
				file.id.unpack([]byte(id))
			}
			f.files = append(f.files, file)
		}
		if u.bad {
			break
		}
		s.folders = append(s.folders, f)
	}
	return s
}

// lastUnchanged is the last plan that had nothing to change, as long as the same is desired and in place.
type lastUnchanged struct {
	mu   sync.Mutex
	plan *Plan
	last *Snapshot
	stat *StatCache
	// state is of the snapshots; it may be broken.
	state *StatCache
}

// stats returns the stat caches of a plan of what is desired, and its warnings, if it had nothing to change.
func (l *lastUnchanged) stats(desired *Desired) (stats []*StatCache, warnings []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || !l.state.Whole() {
		return nil, nil
	}
	return []*StatCache{l.state, l.stat}, l.plan.Warnings
}

// lookup returns the plan of what is desired, if nothing has to be changed; nil if it has to be made.
func (l *lastUnchanged) lookup(desired *Desired, last *Snapshot) *Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.desired != desired || l.last != last || !l.stat.Same() {
		l.plan, l.last, l.stat, l.state = nil, nil, nil, nil
		return nil
	}
	return l.plan.cloneWarnings()
}

func (p *Plan) cloneWarnings() *Plan {
	same := *p
	same.Warnings = slices.Clone(p.Warnings)
	return &same
}

func (l *lastUnchanged) store(p *Plan, last *Snapshot, s, state *StatCache) {
	if len(p.Changes) > 0 || len(p.kept) > 0 || !s.Whole() {
		return
	}
	for key := range p.held.managed { // of which more was looked at than what is desired
		if _, wanted := p.desired.Files[key]; !wanted {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plan, l.last, l.stat, l.state = p.cloneWarnings(), last, s, state
}

// filesOf returns the files that a plan looks at if nothing else is in place, sorted.
func filesOf(d *Desired) []string {
	out := make([]string, 0, len(d.Files)+2*len(d.Roots))
	for key := range d.Files {
		out = append(out, key.Path)
	}
	for _, r := range d.Roots {
		out = append(out, ManifestPath(r.Dir, r.Target), filepath.Join(r.Dir, legacyManifest))
	}
	slices.SortFunc(out, func(a, b string) int { // the files of a folder together
		if c := strings.Compare(parentFolder(a), parentFolder(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}
