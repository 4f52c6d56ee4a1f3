package auditsink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Hashes gives the hashes of rows by their numbers.
type Hashes interface {
	HashesOf(ctx context.Context, seqs []int64) (map[int64]string, error)
}

// Compare compares the audit with heads that somebody has kept. against names who, for people.
func Compare(ctx context.Context, audit Hashes, against string, heads []record.Head) (record.HeadCheck, error) {
	c := comparison{audit: audit, check: record.HeadCheck{Against: against, Result: record.HeadsAgree}}
	for _, h := range heads {
		if err := c.add(ctx, h); err != nil {
			return c.check, err
		}
	}
	return c.done(ctx)
}

// comparison compares heads with the audit, some at a time.
type comparison struct {
	audit   Hashes
	check   record.HeadCheck
	waiting []record.Head
}

func (c *comparison) add(ctx context.Context, h record.Head) error {
	c.waiting = append(c.waiting, h)
	if len(c.waiting) < atOnce {
		return nil
	}
	return c.flush(ctx)
}

func (c *comparison) flush(ctx context.Context) error {
	seqs := make([]int64, len(c.waiting))
	for i, h := range c.waiting {
		seqs[i] = h.Seq
	}
	hashes, err := c.audit.HashesOf(ctx, seqs)
	if err != nil {
		return err
	}
	for _, h := range c.waiting {
		c.check.Heads++
		c.check.LastSeq = max(c.check.LastSeq, h.Seq)
		switch hash, there := hashes[h.Seq]; {
		case !there:
			c.differs(h.Seq, "it has the head of row %d, which the audit does not have: rows were cut off its end", h.Seq)
		case hash != h.Hash:
			c.differs(h.Seq,
				"it has another hash of row %d than the audit: the chain was written anew, or what was kept was altered",
				h.Seq)
		}
	}
	c.waiting = c.waiting[:0]
	return nil
}

// differs notes a difference; that in the lowest row stays.
func (c *comparison) differs(seq int64, format string, args ...any) {
	if c.check.Result != record.HeadsDiffer || seq < c.check.FirstBad {
		c.check.Result, c.check.FirstBad, c.check.Detail = record.HeadsDiffer, seq, fmt.Sprintf(format, args...)
	}
}

func (c *comparison) done(ctx context.Context) (record.HeadCheck, error) {
	err := c.flush(ctx)
	return c.check, err
}

// Check compares the audit with what every sink holds, and says which cannot be read. Of files it reads the lines from
// the row after on; 0 is all of them.
func (e *Exporter) Check(ctx context.Context, after int64) (out []record.HeadCheck, err error) {
	for _, t := range e.sinks {
		check := record.HeadCheck{Against: "sink " + t.name(), Result: record.HeadsUnchecked,
			Detail: "this sink cannot be read back; give what it has kept with `claudeops audit verify --heads FILE`"}
		if file, ok := t.sink.(fileSink); ok {
			if check, err = e.checkFile(ctx, file, after); err != nil {
				return nil, err
			}
		}
		out = append(out, check)
	}
	return out, nil
}

func (e *Exporter) checkFile(ctx context.Context, s fileSink, after int64) (record.HeadCheck, error) {
	c := comparison{audit: e.audit, check: record.HeadCheck{Against: "sink " + s.name(), Result: record.HeadsAgree}}
	noted, err := e.audit.Export(ctx, s.name()) // before the file is read, so that it has at least that much
	if err != nil {
		return c.check, err
	}
	f, _, err := files.OpenPath(s.path)
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrNotRegular)
	switch {
	case gone && noted.Last.Seq == 0:
		c.check.Result, c.check.Detail = record.HeadsUnchecked, "nothing was exported to it yet"
		return c.check, nil
	case gone:
		c.differs(noted.Last.Seq, "it is gone, and had taken row %d", noted.Last.Seq)
		return c.check, nil
	case err != nil:
		c.check.Result, c.check.Detail = record.HeadsUnchecked, "it cannot be read: "+reasonOf(err).Error()
		return c.check, nil
	}
	defer func() { _ = f.Close() }()
	r := &fileReader{comparison: &c, next: 1}
	err = r.skipTo(f, noted.Last.Seq, after)
	if err == nil {
		err = r.readHeads(ctx, f)
	}
	if err != nil {
		var failed *fault.Error
		if errors.As(err, &failed) { // of the audit
			return c.check, err
		}
		c.check.Result, c.check.Detail = record.HeadsUnchecked, "it cannot be read: "+reasonOf(err).Error()
		return c.check, nil
	}
	check, err := c.done(ctx)
	c.check = check
	if c.check.LastSeq < noted.Last.Seq {
		c.differs(c.check.LastSeq+1, "it ends with row %d, and had taken row %d: lines were cut off", c.check.LastSeq,
			noted.Last.Seq)
	}
	return c.check, err
}

// fileReader reads the lines of a file of a sink, which has every row once and in order.
type fileReader struct {
	*comparison
	next   int64 // the row that the next line is of; 0 for any
	number int   // of the line
}

// skipTo begins so near to the end that the rows after a number are read, and not many before.
func (r *fileReader) skipTo(f *os.File, newest, after int64) error {
	if after <= 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const longLine, slack = 200, 200
	from := info.Size() - (max(newest-after, 0)+slack)*longLine
	if from <= 0 {
		return nil
	}
	r.next = 0
	_, err = f.Seek(from, io.SeekStart)
	return err
}

func (r *fileReader) readHeads(ctx context.Context, f io.Reader) error {
	in := bufio.NewReaderSize(f, maxLine)
	if r.next == 0 {
		if _, err := in.ReadSlice('\n'); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	for {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) { // what has no line break yet is being written, or its writer was killed
			return nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			r.differs(max(r.next, 1), "line %d is none that claudeops has written: it was altered", r.number+1)
			return nil
		}
		if err != nil {
			return err
		}
		r.number++
		if err := r.readHead(ctx, bytes.TrimSuffix(text, []byte("\n"))); err != nil {
			return err
		}
	}
}

func (r *fileReader) readHead(ctx context.Context, text []byte) error {
	h, err := parseLine(text)
	switch {
	case err != nil && isTorn(text):
		return nil // the same head follows
	case err != nil:
		r.differs(max(r.next, 1), "line %d is none that claudeops has written: it was altered", r.number)
		return nil
	case r.next > 0 && h.Seq > r.next:
		r.differs(r.next, "the heads of rows %d to %d are missing before line %d: it was altered", r.next, h.Seq-1, r.number)
	}
	r.next = h.Seq + 1
	return r.add(ctx, h)
}

// Unchecked returns the result for heads that could not be read.
func Unchecked(against string, why error) record.HeadCheck {
	return record.HeadCheck{Against: against, Result: record.HeadsUnchecked,
		Detail: strings.TrimSpace(fault.From(why).Message)}
}

// maxLine bounds a line of a file of heads, in bytes. One of ours has some 150.
const maxLine = 64 << 10

// formatHead returns a head as it is exported: one JSON object, and a line break.
func formatHead(h record.Head) []byte {
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
		b.Write(formatHead(h))
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
		return record.Head{}, errors.New("it is not a head")
	}
	if decoder.More() || h.Seq < 1 || !isHash(h.Hash) {
		return record.Head{}, errors.New("it is not a head")
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
		if h, ok := find.headIn(scanner.Text()); ok {
			out = append(out, h)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if h, ok := find.headIn(strings.ReplaceAll(beginning.String(), "\n", " ")); ok && len(out) == 0 {
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

func (f headFinder) headIn(text string) (record.Head, bool) {
	number, hash := f.number.FindStringSubmatch(text), f.hash.FindStringSubmatch(text)
	if number == nil || hash == nil {
		return record.Head{}, false
	}
	seq, err := strconv.ParseInt(number[1], 10, 64)
	return record.Head{Seq: seq, Hash: hash[1]}, err == nil && seq > 0
}
