package deploy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// quiet remembers between processes the last plan that had nothing to change, with what the system said of all that it was made of: a
// process that asks again only asks about the files. It is a cache, as hashes is: damaged or missing, it costs time alone, and nothing
// that is about to be written believes it.
type quiet struct {
	file string // where it is kept; "" for nowhere

	mu    sync.Mutex
	kept  *seal      // that the file has
	tried bool       // the file was read
	known *quietPlan // what it had, as long as nothing has changed
}

// quietPlan is what is kept of a plan with nothing to change.
type quietPlan struct {
	question string // all that the plan depends on beside files
	targets  []TargetName
	warnings []string
	seals    []*seal
}

// maxQuietBytes bounds the file.
const maxQuietBytes = 64 << 20

// The file begins with a mark and the SHA-256 of what follows.
func quietMark() []byte { return []byte("claudeops unchanged 1\n") }

// question is all that a plan depends on beside files.
func (s *Service) question(r Request) string {
	p := s.setup.Places
	return fmt.Sprintf("%q", []string{
		s.version, s.setup.Home, p.Home, p.CodexHome, p.Project, fmt.Sprint(p.Trusted), s.setup.repo(r.Repo), cmp.Or(r.Profile, "default"), cmp.Or(r.Target, "all"),
		s.setup.machineID(r.Machine),
	})
}

// may reports whether there may be a plan that is kept.
func (q *quiet) may() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known != nil || !q.tried && q.file != ""
}

// again is the plan that is kept, if it is about the same question and nothing has changed; nil otherwise. The lock is held.
func (q *quiet) again(question string) *Plan {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.tried {
		q.tried, q.known = true, q.read()
	}
	known := q.known
	if known == nil || known.question != question {
		return nil
	}
	for _, s := range known.seals {
		if !s.same() {
			q.known = nil
			return nil
		}
	}
	for _, s := range known.seals {
		for _, folder := range s.used {
			touch(folder)
		}
	}
	return &Plan{Targets: known.targets, Warnings: slices.Clone(known.warnings)}
}

// keep writes a plan with nothing to change, unless the file has it.
func (q *quiet) keep(p quietPlan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := p.seals[len(p.seals)-1]
	if q.file == "" || q.kept == last {
		return
	}
	q.kept = last
	var out packer
	out.text(p.question)
	out.number(uint64(len(p.targets)))
	for _, t := range p.targets {
		out.text(string(t))
	}
	out.texts(p.warnings)
	out.number(uint64(len(p.seals)))
	for _, s := range p.seals {
		out.seal(s)
	}
	if len(out.b) <= maxQuietBytes {
		sum := sha256.Sum256(out.b)
		replaceCache(q.file, quietMark(), sum[:], out.b)
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

// read is what the file has; nil if it has nothing that can be used.
func (q *quiet) read() *quietPlan {
	info, err := os.Stat(q.file)
	if err != nil || info.Size() > maxQuietBytes {
		return nil
	}
	text, err := os.ReadFile(q.file)
	body, ok := bytes.CutPrefix(text, quietMark())
	if err != nil || !ok || len(body) < sha256.Size {
		return nil
	}
	if want := [sha256.Size]byte(body); sha256.Sum256(body[sha256.Size:]) != want {
		return nil
	}
	in := unpacker{rest: string(body[sha256.Size:])}
	p := &quietPlan{question: in.text()}
	for range in.number() {
		p.targets = append(p.targets, TargetName(in.text()))
	}
	p.warnings = in.texts()
	for range in.number() {
		p.seals = append(p.seals, in.seal())
	}
	if in.bad || len(p.seals) == 0 {
		return nil
	}
	return p
}

// packer writes texts and numbers one after the other.
type packer struct{ b []byte }

func (p *packer) number(n uint64) { p.b = binary.AppendUvarint(p.b, n) }

func (p *packer) text(s string) {
	p.number(uint64(len(s)))
	p.b = append(p.b, s...)
}

func (p *packer) texts(list []string) {
	p.number(uint64(len(list)))
	for _, s := range list {
		p.text(s)
	}
}

func (p *packer) yes(b bool) {
	p.b = append(p.b, 0)
	if b {
		p.b[len(p.b)-1] = 1
	}
}

func (p *packer) seal(s *seal) {
	p.texts(s.used)
	p.number(uint64(len(s.folders)))
	base := ""
	for _, f := range s.folders {
		if p.yes(f.base == base); f.base != base {
			p.text(f.base)
			base = f.base
		}
		p.text(f.rel)
		p.yes(f.absent)
		if p.yes(f.entries != nil); f.entries != nil {
			p.text(string(f.entries))
		}
		p.number(uint64(len(f.files)))
		for _, file := range f.files {
			p.text(file.name)
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

// number is bounded by what is left, so that nothing is made for what is not there.
func (u *unpacker) number() int {
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

func (u *unpacker) text() string { return u.bytes(u.number()) }

func (u *unpacker) texts() (out []string) {
	for range u.number() {
		out = append(out, u.text())
	}
	return out
}

func (u *unpacker) yes() bool { return u.bytes(1) == "\x01" }

func (u *unpacker) seal() *seal {
	s := &seal{used: u.texts()}
	base := ""
	for range u.number() {
		if !u.yes() {
			base = u.text()
		}
		f := sealedFolder{base: base, rel: u.text(), absent: u.yes()}
		if u.yes() {
			f.entries = []byte(u.text())
		}
		count := u.number()
		for range count {
			file := sealedFile{name: u.text(), link: u.yes()}
			if id := u.bytes(idBytes); !u.bad {
				file.id.decode([]byte(id))
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
