package change

import (
	"crypto/sha256"
	"encoding/hex"
)

// Content is the content of a file. Bytes makes one of bytes; one of a file whose hash is known reads it only when its
// bytes are asked for.
type Content struct {
	hash  string
	bytes []byte
	read  func() ([]byte, error) // nil: bytes has them
}

// Bytes makes a Content.
func Bytes(b []byte) Content { return Content{hash: Hash(b), bytes: b} }

// SHA256 returns the content's hash in hexadecimal.
func (c Content) SHA256() string { return c.hash }

// Bytes returns the content's bytes. It returns an error if they do not match the hash any more.
func (c Content) Bytes() ([]byte, error) {
	if c.read == nil {
		return c.bytes, nil
	}
	b, err := c.read()
	if err == nil && Hash(b) != c.hash {
		return nil, NewError(Unexpected, "source_changed", []string{"retry_command"},
			"a module's file was changed while it was read; try again")
	}
	return b, err
}

// Hash returns the SHA-256 of bytes in hexadecimal.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
