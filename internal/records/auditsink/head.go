package auditsink

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// maxLine bounds a line of a file of heads, in bytes. One of ours has some 150.
const maxLine = 64 << 10

// line returns a head as it is exported: one JSON object, and a line break.
func line(h record.Head) []byte {
	b, err := json.Marshal(struct {
		Seq  int64  `json:"seq"`
		Hash string `json:"hash"`
		Time string `json:"time"`
	}{h.Seq, h.Hash, h.Time.UTC().Format(time.RFC3339Nano)})
	if err != nil { // numbers and strings always marshal
		return nil
	}
	return append(b, '\n')
}

func lines(heads []record.Head) []byte {
	var b bytes.Buffer
	for _, h := range heads {
		b.Write(line(h))
	}
	return b.Bytes()
}

// parseLine reads a head that line has written.
func parseLine(text []byte) (record.Head, error) {
	var h struct {
		Seq  int64     `json:"seq"`
		Hash string    `json:"hash"`
		Time time.Time `json:"time"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return record.Head{}, errors.New("it is no head")
	}
	if decoder.More() || h.Seq < 1 || !isHash(h.Hash) {
		return record.Head{}, errors.New("it is no head")
	}
	return record.Head{Seq: h.Seq, Hash: h.Hash, Time: h.Time}, nil
}

func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 64 && s == strings.ToLower(s)
}

// ReadHeads reads heads that somebody has kept, in the order of the file. It understands lines of a sink, alone or at
// the end of a line of syslog, the log of `claudeops serve` in both of its forms, and what `claudeops audit verify
// --json` prints. Lines without a head are passed over, so that a whole log can be given; a file without any head is an
// error.
func ReadHeads(r io.Reader) ([]record.Head, error) {
	find := newHeadFinder()
	var out []record.Head
	var beginning bytes.Buffer
	scanner := bufio.NewScanner(io.TeeReader(r, &firstBytes{&beginning}))
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if h, ok := find.in(scanner.Text()); ok {
			out = append(out, h)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if h, ok := find.in(strings.ReplaceAll(beginning.String(), "\n", " ")); ok && len(out) == 0 {
		out = append(out, h) // one object on several lines
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no head")
	}
	return out, nil
}

// firstBytes keeps the first bytes that are written to it, as many as a line may have.
type firstBytes struct{ *bytes.Buffer }

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(maxLine-b.Len(), 0))])
	return len(p), nil
}

// headFinder finds the head in a line.
type headFinder struct{ number, hash *regexp.Regexp }

func newHeadFinder() headFinder {
	return headFinder{
		number: regexp.MustCompile(`(?:^|[\s{,])"?(?:head_)?seq"?(?:=|\s*:\s*)(\d{1,18})(?:[\s,}]|$)`),
		hash:   regexp.MustCompile(`(?:^|[\s{,])"?(?:hash|head)"?(?:=|\s*:\s*)"?([0-9a-f]{64})(?:["\s,}]|$)`),
	}
}

func (f headFinder) in(text string) (record.Head, bool) {
	number, hash := f.number.FindStringSubmatch(text), f.hash.FindStringSubmatch(text)
	if number == nil || hash == nil {
		return record.Head{}, false
	}
	seq, err := strconv.ParseInt(number[1], 10, 64)
	return record.Head{Seq: seq, Hash: hash[1]}, err == nil && seq > 0
}
