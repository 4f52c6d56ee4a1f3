package local

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // #nosec G505: git's own format
	"crypto/sha256"
	"encoding/binary"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// pack is a set of whole objects in the form of git's pack files (gitformat-pack(5)), for git unpack-objects.
type pack struct {
	sample  string // any object id of the repository; its length tells the object format
	objects bytes.Buffer
	count   uint32
	err     error // of the compression
}

// Numbers of the kinds of objects in a pack.
const (
	packedCommit = 1
	packedTree   = 2
	packedBlob   = 3
)

// add adds an object and returns its id.
func (p *pack) add(kind byte, name string, body []byte) string {
	p.count++
	size := len(body)
	head := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.objects.WriteByte(head | 0x80)
		head = byte(size & 0x7f)
	}
	p.objects.WriteByte(head)
	z := zlib.NewWriter(&p.objects)
	if _, err := z.Write(body); err != nil {
		p.err = err
	}
	if err := z.Close(); err != nil {
		p.err = err
	}
	return gitprovider.ObjectID(name, body, p.sample)
}

// bytes returns the whole pack: its head, the objects, and their hash.
func (p *pack) bytes() ([]byte, error) {
	out := append([]byte("PACK"), 0, 0, 0, 2) // version 2
	out = binary.BigEndian.AppendUint32(out, p.count)
	out = append(out, p.objects.Bytes()...)
	h := sha1.New() // #nosec G401: git's own format
	if len(p.sample) == sha256Len {
		h = sha256.New()
	}
	h.Write(out)
	return h.Sum(out), p.err
}
